import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_core.connections import (
    Call,
    Health,
    InputRejected,
    InvalidAnswer,
    TimedOut,
    Unavailable,
    Verdict,
    call_all,
    look_at,
)
from tests.connections.adapters import Scripted, call

SOON = timedelta(milliseconds=50)
#: Long enough for an adapter that answers at once, however busy the machine is.
A_SECOND = timedelta(seconds=1)
SECRET = "the text of a ticket"


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """What a hanging adapter waits for; set at the end, so that its thread does not outlive the test."""
    event = threading.Event()
    yield event
    event.set()


def test_call_all_gives_each_call_its_answer_as_it_ends() -> None:
    def backwards(calls: Sequence[Call]) -> Iterator[Any]:
        return ((given, Verdict({"offensive": given.attempt / 10})) for given in reversed(calls))

    answered = list(call_all(Scripted(backwards), [call(1), call(2)]))

    assert [(given.attempt, answer.scores) for given, answer in answered] == [  # type: ignore[union-attr]
        (2, {"offensive": 0.2}),
        (1, {"offensive": 0.1}),
    ]


def test_call_all_measures_the_latency_that_the_adapter_did_not() -> None:
    [(_given, answer)] = call_all(Scripted(), [call()])

    assert answer.latency is not None
    assert timedelta(0) <= answer.latency < timedelta(seconds=5)


def test_an_adapter_that_fails_before_it_begins_is_unavailable_since_nothing_was_sent() -> None:
    def fails(_calls: Sequence[Call]) -> Iterator[Any]:
        raise ValueError(SECRET)

    answered = list(call_all(Scripted(fails), [call(1), call(2)]))

    assert [type(answer) for _given, answer in answered] == [Unavailable, Unavailable]


def test_an_adapter_that_fails_in_the_call_leaves_the_effect_unknown(caplog: pytest.LogCaptureFixture) -> None:
    def fails_after_one(calls: Sequence[Call]) -> Iterator[Any]:
        yield calls[0], Verdict({"offensive": 0.1})
        raise ValueError(SECRET)

    with caplog.at_level(logging.ERROR):
        answered = dict(call_all(Scripted(fails_after_one), [call(1), call(2)]))

    assert isinstance(answered[call(1)], Verdict)
    lost = answered[call(2)]
    assert isinstance(lost, TimedOut)
    assert "ValueError" in lost.detail
    assert "ValueError" in caplog.text
    assert SECRET not in caplog.text + lost.detail


def test_an_adapter_that_ends_without_an_answer_leaves_the_effect_unknown() -> None:
    [(_given, answer)] = call_all(Scripted(lambda _calls: iter(())), [call()])

    assert isinstance(answer, TimedOut)
    assert answer.detail == "The adapter ended without an answer."


def test_a_silent_adapter_times_out_at_the_limit_and_keeps_what_it_answered_before(never: threading.Event) -> None:
    def hangs_after_one(calls: Sequence[Call]) -> Iterator[Any]:
        yield calls[0], Verdict({"offensive": 0.1})
        never.wait(10)

    answered = dict(call_all(Scripted(hangs_after_one), [call(1, time_limit=A_SECOND), call(2, time_limit=A_SECOND)]))

    assert isinstance(answered[call(1, time_limit=A_SECOND)], Verdict)
    assert answered[call(2, time_limit=A_SECOND)] == TimedOut(after=A_SECOND, latency=A_SECOND)


def test_each_call_has_its_own_limit(never: threading.Event) -> None:
    def hangs(calls: Sequence[Call]) -> Iterator[Any]:
        never.wait(10)
        yield calls[1], Verdict({"offensive": 0.1})

    answers = call_all(Scripted(hangs), [call(1, time_limit=SOON), call(2)])

    assert isinstance(next(answers)[1], TimedOut)
    never.set()
    assert isinstance(next(answers)[1], Verdict)
    assert list(answers) == []


def test_an_adapter_that_floods_cannot_keep_its_limit_away() -> None:
    def floods(_calls: Sequence[Call]) -> Iterator[Any]:
        return ((call(99), number) for number in count())

    [(_given, answer)] = call_all(Scripted(floods), [call(1, time_limit=SOON)])

    assert isinstance(answer, TimedOut)


def test_answers_for_unknown_calls_and_second_answers_are_dropped() -> None:
    def confused(calls: Sequence[Call]) -> Iterator[Any]:
        yield call(99), Verdict({"offensive": 0.9})
        yield None
        yield calls[0], Verdict({"offensive": 0.1})
        yield calls[0], Verdict({"offensive": 0.9})
        yield calls[1], Verdict({"offensive": 0.2})

    answered = list(call_all(Scripted(confused), [call(1), call(2)]))

    assert [given.attempt for given, _answer in answered] == [1, 2]
    assert answered[0][1].scores == {"offensive": 0.1}  # type: ignore[union-attr]


def test_something_else_than_an_answer_is_an_invalid_answer() -> None:
    [(_given, answer)] = call_all(Scripted(lambda calls: iter([(calls[0], "APPROVED")])), [call()])

    assert isinstance(answer, InvalidAnswer)
    assert answer.detail == "The adapter gave a str."


def test_an_adapter_cannot_change_whose_answer_it_gives() -> None:
    def renames(calls: Sequence[Call]) -> Iterator[Any]:
        yield replace(calls[0], ticket="other", fence=9), Verdict({"offensive": 0.1})

    [(given, _answer)] = call_all(Scripted(renames), [call()])

    assert given == call()


def test_restricted_evidence_never_reaches_a_connection_that_is_not_marked_for_it() -> None:
    seen: list[Call] = []

    def records(calls: Sequence[Call]) -> Iterator[Any]:
        seen.extend(calls)
        return iter([(given, Verdict({"offensive": 0.1})) for given in calls])

    answered = dict(call_all(Scripted(records), [call(1, is_restricted=True), call(2)]))

    assert seen == [call(2)]
    assert isinstance(answered[call(1, is_restricted=True)], InputRejected)


def test_restricted_evidence_reaches_a_connection_that_is_marked_for_it() -> None:
    [(_given, answer)] = call_all(Scripted(allow_restricted=True), [call(is_restricted=True)])

    assert isinstance(answer, Verdict)


def test_more_calls_than_fit_at_once_are_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="2 calls for a connection with room for 1"):
        call_all(Scripted(at_once=1), [call(1), call(2)])


def test_an_adapter_is_closed_when_nobody_waits_for_it_any_more() -> None:
    closed, may_go_on = threading.Event(), threading.Event()

    def watched(calls: Sequence[Call]) -> Iterator[Any]:
        try:
            yield calls[0], Verdict({"offensive": 0.1})
            may_go_on.wait(10)
            yield calls[1], Verdict({"offensive": 0.1})
        finally:
            closed.set()

    answers = call_all(Scripted(watched), [call(1), call(2)])
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    may_go_on.set()

    assert closed.wait(10), "the adapter's iterator was not closed within 10 s"


@settings(deadline=None)  # Each example starts a thread, whose turn comes when the machine pleases.
@given(st.lists(st.integers(-2, 5), max_size=12), st.integers(1, 4), st.booleans())
def test_whatever_an_adapter_does_each_call_gets_exactly_one_answer(order: list[int], size: int, fails: bool) -> None:
    def random(_calls: Sequence[Call]) -> Iterator[Any]:
        yield from ((call(number), Verdict({"offensive": 0.1})) for number in order)
        if fails:
            raise RuntimeError

    calls = [call(number) for number in range(size)]
    answered = [given.attempt for given, _answer in call_all(Scripted(random), calls)]

    assert sorted(answered) == list(range(size))


def test_a_health_check_that_fails_is_bad_health_without_the_errors_message() -> None:
    def fails(_limit: timedelta) -> Health:
        raise RuntimeError(SECRET)

    assert look_at(Scripted(health=fails), SOON) == Health(False, "The health check failed: RuntimeError")


def test_a_health_check_that_hangs_is_bad_health_at_its_limit(never: threading.Event) -> None:
    def hangs(_limit: timedelta) -> Health:
        never.wait(10)
        return Health(True)

    assert look_at(Scripted(health=hangs), SOON) == Health(False, "No answer within 0.05 s.", latency=SOON)
