import pytest

from queue_core import contract
from queue_core.models import Attempt, Item, Ticket
from queue_core.states import ActOutcome, DeadReason, JobState
from tests.factories import at, claim, clock, done_job, leased_job, make_lane, waiting_job

pytestmark = pytest.mark.django_db


def withdraw(ticket: Ticket, *, when: float) -> ActOutcome:
    return contract.withdraw(source=ticket.source, external_id=ticket.external_id, clock=clock(when))


def test_withdraw_ends_a_waiting_job_without_an_item() -> None:
    job = waiting_job(make_lane())

    assert withdraw(job.ticket, when=5) == ActOutcome.DONE

    job.refresh_from_db()
    assert (job.state, job.dead_reason) == (JobState.DEAD, DeadReason.WITHDRAWN)
    assert Ticket.objects.get().withdrawn_at == at(5)
    assert not Item.objects.exists()


def test_withdraw_makes_a_running_token_stale_and_its_attempt_ends_when_its_holder_reports() -> None:
    job, token = leased_job(make_lane(), claimed=1)

    withdraw(job.ticket, when=5)

    assert contract.complete(token, contract.Ending("APPROVED"), clock=clock(6)) == "stale"
    assert Attempt.objects.get().outcome == "withdrawn"


def test_withdraw_closes_an_open_item() -> None:
    job = done_job(make_lane(), result="MANUAL")

    withdraw(job.ticket, when=5)

    job.refresh_from_db()
    assert (job.state, job.result) == (JobState.DONE, "MANUAL")
    assert Item.objects.get().closed_as == "withdrawn"


def test_withdraw_twice_keeps_the_first_time() -> None:
    job = waiting_job(make_lane())
    withdraw(job.ticket, when=5)

    assert withdraw(job.ticket, when=6) == ActOutcome.DONE

    assert Ticket.objects.get().withdrawn_at == at(5)


def test_withdraw_of_a_ticket_that_is_not_there_is_missing() -> None:
    assert contract.withdraw(source="s", external_id="x", clock=clock(0)) == ActOutcome.MISSING


def test_a_withdrawn_job_is_not_claimed_again() -> None:
    job = waiting_job(make_lane())
    withdraw(job.ticket, when=5)

    with pytest.raises(AssertionError, match="dead"):
        claim(job, when=6)
