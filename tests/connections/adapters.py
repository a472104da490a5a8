"""Adapters that misbehave in one way each, and the calls they get."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from queue_core.connections import Answer, Call, Health, Verdict

type Script = Callable[[Sequence[Call]], Iterator[Any]]


def call(attempt: int = 1, **changes: Any) -> Call:
    values: dict[str, Any] = {
        "attempt": attempt,
        "source": "forum",
        "ticket": f"t{attempt}",
        "revision": "1",
        "policy_version": 1,
        "fence": 1,
        "idempotency_key": f"key-{attempt}",
        "evidence": '{"text": "hello"}',
        "time_limit": timedelta(seconds=5),
    }
    return Call(**(values | changes))


def verdicts(calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
    for given in calls:
        yield given, Verdict({"offensive": 0.1})


@dataclass
class Scripted:
    """An adapter that does what `script` says."""

    script: Script = verdicts
    at_once: int = 10
    allow_restricted: bool = False
    health: Callable[[timedelta], Health] = lambda _limit: Health(True)

    def prepare(self) -> None:
        pass

    def review(self, calls: Sequence[Call]) -> Iterator[Any]:
        return self.script(calls)

    def check_health(self, time_limit: timedelta) -> Health:
        return self.health(time_limit)
