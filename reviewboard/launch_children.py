"""The site's own processes: started, watched, started anew when they die, and ended in order."""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reviewboard.embedded import ServiceFault
from reviewboard.embedded.processes import command_of, end, start
from reviewboard.starting import REFUSED

#: Seconds before each new start in a row; one death more and the launcher gives up.
PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
#: Whoever ran this long was well: the row begins anew.
WELL = 60.0
LAST_LINES = 12
KILLING = ((signal.SIGKILL, 5.0),)


@dataclass(frozen=True, slots=True)
class Role:
    """A process of the site. `patience`: seconds for an end in order."""

    name: str
    arguments: tuple[str, ...]
    patience: float


@dataclass(slots=True)
class Child:
    role: Role
    folder: Path
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    deaths: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def log(self) -> Path:
        return self.folder / f"{self.role.name}.log"

    @property
    def note(self) -> Path:
        return self.folder / f"{self.role.name}.pid"

    def start(self) -> None:
        command = [sys.executable, "-m", *self.role.arguments]
        environment = {**self.environment, "REVIEWBOARD_ROLE": self.role.name}
        self.process = start(command, self.log, environment=environment)
        self.began = time.monotonic()
        # With its command line: a number alone may be somebody else's after a crash. Not read from the system, which
        # does not know it in the first moment.
        self.note.write_text(f"{self.process.pid}\n{' '.join(command)}")

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def code(self) -> int | None:
        return self.process.returncode if self.process is not None else None

    def ask_to_end(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()

    def end(self, steps: Sequence[tuple[signal.Signals, float]]) -> None:
        """Its process first, which ends its own children in order; then whatever is left of its group."""
        if self.process is not None:
            end(self.process.pid, self.is_alive, steps)
            _kill_group(self.process.pid)
        self.note.unlink(missing_ok=True)

    def last_lines(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        except OSError:
            return ""
        return "\n".join(f"    {line}" for line in lines)


class Children:
    """In the order of their start; they end in the opposite one."""

    def __init__(self, roles: Sequence[Role], folder: Path, environment: Mapping[str, str]) -> None:
        self.all = [Child(role, folder, environment) for role in roles]
        self._due: dict[str, float] = {}

    def start(self) -> None:
        for child in self.all:
            child.start()

    def watch(self, say: Callable[[str], None]) -> None:
        """One look at all of them. Raises when one cannot be kept alive."""
        for child in self.all:
            if child.role.name in self._due:
                self._start_if_due(child)
            elif not child.is_alive():
                self._mourn(child, say)

    def end(self, say: Callable[[str], None], is_hurried: Callable[[], bool]) -> None:
        """Each gets its patience, unless somebody is in a hurry."""
        for child in reversed(self.all):
            if child.is_alive() and not is_hurried():
                say(f"  Ending {child.role.name}.")
                self._end_in_order(child, is_hurried)
            child.end(KILLING)

    def _end_in_order(self, child: Child, is_hurried: Callable[[], bool]) -> None:
        limit = time.monotonic() + child.role.patience
        child.ask_to_end()
        while child.is_alive() and time.monotonic() < limit and not is_hurried():
            time.sleep(0.05)

    def _mourn(self, child: Child, say: Callable[[str], None]) -> None:
        code = child.code
        child.end(())
        if time.monotonic() - child.began > WELL:
            child.deaths = 0
        child.deaths += 1
        if code == REFUSED or child.deaths > len(PAUSES):
            raise ServiceFault(
                f"The {child.role.name} process does not stay alive (ended with {code}). "
                f"All of it: {child.log}. Its last lines:\n{child.last_lines()}"
            )
        pause = PAUSES[child.deaths - 1]
        say(f"The {child.role.name} process ended with {code}; it is started anew in {pause} s. Its log: {child.log}")
        self._due[child.role.name] = time.monotonic() + pause

    def _start_if_due(self, child: Child) -> None:
        if time.monotonic() >= self._due[child.role.name]:
            del self._due[child.role.name]
            child.start()


def end_leftovers(folder: Path, say: Callable[[str], None]) -> None:
    """What a launcher that was killed with -9 left running: it holds the port, and works with old code."""
    for note in sorted(folder.glob("*.pid")):
        number, _, command = note.read_text(errors="replace").partition("\n")
        if command and number.isdigit() and _runs(int(number), command):
            say(f"Ending the {note.stem} process that an earlier run left behind.")
            pid = int(number)
            end(pid, functools.partial(_runs, pid, command), _LEFT)
            _kill_group(pid)
        note.unlink(missing_ok=True)


_LEFT = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))


def _runs(pid: int, command: str) -> bool:
    return command_of(pid).strip() == command


def _kill_group(leader: int) -> None:
    """Each child leads a group of its own, and its number is not given anew while one of the group lives."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
