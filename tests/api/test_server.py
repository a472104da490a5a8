"""The API behind the real web server: bodies in chunks, answers while they come, clients that go away."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from queue_core.models import Ticket
from tests.api.conftest import ticket
from tests.workers.processes import ROOT, database_url, wait_until

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

#: KiB. What the issue allows for 100,000 lines; here fewer are sent, and the web server alone has 100 MB.
MOST_MEMORY = 200 * 1024


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


@pytest.fixture(scope="module")
def web(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """The port and the process of one server for all tests here."""
    port, folder = free_port(), tmp_path_factory.mktemp("web")
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        # Nobody there: wake-ups get lost, and nothing else.
        "CELERY_BROKER_URL": "redis://127.0.0.1:1/0",
        "SECRET_KEY": "for-the-tests-only-0123456789abcdef0123456789abcdef",
        "ALLOWED_HOSTS": "127.0.0.1",
        "DJANGO_SETTINGS_MODULE": "reviewboard.settings",
        "REVIEWBOARD_VAR": str(folder),
    }
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--port", str(port), "--blocking-threads", "4"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--no-ws", "reviewboard.wsgi:application"], cwd=ROOT, env=environment, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(lambda: _answers(port), f"the server answers: {(folder / 'log').read_text()[-2000:]}")
        yield port, process.pid
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _answers(port: int) -> bool:
    try:
        return call(port, "GET", "/lanes").status == 401
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Message
    body: bytes


def call(port: int, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    """An iterable as a body goes out in chunks, all of it before a byte of the answer is read."""
    is_chunked = body is not None and not isinstance(body, bytes)
    sent = headers | ({"Transfer-Encoding": "chunked"} if is_chunked else {})
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, f"/api/v1{path}", body, sent, encode_chunked=is_chunked)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())


@pytest.fixture
def headers(make_key, lane) -> dict[str, str]:
    return {"Authorization": f"Bearer {make_key().secret}", "Content-Type": "application/x-ndjson"}


def lines(numbers: Iterable[int]) -> Iterator[bytes]:
    """A refused one every hundred."""
    for number in numbers:
        severity = 9 if number % 100 == 99 else 1
        yield json.dumps(ticket(number, severity=severity, evidence={"text": "x" * 500})).encode() + b"\n"


def test_a_body_in_chunks_is_answered_line_by_line_in_bounded_memory(web, headers) -> None:
    port, pid = web

    answer = call(port, "POST", "/tickets/bulk", lines(range(1500)), **headers)
    *answers, end = [json.loads(line) for line in answer.body.splitlines()]

    assert [answer["line"] for answer in answers] == list(range(1, 1501))
    assert (end["complete"], end["stored"], end["refused"]) == (True, 1485, 15)
    assert Ticket.objects.count() == 1485
    assert _peak(pid) < MOST_MEMORY


def _peak(pid: int) -> int:
    """KiB of the largest process of the server."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    status = [Path(f"/proc/{one}/status").read_text() for one in [str(pid), *children]]
    return max(int(text.split("VmHWM:")[1].split()[0]) for text in status)


def test_answers_come_while_lines_go_out_and_what_came_in_stays_when_the_client_goes(web, headers) -> None:
    port, _pid = web
    chunked = headers | {"Transfer-Encoding": "chunked"}
    head = "".join(f"{name}: {value}\r\n" for name, value in chunked.items())
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall(f"POST /api/v1/tickets/bulk HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n".encode())
        for line in lines(range(700)):
            raw.sendall(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        # The body is not over: these can only be answers to what came so far.
        came = b""
        while came.count(b'"line":') < 500:
            part = raw.recv(65536)
            assert part, came[-500:]
            came += part
        assert b'"line":1,"outcome":"stored"' in came
    wait_until(lambda: Ticket.objects.count() == 693, "the lines after the last answer are in, too")


def test_one_ticket_may_come_in_chunks_and_no_answer_is_a_page(web, headers) -> None:
    port, _pid = web
    one = {**headers, "Content-Type": "application/json"}

    sent = call(port, "POST", "/tickets", iter([json.dumps(ticket()).encode()]), **one)
    cut = call(port, "POST", "/tickets", iter([b"x" * 700_000, b"x" * 700_000]), **one)
    others = [
        call(port, "GET", "/nothing"),
        call(port, "DELETE", "/tickets"),
        call(port, "GET", "/lanes", Host="elsewhere.example"),
    ]

    assert (sent.status, cut.status) == (201, 413)
    assert [answer.status for answer in others] == [404, 405, 400]
    assert {answer.headers["Content-Type"] for answer in [cut, *others]} == {"application/problem+json"}
    assert "POST" in others[1].headers["Allow"]
