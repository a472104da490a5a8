"""People with roles, by fixture name."""

from collections.abc import Callable
from itertools import count

import pytest
from django.contrib.auth import get_user_model

from queue_core import roles
from reviewboard.models import Person

_numbers = count(1)


@pytest.fixture
def person(db: None) -> Callable[..., Person]:
    """Somebody with a role. Roles are restored first: a test with real commits empties every table behind it."""
    roles.restore()

    def make(role: str | None = roles.LEAD, **fields: object) -> Person:
        made = get_user_model().objects.create_user(**({"username": f"{role}-{next(_numbers)}"} | fields))
        if role is not None:
            roles.assign(made, role)
        return made

    return make


@pytest.fixture
def lead(person: Callable[..., Person]) -> Person:
    return person(roles.LEAD)


@pytest.fixture
def other_lead(person: Callable[..., Person]) -> Person:
    return person(roles.LEAD)


@pytest.fixture
def reviewer(person: Callable[..., Person]) -> Person:
    return person(roles.REVIEWER)
