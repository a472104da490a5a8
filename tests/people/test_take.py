"""Items taken: by id, and the one that needs a person most."""

from datetime import timedelta

import pytest

from queue_core import contract, people
from queue_core.errors import NotPermitted
from queue_core.models import Assignment, Item
from queue_core.people import TakeOutcome
from queue_core.states import AssignmentEnd, AssignmentToken
from tests.factories import at, clock, dead_job, make_lane
from tests.people.cast import item_of, leo, manual_item, person, rita, take

pytestmark = pytest.mark.django_db


def test_take_gives_an_assignment_with_its_own_fence_and_an_end():
    item = manual_item(make_lane(assignment_time=timedelta(seconds=600)))
    who = rita()

    taken = people.take(item.pk, person=who, clock=clock(100))

    assert taken.outcome == TakeOutcome.TAKEN
    assert taken.until == at(700)
    item.refresh_from_db()
    assert (item.fence, item.taken_by, item.taken_until) == (1, who, at(700))
    row = Assignment.objects.get()
    assert (row.fence, row.key, row.person, row.ended_at) == (1, taken.token.key, who, None)


def test_take_of_what_another_holds_says_who_and_until_when_and_changes_nothing():
    item = manual_item(make_lane(assignment_time=timedelta(seconds=600)))
    who, other = rita(), leo()
    take(item, who, when=100)

    taken = people.take(item.pk, person=other, clock=clock(699))

    assert (taken.outcome, taken.held_by, taken.until) == (TakeOutcome.HELD_BY_ANOTHER, who.pk, at(700))
    item.refresh_from_db()
    assert (item.fence, item.taken_by) == (1, who)


@pytest.mark.parametrize(
    ("when", "outcome"),
    [(699, TakeOutcome.HELD_BY_ANOTHER), (700, TakeOutcome.TAKEN), (701, TakeOutcome.TAKEN)],
    ids=["before the end", "at the end", "after the end"],
)
def test_an_assignment_runs_until_its_end_and_not_in_that_instant(when, outcome):
    item = manual_item(make_lane(assignment_time=timedelta(seconds=600)))
    take(item, rita(), when=100)

    assert people.take(item.pk, person=leo(), clock=clock(when)).outcome == outcome


def test_take_of_an_expired_assignment_closes_the_older_one_as_expired():
    item = manual_item(make_lane(assignment_time=timedelta(seconds=600)))
    take(item, rita(), when=100)
    other = leo()

    take(item, other, when=700)

    older, newer = Assignment.objects.order_by("fence")
    assert (older.ended_as, older.ended_at) == (AssignmentEnd.EXPIRED, at(700))
    assert (newer.fence, newer.person, newer.ended_at) == (2, other, None)


def test_take_again_of_what_one_holds_gives_the_same_assignment():
    item = manual_item(make_lane())
    who = rita()
    token = take(item, who, when=100)

    again = people.take(item.pk, person=who, clock=clock(101))

    assert (again.outcome, again.token) == (TakeOutcome.ALREADY_YOURS, token)
    assert Assignment.objects.count() == 1


def test_take_of_a_closed_item_is_refused():
    job = dead_job(make_lane())
    item = item_of(job)
    contract.withdraw(source="test", external_id=job.ticket.external_id, clock=clock(20))

    assert people.take(item.pk, person=rita(), clock=clock(21)).outcome == TakeOutcome.ITEM_CLOSED


def test_take_of_nothing_is_missing():
    assert people.take(2**63 - 1, person=rita(), clock=clock(1)).outcome == TakeOutcome.MISSING


def test_nobody_holds_more_items_than_their_hands_can_carry():
    lane, who = make_lane(assignment_time=timedelta(seconds=600)), rita()
    for _ in range(5):
        take(manual_item(lane), who, when=100)
    one_more = manual_item(lane)

    refused = people.take(one_more.pk, person=who, clock=clock(101))
    refused_too = people.take_next(person=who, clock=clock(101))

    assert refused.outcome == refused_too.outcome == TakeOutcome.HANDS_FULL
    assert people.take(one_more.pk, person=who, clock=clock(700)).outcome == TakeOutcome.TAKEN


@pytest.mark.parametrize("permissions", [(), ("view_board", "view_evidence")], ids=["nothing", "looking"])
def test_take_needs_the_permission_to_decide(permissions):
    item = manual_item(make_lane())
    who = person("xavier", *permissions)

    with pytest.raises(NotPermitted):
        people.take(item.pk, person=who, clock=clock(100))
    with pytest.raises(NotPermitted):
        people.take_next(person=who, clock=clock(100))
    assert not Assignment.objects.exists()


def test_take_next_goes_by_severity_then_hard_deadlines_then_time_left():
    lane = make_lane()
    late = manual_item(lane, severity=1, deadline=900)
    soon = manual_item(lane, severity=1, deadline=800)
    hard = manual_item(lane, severity=1, deadline=950, deadline_kind="hard")
    severe = manual_item(lane, severity=2, deadline=990)
    who = rita()

    order = [people.take_next(person=who, clock=clock(10)).token.item for _ in range(4)]

    assert order == [severe.pk, hard.pk, soon.pk, late.pk]


def test_take_next_passes_over_what_others_hold_and_other_lanes():
    lane, other_lane = make_lane(), make_lane()
    take(manual_item(lane), leo(), when=10)
    manual_item(other_lane)

    assert people.take_next(person=rita(), lane_ids=[lane.pk], clock=clock(11)).outcome == TakeOutcome.NOTHING


def test_take_next_offers_what_one_gave_back_only_after_the_rest():
    lane = make_lane()
    severe, mild = manual_item(lane, severity=2), manual_item(lane, severity=0)
    who = rita()
    people.give_back(take(severe, who, when=10), person=who, clock=clock(11))

    first = people.take_next(person=who, clock=clock(12))
    for_another = people.take_next(person=leo(), clock=clock(13))

    assert (first.token.item, for_another.token.item) == (mild.pk, severe.pk)


def test_supply_says_what_is_free_what_others_hold_and_when_the_next_is_free():
    lane = make_lane(assignment_time=timedelta(seconds=600))
    who = rita()
    take(manual_item(lane), leo(), when=10)
    take(manual_item(lane), who, when=20)
    manual_item(lane)

    there = people.supply(who, now=at(30))

    assert (there.free, there.held_by_others, there.yours, there.next_free) == (1, 1, 1, at(610))


def test_a_guessed_token_holds_nothing():
    item = manual_item(make_lane())
    who = rita()
    token = take(item, who, when=10)
    guessed = AssignmentToken(item.pk, token.fence, Assignment.objects.get().key.__class__(int=7))

    assert people.extend(guessed, person=who, clock=clock(11)).outcome == "stale"
    assert Item.objects.get().taken_until == at(610)
