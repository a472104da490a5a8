"""A span of time with a beginning and an end: the beginning is in it, the end is not."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from django.utils.translation import gettext as _

from queue_core.clock import EPOCH, is_instant
from queue_core.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Period:
    since: datetime
    until: datetime

    @classmethod
    def read(cls, since: str, until: str, *, now: datetime) -> "Period":
        """From two texts; empty is the beginning of time, and now. A day alone is its midnight in UTC.

        Raises InvalidRequest naming the field. A time without a zone is refused: it would be another one elsewhere.
        """
        found = cls(_moment(since, "since") if since else EPOCH, _moment(until, "until") if until else now)
        if found.since >= found.until:
            raise InvalidRequest(_("The end is not after the beginning."), field="until")
        return found


def _moment(text: str, field: str) -> datetime:
    try:
        if len(text) == len("2026-01-01"):
            return datetime.combine(date.fromisoformat(text), time(), UTC)
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(
            _("“%(text)s” is no time. Write a day, 2026-11-01, or a time with its zone, 2026-11-01T08:00:00+01:00.")
            % {"text": text},
            field=field,
        ) from error
    if moment.tzinfo is None:
        raise InvalidRequest(_("“%(text)s” has no zone: add Z or, for instance, +01:00.") % {"text": text}, field=field)
    if not is_instant(moment):
        raise InvalidRequest(_("“%(text)s” is out of range.") % {"text": text}, field=field)
    return moment.astimezone(UTC)
