"""Items for people who look once more at what is decided, and items that come back to whoever decided them.

Nobody outside is told: the ticket has a decision in force, or had one that nobody has seen.
"""

from datetime import datetime
from typing import Any

from queue_core import tally
from queue_core.models import Item, Job, Ticket
from queue_core.states import ItemKind


def open_recheck(
    ticket: Ticket,
    job: Job,
    *,
    kind: ItemKind,
    decision: int,
    params: dict[str, Any] | None = None,
    deadline: datetime,
    for_leads: bool = False,
    now: datetime,
) -> Item:
    """Open an item about a decision in force. The caller holds the locks of ticket and job, which has no open item."""
    return _opened(
        Item(
            job=job,
            ticket=ticket,
            lane_id=job.lane_id,
            kind=kind,
            cause=kind.value,
            params={"decision": decision, **(params or {})},
            severity=ticket.severity,
            deadline=deadline,
            for_leads=for_leads,
            opened_at=now,
        ),
        now,
    )


def open_again(closed: Item, job: Job, *, params: dict[str, Any], now: datetime) -> Item:
    """The same work once more, as a new item: the closed one stays with the decision that it was closed by."""
    return _opened(
        Item(
            job=job,
            ticket_id=closed.ticket_id,
            lane_id=closed.lane_id,
            kind=closed.kind,
            cause=closed.cause,
            params=params,
            severity=closed.severity,
            deadline=closed.deadline,
            is_hard=closed.is_hard,
            for_leads=closed.for_leads,
            opened_at=now,
            queued_at=closed.queued_at,
        ),
        now,
    )


def _opened(item: Item, now: datetime) -> Item:
    item.save(force_insert=True)
    tally.count(item.lane_id, tally.ITEM_OPENED, now=now)
    tally.holds(item.lane_id, f"{tally.ITEM}.{item.kind}", 1, now=now)
    return item
