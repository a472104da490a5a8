"""The units in deploy/ do what they say: their own command lines, on a real database and broker."""

import http.client
import os
import re
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from queue_core.models import Presence
from tests.workers.processes import database_url

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
PLACE = "/srv/reviewboard/"
LIMIT = 100.0


def commands(unit: str) -> list[list[str]]:
    """As systemd would run them, from this folder instead of the example's."""
    lines = re.findall(r"^ExecStart=(.+)$", (DEPLOY / f"reviewboard-{unit}.service").read_text(), re.MULTILINE)
    return [shlex.split(line.replace("%%", "%").replace(PLACE, f"{ROOT}/")) for line in lines]


def example() -> dict[str, str]:
    lines = (DEPLOY / "reviewboard.env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.fixture
def environment(broker_url: str, tmp_path: Path) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    own = {
        "DATABASE_URL": database_url(),
        "CELERY_BROKER_URL": broker_url,
        "SECRET_KEY": "for-the-tests-only-0123456789abcdef0123456789abcdef",
        "REVIEWBOARD_VAR": str(tmp_path),
    }
    return {**inherited, **example(), **own}


@contextmanager
def running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(LIMIT)


def wait_until(holds: Callable[[], bool], message: str, log: Path) -> None:
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end, f"not within {LIMIT:g} s: {message}\n{log.read_text(errors='replace')[-3000:]}"
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as trying:
        trying.bind(("127.0.0.1", 0))
        return int(trying.getsockname()[1])


def answer(port: int, **headers: str) -> int | None:
    asking = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        asking.request("GET", "/sign-in/", headers={"Host": "board.example", **headers})
        return asking.getresponse().status
    except OSError:
        return None
    finally:
        asking.close()


def test_every_named_setting_is_one_that_is_read() -> None:
    read = (ROOT / "reviewboard" / "settings.py").read_text() + (ROOT / "reviewboard" / "environment.py").read_text()

    assert [name for name in example() if f'"{name}"' not in read] == []


def test_every_unit_stops_trying_when_its_configuration_is_refused() -> None:
    daemons = [unit for unit in UNITS if "Restart=always" in unit.read_text()]

    assert [unit.name for unit in daemons if "RestartPreventExitStatus=78" not in unit.read_text()] == []
    assert len(daemons) == len(UNITS) - 1


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_the_pages_answer_behind_a_proxy_and_send_others_to_https(environment: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    for command in commands("release"):
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=LIMIT, check=True)
    [web] = commands("web")
    port = free_port()
    web[web.index("--port") + 1] = str(port)

    with running(web, environment, log) as process:
        wait_until(lambda: answer(port) is not None, "an answer", log)

        assert answer(port) == http.client.MOVED_PERMANENTLY
        assert answer(port, **{"X-Forwarded-Proto": "https"}) == http.client.OK

        process.terminate()
        assert process.wait(LIMIT) == 0


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_scheduler_ticker_and_worker_find_each_other_and_end_in_order(
    environment: dict[str, str], tmp_path: Path
) -> None:
    [worker], [ticker], [scheduler] = commands("worker"), commands("ticker"), commands("scheduler")
    log = tmp_path / "log"

    with (
        running(worker, environment, log) as working,
        running(ticker, environment, tmp_path / "ticker.log") as ticking,
        running(scheduler, environment, tmp_path / "scheduler.log") as scheduling,
    ):
        seen = Presence.objects.filter
        wait_until(lambda: seen(kind=Presence.Kind.SCHEDULER).exists(), "a tick that ran", tmp_path / "ticker.log")
        wait_until(lambda: seen(kind=Presence.Kind.WORKER).exists(), "the worker to be seen", log)
        # A ticker drains nothing, and is not taken for one that does.
        assert not seen(kind=Presence.Kind.WORKER, name__startswith="ticker@").exists()

        for process in (scheduling, ticking, working):
            process.terminate()
        assert [process.wait(LIMIT) for process in (scheduling, ticking, working)] == [0, 0, 0]
