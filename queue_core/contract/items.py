"""Items opened and closed in the transaction that makes or ends the need for a person."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from queue_core import outbox, tally
from queue_core.models import Assignment, Item, Job, Ticket
from queue_core.states import AssignmentEnd, ItemEnd, ItemKind, MessageKind


@dataclass(frozen=True, slots=True)
class Need:
    """Why a person has to look at a job. `cause` groups items; `params` fill its sentence."""

    ticket: Ticket
    job: Job
    kind: ItemKind
    cause: str
    params: dict[str, Any] = field(default_factory=dict)


#: How the assignment ends that its person ended.
ENDS = {
    ItemEnd.DECIDED: AssignmentEnd.DECIDED,
    ItemEnd.REQUEUED: AssignmentEnd.REQUEUED,
    ItemEnd.CHECKED: AssignmentEnd.CHECKED,
}


def open_items(needs: Sequence[Need], *, now: datetime) -> list[Item]:
    """Open an item and record its message for each need. The caller holds the locks of every ticket and job."""
    items = Item.objects.bulk_create([_item(need, now) for need in needs])
    for item in items:
        tally.count(item.lane_id, tally.ITEM_OPENED, now=now)
        tally.holds(item.lane_id, f"{tally.ITEM}.{item.kind}", 1, now=now)
    outbox.record_many([_fact(need, item) for need, item in zip(needs, items, strict=True)], now=now)
    return items


def open_item(
    ticket: Ticket, job: Job, *, kind: ItemKind, cause: str, params: dict[str, Any] | None = None, now: datetime
) -> Item:
    return open_items([Need(ticket, job, kind, cause, params or {})], now=now)[0]


def close_open_item(job: Job, *, closed_as: ItemEnd, now: datetime) -> Item | None:
    """Close the job's open item and the assignment on it, if there is one. The caller holds the job's lock."""
    item = Item.objects.select_for_update(no_key=True).filter(job=job, closed_at__isnull=True).first()
    if item is None:
        return None
    close_items([item], closed_as=closed_as, now=now)
    return item


def close_items(items: Sequence[Item], *, closed_as: ItemEnd, now: datetime) -> None:
    """Close open items, whose locks the caller holds, and the assignments on them."""
    pks = [item.pk for item in items]
    ended_as = ENDS.get(closed_as, AssignmentEnd.ITEM_CLOSED)
    Assignment.objects.filter(item__in=pks, ended_at__isnull=True).update(ended_at=now, ended_as=ended_as)
    Item.objects.filter(pk__in=pks).update(closed_at=now, closed_as=closed_as, taken_by=None, taken_until=None)
    for item in items:
        tally.count(item.lane_id, tally.ITEM_CLOSED, now=now)
        tally.holds(item.lane_id, f"{tally.ITEM}.{item.kind}", -1, now=now)
        item.closed_at, item.closed_as = now, closed_as
        item.taken_by = item.taken_until = None


def _item(need: Need, now: datetime) -> Item:
    return Item(
        job=need.job,
        ticket=need.ticket,
        lane_id=need.job.lane_id,
        kind=need.kind,
        cause=need.cause,
        params=need.params,
        severity=need.ticket.severity,
        deadline=need.job.deadline,
        is_hard=need.ticket.deadline_kind == "hard",
        opened_at=now,
        queued_at=need.job.queued_at,
    )


def _fact(need: Need, item: Item) -> outbox.Fact:
    kind = MessageKind.TICKET_DEAD if need.kind == ItemKind.DEAD else MessageKind.ITEM_OPENED
    return outbox.Fact(
        kind=kind,
        ticket=need.ticket,
        lane=need.job.lane_id,
        body={
            "source": need.ticket.source,
            "ticket": need.ticket.external_id,
            "revision": need.job.revision,
            "item": item.pk,
            "cause": need.cause,
        },
    )
