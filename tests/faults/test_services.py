"""PostgreSQL, the broker and their connections fail under work in flight; nobody restarts a worker by hand."""

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from queue_core.models import Job
from tests.faults.servers import (
    FAST,
    IMMEDIATE,
    can_be_asked,
    end_sessions_of_workers,
    kill,
    own_broker,
    own_database,
    own_rabbit,
    restart,
)
from tests.workers.conftest import make_staged_lane, receive
from tests.workers.processes import Workers, all_ended, assert_sound, wait_for, wait_until, workers_at
from tests.workers.staged import Stage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes, pytest.mark.timeout(240)]

SHORT = {"lease": timedelta(seconds=4), "connection": {"call_time_limit": timedelta(seconds=2)}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workers"
    made.mkdir()
    return made


def done() -> int:
    return Job.objects.filter(state="DONE").count()


def wait_for_more(workers: Workers, number: int) -> None:
    """Until so many more are DONE, with others in flight."""
    aim = done() + number
    wait_for(workers, can_be_asked(lambda: done() >= aim), f"{number} more tickets are DONE")


def test_a_database_that_restarts_and_sessions_that_are_cut_lose_nothing(
    pytestconfig: pytest.Config, staged_settings: None, stage: Stage, folder: Path
) -> None:
    """PGQ-15: restarted fast, restarted immediately, and every session ended three times, all with work in flight."""
    with own_database(pytestconfig.rootpath / ".pytest_cache" / "migrated") as server, own_broker() as broker:
        # A guardrail that holds the lane on what the faults leave would end the story early.
        lane = make_staged_lane(stage, cap=8, max_attempts=9, run={"max_timeout_ratio": 1.0}, **SHORT)
        stage.pause(0.1)
        receive(lane, *["slow"] * 90)
        with workers_at(broker.url(), folder) as workers:
            workers.start()
            wait_for_more(workers, 5)
            cut = 0
            for _time in range(3):
                cut += end_sessions_of_workers()
                wait_for_more(workers, 5)
            for how in (FAST, IMMEDIATE):
                restart(server, how)
                wait_for_more(workers, 5)
            wait_for(workers, lambda: all_ended(lane), "all tickets ended with no restart by hand", limit=120)

        assert Job.objects.filter(state="DONE").count() == 90
        assert_sound(lane)


@pytest.mark.long
def test_a_broker_that_stands_still_and_is_then_killed_loses_nothing(
    staged_settings: None, stage: Stage, folder: Path
) -> None:
    """CEL-06: it takes connections and answers nothing; then it is gone with all its messages, and back empty."""
    with own_broker() as broker, workers_at(broker.url(), folder) as workers:
        lane = make_staged_lane(stage, cap=4, **SHORT)
        stage.pause(0.1)
        receive(lane, *["slow"] * 20)
        workers.start()
        wait_for_more(workers, 5)

        pid = broker.pid()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        receive(lane, *["slow"] * 10, source="frozen")
        # What was claimed is decided. A drain under way goes on; when it ends no message begins another.
        wait_for(workers, lambda: not Job.objects.filter(state="LEASED").exists(), "the calls under way ended")
        os.kill(pid, signal.SIGCONT)
        receive(lane, *["slow"] * 10, source="thawed")
        wait_for_more(workers, 5)
        kill(broker)
        receive(lane, *["slow"] * 10, source="gone")
        broker.start()

        def goes_on() -> bool:
            workers.start_again_what_ended(most=3)
            return all_ended(lane)

        wait_until(goes_on, "all tickets ended", limit=120)
        assert done() == 50
        assert_sound(lane)


@pytest.mark.long
def test_the_main_path_works_on_rabbitmq_whose_node_is_killed(
    staged_settings: None, stage: Stage, folder: Path
) -> None:
    """Quorum queues; the node dies with messages unacknowledged, and comes back with what it had confirmed."""
    with own_rabbit() as node, workers_at(node.url(), folder) as workers:
        lane = make_staged_lane(stage, cap=4, **SHORT)
        stage.pause(0.1)
        receive(lane, *["slow", "bad", "grey"] * 15)
        workers.start()
        wait_for_more(workers, 10)

        node.kill()
        receive(lane, *["slow"] * 10, source="gone")
        node.start()

        def goes_on() -> bool:
            workers.start_again_what_ended(most=3)
            return all_ended(lane)

        wait_until(goes_on, "all tickets ended", limit=150)
        assert done() == 55
        assert_sound(lane)
