"""A lease lengthened or given back by its holder."""

from datetime import datetime, timedelta

from django.db import transaction

from queue_core import tally
from queue_core.clock import Clock
from queue_core.connections.answers import bounded
from queue_core.contract.claim import check_terms
from queue_core.contract.complete import Ending, identity_of, keep_late_answer, present_attempt
from queue_core.contract.deaths import end_dead, need_of
from queue_core.contract.items import open_items
from queue_core.contract.locks import lock_job, lock_lane, read_clock
from queue_core.contract.order import back_off
from queue_core.contract.rules import effect_of, judge_token, lease_end
from queue_core.errors import InvalidCompletion
from queue_core.models import Attempt, Job, Lane, ModelConnection, Ticket
from queue_core.models.jobs import MAX_DETAIL
from queue_core.states import (
    UNEXECUTED_OUTCOMES,
    AttemptOutcome,
    CompleteOutcome,
    DeadReason,
    JobState,
    LeaseOutcome,
    LeaseToken,
)

MAX_HOLD_IN_CALLS = 3


@transaction.atomic
def renew(token: LeaseToken, *, clock: Clock, lease: timedelta | None = None) -> LeaseOutcome:
    """Lengthen a lease that still runs, to `lease` (default the lane's) from now.

    Never past the deadline, never past the lane's longest hold since the claim (default three times the call's time
    limit), and never shorter than it was. STALE if the token no longer holds. Raises InvalidClaim for a lease that is
    none.
    """
    check_terms(lease, None)
    lane_id = Job.objects.filter(pk=token.job).values_list("lane_id", flat=True).first()
    if lane_id is None:
        return LeaseOutcome.STALE
    lane = _lock_seats(lane_id)
    locked = lock_job(token.job)
    now = read_clock(clock, InvalidCompletion)
    if locked is None:
        return LeaseOutcome.STALE
    _ticket, job = locked
    attempt = present_attempt(job)
    if attempt is None or judge_token(job, identity_of(attempt), token, now=now).outcome == CompleteOutcome.STALE:
        return LeaseOutcome.STALE
    longest = lane.max_hold or MAX_HOLD_IN_CALLS * lane.connection.call_time_limit
    until = min(lease_end(now=now, lease=lease or lane.lease, deadline=job.deadline), attempt.started_at + longest)
    job.lease_until = attempt.lease_until = max(until, attempt.lease_until)
    job.save(update_fields=["lease_until"])
    attempt.save(update_fields=["lease_until"])
    return LeaseOutcome.RENEWED


def _lock_seats(lane_id: int) -> Lane:
    """The locks under which claims count running leases. A renewal moves an end that they count by: one that was over
    while the renewal committed would be counted as free, and its seat be given twice (PGQ-02)."""
    lane = lock_lane(lane_id)
    if lane.connection.total_cap is not None:
        ModelConnection.objects.select_for_update(no_key=True).get(pk=lane.connection_id)
    return lane


@transaction.atomic
@tally.kept()
def release(
    token: LeaseToken,
    *,
    outcome: AttemptOutcome,
    clock: Clock,
    worker: str = "",
    detail: str = "",
    latency: timedelta | None = None,
    charge: bool | None = None,
) -> LeaseOutcome:
    """Give a lease back without a result, with an outcome of DESIGN.md's table.

    The outcome says whether the attempt is charged and whether the job rests first; `charge` overrides the former
    (timeouts of the probe are not charged). DIED if that spent the budget: the job is DEAD at once and people have an
    item. STALE if the token no longer holds; nothing was written on the job.
    """
    effect = effect_of(outcome)
    locked = lock_job(token.job)
    now = read_clock(clock, InvalidCompletion)
    if locked is None:
        return LeaseOutcome.STALE
    ticket, job = locked
    attempt = present_attempt(job)
    judgement = judge_token(job, identity_of(attempt), token, now=now)
    if attempt is None or judgement.outcome == CompleteOutcome.STALE:
        keep_late_answer(job, token, Ending(result=outcome, outcome=outcome), judgement, worker=worker, now=now)
        return LeaseOutcome.STALE
    is_charged = effect.is_charged if charge is None else charge
    _end_attempt(attempt, outcome, now=now, detail=detail, latency=latency, is_charged=is_charged)
    if not is_charged:
        job.attempts -= 1
    lane = Lane.objects.get(pk=job.lane_id)
    rest = back_off(lane, job.backoff_steps) if effect.rests else None
    job.backoff_steps += effect.lengthens_back_off
    return _give_back(ticket, job, rest, now)


def _end_attempt(
    attempt: Attempt,
    outcome: AttemptOutcome,
    *,
    now: datetime,
    detail: str,
    latency: timedelta | None,
    is_charged: bool,
) -> None:
    attempt.ended_at = now
    attempt.outcome = outcome
    attempt.detail = bounded(detail, MAX_DETAIL)
    attempt.latency = latency
    attempt.is_charged = is_charged
    # A connection that refuses within a millisecond says nothing of the model's speed.
    timed = None if outcome in UNEXECUTED_OUTCOMES else latency
    tally.ended(attempt.lane_id, outcome, now=now, latency=timed)
    attempt.save(update_fields=["ended_at", "outcome", "detail", "latency", "is_charged"])


def _give_back(ticket: Ticket, job: Job, rest: timedelta | None, now: datetime) -> LeaseOutcome:
    fields = ["state", "attempts", "available_at", "backoff_steps"]
    if job.attempts >= job.max_attempts:
        end_dead(job, DeadReason.ATTEMPTS, now=now)
        job.save(update_fields=[*fields, "dead_reason", "finished_at"])
        open_items([need_of(ticket, job)], now=now)
        return LeaseOutcome.DIED
    tally.leaves(job, now=now)
    job.state = JobState.WAITING
    job.available_at = None if rest is None else now + rest
    tally.enters(job, now=now)
    job.save(update_fields=fields)
    return LeaseOutcome.RELEASED
