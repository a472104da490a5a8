"""What follows an item is written once, whoever asks; only an erasure blanks a text."""

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from queue_core import contract, people
from queue_core.models import Appeal, Decision, Item, ItemPass, ReasonCodeVersion, SecondLook, Ticket
from queue_core.states import ItemKind
from tests.factories import clock, make_ground, make_lane
from tests.people.cast import leo, manual_item, person, rita, take

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def written():
    """One row of each kind."""
    who, other = rita(), leo()
    ground = make_ground("insult")
    item = manual_item(make_lane(second_look_share=1.0), deadline=100_000)
    people.skip(take(item, who, when=10), person=who, reason="a reason", clock=clock(11))
    words = {"verdict": "REJECTED", "reason_code": ground.code, "note": "a note"}
    people.resolve(take(item, who, when=12), person=who, clock=clock(13), **words)
    look = Item.objects.get(kind=ItemKind.SECOND_LOOK)
    people.resolve(take(look, other, when=14), person=other, clock=clock(15), **words)
    people.appeal(
        source=item.ticket.source, external_id=item.ticket.external_id, statement="a statement",
        person=person("gate", "appeal_decision"), clock=clock(16),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (ItemPass, {"reason": "other words"}),
        (ItemPass, {"passed_as": "escalated"}),
        (SecondLook, {"note": "other words"}),
        (SecondLook, {"agrees": False}),
        (Appeal, {"statement": "other words"}),
        (ReasonCodeVersion, {"public_text": "other words"}),
        (Decision, {"reason_version": 9}),
    ],
)
def test_what_follows_an_item_is_written_once_mod_06(model: Any, values: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match=r"written once|another one replaces it"), transaction.atomic():
        model.objects.update(**values)


@pytest.mark.parametrize(("model", "text"), [(ItemPass, "reason"), (SecondLook, "note"), (Appeal, "statement")])
def test_an_erasure_and_nothing_else_blanks_its_text(model: Any, text: str) -> None:
    with pytest.raises(IntegrityError, match="only an erasure blanks it"), transaction.atomic():
        model.objects.update(**{text: ""})

    contract.erase(Ticket.objects.get().pk, ground="asked for", actor=None, clock=clock(20))

    assert set(model.objects.values_list(text, flat=True)) == {""}


@pytest.mark.parametrize("model", [ItemPass, SecondLook, Appeal, ReasonCodeVersion])
def test_it_is_kept(model: Any) -> None:
    with pytest.raises(IntegrityError, match="it is kept"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {model._meta.db_table}")


@pytest.mark.parametrize(
    "values",
    [{"why": "taken_back", "attempt": None}, {"why": "recall", "verdict": "APPROVED", "attempt": None}],
    ids=["taken back by nobody", "a recall with a verdict"],
)
def test_only_who_takes_back_leaves_a_link_without_an_attempt_or_an_assignment(values: dict[str, Any]) -> None:
    head = Decision.objects.get(replaced_by__isnull=True)
    head.pk, head.replaces_id, head.assignment, head.person = None, head.pk, None, None
    for name, value in values.items():
        setattr(head, name, value)

    with pytest.raises(IntegrityError, match="decision_by_one_attempt_or_one_person"), transaction.atomic():
        head.save(force_insert=True)
