"""A group requeued: exactly what was confirmed, no more."""

from datetime import timedelta

import pytest

from queue_core import people
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import AuditEntry, Item, Job
from queue_core.people import GroupOutcome, group_requeue
from tests.factories import at, clock, dead_job, make_lane, waiting_job
from tests.people.cast import item_of, leo, manual_item, rita, take

pytestmark = pytest.mark.django_db


def requeue(lane, shown, who, *, when=100, first=1000, span=0, reason="the model is back"):
    return people.requeue_group(
        lane.pk,
        "deadline",
        fingerprint=shown.fingerprint,
        first=at(first),
        span=timedelta(seconds=span),
        person=who,
        reason=reason,
        clock=clock(when),
    )


def test_a_group_is_requeued_with_deadlines_spread_most_severe_first():
    lane, who = make_lane(), leo()
    mild, severe, middle = (dead_job(lane, severity=severity) for severity in (0, 2, 1))

    done = requeue(lane, people.preview(lane.pk, "deadline", now=at(99)), who, span=200)

    assert (done.outcome, done.requeued, done.left) == (GroupOutcome.REQUEUED, 3, 0)
    deadlines = dict(Job.objects.values_list("pk", "deadline"))
    assert deadlines == {severe.pk: at(1000), middle.pk: at(1100), mild.pk: at(1200)}
    assert not Item.objects.filter(closed_at__isnull=True).exists()
    assert AuditEntry.objects.filter(act="job.requeued").count() == 3
    assert AuditEntry.objects.filter(act="group.requeued", actor=who).count() == 1


def test_only_the_confirmed_cause_and_lane_are_touched():
    """ADM-04: a bulk act keeps to its filter."""
    lane, other = make_lane(), make_lane()
    dead_job(lane)
    dead_elsewhere, manual = dead_job(other), manual_item(lane)

    assert requeue(lane, people.preview(lane.pk, "deadline", now=at(99)), leo()).requeued == 1

    dead_elsewhere.refresh_from_db()
    manual.refresh_from_db()
    assert (dead_elsewhere.state, manual.closed_at) == ("DEAD", None)


@pytest.mark.parametrize("change", ["one more", "one less", "one taken"])
def test_a_group_that_changed_after_the_preview_is_asked_about_again(change):
    """ADM-04: what matches between load and confirm is not hit unseen."""
    lane, who = make_lane(), leo()
    first = dead_job(lane)
    dead_job(lane)
    shown = people.preview(lane.pk, "deadline", now=at(50))
    if change == "one more":
        dead_job(lane, deadline=60)
    elif change == "one less":
        token = take(item_of(first), who, when=60)
        people.resolve(token, person=who, verdict="APPROVED", clock=clock(61))
    else:
        take(item_of(first), rita(), when=60)

    done = requeue(lane, shown, who)

    assert (done.outcome, done.requeued) == (GroupOutcome.CHANGED, 0)
    assert not Job.objects.filter(state="WAITING").exists()
    assert done.left == {"one more": 3, "one less": 1, "one taken": 1}[change]


def test_the_same_confirmation_twice_is_already():
    """HTX-09: the second submission of a bulk act is no error and has no effect."""
    lane, who = make_lane(), leo()
    dead_job(lane)
    shown = people.preview(lane.pk, "deadline", now=at(50))
    requeue(lane, shown, who)

    again = requeue(lane, shown, who)

    assert (again.outcome, again.requeued) == (GroupOutcome.ALREADY, 1)
    assert Job.objects.get().requeues == 1


def test_a_large_group_is_requeued_in_parts_and_the_rest_is_said(monkeypatch):
    monkeypatch.setattr(group_requeue, "MOST_AT_ONCE", 3)
    monkeypatch.setattr(group_requeue, "CHUNK", 2)
    lane, who = make_lane(), leo()
    for _ in range(5):
        dead_job(lane)
    shown = people.preview(lane.pk, "deadline", now=at(50))

    done = requeue(lane, shown, who)

    assert (shown.count, shown.total) == (3, 5)
    assert (done.requeued, done.passed_over, done.left) == (3, 0, 2)
    assert Job.objects.filter(state="WAITING").count() == 3


def test_reviewers_without_the_permission_requeue_nothing():
    lane = make_lane()
    dead_job(lane)

    with pytest.raises(NotPermitted):
        requeue(lane, people.preview(lane.pk, "deadline", now=at(50)), rita())
    assert Job.objects.get().state == "DEAD"


@pytest.mark.parametrize("terms", [{"first": 100}, {"span": -1}, {"span": 8 * 86400}, {"reason": "  "}])
def test_terms_out_of_bounds_are_the_callers_mistake(terms):
    lane = make_lane()
    dead_job(lane)

    with pytest.raises(InvalidRequest):
        requeue(lane, people.preview(lane.pk, "deadline", now=at(50)), leo(), **terms)
    assert Job.objects.get().state == "DEAD"


def test_groups_are_one_line_a_lane_and_cause():
    lane = make_lane()
    for _ in range(3):
        dead_job(lane)
    take(item_of(dead_job(lane)), rita(), when=20)
    manual_item(lane, severity=2)
    waiting_job(lane)

    first, second = people.groups(now=at(30))

    assert (first.kind, first.count, first.free, first.worst) == ("manual", 1, 1, 2)
    assert (second.kind, second.cause, second.count, second.free) == ("dead", "deadline", 4, 3)


def test_restricted_evidence_is_no_part_of_a_group():
    lane = make_lane()
    plain, restricted = dead_job(lane), dead_job(lane, is_restricted=True)
    shown = people.preview(lane.pk, "deadline", now=at(99))

    assert (shown.count, requeue(lane, shown, leo()).requeued) == (1, 1)

    states = dict(Job.objects.values_list("pk", "state"))
    assert states == {plain.pk: "WAITING", restricted.pk: "DEAD"}


def test_who_loses_the_right_in_the_middle_of_a_group_requeues_no_more_of_it(monkeypatch):
    lane, who = make_lane(), leo()
    for _ in range(3):
        dead_job(lane)
    shown = people.preview(lane.pk, "deadline", now=at(99))
    whole = group_requeue._requeue_chunk

    def lost_after_one(*args):
        done = whole(*args)
        who.user_permissions.clear()
        return done

    monkeypatch.setattr(group_requeue, "CHUNK", 1)
    monkeypatch.setattr(group_requeue, "_requeue_chunk", lost_after_one)

    done = requeue(lane, shown, who)

    assert (done.requeued, done.left) == (1, 2)
    assert AuditEntry.objects.get(act="group.requeued").after["requeued"] == 1
