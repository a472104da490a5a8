"""The whole site at once: the test's database and broker, real workers, a real browser."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import current_app
from django.test import Client
from playwright.sync_api import Browser, Page

from queue_core import roles
from queue_core.figures import panels
from reviewboard import broker
from reviewboard.models import Person
from tests.browsing import REFUSALS, pages, signed_in
from tests.workers.processes import Workers, workers_at
from tests.workers.staged import Stage

#: Milliseconds, where workers share the machine with the browser.
LIMIT = 20_000


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
def browse(chromium: Browser, site: str) -> Iterator[Callable[[Person], Page]]:
    """A browser of somebody who is signed in, on the board."""
    with pages(chromium, site, excused=REFUSALS, limit=LIMIT) as open_it:
        # One client each: a second sign-in with the same one would end the first person's session.
        yield lambda person: open_it("/", signed_in(Client(), person, site))
