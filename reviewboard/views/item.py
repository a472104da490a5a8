"""One item: its content, why people have it, and the rail on which its holder decides it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Attempt, Decision, Item
from queue_core.states import AssignmentEnd, DecisionWhy, ItemEnd, ItemKind, PassedAs
from reviewboard.item_page import forms_of, keep_key, kept_before, said_before, undo_of, why_not_yours
from reviewboard.item_text import outcome_text, score_lines, why_here
from reviewboard.live import LiveVersion, page_or_partial, wants_partial
from reviewboard.models import Person
from reviewboard.reading import content_to_read, may_read_words, note_look
from reviewboard.shapes import Conflict
from reviewboard.views.access import item_to_decide
from reviewboard.views.desk import KEPT_CLEAR
from reviewboard.views.permits import needs, person_of

TEMPLATE = "item/item.html"


@require_safe
@needs("decide_item")
def item(request: HttpRequest, pk: int) -> HttpResponse:
    found, person, now = item_to_decide(request, pk), person_of(request), DATABASE_CLOCK.now()
    standing = Holding.of(found, person, now)
    version = LiveVersion.of(now, standing, found.closed_as)
    context: dict[str, Any] = {"nav": "desk", "item": found, "holding": standing}
    if not wants_partial(request):
        context |= whole_page(request, found, person, standing)
        note_look(request, found, context["content"], person)
    return page_or_partial(request, TEMPLATE, "live", context, version=version)


@dataclass(frozen=True, slots=True)
class Holding:
    """Who has the item: state is yours, others, free or closed."""

    state: str
    by: str = ""
    until: datetime | None = None
    fence: int = 0

    @classmethod
    def of(cls, item: Item, person: Person, now: datetime) -> "Holding":
        if item.closed_at is not None:
            return cls("closed")
        if item.taken_by is None or item.taken_until is None or item.taken_until <= now:
            return cls("free", fence=item.fence)
        state = "yours" if item.taken_by_id == person.pk else "others"
        return cls(state, item.taken_by.get_username(), item.taken_until, item.fence)

    @property
    def is_yours(self) -> bool:
        return self.state == "yours"


def whole_page(request: HttpRequest, item: Item, person: Person, holding: Holding) -> dict[str, Any]:
    attempts = list(Attempt.objects.filter(job=item.job).select_related("policy").order_by("fence"))
    answer = next((attempt for attempt in reversed(attempts) if attempt.is_committed), None)
    context = {
        "why": why_here(item, attempts),
        "attempts": [(attempt, outcome_text(attempt)) for attempt in attempts if attempt.worker],
        "show_notes": may_read_words(person, item.lane, is_restricted=item.job.evidence.is_restricted),
        "scores": score_lines(answer),
        "answer": answer,
        "decisions": decisions_of(item),
        "content": content_to_read(item.job.evidence, person, item.lane),
        "keep_key": keep_key(item),
        "kept_before": kept_before(item, person) if holding.is_yours else "",
        "undo": undo_of(person, DATABASE_CLOCK.now()),
        "not_yours": why_not_yours(item, person) if holding.state in ("free", "yours") else [],
        **said_before(item),
        "kept_clear": request.session.pop(KEPT_CLEAR, ""),
    }
    if is_unseen(item):
        context |= {"attempts": [], "scores": [], "answer": None, "decisions": [], "is_unseen": True}
    return context | (forms_of(item, person) if holding.is_yours else {})


def is_unseen(item: Item) -> bool:
    """Whether what was decided is kept from the person who decides anew: a check that is not over."""
    return item.kind in (ItemKind.BLIND, ItemKind.SECOND_LOOK) and item.closed_at is None


def decisions_of(item: Item) -> list[Decision]:
    chain = Decision.objects.filter(ticket=item.ticket, revision=item.job.revision)
    return list(chain.select_related("person", "reason_code").order_by("pk"))


def refused(
    request: HttpRequest, pk: int, *, status: int, changed: dict[str, Any] | None = None, typed: str = ""
) -> HttpResponse:
    """The item as it is now, with what was typed: 409 says what changed, 422 what to correct."""
    context = page_of(request, pk)
    found, holding = context["item"], context["holding"]
    context |= {"typed": [(_("Your note"), typed)] if typed and not holding.is_yours else []}
    if status == 409:
        context["conflict"] = conflict_of(found, holding, context["decisions"])
    context |= changed or {}
    template = f"{TEMPLATE}#work" if wants_partial(request) else TEMPLATE
    return render(request, template, context, status=status)


def page_of(request: HttpRequest, pk: int) -> dict[str, Any]:
    """What the whole page shows, as an answer to an act."""
    found, person, now = item_to_decide(request, pk), person_of(request), DATABASE_CLOCK.now()
    holding = Holding.of(found, person, now)
    version = str(LiveVersion.of(now, holding, found.closed_as))
    context: dict[str, Any] = {"nav": "desk", "item": found, "holding": holding, "as_of": now, "live_version": version}
    context |= whole_page(request, found, person, holding)
    note_look(request, found, context["content"], person)
    return context


def time_left(request: HttpRequest, pk: int, *, status: int) -> HttpResponse:
    """The polled part alone."""
    found, person, now = item_to_decide(request, pk), person_of(request), DATABASE_CLOCK.now()
    standing = Holding.of(found, person, now)
    version = LiveVersion.of(now, standing, found.closed_as)
    context = {"item": found, "holding": standing}
    return page_or_partial(request, TEMPLATE, "live", context, version=version, status=status)


def conflict_of(item: Item, holding: Holding, decisions: Sequence[Decision]) -> Conflict:
    """What happened to the item meanwhile, and who did it."""
    last = decisions[-1] if decisions else None
    is_taken_back = last is not None and last.why == DecisionWhy.TAKEN_BACK
    if (
        last is not None
        and last.verdict is not None
        and not is_taken_back
        and (item.closed_as == ItemEnd.DECIDED or (item.closed_as is None and people.is_in_the_way(last, item)))
    ):
        by = last.person.get_username() if last.person is not None else _("the model")
        ground = last.reason_code.title if last.reason_code is not None else "–"
        return Conflict(
            what=_("The item was decided before your decision arrived. That decision stands; yours changed nothing."),
            who=_("Decided by %(name)s.") % {"name": by},
            at=last.decided_at,
            now_is=[(_("Decision"), last.verdict), (_("Reason code"), ground)],
        )
    if last is not None and is_taken_back and last.person is not None:
        return Conflict(
            what=_("The decision of this item was taken back. It came back as a new item; this page changed nothing."),
            who=_("Taken back by %(name)s.") % {"name": last.person.get_username()},
            at=last.decided_at,
        )
    if item.closed_as is not None:
        return Conflict(
            what=_("The item was closed meanwhile: %(how)s. Your decision changed nothing.")
            % {"how": ItemEnd(item.closed_as).label},
            at=item.closed_at,
        )
    if holding.state == "others":
        return Conflict(
            what=_("Your assignment was over and somebody else has the item now. Your decision changed nothing."),
            who=_("Taken by %(name)s.") % {"name": holding.by},
        )
    if holding.is_yours:
        return Conflict(
            what=_("This page was of an older assignment. You took the item again since; look once more and decide."),
        )
    escalated = item.passes.filter(passed_as=PassedAs.ESCALATED).select_related("person").order_by("-pk").first()
    if escalated is not None and item.assignments.latest("fence").ended_as == AssignmentEnd.ESCALATED:
        return Conflict(
            what=_("The item was escalated meanwhile: only leads take it now. Your decision changed nothing."),
            who=_("Escalated by %(name)s.") % {"name": escalated.person.get_username()},
            at=escalated.at,
        )
    return Conflict(what=_("Your assignment was over. Nothing was changed. Take the item again to decide it."))
