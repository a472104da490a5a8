from dataclasses import replace
from typing import Any

import pytest

from queue_core import contract
from queue_core.errors import InvalidJob, RevisionConflict
from queue_core.models import Attempt, Decision, Evidence, Item, Job, LateAnswer, Ticket
from queue_core.states import AddOutcome, DeadReason, JobState, LeaseOutcome
from tests.factories import at, claim, clock, make_lane, new_ticket

pytestmark = pytest.mark.django_db


@pytest.fixture
def ticket() -> contract.NewTicket:
    return new_ticket(make_lane())


def newer(ticket: contract.NewTicket, **fields: Any) -> contract.NewTicket:
    return replace(ticket, **({"revision": "v2", "evidence": "newer"} | fields))


def test_supersede_ends_the_waiting_job_of_the_old_revision_as_nobodys_work(ticket: contract.NewTicket) -> None:
    old = contract.receive(ticket, clock=clock(0)).job

    received = contract.supersede(newer(ticket), replaces="v1", clock=clock(5))

    old.refresh_from_db()
    new = Job.objects.get(revision="v2")
    assert (received.outcome, received.job, received.current_revision) == (AddOutcome.STORED, new, "v2")
    assert (old.state, old.dead_reason, old.finished_at) == (JobState.DEAD, DeadReason.SUPERSEDED, at(5))
    assert (new.state, new.queued_at, new.fence) == (JobState.WAITING, at(5), 0)
    assert Ticket.objects.get().current_revision == "v2"
    assert Evidence.objects.count() == 2
    assert not Item.objects.exists()


def test_supersede_makes_the_token_of_the_old_revision_stale_and_its_seat_is_kept_until_its_holder_reports(
    ticket: contract.NewTicket,
) -> None:
    old = contract.receive(ticket, clock=clock(0)).job
    token = claim(old, when=1)
    contract.supersede(newer(ticket), replaces="v1", clock=clock(2))
    running = contract.running_leases([old.lane_id], now=at(3))

    outcome = contract.complete(token, contract.Ending("APPROVED"), clock=clock(4))

    assert running == 1
    assert outcome == "stale"
    assert contract.running_leases([old.lane_id], now=at(4)) == 0
    assert (Attempt.objects.get().outcome, Attempt.objects.get().ended_at) == ("superseded", at(4))
    assert LateAnswer.objects.get().why == "not_leased"
    assert not Decision.objects.exists()


def test_work_that_was_superseded_and_is_given_back_uncalled_frees_its_seat_and_is_no_late_answer(
    ticket: contract.NewTicket,
) -> None:
    old = contract.receive(ticket, clock=clock(0)).job
    token = claim(old, when=1)
    contract.supersede(newer(ticket), replaces="v1", clock=clock(2))

    outcome = contract.release(token, outcome="released", clock=clock(3))  # type: ignore[arg-type]

    assert outcome == LeaseOutcome.STALE
    assert contract.running_leases([old.lane_id], now=at(3)) == 0
    assert not LateAnswer.objects.exists()


def test_supersede_leaves_a_done_job_and_its_decision_with_their_revision(ticket: contract.NewTicket) -> None:
    old = contract.receive(ticket, clock=clock(0)).job
    contract.complete(claim(old, when=1), contract.Ending("APPROVED"), clock=clock(2))

    contract.supersede(newer(ticket), replaces="v1", clock=clock(3))

    old.refresh_from_db()
    assert (old.state, old.result) == (JobState.DONE, "APPROVED")
    assert Decision.objects.get().revision == "v1"


def test_supersede_closes_the_open_item_of_the_old_revision(ticket: contract.NewTicket) -> None:
    old = contract.receive(ticket, clock=clock(0)).job
    contract.complete(claim(old, when=1), contract.Ending("MANUAL"), clock=clock(2))

    contract.supersede(newer(ticket), replaces="v1", clock=clock(3))

    item = Item.objects.get()
    assert (item.closed_as, item.closed_at) == ("superseded", at(3))


def test_supersede_by_what_is_current_already_is_known(ticket: contract.NewTicket) -> None:
    contract.receive(ticket, clock=clock(0))
    contract.supersede(newer(ticket), replaces="v1", clock=clock(1))

    again = contract.supersede(newer(ticket), replaces="v1", clock=clock(2))

    assert again.outcome == AddOutcome.KNOWN
    assert Job.objects.count() == 2


@pytest.mark.parametrize("replaces", ["v0", "", "v2"])
def test_supersede_of_what_is_not_current_is_a_revision_conflict_that_changes_nothing(
    ticket: contract.NewTicket, replaces: str
) -> None:
    old = contract.receive(ticket, clock=clock(0)).job

    with pytest.raises(RevisionConflict) as conflict:
        contract.supersede(newer(ticket), replaces=replaces, clock=clock(1))

    old.refresh_from_db()
    assert conflict.value.current == "v1"
    assert old.state == JobState.WAITING
    assert Ticket.objects.get().current_revision == "v1"


def test_supersede_of_a_ticket_that_is_not_there_is_a_revision_conflict(ticket: contract.NewTicket) -> None:
    with pytest.raises(RevisionConflict):
        contract.supersede(newer(ticket), replaces="v1", clock=clock(1))

    assert not Ticket.objects.exists()


def test_supersede_with_a_deadline_that_is_over_changes_nothing(ticket: contract.NewTicket) -> None:
    old = contract.receive(ticket, clock=clock(0)).job

    with pytest.raises(InvalidJob):
        contract.supersede(newer(ticket, deadline=at(5)), replaces="v1", clock=clock(5))

    old.refresh_from_db()
    assert old.state == JobState.WAITING


def test_supersede_refuses_a_name_that_cannot_be_stored(ticket: contract.NewTicket) -> None:
    with pytest.raises(InvalidJob):
        contract.supersede(newer(ticket, external_id="a\0"), replaces="v1", clock=clock(5))


def test_a_revision_that_turns_urgent_goes_to_people_at_once(ticket: contract.NewTicket) -> None:
    contract.receive(ticket, clock=clock(0))

    contract.supersede(newer(ticket, severity=3), replaces="v1", clock=clock(1))

    assert Ticket.objects.get().severity == 3
    assert Item.objects.get().kind == "urgent"
    assert Job.objects.get(revision="v2").dead_reason == DeadReason.PULLED
