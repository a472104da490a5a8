"""What time does to jobs, even if nobody asks for them: in bounded batches, safe to run twice at once."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from queue_core import tally
from queue_core.clock import Clock
from queue_core.contract.complete import UNDER_A_DEATH
from queue_core.contract.deaths import CLOSE_EXPIRED, bury, end_attempts
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidClaim
from queue_core.models import Attempt, Job, Lane
from queue_core.states import AttemptOutcome, DeadReason, JobState

BATCH = 500


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did. `is_full` says that a bound was met and another sweep would find more."""

    died_deadline: int = 0
    died_attempts: int = 0
    leases_expired: int = 0
    is_full: bool = False


def sweep(*, clock: Clock, limit: int = BATCH) -> Swept:
    """Close the attempts of expired leases, and turn DEAD what is past its deadline or out of budget.

    On hold and in back-off too. An expired lease with time and budget left stays LEASED until it is taken over. At
    most `limit` rows of each kind and lane, each kind in a transaction of its own, so that locks are short.
    """
    swept = Swept()
    for lane_id in Lane.objects.order_by("pk").values_list("pk", flat=True):
        swept = _add(swept, _sweep_lane(lane_id, clock, limit))
    return swept


def wake_due(*, clock: Clock, limit: int = 1000) -> int:
    """Make jobs whose back-off is over claimable again. Returns how many."""
    with transaction.atomic(), tally.kept():
        now = read_clock(clock, InvalidClaim)
        due = dict(
            Job.objects.select_for_update(no_key=True, skip_locked=True)
            .filter(state=JobState.WAITING, available_at__lte=now)
            .order_by("available_at")
            .values_list("pk", "lane_id")[:limit]
        )
        for lane_id in due.values():
            tally.holds(lane_id, tally.RESTING, -1, now=now)
        return Job.objects.filter(pk__in=list(due)).update(available_at=None)


@transaction.atomic
def shorten_rests(*, by: timedelta, now: datetime) -> None:
    """Let what rests after `now` rest so much less. For a clock that was set back under it."""
    resting = Job.objects.filter(state=JobState.WAITING, available_at__gt=now).order_by("pk")
    pks = list(resting.select_for_update(no_key=True, skip_locked=True).values_list("pk", flat=True))
    Job.objects.filter(pk__in=pks).update(available_at=F("available_at") - by)


def _sweep_lane(lane_id: int, clock: Clock, limit: int) -> Swept:
    with transaction.atomic(), tally.kept():
        now = read_clock(clock, InvalidClaim)
        expired = _close_expired_attempts(lane_id, now, limit)
    with transaction.atomic(), tally.kept():
        now = read_clock(clock, InvalidClaim)
        dead = list(bury(_hopeless(lane_id, now, limit), now=now).values())
    return Swept(
        died_deadline=dead.count(DeadReason.DEADLINE),
        died_attempts=dead.count(DeadReason.ATTEMPTS),
        leases_expired=expired,
        is_full=expired >= limit or len(dead) >= limit,
    )


def _close_expired_attempts(lane_id: int, now: datetime, limit: int) -> int:
    """Close each once, under its job's lock: a takeover or renewal that holds the job is left alone (PGQ-01)."""
    hints = dict(
        Attempt.objects.filter(lane_id=lane_id, ended_at__isnull=True, lease_until__lte=now)
        .order_by("lease_until")
        .values_list("pk", "job_id")[:limit]
    )
    jobs = (
        Job.objects.select_for_update(no_key=True, skip_locked=True)
        .filter(pk__in=set(hints.values()))
        .order_by("pk")
        .in_bulk()
    )
    closed = 0
    for outcome, pks in _by_outcome(hints, jobs).items():
        closed += end_attempts(CLOSE_EXPIRED, pks, outcome, now=now)
    return closed


def _by_outcome(hints: dict[int, int], jobs: dict[int, Job]) -> dict[AttemptOutcome, list[int]]:
    outcomes: dict[AttemptOutcome, list[int]] = {}
    for attempt_id, job_id in hints.items():
        if job_id in jobs:
            reason = jobs[job_id].dead_reason
            outcome = UNDER_A_DEATH.get(DeadReason(reason)) if reason else None
            outcomes.setdefault(outcome or AttemptOutcome.LEASE_EXPIRED, []).append(attempt_id)
    return outcomes


def _hopeless(lane_id: int, now: datetime, limit: int) -> list[int]:
    late = (
        Job.objects.filter(lane_id=lane_id, state=JobState.WAITING, deadline__lte=now)
        .order_by("deadline", "pk")
        .values_list("pk", flat=True)[:limit]
    )
    lapsed = (
        Job.objects.filter(lane_id=lane_id, state=JobState.LEASED, lease_until__lte=now)
        .filter(Q(deadline__lte=now) | Q(attempts__gte=F("max_attempts")))
        .order_by("lease_until")
        .values_list("pk", flat=True)[:limit]
    )
    return [*late, *lapsed]


def _add(a: Swept, b: Swept) -> Swept:
    return Swept(
        a.died_deadline + b.died_deadline,
        a.died_attempts + b.died_attempts,
        a.leases_expired + b.leases_expired,
        a.is_full or b.is_full,
    )
