"""The cast of the board: Vera looks, Rita reviews, Leo leads, Xavier may nothing."""

from collections.abc import Callable

import pytest

from queue_core import roles
from queue_core.figures import panels
from queue_core.forecast import reading
from reviewboard import broker
from reviewboard.models import Person


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch):
    """No look at a broker that a test did not ask for."""
    monkeypatch.setattr(broker, "is_reachable", lambda: True)


@pytest.fixture(autouse=True)
def _nothing_kept():
    panels.forget()
    reading.forget()
    yield
    panels.forget()


@pytest.fixture
def cast(db) -> Callable[..., Person]:
    roles.restore()

    def make(name: str, role: str | None) -> Person:
        person = Person.objects.create_user(name)
        if role:
            roles.assign(person, role)
        return person

    return make


@pytest.fixture
def vera(cast) -> Person:
    return cast("vera", roles.VIEWER)


@pytest.fixture
def rita(cast) -> Person:
    return cast("rita", roles.REVIEWER)


@pytest.fixture
def leo(cast) -> Person:
    return cast("leo", roles.LEAD)


@pytest.fixture
def xavier(cast) -> Person:
    return cast("xavier", None)
