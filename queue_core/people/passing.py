"""Items that a person does not decide: skipped, handed over by name, escalated to a lead. Each with its reason.

Whoever holds an item passes it on by their token. What nobody holds, or what a lead passes on for others, is named by
the fence that was seen: if it moved since, nothing is done.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction

from queue_core import audit
from queue_core.clock import Clock
from queue_core.contract import assign
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import Item, ItemPass
from queue_core.models.people import MOST_REASON
from queue_core.people.assignments import (
    end_assignment,
    hands_full,
    is_held,
    judge_assignment,
    let_go,
    lock_item,
    lock_people,
)
from queue_core.people.eligibility import DECIDE, LEAD, may_work_on
from queue_core.people.outcomes import Held, HoldingOutcome, Stale
from queue_core.people.rights import may, require, require_somewhere
from queue_core.states import AssignmentEnd, AssignmentToken, PassedAs

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser


@transaction.atomic
def skip(token: AssignmentToken, *, person: "AbstractUser", reason: str, clock: Clock) -> Held:
    """Let an item go that this person rather leaves to others: *take next* does not offer it to them for a while.

    Leads see who skipped what. Raises InvalidRequest without a reason of at most MOST_REASON characters.
    """
    reason = _checked(reason)
    item, now, why = _own(token, person, clock)
    if item is None:
        return Held(HoldingOutcome.STALE, why=why)
    let_go(item, AssignmentEnd.SKIPPED, now=now)
    _keep(item, person, PassedAs.SKIPPED, reason, now)
    return Held(HoldingOutcome.SKIPPED)


@transaction.atomic
def escalate(token: AssignmentToken, *, person: "AbstractUser", reason: str, clock: Clock) -> Held:
    """Give one's item to the leads of its lane: only they take it from now on. ALREADY if it is for them."""
    reason = _checked(reason)
    item, now, why = _own(token, person, clock)
    return Held(HoldingOutcome.STALE, why=why) if item is None else _escalate(item, person, reason, now)


@transaction.atomic
def escalate_item(item_id: int, *, fence: int, person: "AbstractUser", reason: str, clock: Clock) -> Held:
    """Escalate an item that nobody holds, one's own, or as a lead any; `fence` is the item's as it was seen."""
    reason = _checked(reason)
    item, now, why = _seen(item_id, fence, person, clock)
    return Held(HoldingOutcome.STALE, why=why) if item is None else _escalate(item, person, reason, now)


@transaction.atomic
def hand_over(
    token: AssignmentToken, *, person: "AbstractUser", to: "AbstractUser", reason: str = "", clock: Clock
) -> Held:
    """Hand one's item to somebody by name, with a whole new time; they are told on their desk.

    HANDS_FULL, with the number, if they hold as many as one may. Raises InvalidRequest (`to`) for one who may not work
    on it, and for oneself.
    """
    reason = _checked(reason, is_needed=False)
    require_somewhere(person, DECIDE)
    lock_people(person.pk, to.pk)
    item, now, why = _own(token, person, clock)
    return Held(HoldingOutcome.STALE, why=why) if item is None else _hand_over(item, person, to, reason, now)


@transaction.atomic
def hand_over_item(
    item_id: int, *, fence: int, person: "AbstractUser", to: "AbstractUser", reason: str, clock: Clock
) -> Held:
    """Hand over an item that nobody holds, one's own, or as a lead any; `fence` is the item's as it was seen."""
    reason = _checked(reason)
    require_somewhere(person, DECIDE)
    lock_people(person.pk, to.pk)
    item, now, why = _seen(item_id, fence, person, clock)
    return Held(HoldingOutcome.STALE, why=why) if item is None else _hand_over(item, person, to, reason, now)


def _checked(reason: str, *, is_needed: bool = True) -> str:
    reason = reason.strip()
    if (is_needed and not reason) or len(reason) > MOST_REASON or "\0" in reason:
        raise InvalidRequest(f"A reason has 1 to {MOST_REASON} characters, none of them NUL.", field="reason")
    return reason


def _own(token: AssignmentToken, person: "AbstractUser", clock: Clock) -> tuple[Item | None, datetime, Stale | None]:
    require_somewhere(person, DECIDE)
    item = lock_item(token.item)
    now = read_clock(clock, InvalidRequest)
    why = judge_assignment(item, token, person, now=now)
    if item is None or why is not None:
        return None, now, why
    require(person, DECIDE, item.lane_id)
    return item, now, None


def _seen(item_id: int, fence: int, person: "AbstractUser", clock: Clock) -> tuple[Item | None, datetime, Stale | None]:
    require_somewhere(person, DECIDE)
    item = lock_item(item_id)
    now = read_clock(clock, InvalidRequest)
    if item is None:
        return None, now, Stale.MISSING
    require(person, DECIDE, item.lane_id)
    if item.closed_at is not None:
        return None, now, Stale.ITEM_CLOSED
    if item.fence != fence:
        return None, now, Stale.TAKEN_AGAIN
    is_others = is_held(item, now=now) and item.taken_by_id != person.pk
    if is_others and not may(person, LEAD, item.lane_id):
        return None, now, Stale.NOT_YOURS
    return item, now, None


def _escalate(item: Item, person: "AbstractUser", reason: str, now: datetime) -> Held:
    if item.for_leads:
        return Held(HoldingOutcome.ALREADY)
    item.for_leads = True
    let_go(item, AssignmentEnd.ESCALATED, now=now)
    _keep(item, person, PassedAs.ESCALATED, reason, now)
    audit.record(
        "item.escalated", now=now, actor=person, subject=item, lane=item.lane,
        before={"for_leads": False}, after={"for_leads": True},
    )  # fmt: skip
    return Held(HoldingOutcome.ESCALATED)


def _hand_over(item: Item, person: "AbstractUser", to: "AbstractUser", reason: str, now: datetime) -> Held:
    holder = item.taken_by if is_held(item, now=now) else None
    if to in (person, holder) or not may_work_on(item, to):
        raise InvalidRequest("Hand it over to somebody else who may decide it.", field="to")
    if hands_full(to.pk, item.lane.most_held, now=now):
        return Held(HoldingOutcome.HANDS_FULL, most_held=item.lane.most_held)
    before = holder.get_username() if holder is not None else None
    end_assignment(item, AssignmentEnd.HANDED_OVER if holder is not None else AssignmentEnd.EXPIRED, now=now)
    until = now + item.lane.assignment_time
    assign(item, to, now=now, until=until)
    _keep(item, person, PassedAs.HANDED_OVER, reason, now, to=to)
    audit.record(
        "item.handed_over", now=now, actor=person, subject=item, lane=item.lane,
        before={"taken_by": before}, after={"taken_by": to.get_username()},
    )  # fmt: skip
    return Held(HoldingOutcome.HANDED_OVER, until=until)


def _keep(
    item: Item,
    person: "AbstractUser",
    passed_as: PassedAs,
    reason: str,
    now: datetime,
    *,
    to: "AbstractUser | None" = None,
) -> None:
    # Here and not in the audit, which is never rewritten: a reason may quote what has to be erased one day.
    ItemPass.objects.create(
        item=item, lane_id=item.lane_id, person_id=person.pk, passed_as=passed_as,
        to_id=to.pk if to is not None else None, reason=reason, at=now,
    )  # fmt: skip
