"""Numbers are given after the commit, so that whoever goes on from one skips nothing."""

from typing import Any

import pytest
from django.db import transaction

from queue_core import outbox, ramp_outages, relay
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Delivery, Lane, Message, Ticket
from queue_core.relay.numbering import LOST_AT_MOST
from queue_core.restore import after_restore
from queue_core.states import HoldReason, MessageKind, MessageState
from tests.factories import T0, clock, done_job, make_lane, waiting_job
from tests.locking import holding, started, together, wait_until_blocked


def record(ticket: Ticket | None = None, state: MessageState = MessageState.READY, **fields: Any) -> Message:
    with transaction.atomic():
        if ticket is not None:
            ticket = Ticket.objects.select_for_update(no_key=True).get(pk=ticket.pk)
        return outbox.record(MessageKind.ITEM_OPENED, {"item": 1}, now=T0, ticket=ticket, state=state, **fields)


def number() -> set[int]:
    return relay.number_messages(clock=DATABASE_CLOCK)


def numbers(*messages: Message) -> list[int | None]:
    found = Message.objects.in_bulk([message.pk for message in messages])
    return [found[message.pk].number for message in messages]


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_commits_late_is_numbered_late_and_skipped_by_no_reader_whk_05(make_endpoint) -> None:
    make_endpoint("https://consumer.example/", kinds=["item.opened"])
    with holding(record) as late:
        early = record()
        assert late.pk < early.pk
        number()
        [read] = relay.page_of_messages(0, 10)
        assert read.pk == early.pk
    number()

    [after] = relay.page_of_messages(read.number, 10)

    assert after.pk == late.pk
    assert sorted(Delivery.objects.values_list("message", flat=True)) == [late.pk, early.pk]


@pytest.mark.django_db(transaction=True)
def test_two_steps_at_once_number_each_message_once_and_without_a_gap(make_endpoint) -> None:
    make_endpoint("https://consumer.example/", kinds=["item.opened"])
    for _count in range(40):
        record()

    together([number, number, number])

    assert sorted(Message.objects.values_list("number", flat=True)) == list(range(1, 41))
    assert Delivery.objects.count() == 40


@pytest.mark.django_db(transaction=True)
def test_a_message_that_somebody_holds_keeps_the_later_ones_of_its_ticket_waiting_and_no_others() -> None:
    lane = make_lane()
    here, elsewhere = waiting_job(lane).ticket, waiting_job(lane).ticket
    first, second, other = record(here), record(here), record(elsewhere)
    with holding(lambda: list(Message.objects.select_for_update().filter(pk=first.pk))):
        number()
        assert numbers(first, second, other) == [None, None, 1]

    number()

    assert numbers(first, second, other) == [2, 3, 1]


@pytest.mark.django_db
def test_what_is_kept_back_has_no_number_and_its_tickets_later_messages_wait_for_it() -> None:
    ticket = waiting_job(make_lane()).ticket
    first, second = record(ticket, MessageState.KEPT_BACK), record(ticket)
    number()
    assert numbers(first, second) == [None, None]

    Message.objects.filter(pk=first.pk).update(state=MessageState.READY)
    number()

    assert numbers(first, second) == [1, 2]


@pytest.mark.django_db
def test_what_was_withdrawn_is_never_numbered_and_keeps_nothing_waiting() -> None:
    ticket = waiting_job(make_lane()).ticket
    first, second = record(ticket, MessageState.KEPT_BACK), record(ticket)
    Message.objects.filter(pk=first.pk).update(state=MessageState.WITHDRAWN)

    number()

    assert numbers(first, second) == [None, 1]


@pytest.mark.django_db
def test_an_endpoint_gets_the_kinds_and_lanes_it_wants(make_endpoint) -> None:
    here, there = make_lane(), make_lane()
    all_lanes = make_endpoint("https://one.example/", "one")
    one_lane = make_endpoint("https://two.example/", "two", kinds=["decision", "item.opened"], lanes=[here.pk])
    make_endpoint("https://three.example/", "three", state="retired")
    for lane in (here, there):
        done_job(lane)

    touched = number()

    assert touched == {all_lanes.pk, one_lane.pk}
    got = {
        name: list(Delivery.objects.filter(endpoint__name=name).order_by("number").values_list("kind", "lane"))
        for name in ("one", "two", "three")
    }
    assert got["one"] == [("decision", here.pk), ("decision", there.pk)]
    assert got["two"] == [("decision", here.pk)]
    assert got["three"] == []


@pytest.mark.django_db
def test_an_outage_is_told_to_who_is_told_of_each_of_its_lanes(make_endpoint) -> None:
    one, two, elsewhere = make_lane(), make_lane(), make_lane()
    Lane.objects.filter(pk=two.pk).update(connection=one.connection)
    chosen = {"all": [], "both": [elsewhere.pk, one.pk, two.pk], "half": [one.pk], "else": [elsewhere.pk]}
    for name, lanes in chosen.items():
        make_endpoint("https://consumer.example/", name, kinds=["outage.opened", "outage.closed"], lanes=lanes)
    with transaction.atomic():
        ramp_outages.open_for(Lane.objects.get(pk=one.pk), HoldReason.AUTO_ERRORS, now=T0)

    number()

    message = Message.objects.get(kind="outage.opened")
    assert message.body["lanes"] == sorted([one.name, two.name])
    assert {found.endpoint.name for found in Delivery.objects.filter(message=message)} == {"all", "both"}
    read = {name: relay.page_of_messages(0, 10, lanes=lanes) for name, lanes in chosen.items() if lanes}
    assert {name for name, page in read.items() if message in page} == {"both"}


@pytest.mark.django_db
def test_a_page_is_bounded_and_goes_on_after_the_last_number_read() -> None:
    made = [record() for _count in range(5)]
    number()

    first = relay.page_of_messages(0, 2)
    second = relay.page_of_messages(first[-1].number or 0, 10)

    assert [message.pk for message in (*first, *second)] == [message.pk for message in made]
    assert relay.newest_number() == 5
    assert relay.page_of_messages(5, 10) == []


@pytest.mark.django_db(transaction=True)
def test_a_message_that_is_withdrawn_while_its_page_is_read_takes_no_other_with_it() -> None:
    withdrawn, second, third = record(), record(), record()
    number()
    with holding(lambda: relay.withdraw([withdrawn.pk], now=T0)):
        reading = started("reading", lambda: relay.read_on(0, 1))
        wait_until_blocked(reading)
    first_page = reading.outcome()

    assert (first_page.messages, first_page.more) == ([], True)
    rest = relay.read_on(first_page.next, 10).messages

    assert [message.pk for message in rest] == [second.pk, third.pk]


@pytest.mark.django_db
def test_after_a_restore_no_number_of_the_lost_time_is_given_again() -> None:
    """A consumer that read on to number 5 in the time that was lost would skip the 2 that it has not seen."""
    make_lane()
    before = record()
    number()
    for _run in after_restore(clock=DATABASE_CLOCK):
        pass
    held = Message.objects.get(kind="lane.on_hold")

    number()

    assert numbers(before, held) == [1, LOST_AT_MOST + 2]
    assert relay.seen_by_somebody([before.pk]) == {before.pk}


@pytest.mark.django_db
def test_a_test_message_has_no_number_and_is_on_no_page(make_endpoint, leo) -> None:
    endpoint = make_endpoint("https://consumer.example/")
    relay.send_test(endpoint.pk, person=leo, clock=DATABASE_CLOCK)

    number()

    assert relay.page_of_messages(0, 10) == []


@pytest.mark.django_db(transaction=True)
def test_a_reader_that_waits_for_a_withdrawal_is_not_shown_what_was_withdrawn() -> None:
    message = record()
    number()

    with holding(lambda: relay.withdraw([message.pk], now=T0)) as withdrawn:
        reader = started("reader", lambda: relay.page_of_messages(0, 10))
        wait_until_blocked(reader)

    assert withdrawn.withdrawn == [message.pk]
    assert reader.outcome() == []


@pytest.mark.django_db
class TestWithdraw:
    def test_what_has_no_number_and_what_nobody_tried_or_read_goes_to_nobody(self, make_endpoint) -> None:
        make_endpoint("https://consumer.example/")
        done_job(make_lane())
        message = Message.objects.get()
        number()

        found = relay.withdraw([message.pk], now=T0)

        assert (found.withdrawn, found.delivered) == ([message.pk], [])
        assert Delivery.objects.get().state == "withdrawn"
        assert relay.page_of_messages(0, 10) == []

    def test_what_was_read_from_a_page_is_only_recalled(self) -> None:
        done_job(make_lane())
        message = Message.objects.get()
        number()
        relay.page_of_messages(0, 10)

        found = relay.withdraw([message.pk], now=T0)

        assert (found.withdrawn, found.delivered) == ([], [message.pk])
        message.refresh_from_db()
        assert message.state == MessageState.READY

    @pytest.mark.parametrize(
        ("outcome", "is_seen"), [(None, True), ("timeout", True), ("failed", True), ("unreachable", False)]
    )
    def test_a_try_whose_effect_is_unknown_counts_as_seen(self, make_endpoint, outcome, is_seen) -> None:
        make_endpoint("https://consumer.example/")
        done_job(make_lane())
        message = Message.objects.get()
        number()
        delivery = Delivery.objects.get()
        delivery.tried.create(
            number=1, lease=message.key, started_at=T0, outcome=outcome, ended_at=T0 if outcome else None
        )

        assert relay.seen_by_somebody([message.pk]) == ({message.pk} if is_seen else set())
        found = relay.withdraw([message.pk], now=T0)

        assert found.delivered == ([message.pk] if is_seen else [])


@pytest.mark.django_db(transaction=True)
def test_outside_of_a_transaction_nothing_is_withdrawn() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        relay.withdraw([1], now=T0)


@pytest.mark.django_db
def test_undelivered_decisions_are_counted_by_lane_kept_back_ones_too(make_endpoint) -> None:
    here, quiet = make_lane(), make_lane(run={"keeps_back": True})
    make_endpoint("https://consumer.example/", lanes=[here.pk])
    for lane in (here, here, quiet):
        done_job(lane)
    relay.number_messages(clock=clock(50))

    found = relay.undelivered([here.pk, quiet.pk])

    assert {lane: count for lane, (count, _oldest) in found.items()} == {here.pk: 2}
    make_endpoint("https://other.example/", "other")
    assert {lane: count for lane, (count, _oldest) in relay.undelivered([quiet.pk]).items()} == {quiet.pk: 1}
    [waiting] = relay.waiting_for(Delivery.objects.earliest("pk").ticket_id)
    assert waiting.endpoint.name == "shop"
