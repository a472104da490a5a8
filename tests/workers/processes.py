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

from django.db import Error, connection
from django.db.models import F

from queue_core.ledger import audit
from queue_core.models import Attempt, Decision, Job, Lane

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

    def start(
        self, *, processes: int = 2, scheduler: bool = True, name: str = "w", **environment: str
    ) -> subprocess.Popen[bytes]:
        number = next(self._numbers)
        arguments = ["worker", "-c", str(processes), "-n", f"{name}{number}@test", "-l", "INFO"]
        if scheduler:
            arguments += ["-B", "-s", str(self.folder / f"beat-{number}")]
        return self._run(number, arguments, environment)

    def start_scheduler(self, **environment: str) -> subprocess.Popen[bytes]:
        """A scheduler alone: it sends ticks and runs none."""
        number = next(self._numbers)
        return self._run(number, ["beat", "-s", str(self.folder / f"beat-{number}"), "-l", "INFO"], environment)

    def _run(self, number: int, arguments: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"worker-{number}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "reviewboard", *arguments],
                cwd=ROOT,
                env=self.environment | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running.append(process)
        return process

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


def wait_for(workers: Workers, condition: Callable[[], bool], message: str, **limits: float) -> None:
    """Wait as `wait_until` while the workers live; what they said is part of the failure."""

    def holds() -> bool:
        workers.assert_alive()
        return condition()

    try:
        wait_until(holds, message, **limits)
    except AssertionError as fault:
        raise AssertionError(f"{fault}\n{workers.logs()[-6000:]}") from fault


def all_ended(*lanes: Lane) -> bool:
    """Whether every job of the lanes is DONE or DEAD. False also while the database cannot be asked."""
    try:
        return not Job.objects.filter(lane__in=lanes, state__in=["WAITING", "LEASED"]).exists()
    except Error:
        connection.close()
        return False


def assert_sound(*lanes: Lane) -> None:
    """At most one committed attempt and one decision a job, none left open, and a ledger without a finding."""
    committed = Attempt.objects.filter(lane__in=lanes, is_committed=True)
    assert committed.count() == committed.values("job").distinct().count()
    assert not committed.exclude(fence=F("job__fence")).exists()
    assert Decision.objects.count() == Decision.objects.values("ticket", "revision").distinct().count()
    assert not Attempt.objects.filter(lane__in=lanes, ended_at__isnull=True).exists()
    report = audit()
    assert report.is_clean, report.findings


def environment_for(*, broker_url: str, settings: str = "tests.workers.worker_settings") -> dict[str, str]:
    """What a process of the site needs to work at the test's database and this broker."""
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": settings,
        "DATABASE_URL": database_url(),
        "CELERY_BROKER_URL": broker_url,
        "SECRET_KEY": "for-the-tests-only-0123456789abcdef0123456789abcdef",
        "ALLOWED_HOSTS": "localhost",
        "PYTHONPATH": str(ROOT),
    }


@contextmanager
def workers_at(broker_url: str, folder: Path, **more: str) -> Iterator[Workers]:
    workers = Workers(environment_for(broker_url=broker_url, **more), folder)
    try:
        yield workers
    finally:
        workers.end()
