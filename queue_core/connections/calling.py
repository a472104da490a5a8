"""Calling an adapter so that its faults stay its own: exactly one answer for each call, within the time limit.

The rules, since an adapter is foreign code:

- It fails before its iterator begins: nothing was sent, so the calls are `Unavailable`.
- It fails, or ends, without an answer to a call that was begun: the effect is unknown, which is `TimedOut` and never
  a failure. The attempt is charged and the idempotency key stays, so that a model that did the work can say so.
- It yields something else than an answer: an `InvalidAnswer` for that call.
- It answers twice, or to a call that nobody made: the first answer stands, the rest is dropped and logged.
- It is silent at the limit: `TimedOut`. Its thread is left behind, because Python can end no thread; the hold for
  timeouts bounds how many.
"""

import logging
import queue
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from queue_core.connections.answers import ANSWERS, Answer, InputRejected, InvalidAnswer, TimedOut, Unavailable
from queue_core.connections.base import Call, Connection, Health

logger = logging.getLogger(__name__)

RESTRICTED_REFUSED = "Restricted evidence may not be sent over this connection."


@dataclass(frozen=True, slots=True)
class _Arrival:
    pair: object
    at: float


@dataclass(frozen=True, slots=True)
class _Ended:
    """The adapter's iterator is over. `fault` names what it raised, without the message: that may quote evidence."""

    fault: str = ""


def call_all(adapter: Connection, calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
    """Each call with its one answer, as each ends."""
    if len(calls) > adapter.at_once:
        raise ValueError(f"{len(calls)} calls for a connection that makes {adapter.at_once} at once")
    if len({call.attempt for call in calls}) < len(calls):
        raise ValueError("two calls of one attempt")
    return _allowed_only(adapter, calls)


def look_at(adapter: Connection, time_limit: timedelta) -> Health:
    """The health check, bounded and never raising."""
    looked: queue.SimpleQueue[Health] = queue.SimpleQueue()

    def look() -> None:
        try:
            looked.put(adapter.check_health(time_limit))
        except Exception as error:  # noqa: BLE001 - foreign code: its fault is bad health
            looked.put(_failed_look(error))

    try:
        adapter.prepare()
        threading.Thread(target=look, name="health-check", daemon=True).start()
        return looked.get(timeout=time_limit.total_seconds())
    except queue.Empty:
        return Health(False, f"No answer within {time_limit.total_seconds():g} s.", latency=time_limit)
    except Exception as error:  # noqa: BLE001 - as above
        return _failed_look(error)


def _failed_look(error: Exception) -> Health:
    return Health(False, f"The health check failed: {_named(error)}")


def _allowed_only(adapter: Connection, calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
    allowed: dict[int, Call] = {}
    for call in calls:
        if call.is_restricted and not adapter.allow_restricted:
            yield call, InputRejected(RESTRICTED_REFUSED)
        else:
            allowed[call.attempt] = call
    if allowed:
        yield from _guarded(adapter, allowed)


def _guarded(adapter: Connection, waiting: dict[int, Call]) -> Iterator[tuple[Call, Answer]]:
    try:
        adapter.prepare()
        answers = iter(adapter.review(list(waiting.values())))
    except Exception as error:  # noqa: BLE001 - foreign code: its fault is the answer, logged by _named
        fault = _named(error)
        yield from ((call, Unavailable(f"The adapter failed before the call: {fault}")) for call in waiting.values())
        return
    pump = _Pump(answers)
    try:
        yield from _collect(pump, waiting)
    finally:
        pump.abandon()


def _collect(pump: "_Pump", waiting: dict[int, Call]) -> Iterator[tuple[Call, Answer]]:
    while waiting:
        arrival = pump.next_until(min(_limit(call) for call in waiting.values()))
        if isinstance(arrival, _Ended):
            yield from ((call, _unknown(arrival.fault, pump.elapsed())) for call in waiting.values())
            return
        # A call is over by when an answer arrived, not by when the worker came round to it: a busy worker makes no
        # call late. And by every arrival, so that an adapter that floods us cannot keep its limit away.
        yield from _over(waiting, arrival.at if arrival else pump.elapsed())
        if arrival and (found := _accepted(arrival, waiting)):
            yield found


def _over(waiting: dict[int, Call], at: float) -> Iterator[tuple[Call, Answer]]:
    for call in [call for call in waiting.values() if _limit(call) <= at]:
        del waiting[call.attempt]
        yield call, TimedOut(after=call.time_limit, latency=call.time_limit)


def _accepted(arrival: _Arrival, waiting: dict[int, Call]) -> tuple[Call, Answer] | None:
    """The arrival as an answer to a call that still waits for one."""
    match arrival.pair:
        case (Call() as given, answer) if given.attempt in waiting:
            # The worker's own call, not the adapter's copy of it: an adapter cannot change whose answer this is.
            return waiting.pop(given.attempt), _with_latency(answer, timedelta(seconds=arrival.at))
    logger.debug("an answer to no waiting call was dropped")
    return None


def _with_latency(answer: object, took: timedelta) -> Answer:
    if not isinstance(answer, ANSWERS):
        return InvalidAnswer(f"The adapter gave a {type(answer).__name__}.", latency=took)
    return answer if answer.latency is not None else replace(answer, latency=took)


def _unknown(fault: str, elapsed: float) -> TimedOut:
    took = timedelta(seconds=elapsed)
    detail = f"The adapter failed in the call: {fault}" if fault else "The adapter ended without an answer."
    return TimedOut(detail, after=took, latency=took)


def _limit(call: Call) -> float:
    return call.time_limit.total_seconds()


def _named(error: BaseException) -> str:
    """The kind of error, and in the log where it rose. Never its message, which may quote evidence or a key."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("a connection's adapter raised %s\n%s", type(error).__name__, frames)
    return type(error).__name__


class _Pump:
    """Runs an adapter's iterator in a thread of its own, so that waiting for it can be bounded."""

    def __init__(self, answers: Iterable[object]) -> None:
        self._arrivals: queue.SimpleQueue[_Arrival | _Ended] = queue.SimpleQueue()
        self._is_abandoned = threading.Event()
        self._started = time.monotonic()
        threading.Thread(target=self._run, args=(answers,), name="model-calls", daemon=True).start()

    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def next_until(self, limit: float) -> _Arrival | _Ended | None:
        """The next arrival; None when `limit` seconds since the start are over and nothing lies ready."""
        try:
            return self._arrivals.get(timeout=max(limit - self.elapsed(), 0.0))
        except queue.Empty:
            return None

    def abandon(self) -> None:
        self._is_abandoned.set()

    def _run(self, answers: Iterable[object]) -> None:
        try:
            for pair in answers:
                self._arrivals.put(_Arrival(pair, self.elapsed()))
                if self._is_abandoned.is_set():
                    # Left here, a generator is closed and may cancel what it still has in flight.
                    break
            self._arrivals.put(_Ended())
        except Exception as error:  # noqa: BLE001 - as in _guarded; a thread has nobody to raise to
            self._arrivals.put(_Ended(_named(error)))
