"""The forecast of a lane in the reader's language: a table of suppositions, and sentences for what no table says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.template.defaultfilters import date as format_date
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.forecast.outlook import Basis, Line, LineState, Pace
from queue_core.forecast.reading import Column, Course, Forecast
from reviewboard.board_text import rate_text
from reviewboard.shapes import Text, Tone
from reviewboard.templatetags.board import count, duration

#: More of a line than this state needs somebody.
TONES = {LineState.GROWS: Tone.WARN, LineState.STALLED: Tone.BAD, LineState.HELD: Tone.HOLD}


@dataclass(frozen=True, slots=True)
class Cell:
    """What one supposition comes to in one row: the finding, and the figures that it rests on."""

    text: Text
    note: Text = ""
    tone: Tone | None = None


@dataclass(frozen=True, slots=True)
class Row:
    name: Text
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Head:
    name: Text
    is_estimate: bool


@dataclass(frozen=True, slots=True)
class ForecastTable:
    """`lines` are model, people and delivery, `missed` the deaths by severity; each cell belongs to the head above."""

    heads: Sequence[Head]
    lines: Sequence[Row]
    missed: Sequence[Row]
    missed_title: Text
    passing: Text
    basis: Sequence[Text]


def table(found: Forecast) -> ForecastTable:
    return ForecastTable(
        heads=[Head(_head(column), column.is_estimate) for column in found.columns],
        lines=[
            Row(_("Model"), [_line(column.outlook.model, found, _model_rate) for column in found.columns]),
            Row(_("People"), [_line(column.outlook.people, found, _people_rate) for column in found.columns]),
            Row(_("Delivery"), [_line(column.outlook.delivery, found, _delivery_rate) for column in found.columns]),
        ],
        missed=_missed(found),
        missed_title=_("Deadlines passed before their turn, within %(time)s") % {"time": duration(found.horizon)},
        passing=passing_text(found),
        basis=[text for column in found.columns if (text := _basis(column))],
    )


def passing_text(found: Forecast) -> str:
    """On hold: how many pass their deadline by when. Counted, no estimate."""
    if not found.passing:
        return ""
    parts = [_("%(number)s by %(time)s") % {"number": count(number), "time": clock(at)} for at, number in found.passing]
    # Translators: a list such as "310 by 03:29, 2,940 by 04:14".
    listed = _(", ").join(parts)
    return _("Deadlines that pass if nothing starts: %(list)s.") % {"list": listed}


def span_text(low: datetime | None, high: datetime | None, horizon: timedelta) -> str:
    """When a line is empty, as a range."""
    if low is None:
        return _("not empty within %(time)s") % {"time": duration(horizon)}
    if high is None:
        return _("empty after %(from)s, perhaps not within %(time)s") % {"from": clock(low), "time": duration(horizon)}
    if clock(low) == clock(high):
        return _("empty about %(time)s") % {"time": clock(low)}
    return _("empty between %(from)s and %(to)s") % {"from": clock(low), "to": clock(high)}


def clock(at: datetime) -> str:
    """A time of day to the minute: a forecast knows no seconds. With its date where it is not today's."""
    local = timezone.localtime(at)
    return format_date(local, "H:i" if local.date() == timezone.localdate() else "Y-m-d H:i")


def numbers_text(low: int, high: int) -> str:
    return count(low) if low == high else _("%(from)s to %(to)s") % {"from": count(low), "to": count(high)}


def pace_text(pace: Pace) -> str:
    low, high = rate_text(_rounded(pace.low)), rate_text(_rounded(pace.high))
    return low if low == high else _("%(from)s to %(to)s") % {"from": low, "to": high}


def _head(column: Column) -> str:
    match column.course:
        case Course.AS_NOW:
            return _("As it runs now")
        case Course.NOTHING_STARTS:
            return _("If nothing starts")
        case Course.AS_BEFORE:
            return _("At its last healthy pace")
    if column.stage is None:
        return _("At the next stage")
    return _("At stage %(number)d, %(name)s") % {"number": column.stage.number, "name": column.stage.name}


def _line(line: Line, found: Forecast, rate: Callable[[Line], str]) -> Cell:
    return Cell(_finding(line, found), rate(line), TONES.get(line.state))


def _finding(line: Line, found: Forecast) -> str:
    waiting = {"number": count(line.waiting)}
    match line.state:
        case LineState.HELD:
            return ngettext("%(number)s waits, held", "%(number)s wait, held", line.waiting) % waiting
        case LineState.STALLED:
            return ngettext("%(number)s waits, nothing moves", "%(number)s wait, nothing moves", line.waiting) % waiting
        case LineState.GROWS if line.grows is not None:
            return _("grows by %(pace)s a minute") % {"pace": pace_text(line.grows)}
        case LineState.EMPTY:
            return _("keeps up")
        case LineState.EMPTIES if line.empty is not None:
            low, high = (_at(found, seconds) for seconds in (line.empty.low, line.empty.high))
            return span_text(low, high, found.horizon)
    return (
        ngettext(
            "%(number)s waits; too little was measured to say more",
            "%(number)s wait; too little was measured to say more",
            line.waiting,
        )
        % waiting
    )


def _model_rate(line: Line) -> str:
    return _paces(line)


def _people_rate(line: Line) -> str:
    if line.basis == Basis.SET_UP and line.leaving is not None:
        values = {"in": _or_unknown(line.arriving), "out": pace_text(line.leaving)}
        return _("in %(in)s, out %(out)s a minute as set up") % values
    return _paces(line)


def _delivery_rate(line: Line) -> str:
    return _paces(line)


def _paces(line: Line) -> str:
    if line.arriving is None and line.leaving is None:
        return ""
    if line.leaving is None:
        return _("in %(in)s a minute") % {"in": _or_unknown(line.arriving)}
    return _("in %(in)s, out %(out)s a minute") % {"in": _or_unknown(line.arriving), "out": pace_text(line.leaving)}


def _or_unknown(pace: Pace | None) -> str:
    return _("not known") if pace is None else pace_text(pace)


def _missed(found: Forecast) -> list[Row]:
    if not any(column.outlook.missed for column in found.columns):
        return []
    rows = [
        Row(
            _("Severity %(severity)d") % {"severity": severity},
            [_missed_cell(column.outlook.missed, severity) for column in found.columns],
        )
        for severity in (3, 2, 1, 0)
    ]
    return [*rows, Row(_("Of those that come meanwhile"), [_fresh_cell(column) for column in found.columns])]


def _missed_cell(missed: Mapping[int, tuple[int, int]], severity: int) -> Cell:
    if severity not in missed:
        return Cell("–")
    low, high = missed[severity]
    return Cell(numbers_text(low, high), tone=Tone.WARN if high else None)


def _fresh_cell(column: Column) -> Cell:
    if column.outlook.fresh is None:
        return Cell("–")
    low, high = column.outlook.fresh
    return Cell(numbers_text(low, high), tone=Tone.WARN if high else None)


def _basis(column: Column) -> str:
    """What a column rests on, in a whole sentence."""
    values = {"head": _head(column), "number": count(column.number)}
    if column.since is not None and column.until is not None:
        values |= {"from": clock(column.since), "to": clock(column.until)}
    match column.outlook.model.basis:
        case Basis.RUN:
            return _("%(head)s: from %(number)s calls that ended from %(from)s to %(to)s in this run.") % values
        case Basis.HEALTHY:
            return (
                _("%(head)s: from %(number)s calls that ended well from %(from)s to %(to)s, before the hold.") % values
            )
        case Basis.CALLS:
            return (
                _("%(head)s: from the length of the %(number)s calls from %(from)s to %(to)s, its cap and rate.")
                % values
            )
        case Basis.TOO_FEW:
            return _("%(head)s: too few calls or minutes were measured, so nothing is made up.") % values
    return _("%(head)s: counted from the deadlines of what waits now; no pace is needed.") % values


def _at(found: Forecast, seconds: float | None) -> datetime | None:
    return None if seconds is None else found.as_of + timedelta(seconds=seconds)


def _rounded(number: float) -> float:
    """Two digits: more would look surer than it is."""
    if number >= 100:
        return float(round(number, -1))
    return float(round(number)) if number >= 10 else round(number, 1)
