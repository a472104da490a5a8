"""BRK-03: whatever the probe gets in place of an answer is an end of its own, frees its seat and closes nothing."""

from datetime import timedelta

import pytest

from queue_core import contract, drain
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Attempt, Job, Lane
from reviewboard.model_server import running as model_running
from tests.connections.wires import HTTP_OPTIONS
from tests.factories import make_connection, make_ground, make_lane
from tests.workers.conftest import receive

pytestmark = pytest.mark.django_db

ENDS = {
    "rejects": "input_rejected",
    "empty": "invalid_answer",
    "garbage": "invalid_answer",
    "text_scores": "invalid_answer",
    "truncated": "invalid_answer",
    "not_found": "misconfigured",
}


def test_each_answer_that_is_none_ends_its_attempt_frees_its_seat_and_raises_nothing(monkeypatch):
    make_ground()
    with model_running() as model:
        lane = _lane(model.url, number=1, cap=1)
        for number, (fault, outcome) in enumerate(ENDS.items(), start=1):
            model.set(fault)
            receive(lane, f"text {number}", external_id=f"ticket {number}")

            drain.drain(lane.pk, task=f"task {number}", worker="w1", clock=DATABASE_CLOCK)

            attempt = Attempt.objects.latest("pk")
            assert (Attempt.objects.count(), attempt.outcome) == (number, outcome), fault
            assert attempt.detail or outcome == "input_rejected", fault
            assert not Attempt.objects.filter(ended_at__isnull=True).exists(), "its seat is free"
            now = Lane.objects.select_related("run", "hold").get(pk=lane.pk)
            assert now.run is None or now.run.number == 1, "nothing raises itself"
    assert now.run is None
    assert (now.hold.reason, now.hold.is_automatic) == ("auto_misconfigured", True)
    assert "404" in now.hold.params["detail"]


@pytest.mark.parametrize("fault", ["error", "garbage", "truncated"])
def test_a_lane_of_two_tickets_outlives_a_server_that_is_reached_and_answers_nobody(fault):
    """BRK-08: no share is ever conclusive there, and each such answer is charged."""
    make_ground()
    short = timedelta(milliseconds=1)
    with model_running() as model:
        lane = _lane(model.url, number=2, max_attempts=2, backoff_base=short, backoff_cap=short)
        model.set(fault)
        for number in (1, 2):
            receive(lane, f"text {number}", external_id=f"ticket {number}")
        for turn in range(3):
            contract.wake_due(clock=DATABASE_CLOCK)
            drain.drain(lane.pk, task=f"task {turn}", worker="w1", clock=DATABASE_CLOCK)

    now = Lane.objects.select_related("hold").get(pk=lane.pk)
    assert (now.run, now.hold.reason, bool(now.hold.params["detail"])) == (None, "auto_errors", True)
    assert set(Job.objects.filter(lane=lane).values_list("state", "attempts")) == {("WAITING", 0)}


def _lane(url: str, **fields: object) -> Lane:
    connection = make_connection(
        kind="http", address=f"{url}/review", options=HTTP_OPTIONS, call_time_limit=timedelta(seconds=5)
    )
    lane = make_lane(run={"least_sample": 100}, connection=connection, **fields)
    lane.policy.rules = [{"category": "insult", "reject_at": 0.8, "approve_below": 0.3, "reason_code": "insult"}]
    lane.policy.save()
    return lane
