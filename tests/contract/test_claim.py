from datetime import timedelta
from typing import Any, cast

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_core import contract
from queue_core.clock import FixedClock
from queue_core.errors import InvalidClaim
from queue_core.models import Attempt, Item, Job, Message
from queue_core.states import AttemptOutcome, ClaimOutcome, DeadReason, JobState, LeaseToken
from tests.factories import at, clock, dead_job, done_job, leased_job, make_lane, waiting_job

pytestmark = pytest.mark.django_db


def claim(job: Job | int, when: float, **terms: Any) -> contract.Claim:
    return contract.claim(job if isinstance(job, int) else job.pk, clock=clock(when), worker="w1", **terms)


def row(job: Job) -> dict[str, Any]:
    return Job.objects.filter(pk=job.pk).values().get()


def test_claim_of_a_waiting_job_gives_a_token_and_opens_an_attempt() -> None:
    lane = make_lane(lease=timedelta(seconds=30))
    job = waiting_job(lane)

    answer = claim(job, 5)

    attempt = Attempt.objects.get()
    job.refresh_from_db()
    assert answer == contract.Claim(ClaimOutcome.CLAIMED, LeaseToken(job.pk, 1, "v1", attempt.pk, attempt.key), at(35))
    assert (job.state, job.attempts, job.fence, job.lease_until) == (JobState.LEASED, 1, 1, at(35))
    assert (attempt.started_at, attempt.lease_until, attempt.number, attempt.ended_at) == (at(5), at(35), 1, None)
    assert (attempt.run, attempt.policy, attempt.connection) == (lane.run, lane.policy, lane.connection)


def test_a_lease_never_goes_past_the_deadline() -> None:
    """LSE-08: a claim at 990 of a deadline at 1000 ends there."""
    job = waiting_job(make_lane(), deadline=1000)

    assert claim(job, 990, lease=timedelta(seconds=500)).lease_until == at(1000)


@pytest.mark.parametrize(("when", "outcome"), [(109.999999, "held"), (110, "claimed"), (110.000001, "claimed")])
def test_a_lease_runs_until_the_instant_before_its_end(when: float, outcome: str) -> None:
    """LSE-07: the edges of a lease, to the microsecond."""
    job, _token = leased_job(make_lane(lease=timedelta(seconds=100)), claimed=10)
    before = row(job)

    assert claim(job, when).outcome == outcome

    assert (row(job) == before) == (outcome == "held")


def test_a_takeover_closes_the_older_attempt_and_raises_the_fence() -> None:
    job, old = leased_job(make_lane(), claimed=1)

    answer = claim(job, 200)

    first, second = Attempt.objects.order_by("fence")
    assert answer.token is not None
    assert (answer.token.fence, old.fence) == (2, 1)
    assert (first.outcome, first.ended_at) == (AttemptOutcome.LEASE_EXPIRED, at(200))
    assert (second.number, second.ended_at) == (2, None)


@pytest.mark.parametrize(("when", "outcome"), [(999.999999, "claimed"), (1000, "died_deadline")])
def test_a_job_dies_by_its_deadline_at_that_very_instant(when: float, outcome: str) -> None:
    job = waiting_job(make_lane(), deadline=1000)

    assert claim(job, when).outcome == outcome


def test_a_job_that_dies_is_an_item_with_a_message() -> None:
    job = waiting_job(make_lane(), deadline=10)

    answer = claim(job, 10)

    job.refresh_from_db()
    item, message = Item.objects.get(), Message.objects.get()
    assert (answer.token, answer.lease_until) == (None, None)
    assert (job.state, job.dead_reason, job.finished_at) == (JobState.DEAD, DeadReason.DEADLINE, at(10))
    assert (item.kind, item.cause, item.job) == ("dead", "deadline", job)
    assert (message.kind, message.seq, message.ticket) == ("ticket.dead", 1, job.ticket)


def test_a_claim_beyond_the_budget_makes_the_job_dead_and_closes_its_attempt() -> None:
    """PGQ-17: the budget is judged at a takeover too."""
    job, _token = leased_job(make_lane(max_attempts=1), claimed=1)

    answer = claim(job, 500)

    job.refresh_from_db()
    assert answer.outcome == ClaimOutcome.DIED_ATTEMPTS
    assert (job.state, job.dead_reason, job.attempts, job.fence) == (JobState.DEAD, DeadReason.ATTEMPTS, 1, 1)
    assert Attempt.objects.get().outcome == AttemptOutcome.LEASE_EXPIRED


def test_the_deadline_is_judged_before_the_budget() -> None:
    job, _token = leased_job(make_lane(max_attempts=1), claimed=1, deadline=50)

    assert claim(job, 50).outcome == ClaimOutcome.DIED_DEADLINE


def test_a_running_lease_protects_a_job_whose_budget_is_spent() -> None:
    job, _token = leased_job(make_lane(max_attempts=1), claimed=1)

    assert claim(job, 50).outcome == ClaimOutcome.HELD


@pytest.mark.parametrize(("make", "outcome"), [(done_job, ClaimOutcome.DONE), (dead_job, ClaimOutcome.DEAD)])
def test_an_ended_job_is_not_claimed_and_stays_as_it_is(make: Any, outcome: ClaimOutcome) -> None:
    job = make(make_lane())
    before = row(job)

    assert claim(job, 500).outcome == outcome

    assert row(job) == before


@pytest.mark.parametrize("job_id", [0, 10**9, 2**70, -1])
def test_a_job_that_is_not_there_is_missing(job_id: int) -> None:
    assert claim(job_id, 0) == contract.Claim(ClaimOutcome.MISSING)


def test_claim_by_id_ignores_back_off_and_ends_it() -> None:
    job, token = leased_job(make_lane(), claimed=1)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(2))

    assert claim(job, 3).outcome == ClaimOutcome.CLAIMED

    assert row(job)["available_at"] is None


def test_claim_gives_nothing_on_hold_and_changes_nothing() -> None:
    job = waiting_job(make_lane(cap=None))
    before = row(job)

    assert claim(job, 5).outcome == ClaimOutcome.ON_HOLD

    assert row(job) == before
    assert not Attempt.objects.exists()


def test_a_passed_deadline_turns_a_job_dead_on_hold_too() -> None:
    job = waiting_job(make_lane(cap=None), deadline=10)

    assert claim(job, 10).outcome == ClaimOutcome.DIED_DEADLINE


def test_terms_of_the_call_count_for_that_call_only() -> None:
    job = waiting_job(make_lane(max_attempts=1, lease=timedelta(seconds=100)))
    claim(job, 1, lease=timedelta(seconds=10), max_attempts=5)

    second = claim(job, 11, lease=timedelta(seconds=10), max_attempts=5)
    third = claim(job, 21)

    assert (second.outcome, second.lease_until) == (ClaimOutcome.CLAIMED, at(21))
    assert third.outcome == ClaimOutcome.DIED_ATTEMPTS
    assert row(job)["max_attempts"] == 1


@pytest.mark.parametrize(
    "terms",
    [
        {"lease": timedelta(0)},
        {"lease": timedelta(microseconds=999)},
        {"lease": timedelta(seconds=-1)},
        {"lease": 1.5},
        {"lease": "NaN"},
        {"max_attempts": 0},
        {"max_attempts": -1},
        {"max_attempts": 1.5},
        {"max_attempts": True},
        {"max_attempts": "2"},
    ],
    ids=str,
)
def test_terms_that_are_none_are_refused_and_change_nothing(terms: dict[str, Any]) -> None:
    job = waiting_job(make_lane())
    before = row(job)

    with pytest.raises(InvalidClaim):
        claim(job, 1, **terms)

    assert row(job) == before


@pytest.mark.parametrize("now", ["NaN", None, 5, float("inf")])
def test_a_clock_that_is_none_is_refused_whatever_the_job(now: object) -> None:
    job = waiting_job(make_lane())

    for job_id in (job.pk, 0):
        with pytest.raises(InvalidClaim):
            contract.claim(job_id, clock=FixedClock(cast("Any", now)), worker="w1")


def test_a_worker_with_a_long_name_is_cut_and_not_refused() -> None:
    job = waiting_job(make_lane())

    contract.claim(job.pk, clock=clock(1), worker="w" * 500)

    assert Attempt.objects.get().worker == "w" * 200


def test_the_fence_grows_with_every_claim_and_never_starts_again() -> None:
    job = waiting_job(make_lane(max_attempts=50), deadline=10_000)

    fences = [cast("LeaseToken", claim(job, 100 * n, lease=timedelta(seconds=1)).token).fence for n in range(1, 11)]

    assert fences == list(range(1, 11))
    assert list(Attempt.objects.order_by("fence").values_list("fence", flat=True)) == fences


def test_a_claim_by_id_takes_few_statements() -> None:
    job = waiting_job(make_lane())

    with CaptureQueriesContext(connection) as statements:
        claim(job, 1)

    # Savepoint and its release; the lane's id, lock and row; ticket; job; running leases; job, attempt and figures.
    assert len(statements) <= 11, "\n".join(s["sql"][:150] for s in statements)
