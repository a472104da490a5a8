"""The whole site at once: the test's database and broker, real workers, a real browser."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import current_app
from django.test import Client
from playwright.sync_api import Browser, Page, expect

from queue_core import roles
from queue_core.figures import panels
from reviewboard import broker
from reviewboard.models import Person
from tests.workers.processes import Workers, workers_at
from tests.workers.staged import Stage

# The browser logs an answer of 409 or 422 as a failure; the tests that ask for one look at the page. And htmx logs the
# poll of a living page that was out when an act took its place, or when the test went on to the next page.
BROWSERS_OWN = (
    "Failed to load resource", "Response Status Error", "htmx:sendAbort", "htmx:sendError", "htmx:afterRequest"
)  # fmt: skip


@pytest.fixture
def empty_broker(broker_url: str) -> Iterator[str]:
    client = redis.Redis.from_url(broker_url.replace("redis+socket://", "unix://").replace("virtual_host", "db"))
    client.flushall()
    yield broker_url
    client.flushall()
    client.close()


@pytest.fixture
def site(transactional_db: None, empty_broker: str, live_server: Any, settings: Any) -> Iterator[str]:
    """Pages of this process that wake the test's workers. Its address."""
    settings.QUEUE_CORE_CONNECTIONS = {"staged": "tests.workers.staged.build"}
    with _wakes_go_to(empty_broker):
        yield live_server.url


@contextmanager
def _wakes_go_to(broker_url: str) -> Iterator[None]:
    before = current_app.conf.broker_url
    current_app.conf.broker_url = broker_url
    _forget()
    try:
        yield
    finally:
        current_app.conf.broker_url = before
        _forget()


def _forget() -> None:
    """What this process kept from another test: connections to its broker, and figures of its lanes."""
    panels.forget()
    broker._looks.clear()
    current_app._after_fork()


@pytest.fixture
def workers(site: str, empty_broker: str, tmp_path: Path) -> Iterator[Workers]:
    folder = tmp_path / "workers"
    folder.mkdir()
    with workers_at(empty_broker, folder) as running:
        yield running


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    folder = tmp_path / "stage"
    folder.mkdir()
    return Stage(folder)


@pytest.fixture
def somebody(site: str) -> Callable[[str, str], Person]:
    def make(name: str, role: str) -> Person:
        person = Person.objects.create_user(name)
        roles.assign(person, role)
        return person

    return make


@pytest.fixture
def browse(chromium: Browser, site: str, settings: Any) -> Iterator[Callable[[Person], Page]]:
    """A browser of somebody who is signed in. Anything that its console complains of fails the test at its end."""
    contexts, complaints = [], []
    # As long as a page's own steps: on a busy machine the five seconds of before were over first.
    expect.set_options(timeout=20_000)

    def open_as(person: Person) -> Page:
        # One client each: a second sign-in with the same one would end the first person's session.
        client = Client()
        client.force_login(person)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        context = chromium.new_context(base_url=site)
        contexts.append(context)
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": site}])
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto("/")
        return page

    yield open_as
    for context in contexts:
        context.close()
    assert [text for text in complaints if not text.startswith(BROWSERS_OWN)] == []
