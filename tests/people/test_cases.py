"""Cases of other systems about what people decided."""

import pytest

from queue_core import contract, people
from queue_core.models import Decision, Item, Message
from tests.factories import clock, make_lane, new_ticket
from tests.people.cast import manual_item, person, rita, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def decided():
    who = rita()
    item = manual_item(make_lane(), deadline=100_000)
    people.resolve(take(item, who, when=10), person=who, verdict="APPROVED", clock=clock(11))
    return item


def again(item, *, when, revision="v1"):
    ticket = new_ticket(item.lane, external_id=item.ticket.external_id, revision=revision, deadline=100_000)
    return contract.receive_many([ticket, ticket], clock=clock(when))


def test_a_ticket_that_a_person_decided_is_known_when_it_comes_again_and_opens_nothing(decided):
    """MOD-03: a duplicate at intake does not reopen what was judged."""
    before = (Message.objects.count(), Item.objects.count())

    answers = again(decided, when=20)

    assert {answer.outcome for answer in answers} == {"known"}
    assert (Message.objects.count(), Item.objects.count()) == before
    decided.job.refresh_from_db()
    assert (decided.job.state, decided.job.result, decided.job.attempts) == ("DONE", "MANUAL", 1)


def test_a_decision_says_of_which_revision_it_is_and_none_is_of_the_next(decided):
    """MOD-05: an approval never holds for an edited text."""
    newer = new_ticket(decided.lane, external_id=decided.ticket.external_id, revision="v2", deadline=100_000)
    assert contract.receive(newer, clock=clock(20)).outcome == "revision_conflict"

    contract.supersede(newer, replaces="v1", clock=clock(21))

    assert list(Decision.objects.values_list("revision", "verdict")) == [("v1", "APPROVED")]
    assert [message.body["revision"] for message in Message.objects.filter(kind="decision")] == ["v1"]
    late = people.appeal(
        source=decided.ticket.source, external_id=decided.ticket.external_id, revision="v1", statement="no",
        person=person("gate", "appeal_decision"), clock=clock(22),
    )  # fmt: skip
    assert late.outcome == "not_current"
