"""The Python client against a live server, and against one that fails as servers do."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from queue_core import relay
from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.models import Job
from reviewboard import client as client_module
from reviewboard.client import ApiError, Client, Ticket
from tests.factories import at, done_job, make_lane


def test_the_client_needs_nothing_of_django() -> None:
    found = "import sys, reviewboard.client; print(sorted({m.partition('.')[0] for m in sys.modules} & {'django'}))"
    ended = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, timeout=60, check=True)

    assert ended.stdout.strip() == "[]"


def a_ticket(number: int = 1, **fields: Any) -> Ticket:
    return Ticket(**{"lane": "posts", "ticket": f"t{number}", "revision": "v1", "evidence": {"text": "a"}} | fields)


class TestLive:
    pytestmark = pytest.mark.django_db(transaction=True)

    @pytest.fixture
    def board(self, live_server, make_key, lane) -> Iterator[Client]:
        with Client(live_server.url, make_key(source="shop").secret, tries=2, first_rest=0.01) as board:
            yield board

    def test_a_ticket_goes_in_is_read_replaced_and_withdrawn(self, board) -> None:
        assert board.send(a_ticket(deadline=datetime(2099, 1, 1, tzinfo=UTC))).outcome == "stored"
        assert board.send(a_ticket()).outcome == "known"
        with pytest.raises(ApiError, match="revision_conflict") as conflict:
            board.send(a_ticket(revision="v2"))
        assert (conflict.value.status, conflict.value.problem["current_revision"]) == (409, "v1")
        assert board.send(a_ticket(revision="v2", replaces="v1")).current_revision == "v2"
        board.withdraw("t1")

        assert (board.ticket("t1")["state"], board.lane("posts")["state"]) == ("DEAD", "held_automatically")
        assert [lane["name"] for lane in board.lanes()] == ["posts"]

    def test_many_go_in_by_several_calls_with_an_answer_each(self, board, monkeypatch) -> None:
        monkeypatch.setattr(client_module, "LINES_A_CALL", 3)

        sent = list(board.send_many(a_ticket(number, severity=9 if number == 4 else 1) for number in range(8)))

        assert [one.place for one in sent] == list(range(8))
        assert [one.is_in for one in sent] == [number != 4 for number in range(8)]
        assert (sent[4].field, bool(sent[4].reason)) == ("severity", True)

    def test_fifty_who_send_the_same_at_once_store_it_once(self, board) -> None:
        with ThreadPoolExecutor(50) as pool:
            outcomes = list(pool.map(lambda _number: board.send(a_ticket()).outcome, range(50)))

        assert (outcomes.count("stored"), outcomes.count("known")) == (1, 49)
        assert Job.objects.count() == 1

    def test_decisions_are_read_on_from_a_cursor_page_by_page(self, board, live_server, make_key) -> None:
        lane = make_lane()
        jobs = [done_job(lane) for _number in range(5)]
        relay.number_messages(clock=FixedClock(at(9)))
        with Client(live_server.url, make_key("all").secret) as reader:
            first = list(reader.decisions(page=2))
            done_job(lane)
            relay.number_messages(clock=DATABASE_CLOCK)
            second = list(reader.decisions(after=first[-1].next))

        assert [message.data["ticket"] for message in first] == [job.ticket.external_id for job in jobs]
        assert len({message.id for message in [*first, *second]}) == 6

    def test_a_wrong_key_is_told_at_once(self, live_server) -> None:
        with (
            Client(live_server.url, "rbk_00000000_x", first_rest=60) as board,
            pytest.raises(ApiError, match="key_unknown"),
        ):
            board.ticket("t1")


@contextmanager
def server(*answers: tuple[int, dict[str, str], str] | None) -> Iterator[tuple[str, list[str]]]:
    """Answers in turn, the last one for ever; None closes the connection without a word."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers[min(len(asked), len(answers) - 1)]
            asked.append(self.path)
            if answer is None:
                self.close_connection = True
                return
            status, headers, text = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    found = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{found.server_port}", asked
    finally:
        found.shutdown()
        found.server_close()


class TestFailing:
    @pytest.fixture(autouse=True)
    def rests(self, monkeypatch) -> list[float]:
        rests: list[float] = []
        monkeypatch.setattr(client_module.time, "sleep", rests.append)
        return rests

    @pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
    def test_what_passes_is_tried_again_after_the_rest_that_was_asked_for(self, rests, status) -> None:
        with (
            server((status, {"Retry-After": "7"}, "<html>"), (200, {}, "{}")) as (url, asked),
            Client(url, "k") as board,
        ):
            assert board.ticket("t") == {}

        assert (len(asked), rests) == (2, [7.0])

    def test_a_connection_without_an_answer_is_tried_again_and_rests_grow(self, rests) -> None:
        with server(None, None, None, (200, {}, "{}")) as (url, asked), Client(url, "k") as board:
            assert board.ticket("t") == {}

        assert len(asked) == 4
        assert 0.25 <= rests[0] <= 0.5 <= rests[1] <= 1 <= rests[2] <= 2

    def test_it_gives_up_after_its_tries_and_says_what_was_last(self) -> None:
        with server((503, {}, "no")) as (url, asked), Client(url, "k", tries=3) as board:
            with pytest.raises(ApiError, match="http_503"):
                board.ticket("t")
            assert len(asked) == 3
        with Client("http://127.0.0.1:1", "k", tries=2) as board, pytest.raises(ApiError, match="no_answer"):
            board.ticket("t")

    @pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 409, 413])
    def test_what_is_wrong_is_not_tried_again(self, rests, status) -> None:
        problem = '{"code": "made_up", "detail": "No.", "field": "lane"}'
        with (
            server((status, {"Location": "http://127.0.0.1:1/"}, problem)) as (url, asked),
            Client(url, "k") as board,
            pytest.raises(ApiError, match="made_up") as fault,
        ):
            board.ticket("t")

        assert (len(asked), fault.value.status, fault.value.field, rests) == (1, status, "lane", [])

    def test_an_answer_that_was_cut_off_is_asked_for_again(self) -> None:
        line = '{"line": 1, "outcome": "stored"}\n'
        end = '{"end": true, "complete": true}\n'
        answers = [(200, {}, line), (200, {}, line + end[:9]), (200, {}, line + end)]
        with server(*answers) as (url, asked), Client(url, "k") as board:
            assert [one.outcome for one in board.send_many([a_ticket()])] == ["stored"]

        assert len(asked) == 3

    def test_what_python_alone_takes_for_the_end_of_a_line_ends_none(self) -> None:
        told = '{"line": 1, "outcome": "stored", "ticket": "a\u2028b\x85"}\n{"end": true, "complete": true}\n'
        with server((200, {}, told)) as (url, _asked), Client(url, "k", tries=1) as board:
            assert [one.ticket for one in board.send_many([a_ticket()])] == ["a\u2028b\x85"]

    def test_a_page_where_an_answer_was_to_be_is_an_error_of_ours(self) -> None:
        with server((200, {}, "<html>")) as (url, _asked), Client(url, "k") as board, pytest.raises(ApiError) as fault:
            board.lane("posts")

        assert fault.value.code == "answer_unreadable"

    def test_no_key_is_in_its_repr_and_no_time_without_a_zone_is_sent(self) -> None:
        with Client("http://127.0.0.1:1", "rbk_secret") as board:
            assert "rbk_secret" not in repr(board)
        with pytest.raises(ValueError, match="zone"):
            a_ticket(deadline=datetime(2027, 1, 1)).as_json()  # noqa: DTZ001
