"""The lanes that an import names: found, or made if it was asked to."""

from collections.abc import Callable

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from queue_core import lanes
from queue_core.clock import Clock
from queue_core.errors import InvalidJob
from queue_core.models import Lane
from queue_core.models.lanes import name_validator

#: A lane by its name, made because an import names it.
type MakeLane = Callable[[str], Lane]


class LaneFinder:
    """Lanes by name, each asked for once. `made` lists those that `make` made on the way; None makes none."""

    def __init__(self, make: MakeLane | None = None) -> None:
        self._make = make
        self._found: dict[str, Lane] = {}
        self.made: list[str] = []

    def __call__(self, name: str) -> Lane:
        """Raises InvalidJob for a name that is none, or of no lane."""
        if name not in self._found:
            self._found[name] = Lane.objects.filter(name=name).first() or self._made(name)
        return self._found[name]

    def _made(self, name: str) -> Lane:
        try:
            name_validator(name)
        except ValidationError as fault:
            raise InvalidJob(fault.messages[0], field="lane") from fault
        if self._make is None:
            raise InvalidJob(_("There is no such lane."), field="lane")
        lane = self._make(name)
        self.made.append(name)
        return lane


def maker(connection: str | None, clock: Clock) -> MakeLane:
    """Makes lanes, on hold, with the connection of that name or the only one there is."""
    return lambda name: lanes.create_lane_for_import(name, connection=connection, clock=clock)


def imagined(name: str) -> Lane:
    """A lane that a dry run would have made: a row that is never saved."""
    return Lane(name=name)
