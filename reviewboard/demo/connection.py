"""The `demo` kind: the local model as if it were far away, in a condition that the demo strip sets.

Its scores are real; only the time it takes and its outages are staged. The condition is read once a batch.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from django.utils.translation import gettext_noop

from queue_core.connections import Answer, Call, Connection, Health, TimedOut, Unavailable, Verdict
from queue_core.connections.local import LocalConnection
from queue_core.models import ModelConnection
from reviewboard.models import DemoModel

AT_ONCE = 10
#: A call takes between these seconds, about 0.8 on average.
USUAL = (0.6, 1.0)
#: A model that answers at random is quick.
QUICK = (0.1, 0.2)
#: Of ten slow calls so many still answer in time.
SLOW_IN_TIME = 2

DOWN = gettext_noop("The demo's model is set to be down: the connection was refused.")
SLOW = gettext_noop("The demo's model is set to be slow.")

type Condition = DemoModel.Condition
type Pause = Callable[[float], object]


@dataclass(slots=True)
class DemoConnection:
    """Calls run side by side: a batch takes as long as its longest call."""

    model: Connection
    read_condition: Callable[[], Condition]
    pause: Pause = time.sleep
    at_once: int = AT_ONCE
    _condition: Condition = field(default=DemoModel.Condition.UP, init=False)

    @property
    def allow_restricted(self) -> bool:
        return self.model.allow_restricted

    def prepare(self) -> None:
        """Read here, since calls and health checks run in a thread that must not touch the database."""
        self._condition = self.read_condition()
        self.model.prepare()

    def review(self, calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
        if self._condition == DemoModel.Condition.DOWN:
            return iter([(call, Unavailable(DOWN)) for call in calls])
        return self._staged(self._condition, self.model.review(calls))

    def _staged(self, condition: Condition, answers: Iterator[tuple[Call, Answer]]) -> Iterator[tuple[Call, Answer]]:
        staged = [_stage(condition, call, answer) for call, answer in answers]
        elapsed = 0.0
        for ends, call, answer in sorted(staged, key=lambda entry: entry[0]):
            self.pause(ends - elapsed)
            elapsed = ends
            yield call, answer

    def check_health(self, time_limit: timedelta) -> Health:
        """Wrong answers are good health: that is what the gate's other half, and people, are for."""
        match self._condition:
            case DemoModel.Condition.DOWN:
                return Health(False, DOWN)
            case DemoModel.Condition.SLOW:
                return Health(False, SLOW, latency=time_limit)
        return self.model.check_health(time_limit)


def _stage(condition: Condition, call: Call, answer: Answer) -> tuple[float, Call, Answer]:
    """When this call ends, and with what."""
    limit = call.time_limit.total_seconds()
    if condition == DemoModel.Condition.SLOW:
        if _share(call, "in time") >= SLOW_IN_TIME / 10:
            return limit, call, TimedOut(after=call.time_limit, latency=call.time_limit)
        return _taking(limit * 0.6, limit * 0.9, call, answer)
    if condition == DemoModel.Condition.WRONG:
        return _taking(*QUICK, call, _turned_round(answer))
    return _taking(*USUAL, call, answer)


def _taking(least: float, most: float, call: Call, answer: Answer) -> tuple[float, Call, Answer]:
    seconds = least + (most - least) * _share(call, "latency")
    return seconds, call, replace(answer, latency=timedelta(seconds=seconds))


def _share(call: Call, purpose: str) -> float:
    """From 0 to 1, spread evenly and the same for the same attempt, so that a run can be looked at twice."""
    digest = hashlib.sha256(f"{purpose} {call.attempt}".encode()).digest()
    return int.from_bytes(digest[:4]) / 2**32


def _turned_round(answer: Answer) -> Answer:
    if not isinstance(answer, Verdict):
        return answer
    return replace(answer, scores={name: None if p is None else 1.0 - p for name, p in answer.scores.items()})


def build(row: ModelConnection) -> DemoConnection:
    def read_condition() -> Condition:
        # No row means that nobody has set a condition yet.
        found = DemoModel.objects.filter(connection_id=row.pk).values_list("condition", flat=True).first()
        return DemoModel.Condition(found or DemoModel.Condition.UP)

    return DemoConnection(LocalConnection(allow_restricted=row.allow_restricted), read_condition)
