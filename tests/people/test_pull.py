"""Waiting tickets pulled by people, and how many can be reached before their deadlines."""

import pytest

from queue_core import people
from queue_core.errors import NotPermitted
from queue_core.models import Item, Lane
from queue_core.people import TakeOutcome
from queue_core.people.desk import in_time
from queue_core.states import ItemKind
from tests.factories import at, clock, leased_job, make_lane, waiting_job
from tests.people.cast import LEAD, leo, manual_item, person, rita, take

pytestmark = pytest.mark.django_db


def pull(job, who, *, when):
    return people.pull(job.pk, person=who, reason="before its deadline", clock=clock(when))


def test_pull_takes_a_waiting_ticket_out_of_the_machines_hands_and_gives_its_item():
    job, who = waiting_job(make_lane(cap=None)), leo()

    taken = pull(job, who, when=5)

    job.refresh_from_db()
    item = Item.objects.get()
    assert taken.outcome == TakeOutcome.TAKEN
    assert (job.state, job.dead_reason, job.attempts) == ("DEAD", "pulled", 0)
    assert (item.kind, item.taken_by, item.taken_until) == (ItemKind.PULLED, who, taken.until)


def test_pull_twice_gives_the_same_assignment():
    job, who = waiting_job(make_lane(cap=None)), leo()
    token = pull(job, who, when=5).token

    again = pull(job, who, when=6)

    assert (again.outcome, again.token) == (TakeOutcome.ALREADY_YOURS, token)
    assert Item.objects.count() == 1


def test_pull_after_another_was_quicker_says_who():
    job, first = waiting_job(make_lane(cap=None)), leo()
    pull(job, first, when=5)
    second = person("lea", "pull_job", "decide_item")

    taken = pull(job, second, when=6)

    assert (taken.outcome, taken.held_by) == (TakeOutcome.HELD_BY_ANOTHER, first.pk)


def test_pull_of_what_the_machine_has_is_refused():
    job, _token = leased_job(make_lane())

    assert pull(job, leo(), when=5).outcome == TakeOutcome.NOT_ALLOWED_IN_STATE
    job.refresh_from_db()
    assert job.state == "LEASED"


def test_pull_into_full_hands_changes_nothing():
    lane, who = make_lane(), leo()
    for _ in range(5):
        take(manual_item(lane), who, when=3)
    job = waiting_job(lane)

    assert pull(job, who, when=5).outcome == TakeOutcome.HANDS_FULL
    job.refresh_from_db()
    assert job.state == "WAITING"


def test_pull_needs_its_own_permission():
    job = waiting_job(make_lane(cap=None))

    with pytest.raises(NotPermitted):
        pull(job, rita(), when=5)
    job.refresh_from_db()
    assert job.state == "WAITING"


def test_before_the_deadline_lists_held_lanes_only_most_severe_first_then_by_time_left():
    held, running = make_lane(cap=None), make_lane()
    late = waiting_job(held, severity=1, deadline=900)
    soon = waiting_job(held, severity=1, deadline=800)
    severe = waiting_job(held, severity=2, deadline=990)
    waiting_job(held, severity=2, deadline=50)
    waiting_job(running, severity=2)

    listed = people.before_the_deadline(Lane.objects.all(), person=leo(), now=at(60))

    assert [job.pk for job in listed] == [severe.pk, soon.pk, late.pk]


def test_restricted_evidence_is_neither_offered_to_nor_pulled_by_who_may_not_see_it():
    job = waiting_job(make_lane(cap=None), is_restricted=True)
    who, specialist = leo(), person("sue", *LEAD, "view_restricted")

    assert people.before_the_deadline(Lane.objects.all(), person=who, now=at(5)) == []
    assert pull(job, who, when=5).outcome == TakeOutcome.NOT_FOR_YOU
    assert people.before_the_deadline(Lane.objects.all(), person=specialist, now=at(5)) == [job]
    assert pull(job, specialist, when=5).outcome == TakeOutcome.TAKEN


def test_reach_counts_what_an_even_pace_can_do_before_each_deadline():
    lane = make_lane(cap=None, desk_items_per_hour=60)
    for deadline in (30, 90, 100, 200, 4000):
        waiting_job(lane, deadline=deadline)

    there = people.reach([lane], now=at(0))

    # One a minute: not the one at 30 s, one by 90, none more by 100, two by 200, three by 4000.
    assert (there.waiting, there.in_time, there.an_hour) == (5, 3, 60)
    assert there.next_hour == {1: 4}


def test_nobody_reaches_anything_at_no_pace():
    assert in_time([at(100)], 0, now=at(0)) == 0
