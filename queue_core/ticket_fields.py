"""The fields of one ticket as it comes in, from a file or over the API: their names, limits and meaning."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from queue_core.contract import NewTicket
from queue_core.errors import InvalidJob
from queue_core.models import Lane
from queue_core.models.tickets import MAX_ID
from queue_core.states import DeadlineKind, Exposure, SourceKind

MAX_NAME = 64
MAX_SEVERITY = 3
#: Times outside are typing mistakes, or seconds taken for milliseconds; far ones also overflow arithmetic on times.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)

FIELDS = frozenset({
    "lane", "ticket", "revision", "evidence", "deadline", "submitted_at", "severity", "category", "source",
    "source_kind", "exposure", "deadline_kind", "restricted", "replaces",
})  # fmt: skip

_RELATIVE = re.compile(r"([+-])([0-9]{1,9})([smhd])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DAY_AND_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:.*", re.ASCII)


@dataclass(frozen=True, slots=True)
class TicketRecord:
    """A ticket whose every field is within its limits. `replaces` names the revision that it supersedes."""

    lane: str
    ticket: str
    revision: str
    evidence: Any
    source: str | None = None
    deadline: datetime | None = None
    submitted_at: datetime | None = None
    severity: int | None = None
    category: str = ""
    source_kind: str | None = None
    exposure: str | None = None
    deadline_kind: str | None = None
    is_restricted: bool = False
    replaces: str | None = None

    def for_lane(self, lane: Lane, *, default_source: str) -> NewTicket:
        return NewTicket(
            source=self.source or default_source,
            external_id=self.ticket,
            revision=self.revision,
            lane=lane,
            evidence=self.evidence,
            deadline=self.deadline,
            submitted_at=self.submitted_at,
            severity=self.severity,
            category=self.category,
            source_kind=self.source_kind,
            exposure=self.exposure,
            deadline_kind=self.deadline_kind,
            is_restricted=self.is_restricted,
        )


def checked(values: Mapping[str, Any], *, now: datetime) -> TicketRecord:
    """The record in `values`, which hold known fields only. Raises InvalidJob for the first field that is wrong."""
    if values.get("evidence") is None:
        raise InvalidJob(_("The evidence is missing."), field="evidence")
    return TicketRecord(
        lane=name_of(values, "lane", MAX_NAME),
        ticket=name_of(values, "ticket", MAX_ID),
        revision=name_of(values, "revision", MAX_ID),
        evidence=values["evidence"],
        source=_optional_name(values, "source", MAX_NAME),
        deadline=_moment(values, "deadline", now),
        submitted_at=_moment(values, "submitted_at", now),
        severity=_severity(values.get("severity")),
        category=_optional_name(values, "category", MAX_NAME) or "",
        source_kind=_choice(values, "source_kind", SourceKind.values),
        exposure=_choice(values, "exposure", Exposure.values),
        deadline_kind=_choice(values, "deadline_kind", DeadlineKind.values),
        is_restricted=_flag(values, "restricted"),
        replaces=_optional_name(values, "replaces", MAX_ID),
    )


def name_of(values: Mapping[str, Any], field: str, most: int) -> str:
    """An id or name that must be there. A number is refused: 12345 and "12345" would be two tickets or one, by luck."""
    value = values.get(field)
    if value is None:
        raise InvalidJob(_("The field is missing."), field=field)
    if not isinstance(value, str):
        raise InvalidJob(_("The field is no text: write it in quotes."), field=field)
    if not value.strip():
        raise InvalidJob(_("The field is empty."), field=field)
    if len(value) > most:
        raise InvalidJob(_("The field is longer than %(most)d characters.") % {"most": most}, field=field)
    return value


def _optional_name(values: Mapping[str, Any], field: str, most: int) -> str | None:
    return None if values.get(field) is None else name_of(values, field, most)


def _severity(value: Any) -> int | None:
    # True is an int to Python, and 1.0 is not to JSON's readers: neither is a severity.
    if value is not None and (type(value) is not int or not 0 <= value <= MAX_SEVERITY):
        reason = _("A severity is a whole number from 0 to %(most)d.") % {"most": MAX_SEVERITY}
        raise InvalidJob(reason, field="severity")
    return value


def _choice(values: Mapping[str, Any], field: str, choices: list[str]) -> str | None:
    value = values.get(field)
    if value is not None and value not in choices:
        raise InvalidJob(_("The field is one of: %(choices)s.") % {"choices": ", ".join(choices)}, field=field)
    return value


def _flag(values: Mapping[str, Any], field: str) -> bool:
    value = values.get(field)
    if value is not None and not isinstance(value, bool):
        raise InvalidJob(_("The field is true or false."), field=field)
    return bool(value)


def _moment(values: Mapping[str, Any], field: str, now: datetime) -> datetime | None:
    value = values.get(field)
    if value is None:
        return None
    moment = moment_of(value, now=now) if isinstance(value, str) else None
    if moment is None:
        reason = _(
            "A time is ISO 8601 with a zone, such as 2027-01-31T10:00:00Z, or relative, such as -90s, +30m, +24h, +2d."
        )
        raise InvalidJob(reason, field=field)
    if not EARLIEST <= moment < LATEST:
        raise InvalidJob(_("The time is before 1970 or after 2199."), field=field)
    return moment


def moment_of(text: str, *, now: datetime) -> datetime | None:
    """The instant that `text` names, in UTC. None: it names none. Without a zone a time is not known, so refused."""
    if relative := _RELATIVE.fullmatch(text):
        sign, amount, unit = relative.groups()
        return _shifted(now, timedelta(**{_UNITS[unit]: int(sign + amount)}))
    if not _DAY_AND_TIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _shifted(now: datetime, by: timedelta) -> datetime:
    try:
        return now + by
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if by > timedelta(0) else datetime.min.replace(tzinfo=UTC)
