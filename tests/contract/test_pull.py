from typing import Any

import pytest

from queue_core import contract
from queue_core.errors import InvalidRequest
from queue_core.models import Assignment, Attempt, AuditEntry, Item, Job
from queue_core.states import ActOutcome, AssignmentToken, AttemptOutcome, DeadReason, JobState
from tests.factories import at, clock, dead_job, done_job, leased_job, make_lane, waiting_job

pytestmark = pytest.mark.django_db


def pull(job: Job, person: Any, *, when: float, **terms: Any) -> tuple[ActOutcome, AssignmentToken | None]:
    return contract.pull(job.pk, person=person, clock=clock(when), reason="a child is in it", **terms)


@pytest.mark.parametrize("cap", [10, None], ids=["running", "on hold"])
def test_pull_takes_a_waiting_job_out_of_the_machines_hands(olga: Any, cap: int | None) -> None:
    lane = make_lane(cap=cap)
    job = waiting_job(lane)

    outcome, token = pull(job, olga, when=10)

    job.refresh_from_db()
    item, assignment = Item.objects.get(), Assignment.objects.get()
    assert outcome == ActOutcome.DONE
    assert token == AssignmentToken(item.pk, 1, assignment.key)
    assert (job.state, job.dead_reason, job.fence, job.attempts) == (JobState.DEAD, DeadReason.PULLED, 1, 0)
    assert (item.kind, item.taken_by, item.taken_until) == ("pulled", olga, at(10) + lane.assignment_time)
    assert (assignment.person, assignment.taken_at) == (olga, at(10))
    assert AuditEntry.objects.get().act == "job.pulled"


@pytest.mark.parametrize(("when", "outcome"), [(100.999999, ActOutcome.NOT_ALLOWED_IN_STATE), (101, ActOutcome.DONE)])
def test_pull_takes_a_leased_job_only_when_its_lease_is_over(olga: Any, when: float, outcome: ActOutcome) -> None:
    job, _token = leased_job(make_lane(), claimed=1)

    assert pull(job, olga, when=when)[0] == outcome

    assert Attempt.objects.filter(outcome=AttemptOutcome.LEASE_EXPIRED).exists() == (outcome == ActOutcome.DONE)


def test_the_machines_late_answer_to_a_pulled_job_is_stale(olga: Any) -> None:
    job, token = leased_job(make_lane(), claimed=1)
    pull(job, olga, when=101)

    assert contract.complete(token, contract.Ending("APPROVED"), clock=clock(102)) == "stale"

    job.refresh_from_db()
    assert (job.state, job.result) == (JobState.DEAD, None)


@pytest.mark.parametrize("make", [done_job, dead_job])
def test_an_ended_job_is_not_pulled(olga: Any, make: Any) -> None:
    job = make(make_lane())
    before = Job.objects.filter(pk=job.pk).values().get()

    assert pull(job, olga, when=500) == (ActOutcome.NOT_ALLOWED_IN_STATE, None)

    assert Job.objects.filter(pk=job.pk).values().get() == before
    assert not Assignment.objects.exists()


def test_a_job_past_its_deadline_is_left_to_die(olga: Any) -> None:
    job = waiting_job(make_lane(), deadline=100)

    assert pull(job, olga, when=100)[0] == ActOutcome.NOT_ALLOWED_IN_STATE


def test_a_second_pull_finds_the_job_gone(olga: Any) -> None:
    job = waiting_job(make_lane())
    pull(job, olga, when=10)

    assert pull(job, olga, when=11) == (ActOutcome.NOT_ALLOWED_IN_STATE, None)

    assert Item.objects.count() == 1


@pytest.mark.parametrize("until", [9, 10])
def test_an_assignment_that_would_be_over_at_once_is_refused(olga: Any, until: float) -> None:
    job = waiting_job(make_lane())

    with pytest.raises(InvalidRequest):
        pull(job, olga, when=10, until=at(until))

    job.refresh_from_db()
    assert job.state == JobState.WAITING
