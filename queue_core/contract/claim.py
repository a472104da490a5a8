"""The claim of one job by its id."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db import transaction

from queue_core import prepared, tally
from queue_core.clock import Clock
from queue_core.contract import claim_sql
from queue_core.contract.deaths import REASONS, close_expired, end_dead, need_of
from queue_core.contract.items import open_items
from queue_core.contract.locks import LARGEST_ID, LockedLane, lock_lane, own_instant
from queue_core.contract.room import measure_room, refusal_of
from queue_core.contract.rules import LONGEST_LEASE, judge_claim, lease_end
from queue_core.errors import InvalidClaim
from queue_core.models import Job
from queue_core.states import AttemptOutcome, ClaimOutcome, DeadReason, JobState, LeaseToken

LEAST_LEASE = timedelta(milliseconds=1)
MAX_WORKER = 200


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim gave: a token and its end if CLAIMED, else neither."""

    outcome: ClaimOutcome
    token: LeaseToken | None = None
    lease_until: datetime | None = None


def claim(
    job_id: int, *, clock: Clock, worker: str, lease: timedelta | None = None, max_attempts: int | None = None
) -> Claim:
    """Take the right to decide one job.

    Ignores back-off and urgency; obeys the lane's hold, cap and rate. A passed deadline or spent budget makes the job
    DEAD, whatever the lane does. `lease` and `max_attempts` count for this call only; without them the lane's lease
    and the job's own budget stand. Raises InvalidClaim for a clock, lease or budget that is none, and inside a
    transaction that is not READ COMMITTED.
    """
    check_terms(lease, max_attempts)
    if abs(job_id) > LARGEST_ID:
        return Claim(ClaimOutcome.MISSING)
    now = own_instant(clock, InvalidClaim)
    claimed = claim_plainly(job_id, now, worker, lease, max_attempts)
    return claimed or _claim_in_steps(job_id, now, worker, lease, max_attempts)


def claim_plainly(
    job_id: int, now: datetime | None, worker: str, lease: timedelta | None, max_attempts: int | None
) -> Claim | None:
    """As nearly all go, in a statement that is its own transaction; None, and nothing written, for all others."""
    values = {
        "job": job_id,
        "now": now,
        "lease": lease if lease is None else min(lease, LONGEST_LEASE),
        "max_attempts": None if max_attempts is None else min(max_attempts, 2**31 - 1),
        "worker": worker[:MAX_WORKER],
        "oldest": 0,
        "seed": uuid4().hex,
    }
    row = prepared.run_alone(claim_sql.CLAIM_PLAINLY, values).fetchone()
    if row is None:
        return None
    fence, revision, attempt, key, lease_until = row
    return Claim(ClaimOutcome.CLAIMED, LeaseToken(job_id, fence, revision, attempt, key), lease_until)


def _claim_in_steps(
    job_id: int, instant: datetime | None, worker: str, lease: timedelta | None, max_attempts: int | None
) -> Claim:
    with transaction.atomic(), tally.kept():
        values = {"job": job_id, "now": instant}
        row = prepared.run(claim_sql.LOCK_LANE_AND_JOB, values).fetchone()
        if row is None:
            return Claim(ClaimOutcome.MISSING)
        lane, now, job = LockedLane(*row[:11]), row[11], WaitingJob(*row[12:])
        outcome = judge_claim(job, now=now, max_attempts=max_attempts)
        if outcome in REASONS:
            _die(job.pk, REASONS[outcome], now)
        if outcome != ClaimOutcome.CLAIMED:
            return Claim(outcome)
        refusal = refusal_of(lane, now=now)
        return Claim(refusal) if refusal is not None else _grant(lane, job, worker, lease or lane.lease, now)


def check_terms(lease: timedelta | None, max_attempts: int | None) -> None:
    """Refuse a lease or budget that is none. Both are checked at run time: traces hand on what is of no type."""
    if lease is not None and not (isinstance(lease, timedelta) and lease >= LEAST_LEASE):
        raise InvalidClaim("A lease is 1 ms or longer.", field="lease")
    if max_attempts is not None and not (type(max_attempts) is int and max_attempts >= 1):
        raise InvalidClaim("A budget is a whole number from 1.", field="max_attempts")


@dataclass(slots=True)
class WaitingJob:
    """A job under its lock, as a claim judges it."""

    pk: int
    lane_id: int
    revision: str
    state: str
    dead_reason: str | None
    severity: int
    available_at: datetime | None
    queued_at: datetime
    fence: int
    attempts: int
    max_attempts: int
    deadline: datetime
    lease_until: datetime | None
    result: str | None


def _die(job_id: int, reason: DeadReason, now: datetime) -> None:
    job = Job.objects.select_related("ticket").get(pk=job_id)
    close_expired([job], now=now)
    end_dead(job, reason, now=now)
    job.save(update_fields=["state", "dead_reason", "finished_at", "available_at"])
    open_items([need_of(job.ticket, job)], now=now)


def _grant(lane: LockedLane, job: WaitingJob, worker: str, lease: timedelta, now: datetime) -> Claim:
    refusal = measure_room(lock_lane(lane.pk), now=now).refusal
    if refusal is not None:
        return Claim(refusal)
    length = lease_end(now=now, lease=lease, deadline=job.deadline) - now
    rows = lease_rows(lane, [job.pk], worker, now, length, figures=_figures(lane, job, now))
    fence, revision, attempt, key, lease_until, closed = *rows[0][1:6], rows[0][-1]
    tally.ended(lane.pk, AttemptOutcome.LEASE_EXPIRED, now=now, number=closed)
    return Claim(ClaimOutcome.CLAIMED, LeaseToken(job.pk, fence, revision, attempt, key), lease_until)


def _figures(lane: LockedLane, job: WaitingJob, now: datetime) -> str:
    """What the grant changes, for the statement that makes it."""
    tally.leaves(job, now=now)
    job.state, job.available_at = JobState.LEASED, None
    tally.enters(job, now=now)
    tally.claimed(lane.pk, queued_at=job.queued_at, now=now)
    return tally.taken()


def lease_rows(
    lane: LockedLane,
    job_ids: Sequence[int],
    worker: str,
    now: datetime,
    lease: timedelta,
    *,
    figures: str = "[]",
) -> list[tuple[Any, ...]]:
    """Lease locked and judged jobs, for which there is room. Rows of `LEASE`."""
    values = {
        "jobs": list(job_ids),
        "now": now,
        "lease": lease,
        "lane": lane.pk,
        "worker": worker[:MAX_WORKER],
        "run": lane.run_id,
        "policy": lane.policy_id,
        "connection": lane.connection_id,
        "figures": figures,
        "seed": uuid4().hex,
    }
    rows: list[tuple[Any, ...]] = prepared.run(claim_sql.LEASE, values).fetchall()
    return rows
