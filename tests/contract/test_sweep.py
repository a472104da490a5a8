from datetime import timedelta

import pytest

from queue_core import contract
from queue_core.contract import Swept
from queue_core.models import Attempt, Item, Job, Message
from queue_core.states import AttemptOutcome, DeadReason, JobState
from tests.factories import at, claim, clock, done_job, leased_job, make_lane, waiting_job

pytestmark = pytest.mark.django_db


def sweep(when: float, **terms: int) -> Swept:
    return contract.sweep(clock=clock(when), **terms)


@pytest.mark.parametrize("cap", [10, None], ids=["running", "on hold"])
@pytest.mark.parametrize(("when", "died"), [(99.999999, 0), (100, 1), (100.000001, 1)])
def test_a_waiting_job_dies_at_its_deadline_even_if_nobody_asks(when: float, died: int, cap: int | None) -> None:
    job = waiting_job(make_lane(cap=cap), deadline=100)

    assert sweep(when).died_deadline == died

    job.refresh_from_db()
    assert (job.state, job.dead_reason) == ((JobState.DEAD, "deadline") if died else (JobState.WAITING, None))
    assert Item.objects.count() == Message.objects.count() == died


def test_a_job_in_back_off_dies_at_its_deadline() -> None:
    job, token = leased_job(make_lane(), claimed=90, deadline=100)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(99))

    sweep(100)

    job.refresh_from_db()
    assert (job.state, job.available_at) == (JobState.DEAD, None)


def test_an_expired_lease_is_closed_once_and_stays_leased_for_a_takeover() -> None:
    """PGQ-05: only the lease decides."""
    job, _token = leased_job(make_lane(), claimed=1)

    first, second = sweep(101), sweep(102)

    job.refresh_from_db()
    attempt = Attempt.objects.get()
    assert (first.leases_expired, second.leases_expired) == (1, 0)
    assert (job.state, job.fence, job.lease_until) == (JobState.LEASED, 1, at(101))
    assert (attempt.outcome, attempt.ended_at) == (AttemptOutcome.LEASE_EXPIRED, at(101))
    assert claim(job, when=103).fence == 2


def test_a_running_lease_is_left_alone_even_with_its_budget_spent() -> None:
    job, _token = leased_job(make_lane(max_attempts=1), claimed=1)

    assert sweep(100.999999) == Swept()

    job.refresh_from_db()
    assert job.state == JobState.LEASED


def test_a_last_attempt_that_vanished_is_dead_within_one_sweep() -> None:
    """PGQ-16: two tries, two crashes, nobody asks for this id again."""
    lane = make_lane(max_attempts=2)
    job, _token = leased_job(lane, claimed=1)
    claim(job, when=200)

    swept = sweep(300)

    job.refresh_from_db()
    assert (swept.died_attempts, swept.leases_expired) == (1, 1)
    assert (job.state, job.dead_reason, job.attempts, job.fence) == (JobState.DEAD, DeadReason.ATTEMPTS, 2, 2)
    assert Item.objects.get().cause == "attempts"


def test_a_lease_that_lapsed_at_the_deadline_dies_by_the_deadline_on_hold_too() -> None:
    lane = make_lane(max_attempts=1)
    job, _token = leased_job(lane, claimed=50, deadline=100)
    lane.run = lane.cap = None
    lane.save()

    sweep(100)

    job.refresh_from_db()
    assert (job.state, job.dead_reason) == (JobState.DEAD, DeadReason.DEADLINE)


def test_superseded_work_loses_its_seat_when_its_lease_ends() -> None:
    job, _token = leased_job(make_lane(), claimed=1)
    contract.withdraw(source="test", external_id=job.ticket.external_id, clock=clock(2))

    sweep(101)

    assert Attempt.objects.get().outcome == AttemptOutcome.WITHDRAWN
    assert not Item.objects.exists()


def test_ended_jobs_are_left_alone() -> None:
    job = done_job(make_lane())

    assert sweep(5000) == Swept()

    job.refresh_from_db()
    assert job.state == JobState.DONE


def test_a_sweep_is_bounded_says_so_and_another_goes_on() -> None:
    lane = make_lane()
    for _ in range(5):
        waiting_job(lane, deadline=100)

    swept = [sweep(100, limit=2) for _ in range(3)]

    assert [s.died_deadline for s in swept] == [2, 2, 1]
    assert [s.is_full for s in swept] == [True, True, False]


def test_a_sweep_of_all_lanes_gives_each_death_its_own_item_and_message() -> None:
    jobs = [waiting_job(lane, deadline=50 + n) for lane in (make_lane(), make_lane()) for n in range(3)]

    assert sweep(1000).died_deadline == 6

    assert set(Item.objects.values_list("job_id", flat=True)) == {job.pk for job in jobs}
    assert list(Message.objects.values_list("seq", flat=True)) == [1] * 6


@pytest.mark.parametrize(("when", "woken"), [(5.999999, 0), (6, 1), (7, 1)])
def test_a_back_off_that_is_over_makes_a_job_claimable(when: float, woken: int) -> None:
    job, token = leased_job(make_lane(backoff_base=timedelta(seconds=5)), claimed=0.5)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(1))

    assert contract.wake_due(clock=clock(when)) == woken

    job.refresh_from_db()
    assert (job.available_at is None) == bool(woken)


def test_waking_is_bounded_and_takes_the_longest_rested_first() -> None:
    lane = make_lane()
    jobs = []
    for n in range(3):
        job, token = leased_job(lane, claimed=1)
        contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(10 - n))
        jobs.append(job)

    assert contract.wake_due(clock=clock(500), limit=2) == 2

    assert list(Job.objects.filter(available_at__isnull=False)) == [jobs[0]]
