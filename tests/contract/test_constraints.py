"""The database itself refuses what the contract never writes, whoever asks."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F

from queue_core.models import Attempt, Decision, Evidence, Item, Job, Lane, Message, Ticket
from tests.factories import at, dead_job, done_job, leased_job, make_lane, past_the_guards, waiting_job

pytestmark = pytest.mark.django_db


def refuses(model: Any, constraint: str, **values: Any) -> None:
    """The one row of `model` is not changed to these values."""
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        model.objects.update(**values)


WAITING: dict[str, dict[str, Any]] = {
    "job_leased_within_deadline": {"state": "LEASED", "fence": 1},
    "job_result_only_when_done": {"result": "APPROVED"},
    "job_reason_only_when_dead": {"dead_reason": "deadline"},
    "job_finished_at_only_at_the_end": {"finished_at": at(1)},
    "job_attempts_within_fence": {"attempts": 1},
    "job_lease_needs_a_fence": {"lease_until": at(5)},
    "job_deadline_after_queued": {"deadline": at(0)},
}


@pytest.mark.parametrize("constraint", WAITING)
def test_a_waiting_job_is_not_written_into_what_it_cannot_be(constraint: str) -> None:
    waiting_job(make_lane())
    past_the_guards()

    refuses(Job, constraint, **WAITING[constraint])


@pytest.mark.parametrize(
    ("constraint", "values"),
    [
        ("job_result_only_when_done", {"state": "DONE", "finished_at": at(1)}),
        ("job_result_only_when_done", {"state": "DONE", "finished_at": at(1), "result": "MAYBE"}),
        ("job_finished_at_only_at_the_end", {"state": "DONE", "result": "APPROVED"}),
        ("job_reason_only_when_dead", {"state": "DEAD", "finished_at": at(1)}),
        ("job_back_off_only_while_waiting", {"available_at": at(5)}),
        ("job_leased_within_deadline", {"lease_until": at(1000.001)}),
        ("job_leased_within_deadline", {"lease_until": None}),
    ],
)
def test_a_leased_job_is_not_written_into_what_it_cannot_be(constraint: str, values: dict[str, Any]) -> None:
    leased_job(make_lane(), deadline=1000)
    past_the_guards()

    refuses(Job, constraint, **values)


def test_a_job_does_not_wait_with_its_budget_spent() -> None:
    """PGQ-17: whatever path leads back to WAITING, there is a try left, so a claim need not look."""
    leased_job(make_lane(max_attempts=1))

    refuses(Job, "job_waits_with_a_try_left", state="WAITING")


def test_there_is_no_fifth_state_even_for_who_writes_past_the_guards() -> None:
    waiting_job(make_lane())
    past_the_guards()

    refuses(Job, "job_state_known|job_finished_at_only_at_the_end", state="PENDING")
    refuses(Job, "job_result_only_when_done", result="APPROVED")


def test_there_is_one_job_a_revision_and_round() -> None:
    job = waiting_job(make_lane())
    job.pk = None

    with pytest.raises(IntegrityError, match="job_once_a_round"), transaction.atomic():
        job.save()


def test_there_is_one_attempt_a_fence() -> None:
    leased_job(make_lane())
    attempt = Attempt.objects.get()
    attempt.pk = None

    with pytest.raises(IntegrityError, match="attempt_once_a_fence"), transaction.atomic():
        attempt.save()


@pytest.mark.parametrize(
    ("constraint", "values"),
    [
        ("attempt_outcome_when_ended", {"ended_at": at(5)}),
        ("attempt_outcome_when_ended", {"outcome": "timeout"}),
        ("attempt_committed_by_an_answer", {"is_committed": True, "outcome": "timeout", "ended_at": at(5)}),
        ("attempt_committed_by_an_answer", {"is_committed": True}),
    ],
)
def test_an_attempt_ends_whole(constraint: str, values: dict[str, Any]) -> None:
    leased_job(make_lane())

    refuses(Attempt, constraint, **values)


def test_the_machine_decides_a_job_once() -> None:
    done_job(make_lane())
    decision = Decision.objects.get()
    decision.pk = decision.attempt_id = None

    with pytest.raises(IntegrityError), transaction.atomic():
        decision.save()


def test_a_rejection_has_a_ground() -> None:
    done_job(make_lane())
    decision = Decision.objects.get()
    decision.pk, decision.revision, decision.verdict = None, "v2", "REJECTED"

    with pytest.raises(IntegrityError, match="decision_to_reject_has_a_ground"), transaction.atomic():
        decision.save()


def test_a_job_has_one_open_item() -> None:
    dead_job(make_lane())
    item = Item.objects.get()
    item.pk = None

    with pytest.raises(IntegrityError, match="item_open_once_a_job"), transaction.atomic():
        item.save()


def test_a_tickets_messages_are_numbered_once() -> None:
    done_job(make_lane())
    message = Message.objects.get()
    message.pk = message.decision = None
    message.kind = "item.opened"

    with pytest.raises(IntegrityError), transaction.atomic():
        message.save()


def test_a_tickets_message_has_a_number() -> None:
    done_job(make_lane())
    past_the_guards()

    refuses(Message, "message_of_a_ticket_has_a_seq", seq=None)
    refuses(Message, "message_of_a_ticket_has_a_seq", seq=0)
    refuses(Message, "message_of_a_ticket_has_a_seq", ticket=None)


def test_a_ticket_is_one_a_source() -> None:
    waiting_job(make_lane())
    ticket = Ticket.objects.get()
    ticket.pk = None

    with pytest.raises(IntegrityError, match="ticket_once_a_source"), transaction.atomic():
        ticket.save()


def test_evidence_is_one_a_revision() -> None:
    waiting_job(make_lane())
    evidence = Evidence.objects.get()
    evidence.pk = None

    with pytest.raises(IntegrityError, match="evidence_once_a_revision"), transaction.atomic():
        evidence.save()


def test_a_lane_runs_a_stage_or_is_on_hold() -> None:
    make_lane()

    # The guard of a live cap is asked before the constraint.
    refuses(Lane, "nobody approved such a cap", cap=None)
    refuses(Lane, "lane_runs_a_stage_or_is_on_hold", run=None)


def test_a_lane_gives_every_ticket_some_time() -> None:
    make_lane()

    refuses(Lane, "lane_deadline_default_positive", deadline_default=F("deadline_default") * 0)
