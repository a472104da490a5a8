import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_core import contract
from queue_core.models import Attempt, Job, LateAnswer
from queue_core.states import AttemptOutcome, JobState
from tests.factories import at, claim, clock, leased_job, make_lane

pytestmark = pytest.mark.django_db


def test_running_jobs_wait_again_with_a_higher_fence_and_their_attempt_given_back() -> None:
    lane = make_lane()
    job, token = leased_job(lane, claimed=1)

    assert contract.refuse_running(lane.pk, clock=clock(50)) == 1

    job.refresh_from_db()
    running, mark = Attempt.objects.order_by("fence")
    assert (job.state, job.fence, job.attempts) == (JobState.WAITING, 2, 0)
    assert (running.outcome, running.ended_at, running.is_charged) == (AttemptOutcome.REFUSED_BY_HOLD, at(50), False)
    assert (mark.fence, mark.outcome, mark.is_charged, mark.ended_at) == (2, AttemptOutcome.FENCE_RAISED, False, at(50))
    assert contract.complete(token, contract.Ending("APPROVED"), clock=clock(51)) == "stale"
    assert LateAnswer.objects.count() == 1
    assert claim(job, when=52).fence == 3


def test_a_lease_that_is_over_is_left_for_a_takeover() -> None:
    lane = make_lane()
    job, _token = leased_job(lane, claimed=1)

    assert contract.refuse_running(lane.pk, clock=clock(101)) == 0

    job.refresh_from_db()
    assert (job.state, job.fence) == (JobState.LEASED, 1)


def test_other_lanes_run_on() -> None:
    lane, other = make_lane(), make_lane()
    job, _token = leased_job(other, claimed=1)

    assert contract.refuse_running(lane.pk, clock=clock(50)) == 0

    job.refresh_from_db()
    assert job.state == JobState.LEASED


def test_a_job_claimed_beyond_its_budget_by_terms_of_a_call_waits_with_a_try_left() -> None:
    lane = make_lane(max_attempts=1)
    job, _token = leased_job(lane, claimed=1)
    claim(job, when=200, max_attempts=5)

    contract.refuse_running(lane.pk, clock=clock(201))

    job.refresh_from_db()
    assert (job.state, job.attempts, job.max_attempts) == (JobState.WAITING, 0, 1)


def test_a_hundred_running_jobs_take_no_more_statements_than_two() -> None:
    few, many = make_lane(), make_lane(cap=200)
    for lane, number in ((few, 2), (many, 100)):
        for _ in range(number):
            leased_job(lane, claimed=1)

    with CaptureQueriesContext(connection) as of_few:
        contract.refuse_running(few.pk, clock=clock(50))
    with CaptureQueriesContext(connection) as of_many:
        assert contract.refuse_running(many.pk, clock=clock(50)) == 100

    assert len(of_few) == len(of_many)
    assert not Job.objects.filter(state=JobState.LEASED).exists()


def test_the_attempts_of_trailing_timeouts_are_given_back_once() -> None:
    lane = make_lane(max_attempts=3)
    job, token = leased_job(lane, claimed=1)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(2))
    contract.release(claim(job, when=3), outcome=AttemptOutcome.TIMEOUT, clock=clock(4))
    ended = list(Attempt.objects.values_list("pk", flat=True))

    given = [contract.give_back_attempts(ended) for _ in range(2)]

    job.refresh_from_db()
    assert given == [2, 0]
    assert (job.attempts, job.fence) == (0, 2)
    assert not Attempt.objects.filter(is_charged=True).exists()


def test_attempts_of_a_dead_job_or_before_a_requeue_are_not_given_back(olga: object) -> None:
    lane = make_lane(max_attempts=1)
    job, token = leased_job(lane, claimed=1, deadline=5000)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(2))
    ended = list(Attempt.objects.values_list("pk", flat=True))

    of_dead = contract.give_back_attempts(ended)
    contract.requeue(job.pk, deadline=at(5000), clock=clock(10), person=olga, reason="again")  # type: ignore[arg-type]
    claim(job, when=11)
    before_requeue = contract.give_back_attempts(ended)

    job.refresh_from_db()
    assert (of_dead, before_requeue, job.attempts) == (0, 0, 1)
