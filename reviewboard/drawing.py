"""Geometry of the drawings: SVG numbers for templates, which cannot calculate.

The drawings carry classes, never colours or styles, so that one stylesheet paints them in light, dark and print.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from unicodedata import east_asian_width

from reviewboard.shapes import Text

BAR_WIDTH = 1000.0
#: Narrower than this a layer could not be seen next to a large one.
LEAST_WIDTH = 8.0
GAP = 3.0

CHART_WIDTH, CHART_HEIGHT = 520, 200
LEFT, RIGHT, TOP, BOTTOM = 52, 76, 12, 28
#: Where a name begins beside its line's end, and what a sign of it takes at 16 px.
LABEL_INDENT, SIGN_WIDTH = 10, 9
MOST_POINTS = 60
LABEL_GAP = 16
#: A mark that stands nearer than this to the one before it keeps its name for the pointer and the reader's voice.
MARK_GAP = 84.0


@dataclass(frozen=True, slots=True)
class LayerPart:
    """One layer's count. `code` is the layer's, and its class; `share_text` may say what moves it."""

    code: str
    name: Text
    count: int
    oldest: timedelta | None = None
    note: Text = ""
    trend: float | None = None
    """By how many it grows a minute; below zero it shrinks."""
    cap: int | None = None
    """Above this it was not counted, and is shown as this number with a plus."""


@dataclass(frozen=True, slots=True)
class Rect:
    code: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class LayerBar:
    rects: Sequence[Rect]
    parts: Sequence[LayerPart]
    top: Sequence[LayerPart]
    rest: Sequence[LayerPart]
    total: int

    @property
    def rest_count(self) -> int:
        return sum(part.count for part in self.rest)


def layer_bar(parts: Sequence[LayerPart], *, named: int = 3) -> LayerBar:
    """A bar whose widths follow the counts. Parts keep their order; the `named` largest are labelled."""
    shown = [part for part in parts if part.count > 0]
    by_size = sorted(shown, key=lambda part: -part.count)
    return LayerBar(
        rects=_rects(shown),
        parts=parts,
        top=by_size[:named],
        rest=by_size[named:],
        total=sum(part.count for part in shown),
    )


def _rects(parts: Sequence[LayerPart]) -> list[Rect]:
    total = sum(part.count for part in parts)
    if not total:
        return []
    room = BAR_WIDTH - GAP * (len(parts) - 1)
    widths = [max(LEAST_WIDTH, room * part.count / total) for part in parts]
    scale = room / sum(widths)
    rects, x = [], 0.0
    for part, width in zip(parts, widths, strict=True):
        rects.append(Rect(part.code, round(x, 2), round(width * scale, 2)))
        x += width * scale + GAP
    return rects


@dataclass(frozen=True, slots=True)
class Series:
    """A line: `values` run with the chart's times, None is a gap. `code` a to d picks colour and dash."""

    code: str
    name: Text
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened, drawn as a vertical line: kind is hold or stage."""

    at: datetime
    kind: str
    label: Text


@dataclass(frozen=True, slots=True)
class Line:
    code: str
    name: Text
    path: str
    label_x: float
    label_y: float
    dot_y: float


@dataclass(frozen=True, slots=True)
class Tick:
    position: float
    value: float


@dataclass(frozen=True, slots=True)
class TimeTick:
    position: float
    at: datetime


@dataclass(frozen=True, slots=True)
class DrawnMark:
    position: float
    kind: str
    label: Text
    is_named: bool


@dataclass(frozen=True, slots=True)
class ChartRow:
    at: datetime
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class LineChart:
    title: Text
    unit: Text
    lines: Sequence[Line]
    ticks: Sequence[Tick]
    time_ticks: Sequence[TimeTick]
    marks: Sequence[DrawnMark]
    rows: Sequence[ChartRow]
    series: Sequence[Series]
    tick_format: str
    row_format: str
    width: int = CHART_WIDTH
    height: int = CHART_HEIGHT
    left: int = LEFT
    right: int = CHART_WIDTH - RIGHT
    top: int = TOP
    bottom: int = CHART_HEIGHT - BOTTOM


def line_chart(
    title: Text,
    times: Sequence[datetime],
    series: Sequence[Series],
    *,
    unit: Text = "",
    marks: Sequence[Mark] = (),
    of_days: bool = False,
) -> LineChart:
    """At most 60 points; more is the caller's mistake, because thinning here would hide peaks.

    `of_days`: each point is a day, and is named by its date.
    """
    if len(times) > MOST_POINTS:
        raise ValueError(f"a chart has at most {MOST_POINTS} points, not {len(times)}")
    if any(len(line.values) != len(times) for line in series):
        raise ValueError("each series needs a value or None for each time")
    highest = _round_up(max((v for line in series for v in line.values if v is not None), default=0.0))
    right = CHART_WIDTH - max(RIGHT, *(_room_for(one.name) for one in series), 0)
    lines = [_line(one, times, highest, right) for one in series if any(v is not None for v in one.values)]
    return LineChart(
        title=title,
        unit=unit,
        lines=_labels_apart(lines),
        ticks=[Tick(_y(highest * step / 4, highest), highest * step / 4) for step in range(5)],
        time_ticks=_time_ticks(times, right),
        marks=_drawn(_inside(marks, times), times, right),
        rows=[ChartRow(at, [line.values[i] for line in series]) for i, at in enumerate(times)],
        series=series,
        tick_format="m-d" if of_days else "H:i",
        row_format="Y-m-d" if of_days else "Y-m-d H:i",
        right=right,
    )


def _room_for(name: Text) -> int:
    """What a name at the end of its line takes on a phone, where it is written largest. Wide signs count twice."""
    signs = sum(2 if east_asian_width(sign) in "WF" else 1 for sign in str(name))
    return min(LABEL_INDENT + SIGN_WIDTH * signs, CHART_WIDTH // 3)


def _line(series: Series, times: Sequence[datetime], highest: float, right: int) -> Line:
    commands, pen_is_down, last = [], False, 0.0
    for at, value in zip(times, series.values, strict=True):
        if value is None:
            pen_is_down = False
            continue
        last = _y(value, highest)
        commands.append(f"{'L' if pen_is_down else 'M'}{_x_at(at, times, right):.1f} {last:.1f}")
        pen_is_down = True
    return Line(series.code, series.name, " ".join(commands), right + LABEL_INDENT, last + 4, last)


def _labels_apart(lines: Sequence[Line]) -> list[Line]:
    """End labels pushed down until none covers another, and up again from the axis where they would cover its times."""
    ordered = sorted(lines, key=lambda one: one.label_y)
    places: list[float] = []
    for line in ordered:
        places.append(max(line.label_y, places[-1] + LABEL_GAP) if places else line.label_y)
    lowest = CHART_HEIGHT - BOTTOM + LABEL_GAP / 4
    for number in reversed(range(len(places))):
        places[number] = min(places[number], lowest)
        lowest = places[number] - LABEL_GAP
    return [replace(line, label_y=round(y, 1)) for line, y in zip(ordered, places, strict=True)]


def _drawn(marks: Sequence[Mark], times: Sequence[datetime], right: int) -> list[DrawnMark]:
    """In order of time. A name that would cover the one before it is left to the pointer."""
    drawn: list[DrawnMark] = []
    named = -math.inf
    for mark in sorted(marks, key=lambda one: one.at):
        position = _x_at(mark.at, times, right)
        is_named = position - named >= MARK_GAP
        named = position if is_named else named
        drawn.append(DrawnMark(position, mark.kind, mark.label, is_named))
    return drawn


def _time_ticks(times: Sequence[datetime], right: int) -> list[TimeTick]:
    if len(times) < 2:
        return [TimeTick(_x_at(at, times, right), at) for at in times]
    step = (len(times) - 1) / min(4, len(times) - 1)
    chosen = [times[round(i * step)] for i in range(min(4, len(times) - 1) + 1)]
    return [TimeTick(_x_at(at, times, right), at) for at in chosen]


def _inside(marks: Sequence[Mark], times: Sequence[datetime]) -> list[Mark]:
    return [mark for mark in marks if times and times[0] <= mark.at <= times[-1]]


def _x_at(at: datetime, times: Sequence[datetime], right: int) -> float:
    span = (times[-1] - times[0]).total_seconds()
    share = (at - times[0]).total_seconds() / span if span else 1.0
    return round(LEFT + share * (right - LEFT), 1)


def _y(value: float, highest: float) -> float:
    return round(CHART_HEIGHT - BOTTOM - value / highest * (CHART_HEIGHT - TOP - BOTTOM), 1)


def _round_up(value: float) -> float:
    """The next of 1, 2, 4, 8 times a power of ten, whose quarters are short numbers."""
    if value <= 4:
        return 4.0
    power = 10 ** math.floor(math.log10(value))
    return next(float(step * power) for step in (1, 2, 4, 8, 10) if step * power >= value)
