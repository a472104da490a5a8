"""People against each other and against time, in two real sessions. Names say who loses."""

from datetime import timedelta

import pytest

from queue_core import contract, people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Assignment, Decision, Item, Message
from queue_core.people import HoldingOutcome, ResolveOutcome, TakeOutcome
from queue_core.people.assignments import lock_item
from queue_core.people.outcomes import Stale
from queue_core.states import ItemEnd, MessageKind
from tests.desk.backlog import dead_now, make_live_lane, manual_now, now, ticket, token_of, waiting_now
from tests.locking import holding, started, wait_for, wait_until_blocked
from tests.people.cast import LEAD, item_of, leo, person, rita

pytestmark = pytest.mark.django_db(transaction=True)


def take(item, who):
    return people.take(item.pk, person=who, clock=DATABASE_CLOCK)


def approve(token, who):
    return people.resolve(token, person=who, verdict="APPROVED", clock=DATABASE_CLOCK)


def change_at_source(change, lane, external_id):
    if change == "supersede":
        newer = ticket(lane, external_id=external_id, revision="v2")
        return contract.supersede(newer, replaces="v1", clock=DATABASE_CLOCK)
    return contract.withdraw(source="test", external_id=external_id, clock=DATABASE_CLOCK)


def test_of_two_who_take_one_item_the_second_is_told_who_was_first():
    item, first, second = manual_now(make_live_lane()), rita(), leo()

    with holding(lambda: take(item, first)) as won:
        loser = started("second", lambda: take(item, second))
        wait_until_blocked(loser)

    taken = loser.outcome()
    assert won.outcome == TakeOutcome.TAKEN
    assert (taken.outcome, taken.held_by) == (TakeOutcome.HELD_BY_ANOTHER, first.pk)
    assert Assignment.objects.get().person == first


def test_two_who_take_next_at_once_get_two_items_and_nobody_waits():
    lane, first, second = make_live_lane(), rita(), leo()
    severe, mild = manual_now(lane, severity=2), manual_now(lane, severity=0)

    with holding(lambda: people.take_next(person=first, clock=DATABASE_CLOCK)) as mine:
        other = started("second", lambda: people.take_next(person=second, clock=DATABASE_CLOCK)).outcome()

    assert (mine.token.item, other.token.item) == (severe.pk, mild.pk)


def test_two_tabs_of_one_person_never_hold_more_than_their_hands_can_carry():
    lane, who = make_live_lane(), rita()
    for _ in range(5 - 1):
        take(manual_now(lane), who)
    one, another = manual_now(lane), manual_now(lane)

    with holding(lambda: take(one, who)):
        loser = started("tab 2", lambda: take(another, who))
        wait_until_blocked(loser)

    assert loser.outcome().outcome == TakeOutcome.HANDS_FULL
    assert Assignment.objects.count() == 5


def test_a_decision_that_waits_for_its_item_until_its_time_is_over_decides_nothing():
    """LSE-02: the clock is read after the lock, so that a wait cannot carry a decision past its end."""
    item, who = manual_now(make_live_lane()), rita()
    token = take(item, who).token
    until = now() + timedelta(seconds=1)
    Item.objects.update(taken_until=until)

    with holding(lambda: lock_item(item.pk)):
        loser = started("decider", lambda: approve(token, who))
        wait_until_blocked(loser)
        wait_for(lambda: now() > until, "the assignment's second did not pass")

    resolved = loser.outcome()
    assert (resolved.outcome, resolved.why) == (ResolveOutcome.STALE, Stale.TIME_OVER)
    assert not Decision.objects.exists()


def test_a_decider_that_waits_behind_a_takeover_decides_nothing():
    """MOD-01: whoever took the item over keeps it."""
    item, first, second = manual_now(make_live_lane()), rita(), leo()
    token = take(item, first).token
    moment = now() - timedelta(seconds=1)
    Item.objects.update(taken_until=moment)
    Assignment.objects.update(until=moment)

    with holding(lambda: take(item, second)):
        loser = started("decider", lambda: approve(token, first))
        wait_until_blocked(loser)

    resolved = loser.outcome()
    assert (resolved.outcome, resolved.why) == (ResolveOutcome.STALE, Stale.TAKEN_AGAIN)
    assert Item.objects.get().taken_by == second
    assert not Decision.objects.exists()


def test_the_second_of_two_identical_decisions_is_already_and_writes_nothing():
    """HTX-09: two identical submissions at once have one effect."""
    item, who = manual_now(make_live_lane()), rita()
    token = take(item, who).token

    with holding(lambda: approve(token, who)):
        loser = started("again", lambda: approve(token, who))
        wait_until_blocked(loser)

    assert loser.outcome().outcome == ResolveOutcome.ALREADY
    assert Decision.objects.count() == Message.objects.filter(kind=MessageKind.DECISION).count() == 1


@pytest.mark.parametrize("change", ["supersede", "withdraw"])
def test_a_decider_that_waits_behind_the_source_decides_nothing(change):
    lane, who = make_live_lane(), rita()
    job = dead_now(lane)
    item = item_of(job)
    token = take(item, who).token
    external_id = job.ticket.external_id

    with holding(lambda: change_at_source(change, lane, external_id)):
        loser = started("decider", lambda: approve(token, who))
        wait_until_blocked(loser)

    resolved = loser.outcome()
    assert (resolved.outcome, resolved.why) == (ResolveOutcome.STALE, Stale.ITEM_CLOSED)
    assert not Decision.objects.exists()


@pytest.mark.parametrize("change", ["supersede", "withdraw"])
def test_the_source_that_waits_behind_a_decision_finds_it_and_it_stands(change):
    lane, who = make_live_lane(), rita()
    job = dead_now(lane)
    token = take(item_of(job), who).token
    external_id = job.ticket.external_id

    with holding(lambda: approve(token, who)):
        source = started("source", lambda: change_at_source(change, lane, external_id))
        wait_until_blocked(source)
    source.outcome()

    assert (Decision.objects.get().revision, Decision.objects.get().verdict) == ("v1", "APPROVED")
    assert Item.objects.get(job=job).closed_as == ItemEnd.DECIDED


def test_a_requeue_that_waits_behind_a_decision_requeues_nothing():
    who, job = leo(), dead_now(make_live_lane())
    token = take(item_of(job), who).token
    later = now() + timedelta(hours=1)

    with holding(lambda: approve(token, who)):
        loser = started(
            "requeuer",
            lambda: people.resolve_requeue(token, person=who, deadline=later, reason="again", clock=DATABASE_CLOCK),
        )
        wait_until_blocked(loser)

    assert loser.outcome().outcome == ResolveOutcome.STALE
    job.refresh_from_db()
    assert job.state == "DEAD"


def test_of_two_who_pull_one_ticket_the_second_is_told_who_was_first():
    job, first, second = waiting_now(make_live_lane(cap=None)), leo(), person("lea", *LEAD)

    def pull(who):
        return people.pull(job.pk, person=who, reason="before its deadline", clock=DATABASE_CLOCK)

    with holding(lambda: pull(first)):
        loser = started("second", lambda: pull(second))
        wait_until_blocked(loser)

    taken = loser.outcome()
    assert (taken.outcome, taken.held_by) == (TakeOutcome.HELD_BY_ANOTHER, first.pk)
    assert Item.objects.count() == 1


def test_give_back_that_waits_behind_ones_own_decision_changes_nothing():
    item, who = manual_now(make_live_lane()), rita()
    token = take(item, who).token

    with holding(lambda: approve(token, who)):
        loser = started("other tab", lambda: people.give_back(token, person=who, clock=DATABASE_CLOCK))
        wait_until_blocked(loser)

    assert loser.outcome().outcome == HoldingOutcome.STALE
    assert Item.objects.get().closed_as == ItemEnd.DECIDED
    assert token_of(item).fence == token.fence
