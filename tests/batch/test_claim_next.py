from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queue_core import batch, contract
from queue_core.batch import Batch
from queue_core.errors import InvalidClaim
from queue_core.models import Attempt, Item, Job, Lane
from queue_core.states import AttemptOutcome, ClaimOutcome, JobState
from tests.factories import at, claim, clock, leased_job, make_lane, waiting_job

pytestmark = pytest.mark.django_db


def claim_next(lane: Lane, limit: int = 500, *, when: float) -> Batch:
    return batch.claim_next(lane.pk, limit, clock=clock(when), worker="w1")


def jobs_of(given: Batch) -> list[int]:
    return [claimed.token.job for claimed in given.claims]


def test_a_batch_leases_jobs_opens_attempts_and_hands_over_what_a_call_needs() -> None:
    lane = make_lane(lease=timedelta(seconds=30), max_attempts=2)
    job = waiting_job(lane, external_id="x y/z?2", evidence={"a": "é"}, severity=1, is_restricted=True)

    [claimed] = claim_next(lane, when=5).claims

    attempt = Attempt.objects.get()
    job.refresh_from_db()
    assert (job.state, job.attempts, job.fence, job.lease_until) == (JobState.LEASED, 1, 1, at(35))
    assert (claimed.token.job, claimed.token.fence, claimed.token.revision) == (job.pk, 1, "v1")
    assert (claimed.token.attempt, claimed.token.key) == (attempt.pk, attempt.key)
    assert (claimed.lease_until, claimed.deadline, claimed.number, claimed.is_last_attempt) == (
        at(35),
        at(1000),
        1,
        False,
    )
    assert (claimed.external_id, claimed.evidence, claimed.severity, claimed.is_restricted) == (
        "x y/z?2",
        '{"a":"é"}',
        1,
        True,
    )
    assert (attempt.run, attempt.policy, attempt.connection) == (lane.run, lane.policy, lane.connection)
    assert (attempt.started_at, attempt.lease_until, attempt.number, attempt.is_charged) == (at(5), at(35), 1, True)


tickets = st.lists(st.tuples(st.integers(-3000, 0), st.integers(2000, 9000), st.integers(0, 2)), min_size=1, max_size=8)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tickets=tickets, weight=st.sampled_from([0, 0.25, 0.5, 1]), limit=st.integers(1, 8))
def test_the_order_of_a_batch_is_urgency(tickets: list[tuple[int, int, int]], weight: float, limit: int) -> None:
    lane = make_lane(urgency_weight=weight)
    for submitted, deadline, severity in tickets:
        waiting_job(lane, submitted=submitted, deadline=deadline, severity=severity)
    expected = list(Job.objects.filter(lane=lane).order_by("urgency", "pk").values_list("pk", flat=True))

    first, rest = claim_next(lane, limit, when=1), claim_next(lane, when=1)

    assert jobs_of(first) + jobs_of(rest) == expected
    assert jobs_of(first) == expected[:limit]


def test_with_weight_0_the_oldest_comes_first_and_with_1_the_nearest_deadline() -> None:
    for weight, expected in ((0, "old"), (1, "near")):
        lane = make_lane(urgency_weight=weight)
        waiting_job(lane, external_id=f"near{weight}", submitted=0, deadline=500)
        waiting_job(lane, external_id=f"old{weight}", submitted=-500, deadline=5000)

        [claimed] = claim_next(lane, 1, when=1).claims

        assert claimed.external_id == f"{expected}{weight}"


def test_jobs_in_back_off_of_other_lanes_and_running_ones_are_passed_over() -> None:
    lane, other = make_lane(), make_lane()
    waiting_job(other)
    leased_job(lane, claimed=1)
    _job, token = leased_job(lane, claimed=1)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(2))
    free = waiting_job(lane)

    assert jobs_of(claim_next(lane, when=3)) == [free.pk]


def test_an_expired_lease_is_not_taken_over_in_a_batch() -> None:
    lane = make_lane()
    leased_job(lane, claimed=1)

    assert claim_next(lane, when=500) == Batch([])


@pytest.mark.parametrize(("deadline", "is_given"), [(13.5, False), (13.500001, True)])
def test_a_job_with_too_little_time_for_the_usual_call_is_passed_over_and_stays_waiting(
    deadline: float, is_given: bool
) -> None:
    lane = make_lane(least_call_time=timedelta(seconds=1), usual_call_time=timedelta(seconds=3))
    job = waiting_job(lane, deadline=deadline)

    assert bool(claim_next(lane, when=10).claims) == is_given

    job.refresh_from_db()
    assert job.state == (JobState.LEASED if is_given else JobState.WAITING)


def test_no_attempt_starts_before_its_job_was_queued_though_the_claim_read_the_clock_before() -> None:
    """It may see what came in while it waited for the lane. By that start the budget is counted and given back."""
    lane = make_lane()
    job = waiting_job(lane, added=5)

    claim_next(lane, when=4.9)

    attempt = Attempt.objects.get(job=job)
    assert attempt.started_at == at(5)


def test_passed_deadlines_turn_dead_on_the_way_and_take_no_seat() -> None:
    lane = make_lane(cap=2)
    late = [waiting_job(lane, deadline=50) for _ in range(5)]
    live = [waiting_job(lane, deadline=5000) for _ in range(3)]

    given = claim_next(lane, when=100)

    assert (given.buried, len(given.claims)) == (5, 2)
    assert set(Job.objects.filter(state=JobState.DEAD)) == set(late)
    assert Item.objects.filter(cause="deadline").count() == 5
    assert set(jobs_of(given)) < {job.pk for job in live}


def test_deaths_on_the_way_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MOST_BURIED_AT_ONCE", 3)
    lane = make_lane()
    for _ in range(5):
        waiting_job(lane, deadline=50)

    assert [claim_next(lane, when=100).buried for _ in range(3)] == [3, 2, 0]


@pytest.mark.parametrize(
    ("lane_fields", "refusal"), [({"cap": None}, ClaimOutcome.ON_HOLD), ({"judged_at": None}, ClaimOutcome.NOT_JUDGED)]
)
def test_a_lane_that_gives_nothing_says_why(lane_fields: dict[str, object], refusal: ClaimOutcome) -> None:
    lane = make_lane(cap=lane_fields.get("cap", 5))  # type: ignore[arg-type]
    if "judged_at" in lane_fields:
        Lane.objects.filter(pk=lane.pk).update(judged_at=None)
    waiting_job(lane)

    assert claim_next(lane, when=1) == Batch([], refusal)


@pytest.mark.parametrize("limit", [0, -1, 501])
def test_a_limit_out_of_bounds_is_refused(limit: int) -> None:
    with pytest.raises(InvalidClaim):
        claim_next(make_lane(), limit, when=1)


def test_a_batch_of_fifty_takes_no_more_statements_than_one() -> None:
    lane = make_lane()
    for _ in range(51):
        waiting_job(lane)

    with CaptureQueriesContext(connection) as of_one:
        claim_next(lane, 1, when=1)
    with CaptureQueriesContext(connection) as of_fifty:
        assert len(claim_next(lane, 50, when=1).claims) == 50

    assert len(of_one) == len(of_fifty) == 3


@pytest.mark.parametrize("limit", [1, 5])
def test_the_planner_never_makes_a_batch_larger_than_its_limit(limit: int) -> None:
    """PGQ-04: an un-analysed table, and only nested loops."""
    lane = make_lane(cap=100)
    for _ in range(100):
        waiting_job(lane)
    with connection.cursor() as cursor:
        for setting in ("hashjoin", "mergejoin", "material"):
            cursor.execute(f"SET LOCAL enable_{setting} = off")

    given = claim_next(lane, limit, when=1)

    assert len(given.claims) == limit
    assert Job.objects.filter(state=JobState.LEASED).count() == Attempt.objects.count() == limit


def probe(**fields: object) -> Lane:
    return make_lane(number=1, cap=10, **fields)  # type: ignore[arg-type]


def test_the_probe_draws_the_most_time_left() -> None:
    lane = probe()
    jobs = [waiting_job(lane, deadline=1000 + n) for n in range(5)]

    assert jobs_of(claim_next(lane, 2, when=1)) == [jobs[4].pk, jobs[3].pk]


def test_the_probe_draws_what_is_harmless_as_long_as_there_is_some() -> None:
    lane = probe()
    severe = waiting_job(lane, deadline=9000, severity=2)
    harmless = waiting_job(lane, deadline=1000, severity=1)

    given = [jobs_of(claim_next(lane, 1, when=when)) for when in (1, 2)]

    assert given == [[harmless.pk], [severe.pk]]


def test_the_probe_draws_no_last_attempt_unless_a_job_has_only_one() -> None:
    lane = probe(max_attempts=2)
    _job, token = leased_job(lane, claimed=1)
    contract.release(token, outcome=AttemptOutcome.INVALID_ANSWER, clock=clock(2))
    contract.wake_due(clock=clock(500))

    assert claim_next(lane, when=501).claims == []

    only_try = waiting_job(probe(max_attempts=1))
    assert jobs_of(claim_next(only_try.lane, when=502)) == [only_try.pk]


def test_the_probe_takes_over_no_expired_lease() -> None:
    lane = probe()
    job, _token = leased_job(lane)

    assert batch.claim_expired(lane.pk, clock=clock(500), worker="w2") == Batch([])
    job.refresh_from_db()
    assert (job.state, job.fence) == ("LEASED", 1)


def test_the_probe_draws_a_ticket_once_an_outage() -> None:
    lane = probe(max_attempts=10)
    _job, token = leased_job(lane, claimed=1)
    contract.release(token, outcome=AttemptOutcome.RELEASED, clock=clock(2))

    assert claim_next(lane, when=3).claims == []


def test_one_expired_lease_is_taken_over_at_a_time_the_longest_over_first() -> None:
    lane = make_lane()
    first, _token = leased_job(lane, claimed=1)
    second, _token = leased_job(lane, claimed=2)

    given = [batch.claim_expired(lane.pk, clock=clock(500), worker="w2") for _ in range(3)]

    assert [jobs_of(one) for one in given] == [[first.pk], [second.pk], []]
    assert [one.claims[0].token.fence for one in given[:2]] == [2, 2]
    assert (
        list(Attempt.objects.filter(fence=1).values_list("outcome", "ended_at"))
        == [(AttemptOutcome.LEASE_EXPIRED, at(500))] * 2
    )


@pytest.mark.parametrize(("when", "taken"), [(100.999999, 0), (101, 1)])
def test_a_lease_is_taken_over_from_the_instant_it_is_over(when: float, taken: int) -> None:
    lane = make_lane()
    leased_job(lane, claimed=1)

    assert len(batch.claim_expired(lane.pk, clock=clock(when), worker="w2").claims) == taken


def test_an_expired_lease_without_a_try_or_time_left_is_not_taken_over() -> None:
    lane = make_lane(max_attempts=1)
    leased_job(lane, claimed=1)
    late = make_lane()
    leased_job(late, claimed=1, deadline=200)

    assert batch.claim_expired(lane.pk, clock=clock(150), worker="w2").claims == []
    assert batch.claim_expired(late.pk, clock=clock(199.5), worker="w2").claims == []


def test_a_takeover_obeys_the_cap() -> None:
    lane = make_lane(cap=1)
    leased_job(lane, claimed=1)
    claim(waiting_job(lane), when=300)

    assert batch.claim_expired(lane.pk, clock=clock(301), worker="w2") == Batch([], ClaimOutcome.STAGE_FULL)
