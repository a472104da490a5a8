"""A key is named, read where it is needed, and shown nowhere: not in a log, a page, an error, a trace or a repr."""

import logging
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from queue_core.connections import Misconfigured, Verdict, build
from queue_core.connections.network.outcomes import answer_of_status
from queue_core.connections.network.secret import Secret, key_named
from queue_core.connections.network.transport import Trail
from queue_core.errors import ConfigurationFault
from reviewboard.model_server import RunningServer, running
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
