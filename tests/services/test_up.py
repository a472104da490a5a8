"""`manage.py up` and `services` as a person at a terminal has them: real processes, from the first line to the last."""

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reviewboard.embedded import processes
from reviewboard.embedded.pair import EmbeddedPair

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
#: On a busy machine of two cores; usually it is a tenth of it.
LIMIT = 280.0
OF_SERVERS_OF_ONES_OWN = ("DATABASE_URL", "CELERY_BROKER_URL", "SECRET_KEY", "ALLOWED_HOSTS", "DJANGO_SETTINGS_MODULE")


@dataclass
class Site:
    """Commands in one `var` folder, each with its output in a file."""

    var: Path
    port: int
    started: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    @property
    def pair(self) -> EmbeddedPair:
        return EmbeddedPair(self.var)

    @property
    def output(self) -> Path:
        return self.var.with_suffix(f".{len(self.started)}")

    def start(self, *arguments: str, **named: str) -> "subprocess.Popen[bytes]":
        environment = {name: value for name, value in os.environ.items() if name not in OF_SERVERS_OF_ONES_OWN}
        environment |= {"REVIEWBOARD_VAR": str(self.var), **named}
        output = self.var.with_suffix(f".{len(self.started) + 1}")
        with output.open("wb") as out:
            command = [sys.executable, "-X", "dev", str(ROOT / "manage.py"), *arguments]
            running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)
        self.started.append(running)
        return running

    def up(self, *, is_answering: bool = True) -> "subprocess.Popen[bytes]":
        launcher = self.start("up", "--port", str(self.port), "--workers", "1")
        if is_answering:
            assert processes.wait_until(lambda: launcher.poll() is not None or "runs at" in self.said(), LIMIT)
            assert launcher.poll() is None, self.said()
        return launcher

    def run(self, *arguments: str, **named: str) -> int:
        return self.start(*arguments, **named).wait(LIMIT)

    def said(self) -> str:
        """By the latest command."""
        return self.output.read_text(errors="replace")

    def children(self) -> dict[str, int]:
        return {note.stem: int(note.read_text().split()[0]) for note in (self.var / "log").glob("*.pid")}

    def answers(self) -> int | None:
        asking = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            asking.request("GET", "/sign-in/")
            return asking.getresponse().status
        except OSError:
            return None
        finally:
            asking.close()

    def clear(self) -> None:
        for command in self.started:
            if command.poll() is None:
                command.terminate()
                command.wait(LIMIT)
        for pid in self.children().values():
            if str(ROOT) in processes.command_of(pid):
                os.killpg(pid, signal.SIGKILL)
        self.pair.stop()


@pytest.fixture
def site() -> Iterator[Site]:
    folder = Path(tempfile.mkdtemp(prefix="rbu-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = Site(folder / "var", port)
    yield made
    made.clear()
    shutil.rmtree(folder, ignore_errors=True)


def are_gone(pids: Sequence[int]) -> bool:
    return processes.wait_until(lambda: not any(processes.command_of(pid) for pid in pids), 10.0)


def test_up_serves_pages_and_ctrl_c_ends_everything_in_order(site) -> None:
    launcher = site.up()
    children = site.children()
    servers = [server.pid() for server in site.pair.servers]

    assert site.answers() == 200
    assert set(children) == {"web", "worker", "ticker", "sender", "scheduler"}
    launcher.send_signal(signal.SIGINT)

    assert launcher.wait(60) == 0, site.said()
    assert re.findall(r"Ending (.+)\.", site.said()) == [
        "web", "scheduler", "sender", "ticker", "worker", "PostgreSQL and Valkey",
    ]  # fmt: skip
    assert site.said().rstrip().endswith("Ended.")
    assert are_gone([*children.values(), *filter(None, servers)])
    assert "Traceback" not in site.said()


@pytest.mark.long
def test_after_kill_9_the_next_up_ends_what_was_left_and_serves_again(site) -> None:
    site.up().kill()
    left = site.children()
    server = site.pair.postgres.pid()
    assert site.answers() == 200

    launcher = site.up()

    assert site.answers() == 200
    assert site.said().count("that an earlier run left behind") == len(left) == 5
    assert site.pair.postgres.pid() == server
    assert not set(left.values()) & set(site.children().values())
    launcher.terminate()
    assert launcher.wait(60) == 0, site.said()
    assert site.pair.postgres.pid() is None


def test_a_taken_port_is_refused_before_anything_starts(site) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", site.port))
        taken.listen()

        assert site.up(is_answering=False).wait(LIMIT) == 1

    assert f"Port {site.port} is taken. Add --port {site.port + 1}" in site.said()
    assert "Traceback" not in site.said()
    assert site.pair.postgres.pid() is None


@pytest.mark.long
def test_a_second_site_in_the_same_folder_is_refused_and_the_first_goes_on(site) -> None:
    launcher = site.up()

    assert site.up(is_answering=False).wait(LIMIT) == 1

    assert f"A site already runs from {site.var} (process {launcher.pid})" in site.said()
    assert site.answers() == 200


@pytest.mark.long
def test_a_folder_that_cannot_be_written_is_said(site) -> None:
    site.var.write_text("a file where the folder should be")

    assert site.up(is_answering=False).wait(LIMIT) == 1

    assert f"The folder {site.var} cannot be written" in site.said()
    assert "Traceback" not in site.said()
    site.var.unlink()


@pytest.mark.long
def test_other_machines_are_not_let_in_unasked(site) -> None:
    assert site.run("up", "--host", "0.0.0.0", "--port", str(site.port)) == 1
    assert "ALLOWED_HOSTS" in site.said()

    assert site.run("demo", "--host", "0.0.0.0", "--port", str(site.port)) == 1
    assert "The demo runs on this machine only" in site.said()


@pytest.mark.long
def test_services_started_by_hand_run_until_they_are_stopped_by_hand(site) -> None:
    assert site.run("services", "status") == 3
    assert site.run("services", "start") == 0
    launcher = site.up()
    launcher.terminate()
    assert launcher.wait(60) == 0

    assert site.run("services", "status") == 0
    assert site.said().count("runs (process") == 2
    assert site.run("services", "stop") == 0
    assert site.run("services", "status") == 3


def test_servers_of_ones_own_that_do_not_answer_are_said_without_their_passwords(site, broker_url) -> None:
    own = {"SECRET_KEY": "for-the-tests-only-0123456789abcdef0123456789abcdef", "ALLOWED_HOSTS": "localhost"}
    nowhere = {"DATABASE_URL": "postgres://me:hunter2@127.0.0.1:1/board", "CELERY_BROKER_URL": broker_url}

    assert site.run("up", "--port", str(site.port), **own, **nowhere) == 1

    assert "The database of DATABASE_URL cannot be used" in site.said()
    assert "Connection refused" in site.said()
    assert "hunter2" not in site.said()
    assert "Traceback" not in site.said()


def test_with_servers_of_ones_own_nothing_embedded_is_handled(site) -> None:
    own = {"SECRET_KEY": "for-the-tests-only-0123456789abcdef0123456789abcdef", "ALLOWED_HOSTS": "localhost"}
    named = {"DATABASE_URL": "postgres://me@db.example/board", "CELERY_BROKER_URL": "redis://broker.example/0"}

    assert site.run("services", "stop", **own, **named) == 1

    assert "handles the embedded servers only" in site.said()


@pytest.mark.long
def test_up_on_servers_of_ones_own_starts_nothing_embedded(site) -> None:
    assert site.run("services", "start") == 0
    urls = {"DATABASE_URL": site.pair.postgres.url("reviewboard"), "CELERY_BROKER_URL": site.pair.valkey.url()}
    own = {"SECRET_KEY": "for-the-tests-only-0123456789abcdef0123456789abcdef", "ALLOWED_HOSTS": "127.0.0.1"}
    elsewhere = site.var.with_name("elsewhere")

    launcher = site.start("up", "--port", str(site.port), **urls, **own, REVIEWBOARD_VAR=str(elsewhere))
    assert processes.wait_until(lambda: launcher.poll() is not None or "runs at" in site.said(), LIMIT)

    assert site.answers() == 200, site.said()
    assert not (elsewhere / "postgres").exists()
    launcher.terminate()
    assert launcher.wait(60) == 0
    assert site.pair.postgres.is_running()
