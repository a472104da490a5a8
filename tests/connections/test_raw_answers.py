"""Bytes that a server, a proxy or a stranger may send: each has one outcome, on every wire (BRK-03)."""

import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.connections.raw import RawServer, Said, chunked, head_only, raw_server, whole
from tests.connections.wires import WIRES, adapter, answers, asked

JSON = b"Content-Type: application/json"


@pytest.fixture(scope="module")
def raw() -> Iterator[RawServer]:
    with raw_server() as server:
        yield server


def status(line: bytes, *headers: bytes, body: bytes = b'{"error": {"message": "no"}}') -> Callable[[bytes], Said]:
    return lambda _good: [whole(body, *headers, status=line)]


def body(content: bytes) -> Callable[[bytes], Said]:
    return lambda _good: [whole(content)]


#: What is sent in place of a good answer -> the outcome on every wire.
FRAMES: dict[str, tuple[Callable[[bytes], Said], str]] = {
    "whole": (lambda good: [whole(good)], "verdict"),
    "a byte at a time": (lambda good: [bytes([byte]) for byte in whole(good)], "verdict"),
    "chunks of odd sizes": (chunked, "verdict"),
    "chunks, packed": (
        lambda good: [head_only(JSON, b"Content-Encoding: gzip", b"Transfer-Encoding: chunked"),
                      *chunked(gzip.compress(good))[1:]],
        "invalid_answer",
    ),
    "HTTP/1.0 to the end of the connection": (lambda good: [head_only(JSON, version=b"HTTP/1.0"), good], "verdict"),
    "no length": (lambda good: [head_only(JSON), good], "verdict"),
    "told to go on first": (lambda good: [b"HTTP/1.1 100 Continue\r\n\r\n", whole(good)], "verdict"),
    "early hints first": (lambda good: [head_only(b"Link: </x>", status=b"103 Early Hints"), whole(good)], "verdict"),
    "another protocol": (lambda _good: [head_only(b"Upgrade: x", status=b"101 Switching Protocols")], "invalid_answer"),
    "plain text": (lambda good: [whole(good).replace(b"application/json", b"text/plain")], "verdict"),
    "no type": (lambda good: [whole(good).replace(JSON + b"\r\n", b"")], "verdict"),
    "created": (lambda good: [whole(good, status=b"201 Created")], "verdict"),
    "no content": (lambda _good: [head_only(status=b"204 No Content")], "invalid_answer"),
    "a byte order mark": (lambda good: [whole(b"\xef\xbb\xbf" + good)], "verdict"),
    "further fields": (lambda good: [whole(good[:-1] + b', "more": {"x": [1, null]}}')], "verdict"),
    "a mail server": (lambda _good: [b"220 mail.example.org ESMTP\r\n\r\n"], "invalid_answer"),
    "a greeting, and the door closed": (lambda _good: [b"SSH-2.0-OpenSSH_9.9\r\n"], "timeout"),
    "a closed door": (lambda _good: [], "timeout"),
    "a header of ten MiB": (lambda _good: [b"HTTP/1.1 200 OK\r\nX: ", b"x" * 10_485_760], "invalid_answer"),
    "a million headers": (lambda _good: [b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1_000_000], "invalid_answer"),
    "two lengths": (lambda good: [whole(good, b"Content-Length: 3")], "invalid_answer"),
    "a negative length": (lambda good: [head_only(b"Content-Length: -1"), good], "invalid_answer"),
    "an endless length": (lambda good: [head_only(b"Content-Length: " + b"9" * 18), good], "invalid_answer"),
    "a chunk without an end": (
        lambda _good: [head_only(b"Transfer-Encoding: chunked"), b"FFFFFFFF\r\nabc"], "invalid_answer",
    ),
    "less than announced": (lambda good: [whole(good)[:-5]], "invalid_answer"),
    "an error with status 200": (body(b'{"error": {"message": "the model is loading", "type": "server"}}'),
                                 "invalid_answer"),
    "nothing": (body(b""), "invalid_answer"),
    "null": (body(b"null"), "invalid_answer"),
    "a list": (body(b"[]"), "invalid_answer"),
    "a number": (body(b"7"), "invalid_answer"),
    "an empty object": (body(b"{}"), "invalid_answer"),
    "bytes that are no text": (body(b'{"model": "\xff\xfe\xfd"}'), "invalid_answer"),
    "a hundred thousand brackets": (body(b"[" * 100_000 + b"]" * 100_000), "invalid_answer"),
    "a hundred thousand objects": (body(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), "invalid_answer"),
    "a number of five thousand digits": (body(b'{"model": "m", "results": ' + b"9" * 5000 + b"}"), "invalid_answer"),
    **{
        f"status {code}": (status(b"%d Elsewhere" % code, b"Location: http://127.0.0.1:9/"), "misconfigured")
        for code in (300, 301, 302, 303, 307, 308)
    },
    "not modified": (lambda _good: [head_only(status=b"304 Not Modified")], "misconfigured"),
    **{f"status {code}": (status(b"%d No" % code), "misconfigured") for code in (401, 402, 403, 404, 405, 415, 501)},
    **{f"status {code}": (status(b"%d Later" % code), "overloaded") for code in (425, 429, 503, 529)},
    **{f"status {code}": (status(b"%d Unknown" % code), "timeout") for code in (408, 409, 502, 504)},
    **{f"status {code}": (status(b"%d Odd" % code), "invalid_answer") for code in (500, 507, 599, 600, 999)},
    **{f"status {code}": (status(b"%d Input" % code), "input_rejected") for code in (400, 418, 422, 451)},
    "an error page": (status(b"500 Internal Server Error", body=b"<html>" + b"x" * 5_000_000), "invalid_answer"),
    "an error of any bytes": (status(b"400 Bad", body=bytes(range(256))), "input_rejected"),
    "an error nested deeply": (status(b"400 Bad", body=b'{"error":' * 50_000), "input_rejected"),
    "an error that is a list": (status(b"422 Bad", body=b'{"detail": [{"loc": ["body"], "msg": "no"}]}'),
                                "input_rejected"),
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMES)
def test_whatever_bytes_come_the_call_ends_as_the_table_says(name: str, raw: RawServer) -> None:
    raw.say, expected = FRAMES[name]
    limit = 1.0 if name == "a chunk without an end" else 20.0

    ended = {kind: answers(adapter(kind, raw.url), [asked(1, limit=limit)])[0] for kind in WIRES}

    assert {kind: str(answer.outcome) for kind, answer in ended.items()} == dict.fromkeys(WIRES, expected), ended


def changed(number: str) -> Callable[[bytes], Said]:
    """The good answer, with this in place of each share of 0.25."""
    return lambda good: [whole(good.replace(b"0.25", number.encode()))]


@pytest.mark.parametrize(
    ("number", "outcome"),
    [
        ("NaN", "people"), ("Infinity", "people"), ("-Infinity", "people"), ("1e999", "people"), ("-1", "people"),
        ("1.5", "people"), ("1" + "0" * 400, "people"), ("-0.0", "fine"), ("2.5e-1", "fine"),
        ('"0.25"', "invalid_answer"), ("true", "invalid_answer"), ("[0.25]", "invalid_answer"),
    ],
)  # fmt: skip
def test_a_number_that_is_no_probability_is_judged_by_nobody_but_people(
    number: str, outcome: str, raw: RawServer
) -> None:
    raw.say = changed(number)

    for kind, category in (("openai-moderations", "harassment"), ("http", "insult")):
        [answer] = answers(adapter(kind, raw.url), [asked(1, "[[p=0.25]]")])
        if outcome == "invalid_answer":
            assert answer.outcome == outcome, kind
            continue
        score: Any = answer.scores[category]  # type: ignore[union-attr]
        assert (0 <= score <= 1) == (outcome == "fine"), (kind, answer)
        json.dumps(answer.stored_scores, allow_nan=False)  # type: ignore[union-attr]


def test_a_connection_that_the_server_closed_between_two_calls_is_opened_anew(raw: RawServer) -> None:
    """And one call stays one request: what went out on a closed connection would not be known to be unread."""
    raw.say = lambda good: [whole(good)]
    for kind in WIRES:
        connection = adapter(kind, raw.url)
        raw.requests.clear()

        ended = [answers(connection, [asked(number)])[0].outcome for number in (1, 2, 3)]

        assert (ended, len(raw.requests)) == (["verdict"] * 3, 3), kind


def test_a_connection_that_is_kept_serves_the_next_call(raw: RawServer) -> None:
    raw.say, raw.keeps = (lambda good: [whole(good)]), True
    try:
        [first], [second] = (answers(adapter("systemone", raw.url), [asked(number)]) for number in (1, 2))
    finally:
        raw.keeps = False

    assert (first.outcome, second.outcome) == ("verdict", "verdict")


def test_an_address_of_the_newer_kind_with_a_slash_at_its_end_is_called() -> None:
    with raw_server("::1") as server:
        for kind, (path, _category) in WIRES.items():
            [answer] = answers(adapter(kind, server.url, address=f"{server.url}{path}/"), [asked(1)])
            assert answer.outcome == "verdict", (kind, answer)


def test_no_proxy_of_the_environment_sees_a_call(raw: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    raw.say = lambda good: [whole(good)]
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert [answers(adapter(kind, raw.url), [asked(1)])[0].outcome for kind in WIRES] == ["verdict"] * len(WIRES)


@pytest.mark.parametrize("text", ["\U0001f44d\U0001f3fd", "a", "x" * 200_000, "\x00", "\u202e\u200d", "é\u0301"])
def test_any_text_goes_out_as_it_is(text: str, raw: RawServer) -> None:
    raw.say = lambda good: [whole(good)]

    assert {answers(adapter(kind, raw.url), [asked(1, text)])[0].outcome for kind in WIRES} <= {
        "verdict",
        "input_rejected",
    }


@pytest.mark.parametrize("evidence", ['{"text": "half \\ud800 a sign"}', '{"text": "x", "more": "\\udfff"}'])
def test_half_a_sign_is_for_people_and_no_fault_of_the_server(evidence: str, raw: RawServer) -> None:
    raw.requests.clear()

    ended = {answers(adapter(kind, raw.url), [asked(1, evidence=evidence)])[0].outcome for kind in WIRES}

    assert ended == {"input_rejected"}
    assert raw.requests == []
