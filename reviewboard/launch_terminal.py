"""What the launcher says, and how it is told to end."""

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType

#: `uv run` may hand on a signal that the terminal sent as well: the same wish, not a second one.
SAME_WISH = 1.0


class Terminal:
    """Lines of progress. A terminal that was closed is no reason to leave servers behind."""

    def say(self, sentence: str = "") -> None:
        with contextlib.suppress(OSError):
            sys.stdout.write(f"{sentence}\n")
            sys.stdout.flush()

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Named when it begins, since the first one may take a while, and timed when it is over."""
        begun = time.monotonic()
        self._write(f"  {name} ... ")
        try:
            yield
        except BaseException:
            self.say()
            raise
        self.say(f"{time.monotonic() - begun:.1f} s")

    def asks(self, question: str) -> bool:
        """Return means yes."""
        self._write(f"{question} [Y/n] ")
        return sys.stdin.readline().strip().lower() in ("", "y", "yes")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            sys.stdout.write(text)
            sys.stdout.flush()


class Wish:
    """Ctrl-C, a closed terminal or a supervisor's SIGTERM: end in order. Once more: end at once.

    During preparation the wish interrupts; while children run it is only noted, so that none is lost between its
    start and its place in the list.
    """

    def __init__(self) -> None:
        self.interrupts = True
        self.is_hurried = False
        self._at: float | None = None

    @property
    def is_made(self) -> bool:
        return self._at is not None

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._hear) for number in _wishes()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        moment = time.monotonic()
        if self._at is not None:
            self.is_hurried = self.is_hurried or moment - self._at > SAME_WISH
            return
        self._at = moment
        if self.interrupts:
            raise KeyboardInterrupt


def _wishes() -> list[signal.Signals]:
    """Under nohup a hang-up is ignored, and in a shell's background Ctrl-C is: they stay so."""
    usual = [signal.SIGINT, signal.SIGHUP]
    return [signal.SIGTERM, *(number for number in usual if signal.getsignal(number) is not signal.SIG_IGN)]
