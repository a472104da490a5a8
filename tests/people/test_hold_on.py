"""Assignments extended, given back and handed over."""

from datetime import timedelta

import pytest

from queue_core import people
from queue_core.errors import InvalidRequest
from queue_core.models import Assignment
from queue_core.people import HoldingOutcome
from queue_core.people.outcomes import Stale
from queue_core.states import AssignmentEnd
from tests.factories import at, clock, make_lane
from tests.people.cast import leo, manual_item, person, rita, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def item():
    return manual_item(make_lane(assignment_time=timedelta(seconds=100)))


def test_extend_gives_a_whole_new_time_from_now(item):
    who = rita()
    token = take(item, who, when=10)

    held = people.extend(token, person=who, clock=clock(109))

    item.refresh_from_db()
    assert (held.outcome, held.until) == (HoldingOutcome.EXTENDED, at(209))
    assert item.taken_until == Assignment.objects.get().until == at(209)


@pytest.mark.parametrize(
    ("when", "outcome"),
    [(109, HoldingOutcome.EXTENDED), (110, HoldingOutcome.STALE), (111, HoldingOutcome.STALE)],
    ids=["before the end", "at the end", "after the end"],
)
def test_extend_works_only_while_the_assignment_runs(item, when, outcome):
    who = rita()
    token = take(item, who, when=10)

    held = people.extend(token, person=who, clock=clock(when))

    item.refresh_from_db()
    assert held.outcome == outcome
    assert item.taken_until == (at(209) if outcome == HoldingOutcome.EXTENDED else at(110))


def test_give_back_frees_the_item_and_keeps_the_fence(item):
    who = rita()
    token = take(item, who, when=10)

    assert people.give_back(token, person=who, clock=clock(20)).outcome == HoldingOutcome.GIVEN_BACK

    item.refresh_from_db()
    row = Assignment.objects.get()
    assert (item.taken_by, item.taken_until, item.fence) == (None, None, 1)
    assert (row.ended_as, row.ended_at) == (AssignmentEnd.GIVEN_BACK, at(20))


def test_give_back_twice_is_stale_and_frees_nothing_of_the_next_holder(item):
    """LSE-05: a release by an earlier holder does not end the later assignment, even of the same person."""
    who = rita()
    older = take(item, who, when=10)
    newer = take(item, who, when=110)

    held = people.give_back(older, person=who, clock=clock(111))

    item.refresh_from_db()
    assert (held.outcome, held.why) == (HoldingOutcome.STALE, Stale.TAKEN_AGAIN)
    assert (item.fence, item.taken_by) == (newer.fence, who)


def test_hand_over_ends_ones_own_assignment_and_begins_a_whole_new_one(item):
    who, other = rita(), leo()
    token = take(item, who, when=10)

    held = people.hand_over(token, person=who, to=other, clock=clock(50))

    older, newer = Assignment.objects.order_by("fence")
    assert (held.outcome, held.until) == (HoldingOutcome.HANDED_OVER, at(150))
    assert older.ended_as == AssignmentEnd.HANDED_OVER
    assert (newer.person, newer.until, newer.ended_at) == (other, at(150), None)
    assert people.extend(token, person=who, clock=clock(51)).outcome == HoldingOutcome.STALE


def test_hand_over_needs_somebody_else_who_may_decide(item):
    who = rita()
    token = take(item, who, when=10)

    for nobody in (who, person("vera", "view_board")):
        with pytest.raises(InvalidRequest):
            people.hand_over(token, person=who, to=nobody, clock=clock(11))
    assert Assignment.objects.get().ended_at is None


def test_hand_over_into_full_hands_changes_nothing(item):
    who, other = rita(), leo()
    token = take(item, who, when=10)
    for _ in range(5):
        take(manual_item(item.lane), other, when=10)

    assert people.hand_over(token, person=who, to=other, clock=clock(11)).outcome == HoldingOutcome.HANDS_FULL
    item.refresh_from_db()
    assert item.taken_by == who


def test_another_persons_token_is_worth_nothing(item):
    token = take(item, rita(), when=10)

    held = people.give_back(token, person=leo(), clock=clock(11))

    item.refresh_from_db()
    assert (held.outcome, held.why) == (HoldingOutcome.STALE, Stale.NOT_YOURS)
    assert item.taken_by is not None
