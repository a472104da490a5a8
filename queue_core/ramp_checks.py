"""What every act of a person at the ramp is asked first: may they, and do they say why?"""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from queue_core import rights
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import Lane

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

LEAST_REASON = 5
MOST_REASON = 500


def may(person: "AbstractUser", right: str, lane: Lane | int | None = None) -> bool:
    """Whether a person has a right on a lane; without one, on all of them."""
    return rights.may(person, right, lane)


def require(person: "AbstractUser", right: str, lane: Lane | int | None = None) -> None:
    if not may(person, right, lane):
        raise NotPermitted(_("This needs a right that you do not have."))


def checked_reason(text: str, *, field: str = "reason") -> str:
    """A reason as it is kept. It is read months later, so one or two letters are none."""
    reason = checked_text(text, field=field)
    if len(reason) < LEAST_REASON:
        raise InvalidRequest(_("Say why, in at least %(least)d characters.") % {"least": LEAST_REASON}, field=field)
    return reason


def checked_text(text: str, *, field: str, most: int = MOST_REASON) -> str:
    stripped = text.strip()
    if "\x00" in stripped:
        raise InvalidRequest(_("The text holds a NUL character."), field=field)
    if len(stripped) > most:
        raise InvalidRequest(_("At most %(most)d characters.") % {"most": most}, field=field)
    return stripped
