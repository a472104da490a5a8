"""Ten seconds to take a decision back: by whoever made it, before anybody was told, and the relay is the other side."""

from datetime import timedelta

import pytest

from queue_core import contract, people, relay, signals
from queue_core.clock import FixedClock
from queue_core.models import AuditEntry, Decision, Item, Message
from queue_core.people import ResolveOutcome, TakeBackOutcome, TakeOutcome
from queue_core.states import DecisionWhy, ItemEnd, ItemKind, MessageKind, MessageState
from tests.factories import at, clock, make_ground, make_lane, new_ticket
from tests.locking import holding, started, wait_until_blocked
from tests.people.cast import broken_rules, leo, manual_item, rita, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def item():
    return manual_item(make_lane(assignment_time=timedelta(seconds=100)), deadline=100_000)


def decide(item, who, *, when, verdict="APPROVED", **words):
    resolved = people.resolve(take(item, who, when=when), person=who, verdict=verdict, clock=clock(when), **words)
    assert resolved.outcome == ResolveOutcome.DECIDED
    return resolved.decision


def take_back(decision, who, *, when):
    return people.take_back(decision.pk, person=who, clock=clock(when))


def message_of(decision):
    return Message.objects.get(decision=decision, kind=MessageKind.DECISION)


def test_a_decision_taken_back_goes_to_nobody_and_its_item_comes_back_to_the_same_person(item):
    who = rita()
    make_ground("insult")
    decision = decide(item, who, when=20, verdict="REJECTED", reason_code="insult", note="typed with care")

    taken = take_back(decision, who, when=29)

    assert taken.outcome == TakeBackOutcome.TAKEN_BACK
    link = Decision.objects.get(replaces=decision)
    assert (link.why, link.verdict, link.person) == (DecisionWhy.TAKEN_BACK, None, who)
    again = Item.objects.get(closed_at__isnull=True)
    assert (again.pk, again.kind, again.cause, again.taken_by) == (taken.token.item, item.kind, item.cause, who)
    assert message_of(decision).state == MessageState.WITHDRAWN
    relay.number_messages(clock=clock(60))
    assert not Message.objects.filter(kind=MessageKind.DECISION, number__isnull=False).exists()
    assert AuditEntry.objects.get(act="decision.taken_back").before["verdict"] == "REJECTED"

    resolved = people.resolve(taken.token, person=who, verdict="APPROVED", clock=clock(61))
    assert (resolved.decision.why, resolved.decision.replaces) == (DecisionWhy.CORRECTION, link)


@pytest.mark.parametrize(
    ("when", "outcome"),
    [(29, TakeBackOutcome.TAKEN_BACK), (30, TakeBackOutcome.TOO_LATE)],
    ids=["before the end", "at the end"],
)
def test_ten_seconds_are_ten_seconds(item, when, outcome):
    who = rita()

    assert take_back(decide(item, who, when=20), who, when=when).outcome == outcome


def test_the_relay_gives_no_number_before(item):
    decide(item, rita(), when=20)

    relay.number_messages(clock=clock(29))
    assert Message.objects.get(kind=MessageKind.DECISION).number is None
    relay.number_messages(clock=clock(30))
    assert Message.objects.get(kind=MessageKind.DECISION).number is not None


def test_later_messages_of_the_ticket_wait_for_the_decision(item):
    decide(item, rita(), when=20)
    ticket = item.ticket
    contract.supersede(
        new_ticket(item.lane, external_id=ticket.external_id, revision="v2", deadline=21.5), replaces="v1",
        clock=clock(21),
    )  # fmt: skip
    contract.sweep(clock=clock(22))

    relay.number_messages(clock=clock(25))

    assert Message.objects.get(kind=MessageKind.TICKET_DEAD).number is None
    relay.number_messages(clock=clock(31))
    numbers = (
        Message.objects.filter(ticket=ticket, number__isnull=False).order_by("seq").values_list("number", flat=True)
    )
    assert list(numbers) == sorted(numbers)
    assert len(numbers) == 3


def test_nobody_takes_back_what_another_decided(item):
    who = rita()
    decision = decide(item, who, when=20)

    assert take_back(decision, leo(), when=21).outcome == TakeBackOutcome.MISSING
    assert take_back(decision, who, when=21).outcome == TakeBackOutcome.TAKEN_BACK
    assert take_back(decision, who, when=22).outcome == TakeBackOutcome.TOO_LATE


def test_what_was_superseded_meanwhile_is_not_taken_back(item):
    who = rita()
    decision = decide(item, who, when=20)
    newer = new_ticket(item.lane, external_id=item.ticket.external_id, revision="v2", deadline=100_000)
    contract.supersede(newer, replaces="v1", clock=clock(21))

    assert take_back(decision, who, when=22).outcome == TakeBackOutcome.NOT_IN_FORCE


def test_a_page_of_before_decides_nothing_after_the_decision_was_taken_back(item):
    """HTX-09: the double click's second half must not look as if the decision stood."""
    who = rita()
    token = take(item, who, when=20)
    decision = people.resolve(token, person=who, verdict="APPROVED", clock=clock(20)).decision
    take_back(decision, who, when=21)

    late = people.resolve(token, person=who, verdict="APPROVED", clock=clock(22))

    assert late.outcome == ResolveOutcome.STALE
    assert Decision.objects.count() == 2


def test_it_comes_back_even_to_full_hands():
    lane, who = make_lane(most_held=1), rita()
    first, second = manual_item(lane, deadline=100_000), manual_item(lane, deadline=100_000)
    decision = decide(first, who, when=20)
    take(second, who, when=21)

    assert take_back(decision, who, when=22).outcome == TakeBackOutcome.TAKEN_BACK
    assert people.take(first.pk, person=who, clock=clock(23)).outcome == TakeOutcome.ITEM_CLOSED


def test_a_second_look_opened_by_the_decision_ends_with_it():
    who = rita()
    item = manual_item(make_lane(second_look_share=1.0), deadline=100_000)
    decision = decide(item, who, when=20)
    look = Item.objects.get(kind=ItemKind.SECOND_LOOK)
    take(look, leo(), when=21)

    assert take_back(decision, who, when=22).outcome == TakeBackOutcome.TAKEN_BACK
    look.refresh_from_db()
    assert look.closed_as == ItemEnd.TAKEN_BACK


def test_an_embedding_project_is_told(item):
    told = []
    who = rita()
    decision = decide(item, who, when=20)

    def hear(sender, decision, link, ticket, **_rest):
        told.append((decision.pk, link.verdict))

    signals.decision_taken_back.connect(hear)
    try:
        take_back(decision, who, when=21)
    finally:
        signals.decision_taken_back.disconnect(hear)
    assert told == [(decision.pk, None)]


def test_the_ledger_holds_of_what_was_taken_back(item):
    who = rita()
    take_back(decide(item, who, when=20), who, when=21)

    assert broken_rules() == set()


@pytest.mark.django_db(transaction=True)
def test_a_decision_that_is_being_taken_back_is_passed_over_by_the_relay(item):
    who = rita()
    decision = decide(item, who, when=20)

    with holding(lambda: take_back(decision, who, when=29)) as taken:
        started("relay", lambda: relay.number_messages(clock=clock(30))).outcome()

    relay.number_messages(clock=clock(40))
    assert taken.outcome == TakeBackOutcome.TAKEN_BACK
    assert message_of(decision).number is None


@pytest.mark.django_db(transaction=True)
def test_one_who_takes_back_behind_the_relay_is_too_late(item):
    """The relay's clock is at the end of the ten seconds, theirs just before: the row decides, not the clocks."""
    who = rita()
    decision = decide(item, who, when=20)

    with holding(lambda: relay.number_messages(clock=clock(30))):
        loser = started("person", lambda: people.take_back(decision.pk, person=who, clock=FixedClock(at(29.9))))
        wait_until_blocked(loser)

    assert loser.outcome().outcome == TakeBackOutcome.TOO_LATE
    assert message_of(decision).number is not None
    assert not Item.objects.filter(closed_at__isnull=True).exists()
