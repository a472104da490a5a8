from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from queue_core import relay, roles
from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.models import Delivery, Endpoint, EndpointSecret, Message
from queue_core.relay.signing import fingerprint, make_secret
from queue_core.states import MessageKind
from reviewboard.models import Person
from tests.relay.receiver import Receiver, receiving

#: Short, for consumers that hang; long enough for a machine with two busy cores to answer within.
TIME_LIMIT = timedelta(milliseconds=600)


@pytest.fixture(autouse=True)
def _inside(settings: Any) -> None:
    settings.QUEUE_CORE_ALLOWED_NETWORKS = ["127.0.0.1/32"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def other() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


class Moving(FixedClock):
    """A clock that a test moves on. It begins at the present, since consumers verify by a real one."""

    def __init__(self) -> None:
        super().__init__(DATABASE_CLOCK.now())

    def on(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@pytest.fixture
def clock(db: None) -> Moving:
    return Moving()


@pytest.fixture
def make_endpoint(db: None) -> Callable[..., Endpoint]:
    def make(address: str, name: str = "shop", **fields: Any) -> Endpoint:
        defaults = {"kinds": [MessageKind.DECISION.value], "time_limit": TIME_LIMIT, "created_at": DATABASE_CLOCK.now()}
        endpoint = Endpoint.objects.create(name=name, address=address, **(defaults | fields))
        with_secret(endpoint)
        return endpoint

    return make


def with_secret(endpoint: Endpoint) -> str:
    salt = uuid4()
    secret = make_secret(salt)
    EndpointSecret.objects.create(
        endpoint=endpoint, salt=salt, fingerprint=fingerprint(secret), made_at=DATABASE_CLOCK.now()
    )
    return secret


def secret_of(endpoint: Endpoint) -> str:
    return make_secret(endpoint.secrets.latest("pk").salt)


def deliver(endpoint: Endpoint, clock: FixedClock) -> relay.Sent:
    """A step of the relay, and what its sender does then."""
    relay.step(clock=clock)
    return relay.send_due(endpoint.pk, clock=clock)


def delivery_of(message: Message) -> Delivery:
    return Delivery.objects.get(message=message)


@pytest.fixture
def person(db: None) -> Callable[..., Person]:
    roles.restore()

    def make(name: str, role: str | None) -> Person:
        found = Person.objects.create_user(name)
        if role:
            roles.assign(found, role)
        return found

    return make


@pytest.fixture
def leo(person: Callable[..., Person]) -> Person:
    return person("leo", roles.LEAD)


@pytest.fixture
def ada(person: Callable[..., Person]) -> Person:
    return person("ada", roles.ADMINISTRATOR)
