"""The record of an outage for other programs: JSON with everything, CSV with one fact a row."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from queue_core.models import OutageEntry
from queue_core.outage_record import Record
from queue_core.spreadsheet import csv_lines
from reviewboard.outage_text import entry_text

#: A log longer than this is cut off, and says so.
MOST_ENTRIES = 10_000
COLUMNS = ("kind", "at", "lane", "by", "name", "value", "reason", "override_reason")


def as_json(record: Record) -> dict[str, Any]:
    outage = record.outage
    return {
        "outage": outage.pk,
        "connection": outage.connection.name,
        "cause": outage.cause,
        "lanes": [lane.name for lane in record.lanes],
        "opened_at": _time(outage.opened_at),
        "opened_by": _name(outage.opened_by),
        "closed_at": _time(outage.closed_at),
        "closed_by": _name(outage.closed_by),
        "lead_on_duty": _name(outage.lead_on_duty),
        "handover_note": outage.handover_note,
        "figures": dict(_figures(record)),
        "decisions": [
            {"by": "people" if people else "model", "verdict": verdict, "number": number}
            for (people, verdict), number in sorted(record.decisions.items())
        ],
        "deaths": [
            {"severity": severity, "cause": cause, "number": number}
            for (severity, cause), number in sorted(record.deaths.items())
        ],
        "raises": [_run(run) for run in record.runs],
        "step_seconds": record.step.total_seconds(),
        "points": [
            {
                "at": _time(one.at),
                "arriving": one.arriving,
                "by_model": one.by_model,
                "by_people": one.by_people,
                "died": one.died,
            }
            for one in record.points
        ],
        "log": [_entry(entry) for entry in entries(record)],
        "log_is_cut_at": MOST_ENTRIES,
    }


def as_csv(record: Record) -> str:
    """Figures, decisions, deaths, raises and the log, each a row; no cell is a formula."""
    return "".join(csv_lines(chain([COLUMNS], ([row.get(name) for name in COLUMNS] for row in _rows(record)))))


def entries(record: Record) -> Iterable[OutageEntry]:
    rows = OutageEntry.objects.filter(outage=record.outage).select_related("by", "lane").order_by("at", "pk")
    return rows[:MOST_ENTRIES]


def _rows(record: Record) -> Iterator[dict[str, Any]]:
    for name, value in _figures(record):
        yield {"kind": "figure", "name": name, "value": value}
    for (people, verdict), number in sorted(record.decisions.items()):
        yield {"kind": "decisions", "by": "people" if people else "model", "name": verdict, "value": number}
    for (severity, cause), number in sorted(record.deaths.items()):
        yield {"kind": "deaths", "name": f"severity {severity}, {cause}", "value": number}
    for run in record.runs:
        yield {
            "kind": "raise",
            "at": _time(run.started_at),
            "lane": run.lane.name,
            "by": _name(run.raised_by),
            "name": f"stage {run.number}, {run.name}",
            "value": run.cap,
            "reason": run.reason,
            "override_reason": run.override_reason,
        }
    for entry in entries(record):
        yield {
            "kind": "log",
            "at": _time(entry.at),
            "lane": entry.lane.name if entry.lane else None,
            "by": _name(entry.by),
            "name": entry.code,
            "value": entry_text(entry),
            "reason": entry.text,
        }


def _figures(record: Record) -> Iterator[tuple[str, int | float | None]]:
    counts, waits = record.counts, record.waits
    yield "lasted_seconds", (record.until - record.outage.opened_at).total_seconds()
    yield "added", counts.added if counts else None
    yield "claims", counts.claimed if counts else None
    yield "errors", record.errors
    yield "timeouts", record.timeouts
    yield "wait_median_below_seconds", _seconds(waits.half if waits else None)
    yield "wait_p95_below_seconds", _seconds(waits.most if waits else None)
    yield "longest_wait_seen_seconds", _seconds(waits.oldest if waits else None)
    for name, number in sorted(record.usage.items()):
        yield f"usage_{name}", number


def _run(run: Any) -> dict[str, Any]:
    return {
        "run": run.pk,
        "lane": run.lane.name,
        "stage": run.number,
        "name": run.name,
        "cap": run.cap,
        "rate": run.rate,
        "at": _time(run.started_at),
        "ended_at": _time(run.ended_at),
        "ended_as": run.ended_as,
        "by": _name(run.raised_by),
        "reason": run.reason,
        "override_reason": run.override_reason,
        "figures": run.figures,
    }


def _entry(entry: OutageEntry) -> dict[str, Any]:
    return {
        "at": _time(entry.at),
        "code": entry.code,
        "lane": entry.lane.name if entry.lane else None,
        "by": _name(entry.by),
        "params": entry.params,
        "text": entry.text,
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _seconds(length: timedelta | None) -> float | None:
    return length.total_seconds() if length is not None else None


def _name(person: Any) -> str | None:
    return person.get_username() if person else None
