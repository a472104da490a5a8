"""The tick and the looks at connections: each may run twice at once and does its work once."""

from datetime import timedelta

import pytest

from queue_core import contract, drainers, health, ramp, set_back, tick, wakeups
from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.models import AuditEntry, Drainer, Item, Job, Lane, ModelConnection, Presence
from tests.factories import clock, make_connection, without_guards
from tests.workers.conftest import make_staged_lane, receive

pytestmark = pytest.mark.django_db


@pytest.fixture
def woken(monkeypatch):
    lanes: list[int] = []
    monkeypatch.setattr(wakeups, "wake", lanes.append)
    return lanes


def test_the_tick_buries_what_is_past_its_deadline_once(staged_lane, woken):
    """CEL-11"""
    [job] = receive(staged_lane, "fine")
    with without_guards():
        Job.objects.filter(pk=job.pk).update(
            queued_at=job.queued_at - timedelta(hours=2), deadline=job.queued_at - timedelta(hours=1)
        )

    tick.tick(clock=DATABASE_CLOCK)
    tick.tick(clock=DATABASE_CLOCK)

    job.refresh_from_db()
    assert (job.state, job.dead_reason) == ("DEAD", "deadline")
    assert Item.objects.count() == 1


def test_a_job_in_back_off_dies_at_its_deadline_and_is_not_tried_again(staged_lane, woken, stage):
    """LSE-09"""
    [job] = receive(staged_lane, "fine")
    later = job.queued_at + timedelta(hours=1)
    with without_guards():
        Job.objects.filter(pk=job.pk).update(
            queued_at=job.queued_at - timedelta(hours=2),
            deadline=job.queued_at - timedelta(hours=1),
            available_at=later,
        )

    tick.tick(clock=DATABASE_CLOCK)

    job.refresh_from_db()
    assert (job.state, job.dead_reason, job.available_at) == ("DEAD", "deadline", None)
    assert stage.calls() == []


def test_the_tick_ends_back_offs_that_are_over_and_wakes_their_lane(staged_lane, woken):
    [job] = receive(staged_lane, "fine")
    Job.objects.filter(pk=job.pk).update(available_at=DATABASE_CLOCK.now())

    tick.tick(clock=DATABASE_CLOCK)

    job.refresh_from_db()
    assert job.available_at is None
    assert woken == [staged_lane.pk]


def test_the_tick_wakes_a_lane_whose_leases_are_over(staged_lane, woken):
    [job] = receive(staged_lane, "fine")
    contract.claim(job.pk, clock=DATABASE_CLOCK, worker="gone", lease=timedelta(milliseconds=1))

    tick.tick(clock=DATABASE_CLOCK)

    job.refresh_from_db()
    assert (job.state, job.fence) == ("LEASED", 1)
    assert job.attempt_rows.get().outcome == "lease_expired"
    assert woken == [staged_lane.pk]


def test_the_tick_wakes_no_lane_without_work_room_or_a_run(staged_lane, stage, woken):
    on_hold = make_staged_lane(stage, cap=None)
    receive(on_hold, "fine")
    full = make_staged_lane(stage, cap=1)
    [running, _other] = receive(full, "fine", "bad")
    assert contract.claim(running.pk, clock=DATABASE_CLOCK, worker="w").token is not None
    told_to_wait = make_staged_lane(stage)
    told_to_wait.claims_not_before = DATABASE_CLOCK.now() + timedelta(minutes=1)
    told_to_wait.save()
    receive(told_to_wait, "fine")

    tick.tick(clock=DATABASE_CLOCK)

    assert woken == []


def test_the_tick_says_that_a_scheduler_is_there(woken, db):
    tick.tick(clock=DATABASE_CLOCK)
    tick.tick(clock=DATABASE_CLOCK)

    seen = Presence.objects.get()
    assert seen.kind == "scheduler"
    assert seen.seen_at > seen.started_at


def test_ticks_that_piled_up_or_come_from_two_schedulers_are_one(woken, db, monkeypatch):
    """CEL-11: a message is not thrown away by its age, which a wrong clock would tell; the rows say that it is late."""
    swept = []
    monkeypatch.setattr(contract, "sweep", lambda **_: swept.append(1))

    turns = [tick.tick_in_turn(clock=DATABASE_CLOCK) for _ in range(20)]
    Presence.objects.update(seen_at=DATABASE_CLOCK.now() - tick.APART)
    turns.append(tick.tick_in_turn(clock=DATABASE_CLOCK))

    assert turns.count(True) == len(swept) < 10
    assert (turns[0], turns[-1]) == (True, True)


def test_a_clock_that_was_set_back_holds_nothing_up(staged_lane, woken):
    """By a day: no tick would have its turn and no task a place until the day had passed again."""
    tick.tick(clock=DATABASE_CLOCK)
    [resting] = receive(staged_lane, "fine")
    tomorrow = DATABASE_CLOCK.now() + timedelta(days=1)
    for number in range(staged_lane.drainers):
        assert drainers.take(staged_lane, task=f"t{number}", worker="gone", clock=FixedClock(tomorrow)) is not None
    Lane.objects.update(judged_at=tomorrow)
    Job.objects.filter(pk=resting.pk).update(available_at=tomorrow + timedelta(minutes=1))
    Presence.objects.update(seen_at=tomorrow)

    tick.tick_in_turn(clock=DATABASE_CLOCK)

    now = DATABASE_CLOCK.now()
    assert Presence.objects.get().seen_at <= now
    assert Lane.objects.get().judged_at <= now
    assert Job.objects.get().available_at < now + timedelta(minutes=2)
    assert max(place.until for place in Drainer.objects.all()) < now + timedelta(minutes=1)
    said = AuditEntry.objects.get(act="clock.set_back")
    assert (said.before["at"], said.after["at"] < tomorrow.isoformat()) == (tomorrow.isoformat(), True)
    assert set_back.notice("scheduler", clock=DATABASE_CLOCK) == timedelta(0)


def test_a_step_that_fails_keeps_no_other_from_its_turn_and_is_not_swallowed(staged_lane, woken, monkeypatch):
    receive(staged_lane, "fine")

    def fail(**_arguments: object) -> None:
        raise RuntimeError("no sweep today")

    monkeypatch.setattr(contract, "sweep", fail)

    with pytest.raises(RuntimeError, match="no sweep today"):
        tick.tick(clock=DATABASE_CLOCK)
    assert woken == [staged_lane.pk]


def test_a_lane_that_cannot_be_judged_keeps_no_other_from_being_judged(stage, woken, monkeypatch):
    """A lane that nobody judges for half a minute claims nothing: one's trouble would be everybody's."""
    broken, other = make_staged_lane(stage), make_staged_lane(stage)
    judge_if_due = ramp.judge_if_due
    judged = []

    def judging(lane_id, *, clock):
        if lane_id == broken.pk:
            raise RuntimeError("this lane's calls cannot be counted in time")
        judged.append(lane_id)
        return judge_if_due(lane_id, clock=clock)

    monkeypatch.setattr(ramp, "judge_if_due", judging)

    with pytest.raises(RuntimeError, match="cannot be counted"):
        tick.tick(clock=DATABASE_CLOCK)

    assert judged == [other.pk]


def test_a_look_that_is_due_is_taken_once_by_two_schedulers(staged_lane, stage):
    """CEL-11"""
    assert health.check_all(clock=DATABASE_CLOCK) == 1
    assert health.check_all(clock=DATABASE_CLOCK) == 0

    connection = ModelConnection.objects.get()
    assert stage.looks() == 1
    assert (connection.health_is_good, connection.health_detail) == (True, "staged")
    assert connection.health_since == connection.health_checked_at


def test_good_health_moves_no_ticket_and_no_stage(staged_lane, stage):
    [job] = receive(staged_lane, "fine")
    on_hold = make_staged_lane(stage, cap=None)

    health.check_all(clock=DATABASE_CLOCK)

    job.refresh_from_db()
    on_hold.refresh_from_db()
    assert (job.state, job.fence, on_hold.is_on_hold) == ("WAITING", 0, True)


def test_health_that_stays_bad_is_bad_since_it_began(staged_lane, stage):
    stage.set("down")
    health.check_all(clock=DATABASE_CLOCK)
    first = ModelConnection.objects.get()
    ModelConnection.objects.update(health_checked_at=DATABASE_CLOCK.now() - timedelta(minutes=1))

    health.check_all(clock=DATABASE_CLOCK)

    second = ModelConnection.objects.get()
    assert (first.health_is_good, second.health_is_good) == (False, False)
    assert second.health_since == first.health_since
    assert second.health_checked_at > first.health_checked_at


def test_a_connection_that_cannot_be_built_is_in_bad_health_with_the_reason(db):
    make_connection(kind="telepathy")

    health.check_all(clock=DATABASE_CLOCK)

    found = ModelConnection.objects.get()
    assert found.health_is_good is False
    assert "telepathy" in found.health_detail


def test_a_presence_that_nobody_renewed_for_a_day_is_forgotten(woken, db):
    old = clock(0).now()
    Presence.objects.create(kind="worker", name="gone", started_at=old, seen_at=old)

    tick.tick(clock=DATABASE_CLOCK)

    assert not Presence.objects.filter(name="gone").exists()
