import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from django.http.response import HttpResponseBase
from django.test import Client

from queue_core import api_keys, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import ApiKey, Lane
from queue_core.models.api_keys import KeyScope
from reviewboard.models import Person
from tests.factories import make_lane

API = "/api/v1"
ALL = list(KeyScope.values)


@pytest.fixture
def lane(db: None) -> Lane:
    return make_lane(name="posts", cap=None)


@pytest.fixture
def ada(db: None) -> Person:
    """An administrator."""
    found = Person.objects.create_user("ada", is_staff=True)
    roles.assign(found, roles.ADMINISTRATOR)
    return found


@dataclass(frozen=True, slots=True)
class Made:
    key: ApiKey
    secret: str


@pytest.fixture
def make_key(ada: Person) -> Callable[..., Made]:
    def make(name: str = "shop", *, scopes: Sequence[str] | None = None, rate: int = 60_000, **fields: Any) -> Made:
        is_narrow = bool(fields.get("source") or fields.get("lanes"))
        if scopes is None:
            scopes = [scope for scope in ALL if not (is_narrow and scope == KeyScope.DELIVERIES)]
        key = ApiKey(name=name, scopes=list(scopes), rate=rate, **fields)
        return Made(key, api_keys.make(key, person=ada, clock=DATABASE_CLOCK))

    return make


class Caller:
    """Calls with one key, as a source makes them."""

    def __init__(self, secret: str) -> None:
        self.headers = {"Authorization": f"Bearer {secret}"}
        self.client = Client()

    def get(self, path: str, params: dict[str, Any] | None = None, **headers: str) -> Any:
        return self.client.get(API + path, params, headers=self.headers | headers)

    def post(self, path: str, body: Any = None, *, kind: str = "application/json", **headers: str) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(API + path, raw, content_type=kind, headers=self.headers | headers)

    def lines(self, *sent: Any) -> list[dict[str, Any]]:
        """The answers to a body of lines, and last the end."""
        raw = b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in sent)
        response = self.post("/tickets/bulk", raw, kind="application/x-ndjson")
        assert response.status_code == 200, response.content
        return told(response)


def told(response: HttpResponseBase) -> list[dict[str, Any]]:
    raw = b"".join(response.streaming_content) if response.streaming else response.content  # type: ignore[attr-defined]
    return [json.loads(line) for line in raw.splitlines()]


@pytest.fixture
def call(make_key: Callable[..., Made]) -> Caller:
    return Caller(make_key().secret)


def ticket(number: int = 1, **fields: Any) -> dict[str, Any]:
    default = {"source": "shop", "lane": "posts", "ticket": f"t{number}", "revision": "v1", "evidence": {"text": "a"}}
    return {name: value for name, value in (default | fields).items() if value is not ...}


def refused(response: Any, status: int, code: str, **members: Any) -> dict[str, Any]:
    """The problem document, after it was found to be one."""
    assert (response.status_code, response.headers["Content-Type"]) == (status, "application/problem+json")
    problem: dict[str, Any] = json.loads(response.content)
    assert problem | members == problem, problem
    assert (problem["status"], problem["code"]) == (status, code), problem
    return problem
