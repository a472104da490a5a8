import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from queue_core.connections import TimedOut, Unavailable, Verdict, call_all, look_at
from queue_core.connections.local import LocalConnection, Weights
from queue_core.models import ModelConnection
from reviewboard.demo.connection import DemoConnection, build
from reviewboard.models import DemoModel
from tests.connections.adapters import call

Condition = DemoModel.Condition


def local_of_0_9() -> LocalConnection:
    return LocalConnection(allow_restricted=False, load=lambda: Weights("model 1", lambda texts: [0.9 for _ in texts]))


def demo(condition: Condition, pause: Callable[[float], object] = lambda _seconds: None) -> DemoConnection:
    return DemoConnection(local_of_0_9(), lambda: condition, pause)


TEN = [call(number) for number in range(10)]


def test_demo_up_answers_side_by_side_in_about_0_8_seconds() -> None:
    pauses: list[float] = []
    answers = [answer for _given, answer in call_all(demo(Condition.UP, pauses.append), TEN)]

    latencies = [answer.latency.total_seconds() for answer in answers if answer.latency]
    assert all(isinstance(answer, Verdict) for answer in answers)
    assert latencies == sorted(latencies)
    assert 0.6 <= min(latencies) <= max(latencies) <= 1.0
    assert sum(pauses) == pytest.approx(max(latencies))


def test_demo_down_is_unavailable_at_once() -> None:
    pauses: list[float] = []
    answers = [answer for _given, answer in call_all(demo(Condition.DOWN, pauses.append), TEN)]

    assert {type(answer) for answer in answers} == {Unavailable}
    assert pauses == []


def test_demo_slow_times_out_for_most_and_waits_no_longer_than_the_limit() -> None:
    pauses: list[float] = []
    adapter = demo(Condition.SLOW, pauses.append)
    answers = [answer for batch in range(20) for _given, answer in call_all(adapter, _numbered(batch))]

    timed_out = [answer for answer in answers if isinstance(answer, TimedOut)]
    assert 140 <= len(timed_out) <= 180
    assert {answer.after for answer in timed_out} == {timedelta(seconds=5)}
    assert sum(pauses) <= 20 * 5 + 0.001


def _numbered(batch: int) -> list:
    return [call(batch * 10 + number) for number in range(10)]


def test_demo_wrong_turns_the_scores_round() -> None:
    [(_given, answer)] = call_all(demo(Condition.WRONG), [call()])

    assert isinstance(answer, Verdict)
    assert answer.scores == {"offensive": pytest.approx(0.1)}


@pytest.mark.parametrize(
    ("condition", "is_good"),
    [(Condition.UP, True), (Condition.WRONG, True), (Condition.SLOW, False), (Condition.DOWN, False)],
)
def test_demo_health_says_only_whether_the_model_can_be_called(condition: Condition, is_good: bool) -> None:
    assert look_at(demo(condition), timedelta(seconds=5)).is_good is is_good


@pytest.mark.django_db
def test_demo_reads_its_condition_before_each_batch() -> None:
    row = ModelConnection.objects.create(name="demo", kind="demo")
    adapter = build(row)
    adapter.model, adapter.pause = local_of_0_9(), lambda _seconds: None

    [(_given, before)] = call_all(adapter, [call(evidence=json.dumps("hello"))])
    DemoModel.objects.create(connection=row, condition=Condition.DOWN, changed_at=datetime(2026, 1, 1, tzinfo=UTC))
    [(_given, after)] = call_all(adapter, [call()])

    assert isinstance(before, Verdict)
    assert isinstance(after, Unavailable)
