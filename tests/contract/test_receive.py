from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_core import contract
from queue_core.errors import InvalidJob
from queue_core.models import Attempt, Evidence, Item, Job, Message, Ticket
from queue_core.states import AddOutcome, DeadReason, ItemKind, JobState, SourceKind
from tests.factories import at, clock, make_lane, new_ticket

pytestmark = pytest.mark.django_db


def test_receive_stores_a_new_ticket_with_its_evidence_and_a_waiting_job() -> None:
    lane = make_lane(max_attempts=7)
    ticket = new_ticket(lane, deadline=1000, evidence={"b": "é", "a": 1.0})

    received = contract.receive(ticket, clock=clock(5))

    job = Job.objects.select_related("ticket", "evidence").get()
    assert received == contract.Received(AddOutcome.STORED, job, "v1")
    assert (job.state, job.fence, job.attempts, job.max_attempts) == (JobState.WAITING, 0, 0, 7)
    assert (job.added_at, job.queued_at, job.deadline) == (at(5), at(5), at(1000))
    assert job.evidence.body == '{"b":"é","a":1.0}'
    assert job.evidence.size == len(job.evidence.body.encode())
    assert job.ticket.current_revision == "v1"


def test_receive_of_the_same_revision_is_known_and_changes_nothing() -> None:
    lane = make_lane()
    ticket = new_ticket(lane, deadline=1000)
    first = contract.receive(ticket, clock=clock(0)).job

    again = contract.receive(replace(ticket, evidence="other", deadline=at(50)), clock=clock(10))

    assert again.outcome == AddOutcome.KNOWN
    assert again.job == first
    assert Job.objects.get().deadline == at(1000)
    assert Evidence.objects.get().body != '"other"'


def test_receive_of_a_known_revision_is_known_even_past_its_deadline() -> None:
    lane = make_lane()
    ticket = new_ticket(lane, deadline=100)
    contract.receive(ticket, clock=clock(0))

    assert contract.receive(ticket, clock=clock(200)).outcome == AddOutcome.KNOWN


def test_receive_of_another_revision_is_a_conflict_that_changes_nothing() -> None:
    lane = make_lane()
    ticket = new_ticket(lane)
    contract.receive(ticket, clock=clock(0))

    answer = contract.receive(replace(ticket, revision="v2"), clock=clock(1))

    assert (answer.outcome, answer.current_revision) == (AddOutcome.REVISION_CONFLICT, "v1")
    assert Ticket.objects.get().current_revision == "v1"
    assert Evidence.objects.count() == Job.objects.count() == 1


def test_receive_of_a_revision_that_is_no_longer_current_is_superseded_and_not_reopened() -> None:
    lane = make_lane()
    ticket = new_ticket(lane)
    contract.receive(ticket, clock=clock(0))
    contract.supersede(replace(ticket, revision="v2"), replaces="v1", clock=clock(1))

    answer = contract.receive(ticket, clock=clock(2))

    assert (answer.outcome, answer.current_revision) == (AddOutcome.SUPERSEDED, "v2")
    assert answer.job.state == JobState.DEAD
    assert Job.objects.count() == 2


def test_wait_begins_at_the_source_but_never_in_the_future() -> None:
    lane = make_lane()

    past = contract.receive(new_ticket(lane, submitted=-500), clock=clock(0)).job
    future = contract.receive(new_ticket(lane, submitted=500), clock=clock(0)).job

    assert (past.queued_at, past.added_at, past.ticket.first_seen_at) == (at(-500), at(0), at(-500))
    assert future.queued_at == at(0)


def test_what_a_ticket_does_not_say_comes_from_its_lane() -> None:
    lane = make_lane(
        deadline_default=timedelta(seconds=77),
        severity_default=2,
        source_kind_default=SourceKind.USER_NOTICE,
        exposure_default="live",
        deadline_kind_default="hard",
    )

    job = contract.receive(new_ticket(lane, deadline=None), clock=clock(0)).job

    ticket = Ticket.objects.get()
    assert job.deadline == at(77)
    assert (ticket.severity, ticket.source_kind, ticket.exposure, ticket.deadline_kind) == (
        2,
        "user_notice",
        "live",
        "hard",
    )


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no source": ({"source": ""}, "source"),
    "long source": ({"source": "s" * 65}, "source"),
    "no id": ({"external_id": ""}, "ticket"),
    "long id": ({"external_id": "x" * 201}, "ticket"),
    "NUL in the id": ({"external_id": "a\0b"}, "ticket"),
    "half a pair in the id": ({"external_id": "\udc00"}, "ticket"),
    "no revision": ({"revision": ""}, "revision"),
    "deadline now": ({"deadline": 10}, "deadline"),
    "deadline passed": ({"deadline": 9}, "deadline"),
    "NaN in the evidence": ({"evidence": {"score": float("nan")}}, "evidence"),
    "half a pair in the evidence": ({"evidence": "\ud83d"}, "evidence"),
    "no JSON": ({"evidence": object()}, "evidence"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_stored_is_refused_by_its_field_and_stores_nothing(name: str) -> None:
    lane = make_lane()
    fields, field = BAD[name]

    with pytest.raises(InvalidJob) as refusal:
        contract.receive(new_ticket(lane, **fields), clock=clock(10))

    assert refusal.value.field == field
    assert not Ticket.objects.exists()


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 2, 1),  # noqa: DTZ001  a time without a zone is the case
        datetime(1969, 12, 31, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-12))),
    ],
    ids=["no zone", "before 1970", "beyond all dates"],
)
@pytest.mark.parametrize("field", ["deadline", "submitted_at"])
def test_a_time_that_is_none_is_refused(field: str, moment: datetime) -> None:
    ticket = replace(new_ticket(make_lane()), **{field: moment})  # type: ignore[arg-type]

    with pytest.raises(InvalidJob) as refusal:
        contract.receive(ticket, clock=clock(0))

    assert refusal.value.field == field
    assert not Ticket.objects.exists()


def test_a_deadline_is_after_now_by_any_amount() -> None:
    lane = make_lane()

    job = contract.receive(new_ticket(lane, deadline=10.000001), clock=clock(10)).job

    job.refresh_from_db()
    assert job.deadline == at(10.000001)


def test_one_bad_ticket_of_many_is_refused_and_the_others_are_stored_in_order() -> None:
    lane = make_lane()
    good, late, other = new_ticket(lane), new_ticket(lane, deadline=1), new_ticket(lane)
    nameless = replace(other, external_id="")

    answers = contract.receive_many([good, late, nameless, good, replace(good, revision="v2"), other], clock=clock(10))

    assert [a.field if isinstance(a, InvalidJob) else a.outcome for a in answers] == [
        AddOutcome.STORED,
        "deadline",
        "ticket",
        AddOutcome.KNOWN,
        AddOutcome.REVISION_CONFLICT,
        AddOutcome.STORED,
    ]
    assert Job.objects.count() == 2


def test_a_line_that_is_refused_does_not_answer_for_the_good_line_of_the_same_ticket_behind_it() -> None:
    ticket = new_ticket(make_lane(), deadline=1000)

    refused, stored, known = contract.receive_many(
        [replace(ticket, deadline=at(1)), ticket, replace(ticket, deadline=at(1))], clock=clock(10)
    )

    assert isinstance(refused, InvalidJob)
    assert isinstance(stored, contract.Received)
    assert isinstance(known, contract.Received)
    assert (stored.outcome, known.outcome) == (AddOutcome.STORED, AddOutcome.KNOWN)
    assert Job.objects.get().deadline == at(1000)


@pytest.mark.parametrize(
    "fields", [{"severity": 3}, {"source_kind": SourceKind.AUTHORITY_ORDER}], ids=["most severe", "authority"]
)
def test_an_urgent_ticket_goes_to_people_at_once_on_hold_too(fields: dict[str, Any]) -> None:
    lane = make_lane(cap=None)

    job = contract.receive(new_ticket(lane, **fields), clock=clock(3)).job

    job.refresh_from_db()
    item = Item.objects.get()
    message = Message.objects.get()
    assert (job.state, job.dead_reason, job.fence, job.attempts) == (JobState.DEAD, DeadReason.PULLED, 1, 0)
    assert (item.job, item.kind, item.opened_at) == (job, ItemKind.URGENT, at(3))
    assert (message.kind, message.seq) == ("item.opened", 1)
    assert Attempt.objects.get().outcome == "fence_raised"


def test_an_urgent_ticket_waits_for_the_model_in_a_lane_that_lets_the_model_see_it_first() -> None:
    lane = make_lane(model_sees_urgent_first=True)

    job = contract.receive(new_ticket(lane, severity=3), clock=clock(0)).job

    assert job.state == JobState.WAITING
    assert not Item.objects.exists()


@pytest.mark.parametrize(("severity", "most"), [(1, 4), (3, 14)], ids=["usual", "urgent"])
def test_five_hundred_tickets_take_no_more_statements_than_five(severity: int, most: int) -> None:
    lane = make_lane()
    few = [new_ticket(lane, severity=severity) for _ in range(5)]
    many = [new_ticket(lane, severity=severity) for _ in range(500)]

    with CaptureQueriesContext(
        connection,
    ) as of_few:
        contract.receive_many(few, clock=clock(0))
    with CaptureQueriesContext(connection) as of_many:
        contract.receive_many(many, clock=clock(0))

    assert len(of_many) == len(of_few) <= most
    assert Job.objects.count() == 505


def test_tickets_are_numbered_in_the_order_in_which_they_came_whatever_their_names() -> None:
    """Of equally urgent jobs the one with the smaller number is claimed first."""
    lane = make_lane()
    tickets = [new_ticket(lane, external_id=name) for name in ("b", "é", "a", "Z")]

    answers = contract.receive_many(tickets, clock=clock(0))

    assert list(Job.objects.order_by("pk").values_list("ticket__external_id", flat=True)) == ["b", "é", "a", "Z"]
    assert [answer.job.ticket.external_id for answer in answers if isinstance(answer, contract.Received)] == [
        "b",
        "é",
        "a",
        "Z",
    ]


def test_what_is_stored_is_what_the_answer_says_of_it() -> None:
    """All fields, also those that the database fills in: the answer's rows are not read back."""
    answer = contract.receive(
        new_ticket(make_lane(), submitted=-70, evidence={"text": "\\u0000 \\ 漢 \U0001f600"}), clock=clock(9)
    )

    stored = Job.objects.select_related("ticket", "evidence").get()
    for said, row in ((answer.job, stored), (answer.job.ticket, stored.ticket), (answer.job.evidence, stored.evidence)):
        for field in row._meta.concrete_fields:
            assert getattr(said, field.attname) == getattr(row, field.attname), field.name
