"""What a key may send and see: its source, its lanes. What is beyond them does not exist for it."""

from dataclasses import dataclass, field

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from queue_core.clock import DATABASE_CLOCK
from queue_core.contract import NewTicket
from queue_core.errors import InvalidJob
from queue_core.models import ApiKey, Lane, Ticket
from queue_core.ticket_fields import TicketRecord
from queue_core.ticket_import import Intake, Receiving, Within
from reviewboard.api.problems import Problem


@dataclass(frozen=True, slots=True)
class Admission:
    """A key's way from records to tickets. Lanes are asked for once a call."""

    key: ApiKey
    _lanes: dict[str, Lane | None] = field(default_factory=dict)

    def ticket(self, record: TicketRecord) -> NewTicket:
        """The ticket of a record. Raises InvalidJob for a lane or source that the key is not for."""
        lane, source = self._lane(record.lane), source_of(self.key, record.source)
        return record.for_lane(lane, default_source=source)

    def intake(self) -> Intake:
        """Where its tickets go in. Those that are in other lanes are out of its reach."""
        receiving = Receiving(DATABASE_CLOCK)
        return Within(receiving, self.key.may_at) if self.key.lanes else receiving

    def _lane(self, name: str) -> Lane:
        if name not in self._lanes:
            lane = Lane.objects.filter(name=name).first()
            self._lanes[name] = lane if lane is not None and self.key.may_at(lane) else None
        found = self._lanes[name]
        if found is None:
            raise InvalidJob(_("There is no such lane."), field="lane")
        return found


def source_of(key: ApiKey, named: str | None) -> str:
    """The source that a call is about. Raises InvalidJob where none is known, or one that the key is not for."""
    if key.source and named not in (None, key.source):
        raise InvalidJob(_("This key is for the source “%(source)s”.") % {"source": key.source}, field="source")
    source = key.source or named
    if not source:
        raise InvalidJob(_("Name the source, or use a key that is for one source."), field="source")
    return source


def visible(rows: QuerySet[Ticket], key: ApiKey) -> QuerySet[Ticket]:
    """Those tickets that a key may see."""
    own = rows.filter(source=key.source) if key.source else rows
    return own.filter(lane_id__in=key.lanes) if key.lanes else own


def ticket_of(key: ApiKey, external_id: str, source: str | None) -> Ticket:
    """The ticket of a name. Raises Problem: what a key may not see is not there."""
    try:
        named = source_of(key, source)
    except InvalidJob as fault:
        raise Problem("invalid_request", str(fault), field=fault.field) from fault
    found = visible(Ticket.objects.select_related("lane"), key).filter(source=named, external_id=external_id).first()
    if found is None:
        raise Problem("not_found", _("There is no such ticket."))
    return found
