"""The lanes that an import names: found, or made if it was asked to."""

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from queue_core import lanes
from queue_core.clock import Clock
from queue_core.errors import InvalidJob
from queue_core.models import Lane
from queue_core.models.lanes import name_validator


class LaneFinder:
    """Lanes by name, each asked for once. `made` lists those that were made on the way."""

    def __init__(self, *, create: bool, connection: str | None, clock: Clock) -> None:
        self._create = create
        self._connection = connection
        self._clock = clock
        self._found: dict[str, Lane] = {}
        self.made: list[str] = []

    def __call__(self, name: str) -> Lane:
        if name not in self._found:
            self._found[name] = Lane.objects.filter(name=name).first() or self._made(name)
        return self._found[name]

    def _made(self, name: str) -> Lane:
        try:
            name_validator(name)
        except ValidationError as fault:
            raise InvalidJob(fault.messages[0], field="lane") from fault
        if not self._create:
            raise InvalidJob(_("There is no such lane. --create-lanes makes it."), field="lane")
        lane = lanes.create_lane_for_import(name, connection=self._connection, clock=self._clock)
        self.made.append(name)
        return lane
