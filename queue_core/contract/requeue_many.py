"""Many DEAD jobs given back to the machine in one transaction, judged each for itself as `requeue` judges one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from queue_core import audit, tally
from queue_core.clock import Clock
from queue_core.contract.acts import check_deadline, may_requeue
from queue_core.contract.items import close_items
from queue_core.contract.locks import read_clock
from queue_core.contract.order import urgency
from queue_core.errors import InvalidRequest
from queue_core.models import Decision, Evidence, Item, Job, Lane, Ticket
from queue_core.states import ActOutcome, ItemEnd, JobState

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: Jobs of one transaction: short enough that neither workers nor the sweep wait long for it.
MOST_AT_ONCE = 500

REQUEUE = """
UPDATE queue_core_job j
SET state = 'WAITING', dead_reason = NULL, finished_at = NULL, available_at = NULL, attempts = 0, backoff_steps = 0,
    requeues = j.requeues + 1, queued_at = %(now)s, max_attempts = x.budget, deadline = x.deadline, urgency = x.urgency
FROM unnest(%(jobs)s::bigint[], %(budgets)s::int[], %(deadlines)s::timestamptz[], %(urgencies)s::timestamptz[])
     x(id, budget, deadline, urgency)
WHERE j.id = x.id
"""


@dataclass(frozen=True, slots=True)
class _Locked:
    """The rows of one call under their locks."""

    tickets: Mapping[int, Ticket]
    jobs: Mapping[int, Job]
    items: Mapping[int, Item]
    decided: frozenset[tuple[int, str]]
    erased: frozenset[int]


@transaction.atomic
@tally.kept()
def requeue_many(
    deadlines: Mapping[int, datetime], *, clock: Clock, person: "AbstractUser", reason: str
) -> dict[int, ActOutcome]:
    """Requeue up to 500 jobs, each to its own new deadline and its lane's budget. Returns an outcome for each.

    As `requeue`, and NOT_ALLOWED_IN_STATE also for a job whose item somebody has taken: it is being looked at. Raises
    InvalidRequest, and changes nothing, for a deadline that is not after now or too many jobs. Everything is locked in
    the one order before anything is judged, so that two bulk acts cannot wait for each other (PGQ-22).
    """
    if len(deadlines) > MOST_AT_ONCE:
        raise InvalidRequest(f"At most {MOST_AT_ONCE} jobs at once.", field="jobs")
    locked = _lock(list(deadlines))
    now = read_clock(clock, InvalidRequest)
    for deadline in deadlines.values():
        check_deadline(deadline, now)
    outcomes = {pk: _judge(pk, locked, now) for pk in deadlines}
    good = [locked.jobs[pk] for pk, outcome in outcomes.items() if outcome == ActOutcome.DONE]
    if good:
        _write(good, locked, deadlines, now, person, reason)
    return outcomes


def _lock(job_ids: Sequence[int]) -> _Locked:
    ticket_ids = set(Job.objects.filter(pk__in=job_ids).values_list("ticket_id", flat=True))
    tickets = Ticket.objects.select_for_update(no_key=True).filter(pk__in=ticket_ids).order_by("pk").in_bulk()
    jobs = Job.objects.select_for_update(no_key=True).filter(pk__in=job_ids).order_by("pk").in_bulk()
    open_items = Item.objects.select_for_update(no_key=True).filter(job__in=list(jobs), closed_at__isnull=True)
    decided = Decision.objects.filter(ticket__in=ticket_ids).values_list("ticket_id", "revision")
    erased = Evidence.objects.filter(ticket__in=ticket_ids, erased_at__isnull=False).values_list("pk", flat=True)
    items = {item.job_id: item for item in open_items.order_by("pk")}
    return _Locked(tickets, jobs, items, frozenset(decided), frozenset(erased))


def _judge(job_id: int, locked: _Locked, now: datetime) -> ActOutcome:
    job, item = locked.jobs.get(job_id), locked.items.get(job_id)
    if job is None:
        return ActOutcome.MISSING
    is_taken = item is not None and item.taken_until is not None and item.taken_until > now
    is_decided = (job.ticket_id, job.revision) in locked.decided
    is_erased = job.evidence_id in locked.erased
    if is_taken or not may_requeue(locked.tickets[job.ticket_id], job, is_decided=is_decided, is_erased=is_erased):
        return ActOutcome.NOT_ALLOWED_IN_STATE
    return ActOutcome.DONE


def _write(
    jobs: Sequence[Job],
    locked: _Locked,
    deadlines: Mapping[int, datetime],
    now: datetime,
    person: "AbstractUser",
    reason: str,
) -> None:
    lanes = Lane.objects.in_bulk({job.lane_id for job in jobs})
    acts = []
    for job in jobs:
        lane = lanes[job.lane_id]
        before = {"state": job.state, "dead_reason": job.dead_reason, "deadline": job.deadline.isoformat()}
        tally.leaves(job, now=now)
        _set_waiting(job, lane, deadlines[job.pk], now)
        tally.enters(job, now=now)
        tally.count(lane.pk, tally.REQUEUED, now=now)
        after = {"state": job.state, "deadline": job.deadline.isoformat(), "max_attempts": job.max_attempts}
        acts.append(audit.Act("job.requeued", job, lane=lane, reason=reason, before=before, after=after))
    values: dict[str, Any] = {
        "now": now,
        "jobs": [job.pk for job in jobs],
        "budgets": [job.max_attempts for job in jobs],
        "deadlines": [job.deadline for job in jobs],
        "urgencies": [job.urgency for job in jobs],
    }
    with connection.cursor() as cursor:
        cursor.execute(REQUEUE, values)
    close_items([locked.items[job.pk] for job in jobs if job.pk in locked.items], closed_as=ItemEnd.REQUEUED, now=now)
    audit.record_many(acts, now=now, actor=person)


def _set_waiting(job: Job, lane: Lane, deadline: datetime, now: datetime) -> None:
    """Set, not save, what a requeue means on a locked row."""
    job.state = JobState.WAITING
    job.dead_reason = job.finished_at = job.available_at = None
    job.attempts = 0
    job.max_attempts = lane.max_attempts
    job.queued_at, job.deadline = now, deadline
    job.urgency = urgency(lane, queued_at=now, deadline=deadline, severity=job.severity)
