"""A lease lengthened or given back by its holder."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from queue_core import prepared, tally
from queue_core.clock import Clock
from queue_core.connections.answers import bounded
from queue_core.contract import release_sql
from queue_core.contract.claim import check_terms
from queue_core.contract.complete import Ending, identity_of, keep_late_answer, present_attempt
from queue_core.contract.deaths import end_dead, need_of
from queue_core.contract.items import open_items
from queue_core.contract.locks import lock_job, lock_jobs, lock_lane, read_clock
from queue_core.contract.order import back_off
from queue_core.contract.rules import Effect, effect_of, judge_token, lease_end
from queue_core.errors import InvalidCompletion
from queue_core.models import Attempt, Job, Lane, ModelConnection
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


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A lease given back without a result: with which outcome, and what the call said of it.

    `charge` overrides what the outcome says of the budget (timeouts of the probe are not charged).
    """

    token: LeaseToken
    outcome: AttemptOutcome
    detail: str = ""
    latency: timedelta | None = None
    charge: bool | None = None


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

    The outcome says whether the attempt is charged and whether the job rests first. DIED if that spent the budget: the
    job is DEAD at once and people have an item. STALE if the token no longer holds; nothing was written on the job, and
    the report is kept as a late answer unless it repeats what ended the attempt.
    """
    [answer] = release_together([GivenBack(token, outcome, detail, latency, charge)], clock=clock, worker=worker)
    return answer


@transaction.atomic
@tally.kept()
def release_together(ends: Sequence[GivenBack], *, clock: Clock, worker: str = "") -> list[LeaseOutcome]:
    """Give many leases back in one transaction: an outcome for each, in order. The one place where that is judged."""
    locked = lock_jobs([end.token.job for end in ends])
    now = read_clock(clock, InvalidCompletion)
    attempts = _present_attempts([job for _ticket, job in locked.values()])
    lanes = Lane.objects.in_bulk({job.lane_id for _ticket, job in locked.values()})
    outcomes, ended = [], []
    for end in ends:
        effect = effect_of(end.outcome)
        if end.token.job not in locked:
            outcomes.append(LeaseOutcome.STALE)
            continue
        job = locked[end.token.job][1]
        attempt = attempts.get(job.pk)
        judgement = judge_token(job, identity_of(attempt), end.token, now=now)
        if attempt is None or judgement.outcome == CompleteOutcome.STALE:
            if not _is_repeat(end):
                late = Ending(result=end.outcome, outcome=end.outcome)
                keep_late_answer(job, end.token, late, judgement, worker=worker, now=now)
            outcomes.append(LeaseOutcome.STALE)
            continue
        _end_attempt(attempt, end, is_charged=effect.is_charged if end.charge is None else end.charge, now=now)
        # Set on the row at once: a token handed in twice in one batch is judged against the first.
        outcomes.append(_give_back(job, attempt, lanes[job.lane_id], effect, now=now))
        ended.append((job, attempt))
    _write(ended, now)
    open_items([need_of(*locked[job.pk]) for job, _ in ended if job.state == JobState.DEAD], now=now)
    return outcomes


def _is_repeat(end: GivenBack) -> bool:
    """Whether the attempt ended so by this very token: its worker lost the answer to the commit, and asks again."""
    ended = Attempt.objects.filter(pk=end.token.attempt, job=end.token.job, key=end.token.key, ended_at__isnull=False)
    return ended.filter(outcome=end.outcome).exists()


def _present_attempts(jobs: Sequence[Job]) -> dict[int, Attempt]:
    """By job: the attempt of its present fence."""
    fences = {job.pk: job.fence for job in jobs}
    found = Attempt.objects.filter(job__in=list(fences), fence__in=set(fences.values()))
    return {attempt.job_id: attempt for attempt in found if attempt.fence == fences[attempt.job_id]}


def _end_attempt(attempt: Attempt, end: GivenBack, *, is_charged: bool, now: datetime) -> None:
    attempt.ended_at = now
    attempt.outcome = end.outcome
    attempt.detail = bounded(end.detail, MAX_DETAIL)
    attempt.latency = end.latency
    attempt.is_charged = is_charged
    # A connection that refuses within a millisecond says nothing of the model's speed.
    tally.ended(
        attempt.lane_id, end.outcome, now=now, latency=None if end.outcome in UNEXECUTED_OUTCOMES else end.latency
    )


def _give_back(job: Job, attempt: Attempt, lane: Lane, effect: Effect, *, now: datetime) -> LeaseOutcome:
    """Set, not save, what becomes of a locked job whose attempt was ended."""
    if not attempt.is_charged:
        job.attempts -= 1
    rest = back_off(lane, job.backoff_steps) if effect.rests else None
    job.backoff_steps += effect.lengthens_back_off
    if job.attempts >= job.max_attempts:
        end_dead(job, DeadReason.ATTEMPTS, now=now)
        return LeaseOutcome.DIED
    tally.leaves(job, now=now)
    job.state = JobState.WAITING
    job.available_at = None if rest is None else now + rest
    tally.enters(job, now=now)
    return LeaseOutcome.RELEASED


def _write(ended: Sequence[tuple[Job, Attempt]], now: datetime) -> None:
    if ended:
        rows = json.dumps([_row(job, attempt) for job, attempt in ended])
        prepared.run(release_sql.WRITE, {"rows": rows, "now": now})


def _row(job: Job, attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt": attempt.pk,
        "outcome": attempt.outcome,
        "detail": attempt.detail,
        "latency": None if attempt.latency is None else f"{attempt.latency.total_seconds():.6f} s",
        "is_charged": attempt.is_charged,
        "job": job.pk,
        "state": job.state,
        "attempts": job.attempts,
        "available_at": job.available_at and job.available_at.isoformat(),
        "backoff_steps": job.backoff_steps,
        "dead_reason": job.dead_reason,
        "finished_at": job.finished_at and job.finished_at.isoformat(),
    }
