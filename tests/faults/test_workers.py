"""Worker processes killed where it hurts most. Whatever happens to them, the rows end right."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.models import Attempt, Item, Job, Lane, Presence
from tests.faults.deadly import PLACES
from tests.faults.servers import own_broker
from tests.workers.conftest import make_staged_lane, receive
from tests.workers.processes import Workers, all_ended, assert_sound, wait_for, workers_at
from tests.workers.staged import Stage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes, pytest.mark.timeout(180)]

SETTINGS = "tests.faults.worker_settings"
SHORT = {"lease": timedelta(seconds=3)}


@pytest.fixture
def workers(tmp_path: Path, staged_settings: None) -> Iterator[Workers]:
    with own_broker() as broker, workers_at(broker.url(), tmp_path, settings=SETTINGS) as running:
        yield running


def deadly_lane(folder: Path, place: str) -> Lane:
    folder.mkdir()
    Stage(folder).kill(place)
    return make_staged_lane(
        Stage(folder), cap=20, connection={"kind": "deadly", "call_time_limit": timedelta(seconds=2)}, **SHORT
    )


def test_a_worker_killed_before_during_and_after_its_call_loses_no_ticket_and_decides_none_twice(
    workers: Workers, tmp_path: Path
) -> None:
    """CEL-03, PGQ-05, PGQ-15: before the call, in it, between answer and commit, between commit and acknowledgement."""
    lanes = {place: deadly_lane(tmp_path / place, place) for place in PLACES}
    for lane in lanes.values():
        receive(lane, *["fine"] * 5)
    workers.start(name="pod")

    wait_for(workers, lambda: all_ended(*lanes.values()), "all tickets ended", limit=90)

    assert_sound(*lanes.values())
    assert Job.objects.filter(state="DONE", result="APPROVED").count() == 20
    calls = {place: Stage(tmp_path / place).calls() for place in PLACES}
    assert all((tmp_path / place / "killed").exists() for place in PLACES)
    # Called and not known: the same question again, under the same key. What was not called was called once.
    assert {call["fence"] for call in calls["before"]} == {2}
    assert {call["fence"] for call in calls["during"]} == {call["fence"] for call in calls["inside"]} == {1, 2}
    assert len({call["key"] for call in calls["inside"]}) == 5
    # What was committed before the kill stands under its fence; the late message changed nothing.
    assert Job.objects.filter(lane=lanes["after"], fence=1).exists()
    lost = Attempt.objects.filter(lane__in=lanes.values(), is_committed=False)
    assert set(lost.values_list("outcome", flat=True)) == {"lease_expired"}


@pytest.mark.long
def test_with_one_try_each_a_kill_a_hang_and_an_error_all_end_dead_after_one_call(
    workers: Workers, tmp_path: Path
) -> None:
    """PGQ-17: no way of failing goes round the budget."""
    lanes = []
    for text in ("boom", "nonsense", "hangs"):
        folder = tmp_path / text
        folder.mkdir()
        limits = {"call_time_limit": timedelta(seconds=2)}
        lanes.append(make_staged_lane(Stage(folder), cap=20, max_attempts=1, connection=limits, **SHORT))
        receive(lanes[-1], text)
    workers.start()

    wait_for(workers, lambda: all_ended(*lanes), "all three are DEAD", limit=90)

    assert set(Job.objects.values_list("state", "dead_reason", "attempts", "fence")) == {("DEAD", "attempts", 1, 1)}
    assert Item.objects.filter(closed_at=None).count() == 3
    assert [len(Stage(tmp_path / text).calls()) for text in ("boom", "nonsense", "hangs")] == [1, 1, 1]
    assert_sound(*lanes)


@pytest.mark.long
def test_two_schedulers_do_everything_once(workers: Workers, stage: Stage) -> None:
    """CEL-11: one look at the model a time, one death a deadline, one end a lease."""
    lane = make_staged_lane(stage, cap=4, **SHORT)
    now = DATABASE_CLOCK.now()
    then = FixedClock(now - timedelta(hours=2))
    receive(lane, *["fine"] * 3, source="doomed", deadline=now - timedelta(hours=1), clock=then)
    receive(lane, "boom", *["fine"] * 8)
    workers.start(name="one")
    workers.start(name="two")

    wait_for(workers, lambda: all_ended(lane), "all tickets ended", limit=90)
    since = Presence.objects.get(kind="scheduler").seen_at
    wait_for(workers, lambda: Presence.objects.get(kind="scheduler").seen_at > since + timedelta(seconds=2), "ticks")

    assert Item.objects.filter(kind="dead").count() == 4
    assert_sound(lane)
    running = Presence.objects.get(kind="scheduler")
    assert stage.looks() <= (running.seen_at - running.started_at) / timedelta(seconds=8) + 1


@pytest.mark.long
def test_a_dead_scheduler_stops_the_flow_and_is_said_on_the_page(
    workers: Workers, stage: Stage, client: Any, django_user_model: Any
) -> None:
    """Nobody judges the guardrails of an idle lane: what comes in then waits, and nothing that waits looks healthy."""
    lane = make_staged_lane(stage, cap=4)
    Lane.objects.filter(pk=lane.pk).update(judged_at=lane.run.started_at if lane.run else None)
    workers.start(scheduler=False)
    wait_for(workers, lambda: Presence.objects.filter(kind="worker").exists(), "the worker is there")
    [job] = receive(lane, "fine")

    client.force_login(django_user_model.objects.create_superuser("root", password=None))
    page = client.get("/").content.decode()

    job.refresh_from_db()
    assert (job.state, job.fence, stage.calls()) == ("WAITING", 0, [])
    assert "Start the scheduler or a worker." in page
    workers.start(scheduler=True)
    wait_for(workers, lambda: all_ended(lane), "it goes on with a scheduler, and with no other hand")
    assert_sound(lane)
