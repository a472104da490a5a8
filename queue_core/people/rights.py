"""Who may. The verbs ask here themselves, so that no view, admin or shell can forget to."""

from typing import TYPE_CHECKING

from queue_core.errors import NotPermitted

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser


def may(person: "AbstractUser", permission: str) -> bool:
    """Whether a person has one of the permissions of `Lane`. An inactive person has none."""
    return person.has_perm(f"queue_core.{permission}")


def require(person: "AbstractUser", permission: str) -> None:
    if not may(person, permission):
        raise NotPermitted(permission)
