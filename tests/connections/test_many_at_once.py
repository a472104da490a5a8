"""One worker process and many slow calls: bounded by the cap and the model's latency, not by processes or threads."""

import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from queue_core import drainers
from queue_core.clock import DATABASE_CLOCK
from queue_core.drain import drain
from queue_core.models import Attempt, Job, Lane
from reviewboard.model_server import Condition, RunningServer, Step
from tests.connections.test_outcome_table import QUESTIONS, RULES
from tests.connections.wires import row
from tests.factories import make_ground, make_lane
from tests.workers.conftest import receive

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _long_slice(settings: Any) -> None:
    """However busy the machine: what is tested is one turn."""
    settings.QUEUE_CORE_DRAIN_SLICE = timedelta(minutes=2)


def lane_at(model: RunningServer, *, cap: int, at_once: int = 200, seconds: float = 10) -> Lane:
    make_ground()
    connection = row("systemone", model.url, call_time_limit=timedelta(seconds=seconds), options={"at_once": at_once})
    connection.save()
    lane = make_lane(connection=connection, cap=cap)
    assert lane.policy is not None
    lane.policy.rules, lane.policy.questions = RULES["systemone"], QUESTIONS
    lane.policy.save()
    return lane


def work(lane: Lane) -> float:
    began = time.monotonic()
    drain(lane.pk, task="t1", worker="w1", clock=DATABASE_CLOCK)
    return time.monotonic() - began


def test_calls_are_made_at_once_up_to_the_cap_with_a_thread_for_none_of_them(model: RunningServer) -> None:
    lane = lane_at(model, cap=60)
    jobs = receive(lane, *["fine"] * 60)
    model.set(latency=2.0)
    threads = threading.active_count()

    took = work(lane)

    assert Job.objects.filter(pk__in=[job.pk for job in jobs], result="APPROVED").count() == 60
    assert model.most_at_once > 50
    # Two minutes of calls; generous for a machine that does much else.
    assert took < 30
    assert threading.active_count() <= threads + 2


def test_never_more_calls_are_out_than_the_cap_allows(model: RunningServer) -> None:
    lane = lane_at(model, cap=5)
    receive(lane, *["fine"] * 20)
    model.set(latency=0.1)

    work(lane)

    assert Job.objects.filter(lane=lane, state="DONE").count() == 20
    assert model.most_at_once == 5


def test_one_slow_call_keeps_no_seat_of_the_others(model: RunningServer) -> None:
    lane = lane_at(model, cap=4, seconds=4)
    receive(lane, *["fine"] * 24)
    # The first call hangs; the others answer at once.
    model.play([Step(Condition("hang"), calls=1), Step(Condition(latency=0.05))])

    work(lane)

    ends = Attempt.objects.filter(lane=lane).order_by("ended_at").values_list("outcome", flat=True)
    assert list(ends) == ["verdict"] * 23 + ["timeout"]


def test_a_worker_that_is_asked_to_stop_takes_no_more_and_ends_what_is_out(model: RunningServer) -> None:
    lane = lane_at(model, cap=4)
    receive(lane, *["fine"] * 12)
    model.set(latency=0.3)

    drain(lane.pk, task="t1", worker="w1", clock=DATABASE_CLOCK, is_stopping=lambda: bool(model.calls))

    assert len(model.calls) == 4
    assert Job.objects.filter(lane=lane, state="DONE").count() == 4
    assert not Job.objects.filter(lane=lane, state="LEASED").exists()


def test_a_job_whose_last_lease_is_over_still_waits_until_nothing_else_runs_here(
    model: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = lane_at(model, cap=4)
    receive(lane, *["fine"] * 8)
    model.set(latency=0.1)
    looked = []

    def has_lapsed(*_args: object, **_named: object) -> bool:
        # One turns up as soon as calls are out, and is somebody else's by the next look from outside.
        looked.append(len(model.calls))
        return 0 < len(model.calls) < 8

    monkeypatch.setattr(drainers, "has_lapsed", has_lapsed)
    monkeypatch.setattr(drainers, "go_alone", lambda *_args, **_named: False)

    work(lane)

    # Four, a pause in which a takeover would have run alone, and the other four.
    assert Job.objects.filter(lane=lane, state="DONE").count() == 8
    assert len(looked) > 2
