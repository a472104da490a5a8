from datetime import timedelta
from typing import Any

import pytest

from queue_core import contract
from queue_core.models import Attempt, Item, Job, LateAnswer
from queue_core.states import AttemptOutcome, DeadReason, JobState, LeaseOutcome, LeaseToken
from tests.factories import at, claim, clock, leased_job, make_lane, past_the_guards

pytestmark = pytest.mark.django_db

BASE = timedelta(seconds=5)


def release(token: LeaseToken, outcome: AttemptOutcome, when: float, **terms: Any) -> LeaseOutcome:
    return contract.release(token, outcome=outcome, clock=clock(when), worker="w1", **terms)


@pytest.mark.parametrize(
    ("outcome", "attempts", "rests", "steps"),
    [
        (AttemptOutcome.INVALID_ANSWER, 1, True, 1),
        (AttemptOutcome.TIMEOUT, 1, True, 1),
        (AttemptOutcome.LEASE_EXPIRED, 1, True, 1),
        (AttemptOutcome.UNAVAILABLE, 0, True, 0),
        (AttemptOutcome.OVERLOADED, 0, True, 0),
        (AttemptOutcome.MISCONFIGURED, 0, False, 0),
        (AttemptOutcome.RELEASED, 0, False, 0),
    ],
)
def test_release_gives_back_by_the_table(outcome: AttemptOutcome, attempts: int, rests: bool, steps: int) -> None:
    job, token = leased_job(make_lane(), claimed=1)

    assert release(token, outcome, 2, detail="why", latency=timedelta(seconds=1)) == LeaseOutcome.RELEASED

    job.refresh_from_db()
    attempt = Attempt.objects.get()
    assert (job.state, job.attempts, job.fence, job.backoff_steps) == (JobState.WAITING, attempts, 1, steps)
    assert job.available_at == (at(2) + BASE if rests else None)
    assert job.lease_until == at(101)
    assert (attempt.outcome, attempt.ended_at, attempt.is_charged) == (outcome, at(2), attempts == 1)
    assert (attempt.detail, attempt.latency) == ("why", timedelta(seconds=1))


@pytest.mark.parametrize(
    "outcome", [AttemptOutcome.VERDICT, AttemptOutcome.SUPERSEDED, AttemptOutcome.FENCE_RAISED, AttemptOutcome.UNKNOWN]
)
def test_an_outcome_that_gives_nothing_back_is_refused(outcome: AttemptOutcome) -> None:
    job, token = leased_job(make_lane())

    with pytest.raises(ValueError, match="does not give a job back"):
        release(token, outcome, 2)

    job.refresh_from_db()
    assert job.state == JobState.LEASED


def test_each_charged_failure_doubles_the_back_off() -> None:
    lane = make_lane(max_attempts=10, backoff_cap=timedelta(seconds=18))
    job, token = leased_job(lane, claimed=0, deadline=100_000)
    rests = []
    for n in range(4):
        release(token, AttemptOutcome.TIMEOUT, 1000 * n + 1)
        job.refresh_from_db()
        assert job.available_at is not None
        rests.append((job.available_at - at(1000 * n + 1)).total_seconds())
        token = claim(job, when=1000 * (n + 1))

    assert rests == [5, 10, 18, 18]


def test_a_release_that_spends_the_budget_makes_the_job_dead_at_once() -> None:
    """PGQ-17: a last attempt that fails is the end, whatever it failed by."""
    job, token = leased_job(make_lane(max_attempts=1))

    assert release(token, AttemptOutcome.INVALID_ANSWER, 2) == LeaseOutcome.DIED

    job.refresh_from_db()
    assert (job.state, job.dead_reason, job.finished_at) == (JobState.DEAD, DeadReason.ATTEMPTS, at(2))
    assert (job.attempts, job.available_at) == (1, None)
    assert Item.objects.get().cause == "attempts"


def test_a_last_attempt_that_was_surely_not_executed_is_given_back() -> None:
    job, token = leased_job(make_lane(max_attempts=1))

    assert release(token, AttemptOutcome.UNAVAILABLE, 2) == LeaseOutcome.RELEASED

    job.refresh_from_db()
    assert (job.state, job.attempts) == (JobState.WAITING, 0)


def test_a_timeout_of_the_probe_is_not_charged() -> None:
    job, token = leased_job(make_lane(max_attempts=1))

    assert release(token, AttemptOutcome.TIMEOUT, 2, charge=False) == LeaseOutcome.RELEASED

    job.refresh_from_db()
    assert (job.state, job.attempts, job.backoff_steps) == (JobState.WAITING, 0, 1)
    assert Attempt.objects.get().is_charged is False


@pytest.mark.parametrize(("when", "outcome"), [(100.999999, "released"), (101, "stale")])
def test_release_counts_until_the_instant_before_the_lease_ends(when: float, outcome: str) -> None:
    job, token = leased_job(make_lane(), claimed=1)

    assert release(token, AttemptOutcome.TIMEOUT, when) == outcome

    job.refresh_from_db()
    assert (job.state == JobState.LEASED) == (outcome == "stale")


def test_a_stale_release_changes_nothing_and_is_kept() -> None:
    job, old = leased_job(make_lane(), claimed=1)
    claim(job, when=200)
    before = Job.objects.filter(pk=job.pk).values().get()

    assert release(old, AttemptOutcome.INVALID_ANSWER, 201) == LeaseOutcome.STALE

    late = LateAnswer.objects.get()
    assert Job.objects.filter(pk=job.pk).values().get() == before
    assert (late.result, late.why) == ("invalid_answer", "fence")


def test_a_second_release_of_the_same_token_is_stale_and_no_late_answer() -> None:
    """PGQ-15: a worker that lost the answer to its commit asks again; the model said nothing that came too late."""
    job, token = leased_job(make_lane())
    release(token, AttemptOutcome.UNAVAILABLE, 2)

    assert release(token, AttemptOutcome.UNAVAILABLE, 3) == LeaseOutcome.STALE

    job.refresh_from_db()
    assert job.attempts == 0
    assert not LateAnswer.objects.exists()


def test_a_failure_far_beyond_every_power_rests_for_the_cap_and_stays_waiting() -> None:
    """RET-01: 60 tries of 2000, a factor that no float can hold."""
    lane = make_lane(max_attempts=2000)
    job, _token = leased_job(lane, deadline=100_000)
    past_the_guards()
    Job.objects.filter(pk=job.pk).update(attempts=60, fence=60, backoff_steps=2_000_000_000, lease_until=at(0))
    token = claim(job, when=10)

    assert release(token, AttemptOutcome.TIMEOUT, 11) == LeaseOutcome.RELEASED

    job.refresh_from_db()
    assert (job.state, job.attempts, job.available_at) == (JobState.WAITING, 61, at(11) + lane.backoff_cap)


def test_a_retry_that_would_come_after_the_deadline_never_comes() -> None:
    """LSE-09: at the deadline the job is DEAD, whatever its back-off says."""
    job, token = leased_job(make_lane(backoff_base=timedelta(seconds=300)), claimed=950, deadline=1000)
    release(token, AttemptOutcome.TIMEOUT, 960)

    contract.sweep(clock=clock(1000))
    contract.wake_due(clock=clock(1400))

    job.refresh_from_db()
    assert (job.state, job.dead_reason) == (JobState.DEAD, DeadReason.DEADLINE)


def test_a_detail_from_outside_is_made_small_and_storable() -> None:
    _job, token = leased_job(make_lane())

    release(token, AttemptOutcome.INVALID_ANSWER, 2, detail="\0\ud800" * 1000)

    assert len(Attempt.objects.get().detail) == 512
