"""A model that does what a test says, in whatever process it is called.

A connection of kind `staged` has a folder as its address. `condition` in it says how the model behaves, `calls` gets a
line for every call that began, and the evidence's text says what one ticket meets:

    fine, bad, grey    a score of 0.1, 0.95, 0.6
    slow               fine, after the seconds in `pause`
    hangs              says nothing for longer than any call may last
    nonsense           an answer that is none
    boom               ends the process as the kernel's memory killer would
"""

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from queue_core.connections import (
    Answer,
    Call,
    Health,
    InputRejected,
    InvalidAnswer,
    Misconfigured,
    MisconfiguredKind,
    Overloaded,
    Refused,
    TimedOut,
    Unavailable,
    Verdict,
)
from queue_core.models import ModelConnection

SCORES = {"fine": 0.1, "bad": 0.95, "grey": 0.6, "slow": 0.1, "hangs": 0.1, "boom": 0.1}
LONGER_THAN_ANY_CALL = 20.0
RULES = [{"category": "offensive", "reject_at": 0.85, "approve_below": 0.45, "reason_code": "insult"}]


@dataclass(frozen=True, slots=True)
class Stage:
    """The test's side of a staged model."""

    folder: Path

    def set(self, condition: str) -> None:
        self._write("condition", condition)

    def pause(self, seconds: float) -> None:
        self._write("pause", str(seconds))

    def _write(self, name: str, text: str) -> None:
        # Renamed into place: a reader in another process sees the old text or the new, never half of one.
        scratch = self.folder / f".{name}"
        scratch.write_text(text)
        scratch.rename(self.folder / name)

    def kill(self, place: str) -> None:
        """For `tests.faults.deadly`: where the process dies, once."""
        self._write("kill", place)

    def looks(self) -> int:
        log = self.folder / "looks"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def calls(self) -> list[dict[str, Any]]:
        log = self.folder / "calls"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@dataclass(slots=True)
class StagedConnection:
    folder: Path
    at_once: int = 10
    allow_restricted: bool = False

    def prepare(self) -> None:
        if self._read("condition", "up") == "unprepared":
            raise RuntimeError("no weights")

    def review(self, calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
        return self._answers(list(calls))

    def _answers(self, calls: list[Call]) -> Iterator[tuple[Call, Answer]]:
        together = [call.ticket for call in calls]
        for call in calls:
            self._log(call, together)
        for call in calls:
            yield call, self._answer(call)

    def _answer(self, call: Call) -> Answer:
        condition = self._read("condition", "up")
        answer = CONDITIONS.get(condition)
        if answer is not None:
            return answer
        text = json.loads(call.evidence)["text"].split()[0]
        if text == "boom":
            os.kill(os.getpid(), signal.SIGKILL)
        if text == "hangs":
            time.sleep(LONGER_THAN_ANY_CALL)
        if text == "nonsense":
            return InvalidAnswer("The staged model says nonsense.")
        if text == "slow":
            time.sleep(float(self._read("pause", "0.5")))
        return Verdict({"offensive": SCORES[text]}, model="staged", usage={"tokens": 3})

    def check_health(self, time_limit: timedelta) -> Health:
        self._append("looks", "look")
        return Health(self._read("condition", "up") == "up", "staged")

    def _read(self, name: str, default: str) -> str:
        try:
            return (self.folder / name).read_text()
        except FileNotFoundError:
            return default

    def _log(self, call: Call, together: list[str]) -> None:
        line = {
            "ticket": call.ticket,
            "fence": call.fence,
            "key": call.idempotency_key,
            "limit": call.time_limit.total_seconds(),
            "together": together,
            "pid": os.getpid(),
        }
        self._append("calls", json.dumps(line))

    def _append(self, name: str, line: str) -> None:
        with (self.folder / name).open("a") as log:
            log.write(line + "\n")


CONDITIONS: dict[str, Answer] = {
    "down": Unavailable("The staged model is down."),
    "busy": Overloaded("The staged model is busy.", timedelta(seconds=120)),
    "timeout": TimedOut("The staged model is silent.", after=timedelta(seconds=1)),
    "invalid": InvalidAnswer("The staged model says nonsense."),
    "refuses": Refused("The staged model will not judge this."),
    "rejects": InputRejected("The staged model cannot read this."),
    "locked": Misconfigured(MisconfiguredKind.KEY_REFUSED, "The key was refused. Set another one."),
}


def build(row: ModelConnection) -> StagedConnection:
    return StagedConnection(Path(row.address), row.options.get("at_once", 10), row.allow_restricted)
