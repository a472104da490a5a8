"""Real workers, killed, stopped and starved: whatever happens to processes, the rows end right."""

import os
import shutil
import signal
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
import redis

from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Attempt, Decision, Evidence, Item, Job, Lane, Presence
from reviewboard.embedded.valkey import EmbeddedValkey
from tests.workers.conftest import make_staged_lane, receive
from tests.workers.processes import all_ended, assert_sound, wait_for, wait_until, workers_at

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes, pytest.mark.timeout(180)]

SHORT = {"lease": timedelta(seconds=3), "connection": {"call_time_limit": timedelta(seconds=2)}}


@pytest.fixture
def broker(broker_url):
    """The test's broker, empty. None of its messages may matter."""
    client = redis.Redis.from_url(broker_url.replace("redis+socket://", "unix://").replace("virtual_host", "db"))
    client.flushall()
    yield client
    client.flushall()
    client.close()


@pytest.fixture
def workers(broker, broker_url, tmp_path, stage, settings):
    settings.QUEUE_CORE_CONNECTIONS = {"staged": "tests.workers.staged.build"}
    folder = tmp_path / "workers"
    folder.mkdir()
    with workers_at(broker_url, folder) as running:
        yield running


def test_a_worker_drains_a_lane_to_its_end(workers, stage):
    lane = make_staged_lane(stage, cap=20)
    receive(lane, *["fine", "bad", "grey"] * 20)
    workers.start()

    wait_for(workers, lambda: all_ended(lane), "60 tickets ended")

    counts = {result: Job.objects.filter(result=result).count() for result in ("APPROVED", "REJECTED", "MANUAL")}
    assert counts == {"APPROVED": 20, "REJECTED": 20, "MANUAL": 20}
    assert Decision.objects.count() + Item.objects.filter(closed_at__isnull=True).count() == 60
    assert_sound(lane)


def test_a_worker_is_seen_though_it_has_nothing_to_do(workers):
    workers.start()

    wait_for(workers, lambda: Presence.objects.filter(kind="worker").exists(), "the worker said that it is here")
    wait_for(workers, lambda: Presence.objects.filter(kind="scheduler").exists(), "a tick was seen")


# In CI tests/faults/test_workers.py kills one before, during and after its call.
@pytest.mark.long
def test_jobs_of_a_worker_killed_in_the_middle_of_a_call_are_taken_over_alone_when_their_leases_end(workers, stage):
    """CEL-03"""
    lane = make_staged_lane(stage, cap=20, **SHORT)
    stage.pause(1.8)
    jobs = receive(lane, *["slow"] * 3)
    first = workers.start()
    wait_for(workers, lambda: len(stage.calls()) == 3, "three calls began")
    leases = dict(Job.objects.values_list("pk", "lease_until"))

    workers.kill(first)
    stage.pause(0.1)
    workers.start()
    wait_for(workers, lambda: all_ended(lane), "three tickets taken over")

    assert Job.objects.filter(state="DONE", fence=2, attempts=2).count() == 3
    assert set(Attempt.objects.filter(fence=1).values_list("outcome", flat=True)) == {"lease_expired"}
    assert all(attempt.started_at >= leases[attempt.job_id] for attempt in Attempt.objects.filter(fence=2))
    again = [call for call in stage.calls() if call["fence"] == 2]
    assert [len(call["together"]) for call in again] == [1, 1, 1]
    assert {call["key"] for call in again} == {call["key"] for call in stage.calls() if call["fence"] == 1}
    assert Decision.objects.count() == len(jobs)
    assert_sound(lane)


def test_a_ticket_that_kills_its_worker_dies_alone_and_the_pool_is_whole_again(workers, stage):
    """CEL-04"""
    lane = make_staged_lane(stage, cap=50, **SHORT)
    [poison, *healthy] = receive(lane, "boom", *["fine"] * 49)
    workers.start()

    wait_for(workers, lambda: all_ended(lane), "the poison is DEAD and the healthy DONE", limit=90)

    poison.refresh_from_db()
    assert (poison.state, poison.dead_reason, poison.attempts, poison.fence) == ("DEAD", "attempts", 3, 3)
    assert Job.objects.filter(pk__in=[job.pk for job in healthy], state="DONE", result="APPROVED").count() == 49
    assert Item.objects.get().job_id == poison.pk
    assert_sound(lane)
    receive(lane, *["fine"] * 5, source="later")
    wait_for(workers, lambda: all_ended(lane), "the pool works on")


def test_a_model_that_is_down_holds_the_lane_and_turns_nothing(workers, stage):
    """BRK-08"""
    lane = make_staged_lane(stage, cap=20)
    receive(lane, *["fine", "bad"] * 20)
    sealed = dict(Evidence.objects.values_list("pk", "body"))
    stage.set("down")
    workers.start()

    wait_for(workers, lambda: Lane.objects.get(pk=lane.pk).is_on_hold, "the lane held itself")
    wait_for(workers, lambda: not Job.objects.filter(state="LEASED").exists(), "the running calls ended")
    stage.set("up")
    ticks = Presence.objects.get(kind="scheduler").seen_at + timedelta(seconds=3)
    wait_for(workers, lambda: Presence.objects.get(kind="scheduler").seen_at > ticks, "three more ticks")

    assert Job.objects.filter(state="WAITING", attempts=0, result__isnull=True).count() == 40
    assert dict(Evidence.objects.values_list("pk", "body")) == sealed
    assert not Decision.objects.exists()
    assert not Attempt.objects.filter(is_charged=True).exists()
    assert Lane.objects.get(pk=lane.pk).is_on_hold


def test_an_emptied_broker_loses_nothing(workers, stage, broker):
    lane = make_staged_lane(stage, cap=4)
    stage.pause(0.2)
    receive(lane, *["slow"] * 16)
    workers.start()
    wait_for(workers, lambda: Job.objects.filter(state="DONE").exists(), "the first tickets ended")

    broker.flushall()
    receive(lane, *["slow"] * 20)  # four more than before

    # What came in after it, too: its wake-ups find their way though the broker forgot everything it was told.
    wait_for(workers, lambda: all_ended(lane), "all tickets ended")
    assert_sound(lane)


def test_a_worker_that_is_stopped_leaves_no_lease_behind(workers, stage):
    lane = make_staged_lane(stage, cap=20)
    stage.pause(0.3)
    receive(lane, *["slow"] * 40)
    worker = workers.start(processes=1)
    wait_for(workers, lambda: len(stage.calls()) > 0, "the first call began")

    assert workers.stop(worker) == 0

    assert not Job.objects.filter(state="LEASED").exists(), workers.logs()[-4000:]
    assert Job.objects.filter(state="WAITING", attempts=0).count() > 0
    assert_sound(lane)


def test_one_process_serves_two_lanes_in_turn(workers, stage):
    """A lane with a long backlog does not keep the only process from a lane with a short one."""
    long, short = make_staged_lane(stage, cap=4), make_staged_lane(stage, cap=4)
    stage.pause(0.1)
    receive(long, *["slow"] * 200)
    workers.start(processes=1)
    wait_for(workers, lambda: Job.objects.filter(lane=long, state="DONE").exists(), "the long lane is drained")
    began = DATABASE_CLOCK.now()

    receive(short, *["fine"] * 3)

    wait_for(workers, lambda: all_ended(short), "the short lane had its turn")
    assert Job.objects.filter(lane=long, state="WAITING").exists()
    ended = Job.objects.filter(lane=short).order_by("-finished_at").values_list("finished_at", flat=True)[0]
    assert ended - began < timedelta(seconds=15)


# In CI the ticket that kills its worker leaves the others at work too.
@pytest.mark.long
def test_a_child_that_is_killed_leaves_the_others_at_work(workers, stage):
    """CEL-03"""
    lane = make_staged_lane(stage, cap=20, **SHORT)
    stage.pause(0.5)
    receive(lane, *["slow"] * 12, *["fine"] * 30)
    workers.start()
    wait_for(workers, lambda: len(stage.calls()) > 0, "the first call began")

    os.kill(stage.calls()[0]["pid"], signal.SIGKILL)

    wait_for(workers, lambda: all_ended(lane), "all tickets ended", limit=90)
    assert Job.objects.filter(state="DONE").count() == 42
    assert_sound(lane)


# In CI the broker is emptied instead, and tests/workers/test_wakeups.py has one that never answers.
@pytest.mark.long
def test_a_broker_that_flaps_stops_nothing_for_good(tmp_path, stage, settings):
    """CEL-06"""
    settings.QUEUE_CORE_CONNECTIONS = {"staged": "tests.workers.staged.build"}
    folder = Path(tempfile.mkdtemp(prefix="rbf-"))
    flapping = EmbeddedValkey(data=folder / "v", sockets=folder / "s", throwaway=True)
    flapping.start()
    try:
        with workers_at(flapping.url(), tmp_path) as workers:
            lane = make_staged_lane(stage, cap=4)
            stage.pause(0.2)
            receive(lane, *["slow"] * 50)
            workers.start()
            wait_for(workers, lambda: Job.objects.filter(state="DONE").exists(), "the first tickets ended")

            for _restart in range(3):
                flapping.stop()
                flapping.start()

            def goes_on() -> bool:
                workers.start_again_what_ended(most=3)
                return all_ended(lane)

            wait_until(goes_on, "all tickets ended with no restart by hand", limit=90)
            assert_sound(lane)
    finally:
        flapping.stop()
        shutil.rmtree(folder, ignore_errors=True)
