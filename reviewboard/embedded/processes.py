"""Starting, recognising and ending server processes that outlive whoever started them."""

import contextlib
import fcntl
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from reviewboard.embedded import faults, unprivileged

PAUSE = 0.02
LARGEST_LOG = 10 * 1024 * 1024
LOCK_LIMIT = 60.0


def wait_until(holds: Callable[[], bool], limit: float) -> bool:
    """Whether `holds` came true within `limit` seconds."""
    end = time.monotonic() + limit
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE)
    return True


def command_of(pid: int) -> str:
    """The command line of a live process; "" when it is gone or only waits to be buried."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return ""
    except (ProcessLookupError, PermissionError):
        return ""
    ps = ["/bin/ps", "-o", "command=", "-p", str(pid)]
    asked = subprocess.run(ps, capture_output=True, text=True, check=False)  # noqa: S603  our own command
    return "" if "<defunct>" in asked.stdout else asked.stdout.strip()


def exists(pid: int) -> bool:
    """Whether the number is in use, be it by a process that is dying or dead and not buried."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def end(pid: int, is_alive: Callable[[], bool], steps: Sequence[tuple[signal.Signals, float]]) -> bool:
    """Send each signal and wait its seconds, until the process is gone. Whether it is."""
    for number, limit in steps:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if wait_until(lambda: not is_alive(), limit):
            return True
    return False


def bury(child: "subprocess.Popen[bytes] | None") -> None:
    """Collect a child that has ended; one that has not is not waited for longer than a dying process takes."""
    if child is not None:
        child.wait(5.0)


@contextlib.contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Two starts of one server take turns; the lock ends with its holder, however that ends."""
    with lock.open("a") as file:
        if not wait_until(lambda: _locked(file.fileno()), LOCK_LIMIT):
            raise faults.ServiceFault(
                f"Another command has been starting or stopping this server for {LOCK_LIMIT:.0f} seconds ({lock}). "
                "Wait for it to end, or end it, and try again."
            )
        yield


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
    """In a session of its own, so that Ctrl-C at the terminal reaches only the launcher, which ends all in order."""
    if log.exists() and log.stat().st_size > LARGEST_LOG:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as out:
        return subprocess.Popen(  # noqa: S603  our own command
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            # Not the caller's, which would be held busy.
            cwd="/",
            env=environment,
        )


def without_root(command: Sequence[str]) -> list[str]:
    return [*_prefix(way(), command[0]), *command[1:]] if way() else list(command)


def _prefix(chosen: str, program: str) -> list[str]:
    return [sys.executable, "-I", "-S", unprivileged.__file__, chosen, program]


@functools.cache
def way() -> str:
    """How root starts what refuses root; "" for everybody else."""
    if os.geteuid() != 0:
        return ""
    harmless = [*_prefix("namespace", sys.executable), "-V"]
    tried = subprocess.run(harmless, capture_output=True, check=False)  # noqa: S603  our own command
    return "nobody" if tried.returncode else "namespace"
