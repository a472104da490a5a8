"""The cast, whose leads have an address, and a lane of the ramp's stories."""

import pytest

from queue_core import roles
from queue_core.figures import panels
from queue_core.models import Presence
from tests.factories import at
from tests.ramp.conftest import person  # noqa: F401  a fixture


@pytest.fixture(autouse=True)
def _nothing_kept(settings):
    settings.MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
    settings.QUEUE_CORE_ALERT_MAIL = "reviewboard.alert_mail.send"
    panels.forget()
    yield
    panels.forget()


@pytest.fixture
def lead(person):  # noqa: F811
    return person(roles.LEAD, username="lena", email="lena@example.org")


@pytest.fixture
def reviewer(person):  # noqa: F811
    return person(roles.REVIEWER, username="rita", email="rita@example.org")


@pytest.fixture
def seen(db):
    """Somebody works, and the scheduler sends its ticks, up to this time."""

    def see(when: float, *, worker: bool = True, scheduler: bool = True) -> None:
        for kind, is_there in (("worker", worker), ("scheduler", scheduler)):
            if is_there:
                values = {"started_at": at(0), "seen_at": at(when)}
                Presence.objects.update_or_create(kind=kind, name=kind, defaults=values)

    return see
