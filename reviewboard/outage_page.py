"""What the pages of outages show: rows of the list, and the log with the figures that a raise was made on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from queue_core import ramp
from queue_core.models import Lane, Outage, OutageEntry, StageRun
from queue_core.ramp import EntryCode
from reviewboard.lane_history import frozen_figures
from reviewboard.outage_text import entry_text, lane_names, outage_url
from reviewboard.ramp_text import what_was_met
from reviewboard.shapes import Text
from reviewboard.where_text import hold_reason

#: Entries that begin a run, with whose figures they are shown.
BEGINS = frozenset(
    {EntryCode.RAISED.value, EntryCode.RESUMED.value, EntryCode.STEPPED_DOWN.value, EntryCode.POLICY_FORCED.value}
)


@dataclass(frozen=True, slots=True)
class OutageRow:
    url: str
    connection: str
    cause: str
    lanes: str
    opened_at: datetime
    closed_at: datetime | None
    lasted: timedelta


@dataclass(frozen=True, slots=True)
class LogLine:
    """One entry. `said` is what the person gave as reason, or what the calls met that put a lane on hold; `frozen` is
    what the person saw."""

    at: datetime
    text: str
    said: str
    override: str
    frozen: Sequence[tuple[Text, Text]]


def rows(outages: Sequence[Outage], *, now: datetime) -> list[OutageRow]:
    lanes = ramp.lanes_of(outage.pk for outage in outages)
    return [row(outage, lanes[outage.pk], now=now) for outage in outages]


def row(outage: Outage, lanes: Sequence[Lane], *, now: datetime) -> OutageRow:
    return OutageRow(
        url=outage_url(outage),
        connection=outage.connection.name,
        cause=hold_reason(outage.cause),
        lanes=lane_names(lanes),
        opened_at=outage.opened_at,
        closed_at=outage.closed_at,
        lasted=(outage.closed_at or now) - outage.opened_at,
    )


def log(entries: Iterable[OutageEntry]) -> list[LogLine]:
    read = list(entries)
    runs = StageRun.objects.in_bulk(
        [entry.params["run"] for entry in read if entry.code in BEGINS and entry.params.get("run")]
    )
    return [_line(entry, runs.get(entry.params.get("run", 0)) if entry.code in BEGINS else None) for entry in read]


def _line(entry: OutageEntry, run: StageRun | None) -> LogLine:
    return LogLine(
        at=entry.at,
        text=entry_text(entry),
        said=entry.text or what_was_met(entry.params.get("reason", ""), entry.params.get("params") or {}),
        override=run.override_reason if run else "",
        frozen=frozen_figures(run.figures) if run else (),
    )
