"""A key is named, read where it is needed, and shown nowhere: not in a log, a page, an error, a trace or a repr."""

import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.test import RequestFactory
from django.views.debug import ExceptionReporter

from queue_core.connections import Misconfigured, MisconfiguredKind, Verdict, build
from queue_core.connections.network import sending
from queue_core.connections.network.outcomes import answer_of_status
from queue_core.connections.network.secret import Secret, key_named
from queue_core.connections.network.transport import Trail
from queue_core.errors import ConfigurationFault
from reviewboard.model_server import RunningServer, running
from tests.connections.raw import Said, raw_server, whole
from tests.connections.wires import KEY, WIRES, adapter, answers, asked, row
from tests.factories import T0

NAME = "REVIEW_API_KEY"


@pytest.fixture(scope="module")
def locked() -> Iterator[RunningServer]:
    """A server that wants the key."""
    with running(api_key=KEY) as server:
        yield server


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(NAME, KEY)
    return KEY


def test_the_key_that_is_named_opens_the_server(key: str, locked: RunningServer) -> None:
    for kind in WIRES:
        [without] = answers(adapter(kind, locked.url), [asked(1)])
        [opened] = answers(adapter(kind, locked.url, key_env=NAME), [asked(2)])

        assert isinstance(without, Misconfigured), kind
        assert isinstance(opened, Verdict), kind


def test_a_key_may_come_from_a_setting(locked: RunningServer, settings: Any) -> None:
    settings.QUEUE_CORE_CONNECTION_KEYS = {"our-vault": KEY}

    [answer] = answers(adapter("systemone", locked.url, key_env="our-vault"), [asked(1)])

    assert isinstance(answer, Verdict)


def test_a_key_that_this_worker_does_not_have_holds_the_lane_and_sends_nothing(model: RunningServer) -> None:
    [answer] = answers(adapter("systemone", model.url, key_env="ABSENT_API_KEY"), [asked(1)])

    assert isinstance(answer, Misconfigured)
    assert answer.kind == "no_key"
    assert model.calls == []


@pytest.mark.parametrize("name", ["SECRET_KEY", "DATABASE_URL", "PATH", "review_api_key", "X_API_KEY; rm"])
def test_no_other_secret_of_the_process_can_be_named_as_a_key(name: str) -> None:
    with pytest.raises(ConfigurationFault):
        key_named(name)


def test_the_environments_own_openai_settings_are_not_used(
    model: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-ours")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")

    [answer] = answers(adapter("openai-decisions", model.url), [asked(1)])

    assert isinstance(answer, Verdict)
    assert not model.calls[0].had_key


def test_an_address_may_come_from_the_environment(model: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_BASE_URL", f"{model.url}/v1")

    [answer] = answers(adapter("systemone", "", address="env:OUR_BASE_URL"), [asked(1)])

    assert isinstance(answer, Verdict)
    with pytest.raises(ConfigurationFault):
        build(row("systemone", "", address="env:DATABASE_URL"))


def test_a_secret_is_in_no_repr_format_or_pickle() -> None:
    secret = Secret(KEY)

    assert KEY not in f"{secret} {secret!r} {[secret]} {secret:}" + str(vars(type(secret)))
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_no_fault_brings_the_key_into_an_answer_a_log_or_a_repr(
    key: str, model: RunningServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_LOG", "debug")
    seen = []
    with caplog.at_level(logging.DEBUG):
        for fault in ("up", "unauthorized", "reset", "garbage", "error", "down", "huge"):
            model.set(fault)
            for kind in WIRES:
                connection = adapter(kind, model.url, key_env=NAME)
                seen += [repr(answers(connection, [asked(1, "a secret text")])), repr(connection)]
                seen.append(repr(connection.check_health(asked().time_limit)))

    assert KEY not in caplog.text + "".join(seen)
    assert "a secret text" not in caplog.text + "".join(seen)


def test_a_server_that_quotes_the_key_does_not_get_it_into_the_attempt(key: str, model: RunningServer) -> None:
    for status in (400, 401, 429, 500):
        body = f'{{"error": {{"message": "Incorrect API key provided: {KEY}"}}}}'.encode()
        answer = answer_of_status(Trail(True, status, {}), body, secret=Secret(KEY), now=T0)
        assert KEY not in repr(answer) + getattr(answer, "detail", "")


def _quoting(key: str) -> Said:
    """An answer with the key wherever a server may write."""
    name = key.encode()
    scores = json.dumps({f"about {key}": 0.1, "insult": 0.1}).encode()
    content = b'{"model": "m %s", "id": "%s", "scores": %s, "usage": {"%s": 3}, "answers": {}, "results": ' % (
        name, name, scores, name,
    ) + b'[{"category_scores": %s}]}' % scores  # fmt: skip
    return [whole(content, b"X-Request-Id: " + name)]


def _erring(key: str) -> Said:
    words = f"Incorrect key {key}, also as {quote(key, safe='')}"
    return [
        whole(json.dumps({"error": {"message": words}}).encode(), b"X-Request-Id: " + key.encode(), status=b"400 No")
    ]


@pytest.mark.parametrize("said", [_quoting, _erring], ids=["an answer", "an error"])
@pytest.mark.parametrize("secret", [KEY, 'sk/with+odd=signs"and\\more'], ids=["plain", "odd"])
def test_a_server_that_quotes_the_key_anywhere_gets_it_into_nothing_that_is_kept(
    secret: str, said: Callable[[str], Said], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(NAME, secret)
    kept = []
    with raw_server() as server, caplog.at_level(logging.DEBUG):
        server.say = lambda _good: said(secret)
        for kind in WIRES:
            connection = adapter(kind, server.url, key_env=NAME)
            [answer] = answers(connection, [asked(1)])
            kept += [repr(answer), str(getattr(answer, "stored_scores", "")), str(getattr(answer, "stored_usage", ""))]
            kept.append(repr(connection.check_health(asked().time_limit)))

    assert len(server.requests) == 2 * len(WIRES)
    assert all(f"Bearer {secret}".encode() in request for request in server.requests)
    for form in (secret, quote(secret, safe=""), repr(secret)[1:-1], json.dumps(secret)[1:-1]):
        assert form not in "".join(kept) + caplog.text


@pytest.mark.parametrize("value", ["sk-one\nsk-two", "sk one", "sk-\tx", "clé-secrète", "sk-\x7f", "Bearer sk-one"])
def test_a_key_that_no_header_can_carry_is_told_as_such_and_nothing_is_sent(
    value: str, model: RunningServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(NAME, value)
    for kind in WIRES:
        connection = adapter(kind, model.url, key_env=NAME)
        [answer] = answers(connection, [asked(1)])

        assert isinstance(answer, Misconfigured)
        assert answer.kind == "key_malformed"
        assert not connection.check_health(asked().time_limit).is_good
    assert model.calls == []
    assert value not in caplog.text


def test_white_space_around_a_key_is_no_part_of_it(locked: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, f"  {KEY}\r\n")

    [answer] = answers(adapter("systemone", locked.url, key_env=NAME), [asked(1)])

    assert isinstance(answer, Verdict)


def test_a_page_of_django_in_debug_shows_no_key(
    key: str, model: RunningServer, monkeypatch: pytest.MonkeyPatch, settings: Any, rf: RequestFactory
) -> None:
    """With every local of every frame, from the call down to the socket."""
    settings.DEBUG = True
    settings.QUEUE_CORE_CONNECTION_KEYS = {"our-vault": key}
    shown = []

    def fail(*_args: object, **_named: object) -> None:
        raise RuntimeError("at the network")

    def report(error: BaseException) -> Misconfigured:
        request = rf.get("/", REVIEW_API_KEY=key)
        reporter = ExceptionReporter(request, type(error), error, error.__traceback__)
        shown.append(reporter.get_traceback_html() + reporter.get_traceback_text())
        return Misconfigured(MisconfiguredKind.NO_KEY, "seen")

    monkeypatch.setattr("httpcore2.AsyncConnectionPool.handle_async_request", fail)
    monkeypatch.setattr(sending, "answer_of_failure", lambda error, *_args, **_named: report(error))
    for kind in WIRES:
        headers = {"options": {"key_header": "X-Api-Key", "key_prefix": ""}} if kind == "http" else {}
        answers(adapter(kind, model.url, key_env=NAME, **headers), [asked(1, "a secret text")])

    assert len(shown) == len(WIRES)
    assert all("at the network" in page for page in shown)
    assert key not in "".join(shown)


def test_a_traceback_with_locals_shows_no_key(key: str) -> None:
    secret = key_named(NAME)
    assert secret is not None
    try:
        _fails(secret)
    except ZeroDivisionError as error:
        shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert KEY not in shown.replace(repr(key), "")


def _fails(secret: Secret) -> float:
    return len(repr(secret)) / 0
