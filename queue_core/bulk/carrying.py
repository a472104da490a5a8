"""What an act does to one job, in the transaction that its worker has open and that holds the entry's row.

Each locks in the one order (person where hands are counted, ticket, job, item) and looks first whether all is as the
preview saw it. The verbs ask for the person's right themselves; on the job's own lane it is asked for here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model

from queue_core import contract, people
from queue_core.bulk.progress import moved_since
from queue_core.bulk.terms import RIGHTS, Spread
from queue_core.clock import Clock
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import BulkAct, BulkEntry, Item, Job
from queue_core.people import HoldingOutcome
from queue_core.people.rights import require
from queue_core.people.unseen import reject_unseen
from queue_core.states import ActOutcome, BulkKind, BulkOutcome

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

OF_ACTS = {
    ActOutcome.DONE: BulkOutcome.DONE,
    ActOutcome.NOT_ALLOWED_IN_STATE: BulkOutcome.NOT_ALLOWED,
    ActOutcome.MISSING: BulkOutcome.CHANGED,
    ActOutcome.STALE: BulkOutcome.CHANGED,
}
OF_HOLDINGS = {
    HoldingOutcome.HANDED_OVER: BulkOutcome.DONE,
    HoldingOutcome.ESCALATED: BulkOutcome.DONE,
    HoldingOutcome.HANDS_FULL: BulkOutcome.HANDS_FULL,
    HoldingOutcome.ALREADY: BulkOutcome.NOT_ALLOWED,
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One job's turn. `person` was read anew for it, with the rights of this moment."""

    act: BulkAct
    entry: BulkEntry
    person: "AbstractUser"
    clock: Clock


def carry_out(turn: Turn) -> BulkOutcome:
    """Do the act to one job, unless something changed. Raises NotPermitted for a right that was lost."""
    kind = BulkKind(turn.act.kind)
    lane_id = Job.objects.values_list("lane_id", flat=True).get(pk=turn.entry.job_id)
    for right in RIGHTS[kind]:
        require(turn.person, right, lane_id)
    return VERBS[kind](turn)


def _requeue(turn: Turn) -> BulkOutcome:
    changed = _changed(turn)
    if changed is not None:
        return changed
    deadline = Spread.of(turn.act).deadline(turn.entry.place)
    if deadline <= turn.clock.now():
        return BulkOutcome.TOO_LATE
    outcome = contract.requeue(
        turn.entry.job_id, deadline=deadline, clock=turn.clock, person=turn.person, reason=turn.act.reason
    )
    return OF_ACTS[outcome]


def _pull(turn: Turn) -> BulkOutcome:
    changed = _changed(turn)
    if changed is not None:
        return changed
    return OF_ACTS[
        contract.pull_for_desk(turn.entry.job_id, clock=turn.clock, person=turn.person, reason=turn.act.reason)
    ]


def _move_deadline(turn: Turn) -> BulkOutcome:
    changed = _changed(turn)
    if changed is not None:
        return changed
    deadline = Spread.of(turn.act).deadline(turn.entry.place)
    if deadline <= turn.entry.deadline:
        return BulkOutcome.NOT_LATER
    if not turn.act.terms["moves_again"] and moved_since(Job.objects.filter(pk=turn.entry.job_id)).exists():
        return BulkOutcome.MOVED_BEFORE
    outcome = contract.move_deadline(
        turn.entry.job_id, deadline=deadline, clock=turn.clock, person=turn.person, reason=turn.act.reason
    )
    return OF_ACTS[outcome]


def _hand_over(turn: Turn) -> BulkOutcome:
    to = get_user_model().objects.get(pk=turn.act.terms["to"])
    item_id, fence = _item(turn)
    held = people.hand_over_item(
        item_id,
        fence=fence,
        person=turn.person,
        to=to,
        reason=turn.act.reason,
        clock=turn.clock,
    )
    return OF_HOLDINGS.get(held.outcome, BulkOutcome.CHANGED)


def _escalate(turn: Turn) -> BulkOutcome:
    item_id, fence = _item(turn)
    held = people.escalate_item(
        item_id,
        fence=fence,
        person=turn.person,
        reason=turn.act.reason,
        clock=turn.clock,
    )
    return OF_HOLDINGS.get(held.outcome, BulkOutcome.CHANGED)


def _reject(turn: Turn) -> BulkOutcome:
    changed = _changed(turn)
    if changed is not None:
        return changed
    assert turn.act.reason_code is not None, "confirmed so"
    item_id, _fence = _item(turn)
    is_done = reject_unseen(
        item_id,
        person=turn.person,
        reason_code=turn.act.reason_code.code,
        note=turn.act.reason,
        clock=turn.clock,
    )
    return BulkOutcome.DONE if is_done else BulkOutcome.NOT_ALLOWED


def _item(turn: Turn) -> tuple[int, int]:
    """Item and fence as the preview of an act on items saw them."""
    assert turn.entry.item_id is not None, "an act on items"
    assert turn.entry.item_fence is not None, "an item with its fence"
    return turn.entry.item_id, turn.entry.item_fence


def _changed(turn: Turn) -> BulkOutcome | None:
    """Whether the job, locked now, is another than the preview saw, or somebody has its item; None if neither."""
    entry = turn.entry
    locked = contract.lock_job(entry.job_id)
    if locked is None or (locked[1].fence, locked[1].deadline) != (entry.fence, entry.deadline):
        return BulkOutcome.CHANGED
    item = Item.objects.select_for_update(no_key=True).filter(job_id=entry.job_id, closed_at__isnull=True).first()
    if (item.pk if item is not None else None) != entry.item_id:
        return BulkOutcome.CHANGED
    if item is None:
        return None
    if item.taken_until is not None and read_clock(turn.clock, InvalidRequest) < item.taken_until:
        return BulkOutcome.TAKEN
    return BulkOutcome.CHANGED if item.fence != entry.item_fence else None


VERBS: dict[BulkKind, Callable[[Turn], BulkOutcome]] = {
    BulkKind.REQUEUE: _requeue,
    BulkKind.PULL: _pull,
    BulkKind.MOVE_DEADLINES: _move_deadline,
    BulkKind.HAND_OVER: _hand_over,
    BulkKind.ESCALATE: _escalate,
    BulkKind.REJECT: _reject,
}
