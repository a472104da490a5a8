"""Restricted evidence at the desk: shown after its purpose is on record, and set apart by whoever meets it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from queue_core.clock import DATABASE_CLOCK
from queue_core.people import restricting
from queue_core.people.restricting import RestrictOutcome
from reviewboard.evidence_view import content_of
from reviewboard.item_forms import TokenForm
from reviewboard.item_page import keep_key
from reviewboard.keeping_forms import LookForm
from reviewboard.views.access import item_of_right, item_to_decide
from reviewboard.views.desk import KEPT_CLEAR
from reviewboard.views.item import TEMPLATE, page_of, refused
from reviewboard.views.permits import needs, person_of


@require_POST
@needs("view_restricted")
def look(request: HttpRequest, pk: int) -> HttpResponse:
    """The item's page with its restricted content. It is asked for anew at each look: nothing of it is an address."""
    item_of_right(request, pk, "decide_item", "view_restricted", "view_evidence")
    form = LookForm(request.POST, auto_id="id_look_%s")
    if not form.is_valid():
        return refused(request, pk, status=422, changed={"look_form": form})
    person, purpose = person_of(request), form.cleaned_data["purpose"]
    evidence = restricting.look(form.token(pk), person=person, purpose=purpose, clock=DATABASE_CLOCK)
    if evidence is None:
        return refused(request, pk, status=409)
    return render(request, TEMPLATE, page_of(request, pk) | {"content": content_of(evidence)})


@require_POST
@needs("decide_item")
def restrict_and_leave(request: HttpRequest, pk: int) -> HttpResponse:
    item = item_to_decide(request, pk)
    form = TokenForm(request.POST)
    if not form.is_valid():
        return refused(request, pk, status=422)
    key = keep_key(item)
    done = restricting.restrict_and_leave(form.token(pk), person=person_of(request), clock=DATABASE_CLOCK)
    if done.outcome != RestrictOutcome.RESTRICTED:
        return refused(request, pk, status=409)
    request.session[KEPT_CLEAR] = key
    messages.success(request, _("The content is restricted now, and the item is out of your hands."))
    return redirect("desk")
