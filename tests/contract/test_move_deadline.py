from datetime import timedelta
from typing import Any

import pytest

from queue_core import contract
from queue_core.errors import InvalidRequest
from queue_core.models import AuditEntry, Job
from queue_core.states import ActOutcome
from tests.factories import at, clock, dead_job, done_job, leased_job, make_lane, waiting_job

pytestmark = pytest.mark.django_db


def move(job: Job, person: Any, *, when: float, deadline: float) -> ActOutcome:
    return contract.move_deadline(job.pk, deadline=at(deadline), clock=clock(when), person=person, reason="longer")


def test_a_moved_deadline_changes_urgency_and_nothing_else_adm_08(olga: Any) -> None:
    job = waiting_job(make_lane(urgency_weight=0.5, severity_bonus=timedelta(0)), deadline=1000)
    before = Job.objects.filter(pk=job.pk).values().get()

    assert move(job, olga, when=10, deadline=2000) == ActOutcome.DONE

    assert Job.objects.filter(pk=job.pk).values().get() == before | {"deadline": at(2000), "urgency": at(1000)}
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.before, entry.after) == (
        "job.deadline_moved",
        {"deadline": at(1000).isoformat()},
        {"deadline": at(2000).isoformat()},
    )


@pytest.mark.parametrize("deadline", [9, 10])
def test_a_deadline_that_is_not_after_now_is_refused(olga: Any, deadline: float) -> None:
    job = waiting_job(make_lane())

    with pytest.raises(InvalidRequest):
        move(job, olga, when=10, deadline=deadline)

    job.refresh_from_db()
    assert job.deadline == at(1000)


@pytest.mark.parametrize("make", [done_job, dead_job, lambda lane: leased_job(lane)[0]])
def test_only_a_waiting_job_has_its_deadline_moved(olga: Any, make: Any) -> None:
    job = make(make_lane())
    before = Job.objects.filter(pk=job.pk).values().get()

    assert move(job, olga, when=20, deadline=2000) == ActOutcome.NOT_ALLOWED_IN_STATE

    assert Job.objects.filter(pk=job.pk).values().get() == before


@pytest.mark.parametrize(("when", "outcome"), [(99.999999, ActOutcome.DONE), (100, ActOutcome.NOT_ALLOWED_IN_STATE)])
def test_a_deadline_that_is_over_is_not_moved(olga: Any, when: float, outcome: ActOutcome) -> None:
    job = waiting_job(make_lane(), deadline=100)

    assert move(job, olga, when=when, deadline=2000) == outcome
