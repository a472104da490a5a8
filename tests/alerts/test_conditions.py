"""When something asks for people, and when it does not: by the clock of the test."""

from datetime import timedelta

import pytest

from queue_core import alerts, figures, hold, people, where
from queue_core.alerts import conditions
from queue_core.models import AlertEpisode, AlertSettings, Lane, ModelConnection, Outage
from queue_core.states import HoldReason
from reviewboard import alert_text, board_text
from tests.factories import at, clock, make_lane, waiting_job
from tests.ramp.stories import again, answer, fail, judged, new_lane, probing, pull, raise_, running, soaked

pytestmark = pytest.mark.django_db

MINUTE, HOUR = 60, 3600


def kinds(when: float) -> set[str]:
    return {str(one.kind) for one in alerts.read(now=at(when)).found}


def params(kind: str, when: float) -> dict:
    [one] = [one for one in alerts.read(now=at(when)).found if one.kind == kind]
    return one.params


def automatic(lane: Lane, reason: HoldReason, *, when: float) -> None:
    assert hold.automatic(again(lane), run_id=again(lane).run_id, reason=reason, now=at(when))


def health(lane: Lane, *, is_good: bool, since: float, looked: float) -> None:
    ModelConnection.objects.filter(pk=lane.connection_id).update(
        health_is_good=is_good, health_since=at(since), health_checked_at=at(looked)
    )


def test_a_site_without_lanes_asks_for_nobody(seen):
    assert kinds(100) == set()


def test_a_lane_that_runs_and_has_nothing_to_do_asks_for_nobody(lead, seen):
    running(lead, stage=3)
    seen(1000)

    assert kinds(1010) == set()


def test_ready_tickets_over_the_target_are_told_from_the_second_after_it(seen):
    lane = make_lane(wait_target=timedelta(minutes=15))
    waiting_job(lane, added=100, deadline=9 * HOUR)
    seen(100 + 15 * MINUTE)

    assert "ready_late" not in kinds(100 + 15 * MINUTE)
    assert params("ready_late", 101 + 15 * MINUTE) == {"since": at(100).isoformat(), "target": 900.0}


def test_held_tickets_over_the_target_are_told_too_but_on_purpose(lead, seen):
    lane = running(lead, stage=3)
    waiting_job(lane, added=300, deadline=30 * HOUR)
    pull(lane, lead, when=400, until=at(2 * HOUR))
    seen(3 * HOUR)

    assert "held_late" not in kinds(2 * HOUR - 1)
    assert "held_late" in kinds(2 * HOUR)
    assert "ready_late" not in kinds(2 * HOUR)


def test_deadlines_that_pass_within_the_hour_are_told_by_severity(lead, seen):
    lane = running(lead, stage=3)
    for severity, deadline in ((1, 3 * HOUR - 1), (2, 3 * HOUR - 60), (2, 3 * HOUR)):
        waiting_job(lane, added=300, deadline=deadline, severity=severity)
    pull(lane, lead, when=400)
    seen(2 * HOUR)

    assert "passing" not in kinds(2 * HOUR - 1)
    assert params("passing", 2 * HOUR) == {"count": 2, "by_severity": {"2": 1, "1": 1}}


def test_of_ten_thousand_deadlines_in_a_running_lane_a_thousand_are_looked_at_and_the_rest_is_a_plus(
    seen, monkeypatch
) -> None:
    monkeypatch.setattr(conditions, "MOST_PASSING", 3)
    lane = make_lane()
    for _number in range(5):
        waiting_job(lane, added=0, deadline=40 * MINUTE)
    seen(21 * MINUTE)

    assert params("passing", 21 * MINUTE) == {"count": 4, "by_severity": {"1": 4}, "most": 3}
    episode = AlertEpisode(kind="passing", params={"count": 4, "by_severity": {"1": 4}, "most": 3})
    assert "3+ waiting tickets" in str(alert_text.sentence(episode))


def test_in_a_lane_that_runs_only_tickets_at_half_their_time_count(seen):
    """Where every deadline is short, a queue that is worked off alarms nobody."""
    lane = make_lane()
    waiting_job(lane, added=0, deadline=40 * MINUTE)
    seen(21 * MINUTE)

    assert "passing" not in kinds(20 * MINUTE)
    assert "passing" in kinds(20 * MINUTE + 1)


def test_nobody_working_is_told_after_half_a_minute(seen):
    """CEL-07: a worker whose processes stand still says nothing any more, and is not taken for one that works."""
    lane = make_lane()
    waiting_job(lane, added=100)
    seen(100)

    assert "nobody" not in kinds(130)
    assert "nobody" in kinds(131)


def test_nobody_judging_is_nobody_working(seen):
    lane = make_lane()
    waiting_job(lane, added=100)
    seen(200)
    judged(lane, when=100)

    assert params("nobody", 131) == {"why": "not_judged"}


def test_nothing_completing_is_told_though_workers_say_that_they_are_there(seen):
    """CEL-07"""
    lane = make_lane()
    answer(lane, when=100)
    judged(lane, when=10_000)
    waiting_job(lane, added=110, deadline=9000)
    seen(400)

    assert "no_progress" not in kinds(220)
    assert params("no_progress", 231) == {"since": at(100).isoformat()}


def test_since_when_nothing_completes_is_not_made_up_when_it_is_long_ago(seen):
    """The run began hours before: what it completed meanwhile is not undone by looking back no further."""
    lane = make_lane()
    answer(lane, when=2 * HOUR)
    waiting_job(lane, added=2 * HOUR, deadline=30 * HOUR)
    for when in (2 * HOUR + 5 * MINUTE, 3 * HOUR):
        seen(when)
        judged(lane, when=when)
        assert alerts.watch(clock=clock(when))
        [told] = AlertEpisode.objects.filter(kind="no_progress")
        assert told.params == {"since": at(2 * HOUR).isoformat()}, when

    assert params("no_progress", 3 * HOUR) == {"since": None}
    assert alert_text.sentence(AlertEpisode(kind="no_progress", params={"since": None})) == (
        "Work waits, and no call has ended with a result for more than 30 min."
    )
    [found] = figures.board(list(where.lanes_to_read()), now=at(3 * HOUR))
    assert board_text.headline(found, figures.state_of(found), level=2).since is None


def test_a_queue_that_grows_is_told(seen):
    lane = make_lane()
    for number in range(30):
        waiting_job(lane, added=100 + number, deadline=9000)
    seen(200)

    # 30 tickets over the minutes that the board tells its flow of, and none answered.
    [found] = figures.board(list(where.lanes_to_read()), now=at(200))
    assert found.flow.value.growth >= 5
    assert params("growing", 200) == {"growth": round(found.flow.value.growth, 1)}


def test_an_automatic_hold_is_one_alert_of_its_outage(lead, seen):
    lane = probing(lead)
    sibling = new_lane(connection=lane.connection)
    raise_(sibling, lead, when=20)
    automatic(lane, HoldReason.AUTO_UNAVAILABLE, when=30)
    automatic(sibling, HoldReason.AUTO_UNAVAILABLE, when=35)
    seen(40)

    [found] = [one for one in alerts.read(now=at(40)).found if one.kind == "automatic_hold"]

    assert found.subject == f"outage {Outage.objects.get().pk}"
    assert (set(found.lanes), found.connection) == ({lane.pk, sibling.pk}, lane.connection_id)
    assert found.params["lanes"] == sorted([lane.name, sibling.name])


def test_a_new_lane_is_on_hold_and_no_alert(seen):
    new_lane()
    seen(40)

    assert kinds(40) == set()


def test_a_changed_connection_is_an_automatic_hold_of_its_own(lead, seen):
    lane = running(lead)
    hold.for_change(again(lane), reason=HoldReason.CONNECTION_CHANGED, person=lead, now=at(100))
    seen(110)

    [found] = alerts.read(now=at(110)).found
    assert (found.kind, found.subject) == ("automatic_hold", f"hold {again(lane).hold_id}")


def test_a_model_that_answers_again_is_told_when_it_has_for_a_minute_rmp_10(lead, seen):
    lane = probing(lead)
    automatic(lane, HoldReason.AUTO_UNAVAILABLE, when=30)
    seen(200)
    health(lane, is_good=False, since=25, looked=90)
    assert "model_back" not in kinds(95)
    health(lane, is_good=True, since=100, looked=155)

    assert "model_back" not in kinds(159)
    assert params("model_back", 160)["lanes"] == [lane.name]


def test_a_look_that_is_old_says_nothing_of_the_present(lead, seen):
    lane = probing(lead)
    automatic(lane, HoldReason.AUTO_UNAVAILABLE, when=30)
    seen(1000)
    health(lane, is_good=True, since=40, looked=100)

    assert "model_back" in kinds(160)
    assert "model_back" not in kinds(161)


def test_a_persons_precaution_waits_for_no_model(lead, seen):
    lane = probing(lead)
    pull(lane, lead, when=30)
    seen(200)
    health(lane, is_good=True, since=0, looked=190)

    assert "model_back" not in kinds(200)


def test_a_stage_that_has_run_its_time_is_told_once_a_run(lead, seen):
    lane = soaked(lead)
    judged(lane, when=80)
    seen(80)

    assert "soak_met" not in kinds(69)
    [found] = [one for one in alerts.read(now=at(70)).found if one.kind == "soak_met"]
    assert (found.subject, found.params["stage"]) == (f"run {again(lane).run_id}", 1)


def test_the_last_stage_has_no_next_one_to_raise_to(lead, seen):
    running(lead, stage=3)
    seen(900)

    assert "soak_met" not in kinds(900)


def test_a_ticket_of_severity_3_is_told_until_somebody_takes_it(lead, seen):
    lane = running(lead, stage=3)
    job = waiting_job(lane, added=300, severity=3, deadline=9000)
    seen(320)
    assert params("severe_waiting", 320) == {"since": at(300).isoformat()}

    people.take(job.items.get().pk, person=lead, clock=clock(330))

    assert "severe_waiting" not in kinds(331)
    assert "severe_waiting" in kinds(330 + lane.assignment_time.total_seconds() + 1)


def test_one_that_the_model_sees_first_is_told_while_it_waits(seen):
    lane = make_lane(model_sees_urgent_first=True)
    waiting_job(lane, added=300, severity=3)
    seen(301)

    assert "severe_waiting" in kinds(301)


def test_a_dead_scheduler_is_told_after_half_a_minute(seen):
    make_lane()
    seen(100)

    assert "scheduler_dead" not in kinds(130)
    assert params("scheduler_dead", 131) == {"since": at(100).isoformat()}


def test_a_scheduler_that_was_never_there_is_told(seen):
    make_lane()
    seen(100, scheduler=False)

    assert params("scheduler_dead", 101) == {"since": None}


def test_a_lane_is_silent_of_what_its_settings_leave_out(lead, seen):
    lane = probing(lead)
    fail(lane, "misconfigured", when=30)
    waiting_job(lane, added=40, deadline=50 * MINUTE)
    seen(60)
    assert {"automatic_hold", "passing"} <= kinds(60)

    AlertSettings.objects.create(lane=lane, kinds=["held_late"])

    assert kinds(60) == set()


def test_few_passing_deadlines_can_be_no_alert(lead, seen):
    lane = probing(lead)
    pull(lane, lead, when=30)
    waiting_job(lane, added=40, deadline=50 * MINUTE)
    seen(60)
    AlertSettings.objects.create(lane=lane, least_passing=2)

    assert "passing" not in kinds(60)
    waiting_job(lane, added=40, deadline=50 * MINUTE)
    assert "passing" in kinds(60)
