from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import pytest

from queue_core import contract
from queue_core.clock import FixedClock
from queue_core.errors import InvalidJob, RevisionConflict
from queue_core.models import Job, Ticket
from queue_core.states import JobState
from tests.factories import at, claim, clock, make_lane, new_ticket

pytestmark = pytest.mark.django_db


def test_add_returns_the_waiting_job_of_a_new_revision() -> None:
    job = contract.add(new_ticket(make_lane()), clock=clock(0))

    assert job.state == JobState.WAITING
    assert Job.objects.get() == job


def test_add_of_the_same_revision_returns_the_job_as_it_stands() -> None:
    ticket = new_ticket(make_lane(), deadline=1000)
    job = contract.add(ticket, clock=clock(0))
    claim(job, when=1)

    again = contract.add(replace(ticket, deadline=at(2000)), clock=clock(2))

    assert (again.pk, again.state, again.deadline) == (job.pk, JobState.LEASED, at(1000))


def test_add_of_another_revision_is_a_revision_conflict_that_changes_nothing() -> None:
    ticket = new_ticket(make_lane())
    contract.add(ticket, clock=clock(0))

    with pytest.raises(RevisionConflict) as conflict:
        contract.add(replace(ticket, revision="v2"), clock=clock(1))

    assert conflict.value.current == "v1"
    assert Ticket.objects.get().current_revision == "v1"
    assert Job.objects.count() == 1


def test_add_refuses_a_deadline_that_is_over_even_for_a_stored_revision() -> None:
    ticket = new_ticket(make_lane(), deadline=10)
    contract.add(ticket, clock=clock(0))

    contract.add(ticket, clock=clock(9.999999))
    with pytest.raises(InvalidJob):
        contract.add(ticket, clock=clock(10))


@pytest.mark.parametrize("now", ["NaN", float("inf"), None, datetime(2026, 1, 1)])  # noqa: DTZ001
def test_add_refuses_a_clock_that_is_none_and_stores_nothing(now: Any) -> None:
    with pytest.raises(InvalidJob):
        contract.add(new_ticket(make_lane()), clock=FixedClock(cast("datetime", now)))

    assert not Ticket.objects.exists()
