"""What the second half of the gate keeps is written once, whoever asks."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, models, transaction

from queue_core.models import Assignment, BlindCheck, Decision, Item, KnownAnswer, KnownReply, Recall, RecallEntry
from reviewboard.models import Person
from tests.factories import at, done_job, make_lane

pytestmark = pytest.mark.django_db


def a_reply(_lead: Person) -> models.Model:
    lane = make_lane()
    known = KnownAnswer.objects.create(lane=lane, title="one", text="you fool", expected="REJECTED")
    return KnownReply.objects.create(
        known=known, lane=lane, run=lane.run, policy=lane.policy, connection=lane.connection, version=1,
        expected="REJECTED", asked_at=at(1), ended_at=at(2), outcome="verdict", result="REJECTED",
    )  # fmt: skip


def a_recall(lead: Person) -> models.Model:
    lane = make_lane()
    return Recall.objects.create(
        lane=lane, run=lane.run, selection={}, to="people", reason="wrong", by=lead, started_at=at(1), ended_at=at(2)
    )


def an_entry(lead: Person) -> models.Model:
    job = done_job(make_lane())
    recall = Recall.objects.create(
        lane=job.lane, selection={}, to="review", deadline_after=timedelta(hours=1), reason="wrong", by=lead,
        started_at=at(1),
    )  # fmt: skip
    return RecallEntry.objects.create(recall=recall, decision=Decision.objects.get(), outcome="announced", at=at(2))


def a_check(lead: Person) -> models.Model:
    job = done_job(make_lane())
    item = Item.objects.create(
        job=job, ticket=job.ticket, lane=job.lane, kind="blind", cause="blind", severity=1, deadline=at(9),
        opened_at=at(3), fence=1, taken_by=lead, taken_until=at(9),
    )  # fmt: skip
    assignment = Assignment.objects.create(
        item=item, person=lead, fence=1, key="00000000-0000-0000-0000-000000000001", taken_at=at(3), until=at(9),
    )  # fmt: skip
    return BlindCheck.objects.create(
        item=item, assignment=assignment, decision=Decision.objects.get(), lane=job.lane, run=job.lane.run,
        person=lead, verdict="APPROVED", agrees=True, checked_at=at(4),
    )  # fmt: skip


ROWS: list[tuple[Callable[[Person], models.Model], dict[str, Any]]] = [
    (a_reply, {"result": "APPROVED"}),
    (a_reply, {"expected": "APPROVED"}),
    (a_recall, {"reason": "another"}),
    (a_recall, {"ended_at": None}),
    (an_entry, {"outcome": "withdrawn"}),
    (an_entry, {"outcome": None, "at": None}),
    (a_check, {"agrees": False}),
]


@pytest.mark.parametrize(("make", "change"), ROWS)
def test_a_row_that_was_ended_is_changed_by_nobody(
    lead: Person, make: Callable[[Person], models.Model], change: dict[str, Any]
) -> None:
    row = make(lead)

    with pytest.raises(IntegrityError, match="it is written once"), transaction.atomic():
        type(row).objects.filter(pk=row.pk).update(**change)


@pytest.mark.parametrize("make", [a_reply, a_recall, an_entry, a_check])
def test_no_row_is_deleted(lead: Person, make: Callable[[Person], models.Model]) -> None:
    row = make(lead)

    with pytest.raises(IntegrityError, match="it is kept"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {row._meta.db_table} WHERE id = %s", [row.pk])
