"""Real Celery workers in processes of their own, at the test's database and broker."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

from django.db import connection

#: Generous for a machine with two busy cores; a test that works never waits so long.
PATIENCE = 60.0
ROOT = Path(__file__).parents[2]


def wait_until(condition: Callable[[], bool], message: str, *, limit: float = PATIENCE) -> None:
    """Wait for a condition with a limit and a message, looking often."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit:g} s: {message}")
        time.sleep(0.05)


def database_url() -> str:
    """Where this test's own database is, for another process."""
    found = connection.settings_dict
    user, secret = quote(found.get("USER") or ""), quote(found.get("PASSWORD") or "")
    account = f"{user}:{secret}" if secret else user
    host, port = found.get("HOST") or "", found.get("PORT") or ""
    if host.startswith("/"):
        return f"postgres://{account}@/{quote(found['NAME'])}?{urlencode({'host': host})}"
    options = found.get("OPTIONS", {}).get("host")
    query = f"?{urlencode({'host': options})}" if options else ""
    return f"postgres://{account}@{host}{f':{port}' if port else ''}/{quote(found['NAME'])}{query}"


@dataclass
class Workers:
    """Worker processes of one test. Each is the leader of a group of its own, so that it dies with its children."""

    environment: dict[str, str]
    folder: Path
    restarts: int = 0
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def start(self, *, processes: int = 2, scheduler: bool = True, name: str = "w") -> subprocess.Popen[bytes]:
        number = next(self._numbers)
        arguments = ["worker", "-c", str(processes), "-n", f"{name}{number}@test", "-l", "INFO"]
        if scheduler:
            arguments += ["-B", "-s", str(self.folder / f"beat-{number}")]
        log = (self.folder / f"worker-{number}.log").open("wb")
        with log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "reviewboard", *arguments],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running.append(worker)
        return worker

    def assert_alive(self) -> None:
        dead = [worker.args for worker in self._running if worker.poll() is not None]
        assert not dead, "a worker ended by itself"

    def start_again_what_ended(self, *, most: int) -> None:
        """As `up` and the unit files do: a broker that flaps can end Celery's worker; its supervisor starts another."""
        for worker in [worker for worker in self._running if worker.poll() is not None]:
            self._running.remove(worker)
            self.restarts += 1
            assert self.restarts <= most, "workers end again and again"
            self.start()

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """As a machine that loses its power: the whole group at once, with no word to anybody."""
        self._running.remove(worker)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(PATIENCE)

    def stop(self, worker: subprocess.Popen[bytes]) -> int:
        self._running.remove(worker)
        worker.send_signal(signal.SIGTERM)
        return worker.wait(PATIENCE)

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("worker-*.log")))

    def end(self) -> None:
        for worker in list(self._running):
            self.kill(worker)


def environment_for(*, broker_url: str) -> dict[str, str]:
    """What a process of the site needs to work at the test's database and this broker."""
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.workers.worker_settings",
        "DATABASE_URL": database_url(),
        "CELERY_BROKER_URL": broker_url,
        "SECRET_KEY": "for-the-tests-only-0123456789abcdef0123456789abcdef",
        "ALLOWED_HOSTS": "localhost",
        "PYTHONPATH": str(ROOT),
    }


@contextmanager
def workers_at(broker_url: str, folder: Path) -> Iterator[Workers]:
    workers = Workers(environment_for(broker_url=broker_url), folder)
    try:
        yield workers
    finally:
        workers.end()
