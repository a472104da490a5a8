"""The two charts of a lane's page: how long the oldest waited, and what was decided, came in and failed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum

from django.utils import timezone
from django.utils.translation import gettext as _

from queue_core import figures
from queue_core.figures import Counts
from queue_core.figures.flow import FAILED
from queue_core.models import Hold, Lane, StageRun
from reviewboard.drawing import MOST_POINTS, LineChart, Mark, Series, line_chart
from reviewboard.ramp_text import stage_name
from reviewboard.shapes import Text

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
DAYS_SHOWN = 30
#: Of the newest runs and holds of the time that is shown; more lines than this would hide the chart behind them.
MOST_MARKS = 12


class Span(StrEnum):
    """What time the charts show: the last hour by minutes, today by hours, or the last days by days."""

    HOUR = "hour"
    TODAY = "today"
    DAYS = "days"

    @classmethod
    def chosen(cls, word: str) -> "Span":
        """The span of an address's word; the hour for a word that is none."""
        return cls(word) if word in cls else cls.HOUR


@dataclass(frozen=True, slots=True)
class SpanLink:
    span: Span
    name: Text
    is_shown: bool


def span_links(shown: Span) -> list[SpanLink]:
    names = {Span.HOUR: _("last hour"), Span.TODAY: _("today"), Span.DAYS: _("last 30 days")}
    return [SpanLink(span, name, span is shown) for span, name in names.items()]


def charts(lane: Lane, span: Span, *, now: datetime) -> list[LineChart]:
    """Both charts of a lane, cut in the reader's zone."""
    times = points(span, now=now)
    marks = _marks(lane, since=times[0], until=now)
    # The present minute is no point of the hour, and counts for none of them.
    until = times[-1] + MINUTE if span is Span.HOUR else now
    return [_waits(lane, span, times, marks, until), _flow(lane, span, times, marks, until)]


def points(span: Span, *, now: datetime) -> list[datetime]:
    """When each point's time begins, cut in the reader's zone and told in UTC.

    Minutes are whole ones: the present one has only begun, and would be drawn as a fall. Today's last hour, and the
    last day, are those so far.

    Aware times of one zone are compared and added up by the clock on the wall, which shows two hours of the day on
    which it is set back as one.
    """
    if span is Span.HOUR:
        present = now.astimezone(UTC).replace(second=0, microsecond=0)
        return [present - number * MINUTE for number in range(MOST_POINTS, 0, -1)]
    if span is Span.DAYS:
        return [_midnight(now, days_ago=number) for number in reversed(range(DAYS_SHOWN))]
    midnight = _midnight(now, days_ago=0)
    return [midnight + number * HOUR for number in range((now - midnight) // HOUR + 1)]


def _midnight(now: datetime, *, days_ago: int) -> datetime:
    zone = timezone.get_current_timezone()
    return datetime.combine(timezone.localdate(now) - days_ago * DAY, time(), zone).astimezone(UTC)


def _waits(lane: Lane, span: Span, times: Sequence[datetime], marks: Sequence[Mark], until: datetime) -> LineChart:
    waits = figures.longest_waits(lane.pk, starts=times, until=until)
    series = [
        Series("a", _("ready"), [_minutes(one, 0) for one in waits]),
        Series("b", _("held"), [_minutes(one, 1) for one in waits]),
    ]
    title = _("Oldest wait, ready and held")
    return line_chart(title, times, series, unit=_("minutes"), marks=marks, of_days=span is Span.DAYS)


def _minutes(waits: Sequence[timedelta | None] | None, place: int) -> float | None:
    """A gap where nobody looked, and nothing at all where nothing waited."""
    if waits is None:
        return None
    wait = waits[place]
    return wait / MINUTE if wait is not None else 0.0


def _flow(lane: Lane, span: Span, times: Sequence[datetime], marks: Sequence[Mark], until: datetime) -> LineChart:
    [counted] = figures.cuts([lane.pk], starts=times, until=until).values()
    series = [
        Series("a", _("decided"), _numbers(counted, lambda one: one.decided)),
        Series("b", _("arriving"), _numbers(counted, lambda one: one.added)),
        Series("c", _("errors"), _numbers(counted, lambda one: one.ended(*FAILED))),
    ]
    units = {Span.HOUR: _("a minute"), Span.TODAY: _("an hour"), Span.DAYS: _("a day")}
    title = _("Decided, arriving and failed calls")
    return line_chart(title, times, series, unit=units[span], marks=marks, of_days=span is Span.DAYS)


def _numbers(counted: Sequence[Counts], number: Callable[[Counts], int]) -> list[float | None]:
    return [float(number(one)) for one in counted]


def _marks(lane: Lane, *, since: datetime, until: datetime) -> list[Mark]:
    """Holds and stages that began in this time, the newest few."""
    runs = StageRun.objects.filter(lane=lane, started_at__gte=since, started_at__lte=until).order_by("-started_at")
    holds = Hold.objects.filter(lane=lane, started_at__gte=since, started_at__lte=until).order_by("-started_at")
    marks = [
        *(Mark(run.started_at, "stage", stage_name(run)) for run in runs[:MOST_MARKS]),
        *(Mark(hold.started_at, "hold", _("hold")) for hold in holds[:MOST_MARKS]),
    ]
    return sorted(marks, key=lambda mark: mark.at)[-MOST_MARKS:]
