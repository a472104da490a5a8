"""Many tickets in one call: an answer a line, the good ones in, and the end that says how far it got."""

import io
import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.test import RequestFactory

from queue_core import ticket_import
from queue_core.api_keys import Allowance
from queue_core.models import Job, Ticket
from reviewboard.api import bulk
from reviewboard.api.admission import Admission
from reviewboard.api.problems import Problem
from reviewboard.api.spool import Spool
from tests.api.conftest import API, Caller, refused, ticket, told

pytestmark = pytest.mark.django_db

NDJSON = "application/x-ndjson"
LINES = b"".join(json.dumps(ticket(number)).encode() + b"\n" for number in (1, 2))


def told_by(taking: bulk._Taking) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(taking.spool.read()).splitlines()]


def test_each_line_has_its_answer_and_the_good_ones_are_in_imp_04(call, lane) -> None:
    call.post("/tickets", ticket(1))

    *answers, end = call.lines(
        ticket(1),
        ticket(2),
        ticket(3, deadline="soon"),
        ticket(1, revision="v2"),
        ticket(2, revision="v2", replaces="v1"),
        ticket(2),
    )

    assert [answer["outcome"] for answer in answers] == [
        "known", "stored", "refused", "revision_conflict", "stored", "superseded",
    ]  # fmt: skip
    assert [answer["line"] for answer in answers] == [1, 2, 3, 4, 5, 6]
    assert (answers[1]["ticket"], answers[1]["revision"]) == ("t2", "v1")
    assert (answers[2]["field"], bool(answers[2]["reason"])) == ("deadline", True)
    assert (answers[3]["field"], answers[3]["current_revision"]) == ("revision", "v1")
    assert end == {
        "end": True, "complete": True, "lines": 6,
        "stored": 2, "known": 1, "superseded": 1, "revision_conflict": 1, "refused": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "bad",
    [
        b"{",
        b"[]",
        b"1",
        b'{"a": 1, "a": 2}',
        b'{"evidence": NaN}',
        b'{"evidence": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"ticket": "\xff"}',
        b'{"ticket": "a\x00"}',
        json.dumps(ticket(9, evidence="\x00")).encode(),
        b'{"ticket": "\\ud800"}',
        b"x" * (1024 * 1024 + 1),
        json.dumps(ticket(9, evidence="x" * 256 * 1024)).encode(),
    ],
    ids=range(12),
)
def test_a_bad_line_takes_no_good_one_with_it_imp_07_imp_09_imp_13(call, lane, bad, monkeypatch) -> None:
    monkeypatch.setattr(bulk, "READ_AT_ONCE", 10 * 1024 * 1024)
    one, two, three, end = call.lines(ticket(1), bad, ticket(2))

    assert (one["outcome"], two["outcome"], three["outcome"]) == ("stored", "refused", "stored")
    assert (two["line"], three["line"], bool(two["reason"])) == (2, 3, True)
    assert end["complete"]
    assert Ticket.objects.count() == 2


def test_marks_blank_lines_and_either_line_end_are_no_content_imp_01_imp_02(call, lane) -> None:
    raw = b"\xef\xbb\xbf" + b"\r\n\n".join(json.dumps(ticket(number)).encode() for number in (1, 2)) + b"\n \n"

    *answers, _end = told(call.post("/tickets/bulk", raw, kind=NDJSON))

    assert [(answer["line"], answer["outcome"]) for answer in answers] == [(1, "stored"), (3, "stored")]


def test_nothing_at_all_is_a_whole_body(call) -> None:
    assert told(call.post("/tickets/bulk", b"\n", kind=NDJSON))[0]["complete"]


@pytest.mark.parametrize("field", ["lane", "source"])
def test_a_line_beyond_the_key_is_refused_as_one_call_would_be(make_key, lane, field) -> None:
    call = Caller(make_key("narrow", source="shop", lanes=[lane.pk]).secret)

    answer, _end = call.lines(ticket(**{field: "elsewhere"}))

    assert (answer["outcome"], answer["field"]) == ("refused", field)


def test_a_packed_body_another_kind_and_one_too_long_are_refused_imp_13(call, monkeypatch) -> None:
    refused(call.post("/tickets/bulk", b"", kind=NDJSON, **{"Content-Encoding": "gzip"}), 415, "encoding_not_supported")
    refused(call.post("/tickets/bulk", b"{}"), 415, "media_type_not_supported")
    monkeypatch.setattr(bulk, "MOST_BYTES", 10)
    refused(call.post("/tickets/bulk", b"x" * 11, kind=NDJSON), 413, "body_too_large", limit=10)


def test_lines_beyond_the_limit_are_not_read_and_the_end_says_so(call, lane, monkeypatch) -> None:
    monkeypatch.setattr(bulk, "MOST_LINES", 2)

    *answers, end = call.lines(ticket(1), ticket(2), ticket(3))

    assert len(answers) == 2
    assert (end["complete"], end["code"]) == (False, "too_many_lines")
    assert "2" in end["reason"]
    assert call.lines(ticket(1), b"", ticket(2), b" ")[-1]["complete"], "as many as are taken, and blank ones"


def test_a_body_without_a_length_is_read_no_further_than_the_most_that_is_taken_imp_13(make_key, lane, monkeypatch):
    monkeypatch.setattr(bulk, "MOST_BYTES", len(LINES))

    def sent(raw: bytes) -> tuple[list[dict[str, Any]], int]:
        stream = io.BytesIO(raw)
        taking = bulk._Taking(Admission(make_key(f"key-{len(raw)}").key), stream, None, Spool(), None)
        taking.run()
        return told_by(taking), stream.tell()

    whole, _read = sent(LINES)
    more, read = sent(LINES + LINES + b"\n" * 1000)

    assert (whole[-1]["complete"], whole[-1]["stored"]) == (True, 2)
    assert (more[-1]["complete"], more[-1]["code"], more[-1]["known"]) == (False, "body_too_large", 2)
    assert read == len(LINES) + 1


def test_a_body_beyond_the_rate_of_its_key_ends_where_it_is_and_says_when_to_go_on(make_key, lane, monkeypatch) -> None:
    """The call pays for its first batch. At six calls a minute the next one is ten seconds away."""
    monkeypatch.setattr(ticket_import, "BATCH_LINES", 2)
    call = Caller(make_key("slow", rate=6).secret)

    *answers, end = call.lines(*map(ticket, range(5)))

    assert [answer["outcome"] for answer in answers] == ["stored", "stored"]
    assert (end["complete"], end["code"]) == (False, "rate_limited")
    assert 0 < end["retry_after"] <= 10


def test_a_body_a_little_too_fast_is_slowed_down_to_the_rate_of_its_key(make_key, lane, monkeypatch) -> None:
    monkeypatch.setattr(ticket_import, "BATCH_LINES", 1)
    slept: list[float] = []
    monkeypatch.setattr(bulk.time, "sleep", slept.append)
    answers = iter([Allowance(10, 0, timedelta(0), timedelta(seconds=0.2)), Allowance(10, 1, timedelta(0))])
    monkeypatch.setattr(bulk.api_keys, "charge", lambda *_args, **_named: next(answers))
    taking = bulk._Taking(Admission(make_key().key), io.BytesIO(LINES), len(LINES), Spool(), None)

    taking.run()

    assert told_by(taking)[-1]["complete"]
    assert slept == [0.2]


def test_no_more_long_bodies_are_taken_at_once_than_leave_threads_for_people(make_key, lane, monkeypatch) -> None:
    monkeypatch.setattr(bulk, "_places", threading.BoundedSemaphore(1))
    taking = bulk._Taking(Admission(make_key().key), io.BytesIO(LINES), len(LINES), Spool(), None)
    bulk._take_place()
    held = bulk._Apart(taking)
    with pytest.raises(Problem, match="unavailable"):
        bulk._take_place()

    taking.run()
    list(held)
    bulk._take_place()
    # Whoever drops the answers without a word gives the place back, too.
    bulk._Apart(taking)

    bulk._take_place()


class TestBroken:
    """What the wire does to a body, as a server hands it on."""

    def send(self, make_key, stream: Any, **environ: Any) -> Any:
        from reviewboard.api.app import api

        request = RequestFactory().generic("POST", f"{API}/tickets/bulk", b"", content_type=NDJSON)
        request.META.update({"CONTENT_TYPE": NDJSON, "HTTP_AUTHORIZATION": f"Bearer {make_key().secret}", **environ})
        request.environ["wsgi.input"] = stream
        request._stream = stream
        view = next(one for one in api.urls[0] if str(one.pattern) == "tickets/bulk").callback
        return view(request)

    def test_a_client_that_stops_in_the_middle_has_what_came_in_taken_imp_05(self, make_key, lane) -> None:
        raw = b"".join(json.dumps(ticket(number)).encode() + b"\n" for number in (1, 2, 3))

        *answers, end = told(self.send(make_key, io.BytesIO(raw[:-20]), CONTENT_LENGTH=str(len(raw))))

        assert [answer["outcome"] for answer in answers] == ["stored", "stored", "refused"]
        assert (end["complete"], end["code"]) == (False, "body_incomplete")
        assert Job.objects.count() == 2

    def test_a_connection_that_breaks_ends_the_body(self, make_key, lane) -> None:
        class Breaking(io.BytesIO):
            def readline(self, size: int | None = -1) -> bytes:
                line = super().readline(size)
                if not line:
                    raise ConnectionResetError
                return line

        raw = json.dumps(ticket()).encode() + b"\n"

        answer, end = told(self.send(make_key, Breaking(raw), CONTENT_LENGTH="9999"))

        assert (answer["outcome"], end["complete"]) == ("stored", False)

    def test_a_body_without_a_length_is_refused_where_the_server_does_not_end_it(self, make_key) -> None:
        answer = self.send(make_key, io.BytesIO(b"{}"), HTTP_TRANSFER_ENCODING="chunked", CONTENT_LENGTH="")

        refused(answer, 411, "length_required")


def test_a_spool_hands_on_what_it_was_given_and_waits_for_no_reader() -> None:
    spool = Spool()
    whole = b"".join(b"%07d\n" % number for number in range(300_000))
    for start in range(0, len(whole), 100_000):
        assert spool.write(whole[start : start + 100_000])
    spool.complete()

    assert b"".join(spool.read()) == whole
    assert not spool.write(b"more")


def test_an_answer_does_not_end_before_its_body_was_read() -> None:
    """The server would stop for everybody until the client goes."""
    spool = Spool()
    ended = threading.Event()
    reading = threading.Thread(target=lambda: (list(spool.read()), ended.set()), daemon=True)
    reading.start()
    assert spool.write(b"{}")

    assert not ended.wait(0.05)
    spool.complete()

    assert ended.wait(10)
