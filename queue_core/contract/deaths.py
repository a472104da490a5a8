"""Jobs that end without a result, many at a time, with the items that hand them to people."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import connection

from queue_core import tally
from queue_core.contract.items import Need, open_items
from queue_core.contract.rules import judge_claim
from queue_core.models import Job, Ticket
from queue_core.states import AttemptOutcome, ClaimOutcome, DeadReason, ItemKind, JobState

REASONS = {
    ClaimOutcome.DIED_DEADLINE: DeadReason.DEADLINE,
    ClaimOutcome.DIED_ATTEMPTS: DeadReason.ATTEMPTS,
}


def bury(job_ids: Iterable[int], *, now: datetime, max_attempts: int | None = None) -> dict[int, DeadReason]:
    """Turn those jobs DEAD whose deadline is passed or whose budget is spent; the rest stay as they are.

    The list is only a hint: each row is judged again under its lock. Rows that somebody else holds are passed over,
    and so are their tickets (locked before the jobs, as everywhere), so that a sweep never waits.
    """
    hints = dict(Job.objects.filter(pk__in=list(job_ids)).values_list("pk", "ticket_id"))
    if not hints:
        return {}
    tickets = (
        Ticket.objects.select_for_update(no_key=True, skip_locked=True).order_by("pk").in_bulk(set(hints.values()))
    )
    jobs = (
        Job.objects.select_for_update(no_key=True, skip_locked=True)
        .filter(pk__in=list(hints), ticket_id__in=list(tickets))
        .order_by("pk")
    )
    dead = {}
    for job in jobs:
        reason = REASONS.get(judge_claim(job, now=now, max_attempts=max_attempts))
        if reason is not None:
            dead[job.pk] = (tickets[job.ticket_id], job, reason)
    for _ticket, job, reason in dead.values():
        end_dead(job, reason, now=now)
    _write([job for _, job, _ in dead.values()], now)
    open_items([need_of(ticket, job) for ticket, job, _ in dead.values()], now=now)
    return {pk: reason for pk, (_, _, reason) in dead.items()}


def end_dead(job: Job, reason: DeadReason, *, now: datetime) -> None:
    """Set, not save, what DEAD means on a locked row. `lease_until` keeps its last value."""
    tally.leaves(job, now=now)
    job.state = JobState.DEAD
    job.dead_reason = reason
    job.finished_at = now
    job.available_at = None
    tally.enters(job, now=now)
    tally.count(job.lane_id, f"{tally.DIED}.{reason}", now=now)


def need_of(ticket: Ticket, job: Job) -> Need:
    """The item for a death that a person has to look after."""
    params = {"attempts": job.attempts, "deadline": job.deadline.isoformat()}
    return Need(ticket, job, ItemKind.DEAD, str(job.dead_reason), params)


def close_expired(jobs: Iterable[Job], *, now: datetime) -> int:
    """Close the open attempt of each locked job as expired: nobody knows what the model did with it."""
    return end_attempts(CLOSE_OF_JOBS, [job.pk for job in jobs], AttemptOutcome.LEASE_EXPIRED, now=now)


#: The open attempts of locked jobs, whatever their lease's end says.
CLOSE_OF_JOBS = """
UPDATE queue_core_attempt SET ended_at = %(now)s, outcome = %(outcome)s
WHERE job_id = ANY(%(ids)s::bigint[]) AND ended_at IS NULL RETURNING lane_id
"""
#: Those of these attempts whose lease is over and that nobody closed meanwhile.
CLOSE_EXPIRED = """
UPDATE queue_core_attempt SET ended_at = %(now)s, outcome = %(outcome)s
WHERE id = ANY(%(ids)s::bigint[]) AND ended_at IS NULL AND lease_until <= %(now)s RETURNING lane_id
"""


def end_attempts(statement: str, ids: Sequence[int], outcome: AttemptOutcome, *, now: datetime) -> int:
    """Close attempts without a call's end, and count them in their lanes. Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {"now": now, "outcome": outcome.value, "ids": list(ids)})
        lanes = Counter(lane for [lane] in cursor.fetchall())
    for lane, number in lanes.items():
        tally.ended(lane, outcome, now=now, number=number)
    return lanes.total()


def _write(jobs: list[Job], now: datetime) -> None:
    """A statement per reason, not a CASE per row: five hundred deaths must not hold the lane's lock for long."""
    close_expired(jobs, now=now)
    for reason in sorted({str(job.dead_reason) for job in jobs}):
        Job.objects.filter(pk__in=[job.pk for job in jobs if job.dead_reason == reason]).update(
            state=JobState.DEAD, dead_reason=reason, finished_at=now, available_at=None
        )
