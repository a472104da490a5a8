"""Items for people who decide anew, unseen, what the model has decided."""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction

from queue_core import tally
from queue_core.clock import Clock
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import Decision, Item, Job, Ticket
from queue_core.states import ItemKind

CAUSE = "blind"


@transaction.atomic
@tally.kept()
def open_blind_items(decision_ids: Collection[int], *, within: timedelta, clock: Clock) -> int:
    """Open an item for each of these decisions of the model that is still in force. Returns how many.

    Nobody outside is told: the ticket is decided, and stays so unless the person decides otherwise. Left out are those
    whose revision is no longer current, whose evidence is restricted or erased, and whose job has an open item.
    """
    if not decision_ids:
        return 0
    rows = list(Decision.objects.filter(pk__in=decision_ids, attempt__isnull=False).order_by("pk"))
    tickets = Ticket.objects.select_for_update(no_key=True).filter(pk__in={row.ticket_id for row in rows})
    tickets_by_id = tickets.order_by("pk").in_bulk()
    jobs = Job.objects.select_for_update(no_key=True, of=("self",)).filter(pk__in={row.job_id for row in rows})
    jobs_by_id = jobs.select_related("evidence").order_by("pk").in_bulk()
    now = read_clock(clock, InvalidRequest)
    replaced = set(Decision.objects.filter(replaces__in=rows).values_list("replaces_id", flat=True))
    busy = set(Item.objects.filter(job__in=list(jobs_by_id), closed_at__isnull=True).values_list("job_id", flat=True))
    items = [
        _item(row, tickets_by_id[row.ticket_id], jobs_by_id[row.job_id], now, within)
        for row in rows
        if row.pk not in replaced
        and row.job_id not in busy
        and _can_be_checked(tickets_by_id[row.ticket_id], jobs_by_id[row.job_id])
    ]
    Item.objects.bulk_create(items)
    for item in items:
        tally.count(item.lane_id, tally.ITEM_OPENED, now=now)
        tally.holds(item.lane_id, f"{tally.ITEM}.{item.kind}", 1, now=now)
    return len(items)


def _can_be_checked(ticket: Ticket, job: Job) -> bool:
    evidence = job.evidence
    is_current = ticket.current_revision == job.revision and ticket.withdrawn_at is None
    return is_current and not evidence.is_restricted and evidence.erased_at is None


def _item(decision: Decision, ticket: Ticket, job: Job, now: datetime, within: timedelta) -> Item:
    return Item(
        job=job,
        ticket=ticket,
        lane_id=job.lane_id,
        kind=ItemKind.BLIND,
        cause=CAUSE,
        params={"decision": decision.pk},
        severity=ticket.severity,
        deadline=now + within,
        is_hard=False,
        opened_at=now,
    )
