"""The claim of one job by its id."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from django.db import transaction

from queue_core import tally
from queue_core.clock import Clock
from queue_core.contract.deaths import REASONS, close_expired, end_dead, need_of
from queue_core.contract.items import open_items
from queue_core.contract.locks import lock_job, lock_lane, read_clock
from queue_core.contract.room import measure_room
from queue_core.contract.rules import judge_claim, lease_end
from queue_core.errors import InvalidClaim
from queue_core.models import Attempt, Job, Lane, Ticket
from queue_core.states import ClaimOutcome, DeadReason, JobState, LeaseToken

LEAST_LEASE = timedelta(milliseconds=1)
MAX_WORKER = 200


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim gave: a token and its end if CLAIMED, else neither."""

    outcome: ClaimOutcome
    token: LeaseToken | None = None
    lease_until: datetime | None = None


@transaction.atomic
@tally.kept()
def claim(
    job_id: int, *, clock: Clock, worker: str, lease: timedelta | None = None, max_attempts: int | None = None
) -> Claim:
    """Take the right to decide one job.

    Ignores back-off and urgency; obeys the lane's hold, cap and rate. A passed deadline or spent budget makes the job
    DEAD, whatever the lane does. `lease` and `max_attempts` count for this call only; without them the lane's lease
    and the job's own budget stand. Raises InvalidClaim for a clock, lease or budget that is none.
    """
    check_terms(lease, max_attempts)
    lane_id = Job.objects.filter(pk=job_id).values_list("lane_id", flat=True).first()
    lane = lock_lane(lane_id) if lane_id is not None else None
    locked = lock_job(job_id)
    now = read_clock(clock, InvalidClaim)
    if lane is None or locked is None:
        return Claim(ClaimOutcome.MISSING)
    ticket, job = locked
    outcome = judge_claim(job, now=now, max_attempts=max_attempts)
    if outcome in REASONS:
        _die(ticket, job, REASONS[outcome], now)
    if outcome != ClaimOutcome.CLAIMED:
        return Claim(outcome)
    room = measure_room(lane, now=now)
    if room.refusal is not None:
        return Claim(room.refusal)
    return _grant(lane, job, worker, lease or lane.lease, now)


def check_terms(lease: timedelta | None, max_attempts: int | None) -> None:
    """Refuse a lease or budget that is none. Both are checked at run time: traces hand on what is of no type."""
    if lease is not None and not (isinstance(lease, timedelta) and lease >= LEAST_LEASE):
        raise InvalidClaim("A lease is 1 ms or longer.", field="lease")
    if max_attempts is not None and not (type(max_attempts) is int and max_attempts >= 1):
        raise InvalidClaim("A budget is a whole number from 1.", field="max_attempts")


def _die(ticket: Ticket, job: Job, reason: DeadReason, now: datetime) -> None:
    close_expired([job], now=now)
    end_dead(job, reason, now=now)
    job.save(update_fields=["state", "dead_reason", "finished_at", "available_at"])
    open_items([need_of(ticket, job)], now=now)


def _grant(lane: Lane, job: Job, worker: str, lease: timedelta, now: datetime) -> Claim:
    if job.state == JobState.LEASED:
        close_expired([job], now=now)
    tally.leaves(job, now=now)
    job.state = JobState.LEASED
    job.attempts += 1
    job.fence += 1
    job.available_at = None
    job.lease_until = lease_end(now=now, lease=lease, deadline=job.deadline)
    job.save(update_fields=["state", "attempts", "fence", "available_at", "lease_until"])
    tally.enters(job, now=now)
    tally.claimed(lane.pk, queued_at=job.queued_at, now=now)
    attempt = Attempt.objects.create(
        job=job,
        lane=lane,
        fence=job.fence,
        key=uuid4(),
        worker=worker[:MAX_WORKER],
        run=lane.run,
        policy_id=lane.policy_id,
        connection_id=lane.connection_id,
        number=job.attempts,
        started_at=now,
        lease_until=job.lease_until,
    )
    token = LeaseToken(job.pk, job.fence, job.revision, attempt.pk, attempt.key)
    return Claim(ClaimOutcome.CLAIMED, token, job.lease_until)
