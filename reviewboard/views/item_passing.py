"""What the holder of an item does instead of deciding it: skips it, hands it over by name, escalates it to a lead."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.people import Held, HoldingOutcome
from reviewboard.item_forms import HandOverForm, PassForm
from reviewboard.item_page import keep_key
from reviewboard.views.access import item_to_decide
from reviewboard.views.desk import KEPT_CLEAR
from reviewboard.views.item import refused
from reviewboard.views.item_acts import go, onward
from reviewboard.views.permits import needs, person_of


@require_POST
@needs("decide_item")
def skip(request: HttpRequest, pk: int) -> HttpResponse:
    return _pass_on(request, pk, "skip_form", people.skip, _("Skipped. Take next offers it to others."))


@require_POST
@needs("decide_item")
def escalate(request: HttpRequest, pk: int) -> HttpResponse:
    return _pass_on(request, pk, "escalate_form", people.escalate, _("Escalated: only leads take it now."))


def _pass_on(request: HttpRequest, pk: int, name: str, verb: Callable[..., Held], done: str) -> HttpResponse:
    item = item_to_decide(request, pk)
    form = PassForm(request.POST, auto_id=f"id_{name.removesuffix('_form')}_%s")
    if not form.is_valid():
        return refused(request, pk, status=422, changed={name: form}, typed=form.data.get("reason", ""))
    reason = form.cleaned_data["reason"]
    held = verb(form.token(pk), person=person_of(request), reason=reason, clock=DATABASE_CLOCK)
    if held.outcome == HoldingOutcome.STALE:
        return refused(request, pk, status=409, typed=reason)
    request.session[KEPT_CLEAR] = keep_key(item)
    messages.success(request, done)
    return onward(request)


@require_POST
@needs("decide_item")
def hand_over(request: HttpRequest, pk: int) -> HttpResponse:
    item, person = item_to_decide(request, pk), person_of(request)
    form = HandOverForm(request.POST, person=person, item=item, auto_id="id_hand_over_%s")
    if not form.is_valid():
        return refused(request, pk, status=422, changed={"hand_over_form": form}, typed=form.data.get("reason", ""))
    to, reason = form.cleaned_data["to"], form.cleaned_data["reason"]
    try:
        held = people.hand_over(form.token(pk), person=person, to=to, reason=reason, clock=DATABASE_CLOCK)
    except InvalidRequest:
        form.add_error("to", _("%(name)s may not decide this item any more.") % {"name": to.get_username()})
        return refused(request, pk, status=422, changed={"hand_over_form": form}, typed=form.data.get("reason", ""))
    if held.outcome == HoldingOutcome.HANDS_FULL:
        form.add_error("to", _hands_full(to.get_username(), held.most_held or 0))
        return refused(request, pk, status=422, changed={"hand_over_form": form}, typed=form.data.get("reason", ""))
    if held.outcome != HoldingOutcome.HANDED_OVER:
        return refused(request, pk, status=409, typed=reason)
    request.session[KEPT_CLEAR] = keep_key(item)
    messages.success(request, _("Handed over to %(name)s.") % {"name": to.get_username()})
    return go(request, reverse("desk"))


def _hands_full(name: str, most: int) -> str:
    return ngettext(
        "%(name)s holds %(most)d item already, which is all that one may.",
        "%(name)s holds %(most)d items already, which is all that one may.",
        most,
    ) % {"name": name, "most": most}
