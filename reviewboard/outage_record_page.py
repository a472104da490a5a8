"""The record of an outage as its page shows it: figures in words, one chart, the proposed order of its lanes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core import outage_record
from queue_core.models import Outage
from queue_core.outage_record import LaneProposal, Record, Waits
from reviewboard.drawing import LineChart, Mark, Series, line_chart
from reviewboard.item_text import cause_text
from reviewboard.ramp_text import listed
from reviewboard.shapes import Text
from reviewboard.templatetags.board import count, duration


@dataclass(frozen=True, slots=True)
class ProposalLine:
    """One lane in the proposed order."""

    name: str
    url_name: str
    severity: str
    dying: str
    waiting: str
    cap: str


@dataclass(frozen=True, slots=True)
class RecordPage:
    facts: Sequence[tuple[Text, Text]]
    chart: LineChart | None
    order: Sequence[ProposalLine]
    caps: str


def page_of(record: Record, *, now: datetime) -> RecordPage:
    is_open = record.outage.closed_at is None
    proposed = outage_record.proposed_order(record.lanes, now=now) if is_open else []
    return RecordPage(
        facts(record), chart(record), [_line(one) for one in proposed], caps_text(record.outage, proposed)
    )


def facts(record: Record) -> list[tuple[Text, Text]]:
    """Volume, waits, deaths, decisions: each a name and what it came to."""
    rows: list[tuple[Text, Text]] = [
        (_("Came in"), _count(record.counts.added if record.counts else None)),
        (_("Claims"), _count(record.counts.claimed if record.counts else None)),
        (_("Errors of the model"), _count(record.errors)),
        (_("Timeouts: effect unknown"), _count(record.timeouts)),
        (_("Decided by the model"), _verdicts(record, by_people=False)),
        (_("Decided by people"), _verdicts(record, by_people=True)),
        (_("DEAD, by severity"), _deaths(record)),
    ]
    rows += _waits(record.waits)
    rows += [(_("Usage: %(name)s") % {"name": name}, count(number)) for name, number in sorted(record.usage.items())]
    return rows


def chart(record: Record) -> LineChart | None:
    """What came in, what was decided and what died over the outage, with its holds and raises as marks."""
    if not record.points:
        return None
    series = [
        Series("a", _("arriving"), [one.arriving for one in record.points]),
        Series("b", _("by the model"), [one.by_model for one in record.points]),
        Series("c", _("by people"), [one.by_people for one in record.points]),
        Series("d", _("DEAD"), [one.died for one in record.points]),
    ]
    return line_chart(
        _("What came in and what became of it"),
        [one.at for one in record.points],
        series,
        unit=_("a minute"),
        marks=marks(record),
    )


def marks(record: Record) -> list[Mark]:
    runs = [Mark(run.started_at, "stage", f"{run.number}") for run in record.runs]
    holds = [Mark(hold.started_at, "hold", _("on hold")) for hold in record.holds]
    return sorted([*runs, *holds], key=lambda mark: mark.at)


def caps_text(outage: Outage, proposed: Sequence[LaneProposal]) -> str:
    """The lanes' caps against what the connection takes at once."""
    if not proposed:
        return ""
    total = outage.connection.total_cap
    values: dict[str, Any] = {
        "now": count(sum(one.cap or 0 for one in proposed)),
        "last": count(sum(one.last_cap or 0 for one in proposed)),
    }
    if total is None:
        text = _(
            "Calls at once: the lanes may run %(now)s now, %(last)s at their last stages. The connection sets no limit."
        )
        return text % values
    text = _(
        "Calls at once: the lanes may run %(now)s now, %(last)s at their last stages. The connection takes %(total)s."
    )
    return text % {**values, "total": count(total)}


def _line(one: LaneProposal) -> ProposalLine:
    return ProposalLine(
        name=str(one.lane),
        url_name=one.lane.name,
        severity="–" if one.severity is None else str(one.severity),
        dying=count(one.dying),
        waiting=count(one.waiting),
        cap=_("on hold") if one.cap is None else count(one.cap),
    )


def _count(number: int | None) -> str:
    return count(number) if number is not None else _("not kept any more")


def _verdicts(record: Record, *, by_people: bool) -> str:
    total = record.decided(by_people=by_people)
    shares = {verdict: n for (people, verdict), n in sorted(record.decisions.items()) if people == by_people}
    if not total:
        return count(0)
    return _("%(total)s: %(approved)s approved, %(rejected)s rejected") % {
        "total": count(total),
        "approved": count(shares.get("APPROVED", 0)),
        "rejected": count(shares.get("REJECTED", 0)),
    }


def _deaths(record: Record) -> str:
    found = record.deaths_by_severity
    if not found:
        return _("none")
    shares = [
        _("severity %(severity)d: %(number)s") % {"severity": severity, "number": count(number)}
        for severity, number in found.items()
    ]
    causes: dict[str, int] = {}
    for (_severity, cause), number in record.deaths.items():
        causes[cause] = causes.get(cause, 0) + number
    why = [
        _("%(cause)s: %(number)s") % {"cause": cause_text("dead", cause), "number": count(number)}
        for cause, number in sorted(causes.items())
    ]
    return _("%(shares)s (%(why)s)") % {"shares": listed(shares), "why": listed(why)}


def _waits(waits: Waits | None) -> list[tuple[Text, Text]]:
    if waits is None:
        return [(_("Waits before a claim"), _("not kept any more"))]
    if not waits.claims:
        text = _("nothing was claimed")
    else:
        text = ngettext(
            "%(claims)s claim: half waited less than %(half)s, 95 of 100 less than %(most)s",
            "%(claims)s claims: half waited less than %(half)s, 95 of 100 less than %(most)s",
            waits.claims,
        ) % {"claims": count(waits.claims), "half": _bound(waits.half), "most": _bound(waits.most)}
    return [(_("Waits before a claim"), text), (_("Longest wait seen"), duration(waits.oldest))]


def _bound(length: Any) -> str:
    return duration(length) if length is not None else _("a very long time")
