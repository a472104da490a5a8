"""Calling an adapter so that its faults stay its own: exactly one answer for each call, within the time limit.

Calls may be added while others are out (`Flight`), so that one slow call keeps no seat of the others.

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


#: Answers that come this close behind one another are handed over together, so that they are committed together.
TOGETHER = 0.01
#: But none waits longer than this for others.
LONGEST_TOGETHER = 0.05


@dataclass(frozen=True, slots=True)
class _Arrival:
    pump: "_Pump"
    pair: object
    at: float


@dataclass(frozen=True, slots=True)
class _Ended:
    """An adapter's iterator is over. `fault` names what it raised, without the message: that may quote evidence."""

    pump: "_Pump"
    at: float
    fault: str = ""


@dataclass(frozen=True, slots=True)
class _Waiting:
    call: Call
    pump: "_Pump"

    @property
    def ends(self) -> float:
        return self.pump.started + self.call.time_limit.total_seconds()


class Flight:
    """The calls of one worker that are out at one adapter. Used from one thread."""

    def __init__(self, adapter: Connection) -> None:
        self._adapter = adapter
        self._waiting: dict[int, _Waiting] = {}
        self._ready: list[tuple[Call, Answer]] = []
        self._arrivals: queue.SimpleQueue[_Arrival | _Ended] = queue.SimpleQueue()

    @property
    def out(self) -> int:
        """How many calls have no answer yet that was handed over."""
        return len(self._waiting) + len(self._ready)

    @property
    def room(self) -> int:
        return max(self._adapter.at_once - self.out, 0)

    def start(self, calls: Sequence[Call]) -> None:
        """Begin calls, which have their time from now on. Raises ValueError for more than there is room for."""
        if len(calls) > self.room:
            raise ValueError(f"{len(calls)} calls for a connection with room for {self.room}")
        if len({call.attempt for call in calls} - set(self._waiting)) < len(calls):
            raise ValueError("two calls of one attempt")
        allowed = []
        for call in calls:
            if call.is_restricted and not self._adapter.allow_restricted:
                self._ready.append((call, InputRejected(RESTRICTED_REFUSED)))
            else:
                allowed.append(call)
        if allowed:
            self._begin(allowed)

    def _begin(self, calls: list[Call]) -> None:
        try:
            self._adapter.prepare()
            answers = iter(self._adapter.review(calls))
        except Exception as error:  # noqa: BLE001 - foreign code: its fault is the answer, logged by _named
            answer = Unavailable(f"The adapter failed before the call: {_named(error)}")
            self._ready += [(call, answer) for call in calls]
            return
        pump = _Pump(answers, self._arrivals)
        self._waiting |= {call.attempt: _Waiting(call, pump) for call in calls}

    def answers(self) -> list[tuple[Call, Answer]]:
        """Wait for an answer, and return all that have come by then. Empty only when nothing is out."""
        found, self._ready = self._ready, []
        since = time.monotonic()
        while self._waiting:
            if not found:
                limit = min(waiting.ends for waiting in self._waiting.values())
            else:
                limit = min(time.monotonic() + TOGETHER, since + LONGEST_TOGETHER)
            arrival = self._next_until(limit)
            if arrival is None and found:
                break
            was_empty = not found
            found += self._taken(arrival)
            since = time.monotonic() if was_empty else since
        return found

    def close(self) -> None:
        """Leave what is still out to itself."""
        for waiting in self._waiting.values():
            waiting.pump.abandon()
        self._waiting.clear()

    def _next_until(self, limit: float) -> _Arrival | _Ended | None:
        """The next arrival; None when the time is over and nothing lies ready."""
        try:
            return self._arrivals.get(timeout=max(limit - time.monotonic(), 0.0))
        except queue.Empty:
            return None

    def _taken(self, arrival: _Arrival | _Ended | None) -> list[tuple[Call, Answer]]:
        # A call is over by when an answer arrived, not by when the worker came round to it: a busy worker makes no
        # call late. And by every arrival, so that an adapter that floods us cannot keep its limit away.
        found = self._over(arrival.at if arrival else time.monotonic())
        match arrival:
            case _Arrival():
                found += self._accepted(arrival)
            case _Ended():
                found += self._unanswered(arrival)
        return found

    def _over(self, at: float) -> list[tuple[Call, Answer]]:
        over = [waiting for waiting in self._waiting.values() if waiting.ends <= at]
        for waiting in over:
            del self._waiting[waiting.call.attempt]
            self._abandon_if_idle(waiting.pump)
        return [(w.call, TimedOut(after=w.call.time_limit, latency=w.call.time_limit)) for w in over]

    def _abandon_if_idle(self, pump: "_Pump") -> None:
        if all(waiting.pump is not pump for waiting in self._waiting.values()):
            pump.abandon()

    def _accepted(self, arrival: _Arrival) -> list[tuple[Call, Answer]]:
        """The arrival, if it answers a call that still waits for it."""
        match arrival.pair:
            case (Call() as given, answer) if given.attempt in self._waiting:
                waiting = self._waiting[given.attempt]
                if waiting.pump is arrival.pump:
                    del self._waiting[given.attempt]
                    took = timedelta(seconds=arrival.at - arrival.pump.started)
                    # The worker's own call, not the adapter's copy of it: an adapter cannot change whose answer it is.
                    return [(waiting.call, _with_latency(answer, took))]
        logger.debug("an answer to no waiting call was dropped")
        return []

    def _unanswered(self, ended: _Ended) -> list[tuple[Call, Answer]]:
        left = [waiting.call for waiting in self._waiting.values() if waiting.pump is ended.pump]
        for call in left:
            del self._waiting[call.attempt]
        return [(call, _unknown(ended.fault, ended.at - ended.pump.started)) for call in left]


def call_all(adapter: Connection, calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
    """Each call with its one answer, as each ends."""
    flight = Flight(adapter)
    flight.start(calls)
    return _handed_over(flight)


def _handed_over(flight: Flight) -> Iterator[tuple[Call, Answer]]:
    try:
        while flight.out:
            yield from flight.answers()
    finally:
        flight.close()


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


def _with_latency(answer: object, took: timedelta) -> Answer:
    if not isinstance(answer, ANSWERS):
        return InvalidAnswer(f"The adapter gave a {type(answer).__name__}.", latency=took)
    return answer if answer.latency is not None else replace(answer, latency=took)


def _unknown(fault: str, elapsed: float) -> TimedOut:
    took = timedelta(seconds=elapsed)
    detail = f"The adapter failed in the call: {fault}" if fault else "The adapter ended without an answer."
    return TimedOut(detail, after=took, latency=took)


def _named(error: BaseException) -> str:
    """The kind of error, and in the log where it rose. Never its message, which may quote evidence or a key."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("a connection's adapter raised %s\n%s", type(error).__name__, frames)
    return type(error).__name__


class _Pump:
    """Runs an adapter's iterator in a thread of its own, so that waiting for it can be bounded."""

    def __init__(self, answers: Iterable[object], arrivals: "queue.SimpleQueue[_Arrival | _Ended]") -> None:
        self.started = time.monotonic()
        self._arrivals = arrivals
        self._is_abandoned = threading.Event()
        threading.Thread(target=self._run, args=(answers,), name="model-calls", daemon=True).start()

    def abandon(self) -> None:
        self._is_abandoned.set()

    def _run(self, answers: Iterable[object]) -> None:
        try:
            for pair in answers:
                self._arrivals.put(_Arrival(self, pair, time.monotonic()))
                if self._is_abandoned.is_set():
                    # Left here, a generator is closed and may cancel what it still has in flight.
                    break
            self._arrivals.put(_Ended(self, time.monotonic()))
        except Exception as error:  # noqa: BLE001 - as in Flight; a thread has nobody to raise to
            self._arrivals.put(_Ended(self, time.monotonic(), _named(error)))
