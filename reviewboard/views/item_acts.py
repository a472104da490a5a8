"""What the holder of an item does with it. Each act is judged by its verb under the item's lock, never by the page."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.models import Item
from queue_core.people import Held, HoldingOutcome, Resolved, ResolveOutcome
from queue_core.states import ItemKind, Verdict
from reviewboard.item_forms import DecideForm, RequeueForm, TokenForm
from reviewboard.item_page import forms_of, keep_key
from reviewboard.lengths import length_of
from reviewboard.live import wants_partial
from reviewboard.shapes import Conflict
from reviewboard.views.access import item_of_right, item_to_decide
from reviewboard.views.desk import KEPT_CLEAR, not_taken
from reviewboard.views.item import refused, time_left
from reviewboard.views.permits import needs, person_of
from reviewboard.wellness import hidden_categories


@require_POST
@needs("decide_item")
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    item = item_to_decide(request, pk)
    form = DecideForm(request.POST, item=item)
    if not form.is_valid():
        return _again(request, pk, form) if "key" in request.POST else _lost(request, pk, form)
    data = form.cleaned_data
    try:
        resolved = people.resolve(
            form.token(pk),
            person=person_of(request),
            verdict=Verdict(data["verdict"]),
            reason_code=data["reason_code"] or None,
            note=data["note"],
            proposed_by=data["proposed_by"],
            clock=DATABASE_CLOCK,
        )
    except InvalidRequest as mistake:
        form.add_error(mistake.field if mistake.field in form.fields else None, str(mistake))
        return _again(request, pk, form)
    if resolved.outcome not in (ResolveOutcome.DECIDED, ResolveOutcome.CHECKED, ResolveOutcome.ALREADY):
        return _lost(request, pk, form)
    request.session[KEPT_CLEAR] = keep_key(item)
    messages.success(request, _decided_text(resolved, item))
    return onward(request)


def _decided_text(resolved: Resolved, item: Item) -> str:
    if resolved.outcome == ResolveOutcome.CHECKED and item.kind == ItemKind.SECOND_LOOK:
        return _("Your second look is kept. Where two people disagree a lead decides.")
    if resolved.outcome == ResolveOutcome.CHECKED:
        return _("Checked: you decided as the model had. Its decision stands.")
    verdict = resolved.decision.verdict if resolved.decision is not None else ""
    if resolved.outcome == ResolveOutcome.ALREADY:
        return _("You had decided this item already: %(verdict)s.") % {"verdict": verdict}
    return _("Decided: %(verdict)s.") % {"verdict": verdict}


def onward(request: HttpRequest) -> HttpResponse:
    """To the next item where that was asked for, else to the desk."""
    if request.POST.get("then") != "next" or "pause" in request.POST:
        return go(request, reverse("desk"))
    person = person_of(request)
    taken = people.take_next(person=person, without_categories=hidden_categories(person), clock=DATABASE_CLOCK)
    if taken.token is not None:
        return go(request, reverse("item", args=[taken.token.item]))
    messages.info(request, not_taken(taken, person))
    return go(request, reverse("desk"))


def go(request: HttpRequest, url: str) -> HttpResponse:
    return HttpResponseClientRedirect(url) if wants_partial(request) else redirect(url)


def _again(request: HttpRequest, pk: int, form: DecideForm) -> HttpResponse:
    """422: the same form with its mistakes, if the item is still theirs; its token is the one of now."""
    return refused(request, pk, status=422, changed={"form": form}, typed=form.data.get("note", ""))


def _lost(request: HttpRequest, pk: int, form: DecideForm) -> HttpResponse:
    """409. One who took the item again gets the form with the new token and what they typed, to look once more."""
    person, item = person_of(request), item_to_decide(request, pk)
    changed: dict[str, Any] = {}
    if item.taken_by_id == person.pk and item.closed_at is None:
        fresh = forms_of(item, person)
        changed = fresh | {"form": DecideForm(dict(form.data.items()) | fresh["token"], item=item)}
    return refused(request, pk, status=409, changed=changed, typed=form.data.get("note", ""))


@require_POST
@needs("requeue_item")
def requeue(request: HttpRequest, pk: int) -> HttpResponse:
    item = item_of_right(request, pk, "requeue_item", "decide_item")
    form = RequeueForm(request.POST, auto_id="id_requeue_%s")
    if not form.is_valid():
        return refused(request, pk, status=422, changed={"requeue_form": form}, typed=form.data.get("reason", ""))
    now = DATABASE_CLOCK.now()
    resolved = people.resolve_requeue(
        form.token(pk),
        person=person_of(request),
        deadline=now + length_of(form.cleaned_data["deadline"]),
        reason=form.cleaned_data["reason"],
        clock=DATABASE_CLOCK,
    )
    if resolved.outcome not in (ResolveOutcome.REQUEUED, ResolveOutcome.ALREADY):
        return _not_requeued(request, pk, resolved, form.cleaned_data["reason"])
    request.session[KEPT_CLEAR] = keep_key(item)
    messages.success(request, _("Requeued: the model reviews it again, with a new deadline and a new budget."))
    return onward(request)


def _not_requeued(request: HttpRequest, pk: int, resolved: Resolved, reason: str) -> HttpResponse:
    changed: dict[str, Any] = {}
    if resolved.outcome == ResolveOutcome.NOT_ALLOWED_IN_STATE:
        what = _("Only a job that died by its deadline or its attempts goes back to the machine. Nothing was changed.")
        changed = {"conflict": Conflict(what=what)}
    return refused(request, pk, status=409, changed=changed, typed=reason)


@require_POST
@needs("decide_item")
def extend(request: HttpRequest, pk: int) -> HttpResponse:
    """Only the time is swapped, so that nothing typed is touched; without JavaScript the page comes back with it."""
    held = _hold(request, pk, people.extend)
    if held is None and not wants_partial(request):
        return _lost(request, pk, DecideForm(request.POST, item=item_to_decide(request, pk)))
    status = 200 if held is not None and held.outcome == HoldingOutcome.EXTENDED else 409
    if wants_partial(request):
        return time_left(request, pk, status=status)
    typed = {name: request.POST.get(name, "") for name in ("verdict", "reason_code", "note")}
    if status == 409:
        return refused(request, pk, status=status, typed=typed["note"])
    found = item_to_decide(request, pk)
    fresh = forms_of(found, person_of(request))
    form = DecideForm(initial=fresh["token"] | typed, item=found)
    return refused(request, pk, status=status, changed={"form": form})


@require_POST
@needs("decide_item")
def give_back(request: HttpRequest, pk: int) -> HttpResponse:
    """Giving back what one has no longer is no error: it is what was wanted."""
    item = item_to_decide(request, pk)
    held = _hold(request, pk, people.give_back)
    if held is not None and held.outcome == HoldingOutcome.GIVEN_BACK:
        request.session[KEPT_CLEAR] = keep_key(item)
        messages.success(request, _("Given back. Others can take it now."))
    else:
        messages.info(request, _("You did not have this item any more."))
    return go(request, reverse("desk"))


def _hold(request: HttpRequest, pk: int, verb: Any) -> Held | None:
    item_to_decide(request, pk)
    form = TokenForm(request.POST)
    if not form.is_valid():
        return None
    held: Held = verb(form.token(pk), person=person_of(request), clock=DATABASE_CLOCK)
    return held
