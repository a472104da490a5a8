"""The forecast of one lane: as it goes on now, and at the next stage; on hold also if nothing starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from queue_core.contract.rules import PROBE
from queue_core.forecast import outlook, pace, speeds
from queue_core.forecast.backlog import Waiting, joined, read_backlog
from queue_core.forecast.outlook import HORIZON, Basis, Known, Outlook
from queue_core.forecast.pace import Window
from queue_core.forecast.terms import Calls, Cohort, Order, Step
from queue_core.models import Lane, Stage
from queue_core.ramp_runs import next_stage
from queue_core.where import LaneFacts, facts_of

#: On hold, what passes its deadline is told up to these times.
MOMENTS = (timedelta(minutes=15), timedelta(hours=1), timedelta(hours=4))
#: A forecast is made anew when it is older: it moves by minutes, and several pages ask for it each second.
LASTS = timedelta(seconds=15)
MOST_KEPT = 200


class Course(StrEnum):
    """What a column of the forecast supposes."""

    AS_NOW = "as_now"
    NOTHING_STARTS = "nothing_starts"
    AS_BEFORE = "as_before"
    NEXT_STAGE = "next_stage"


@dataclass(frozen=True, slots=True)
class Column:
    """One supposition and what follows. `since` to `until` is the time that its pace was measured in."""

    course: Course
    outlook: Outlook
    stage: Stage | None = None
    since: datetime | None = None
    until: datetime | None = None
    number: int = 0

    @property
    def is_estimate(self) -> bool:
        return self.outlook.model.basis in (Basis.HEALTHY, Basis.CALLS)


@dataclass(frozen=True, slots=True)
class Forecast:
    """`passing` counts those whose deadline passes up to a time if nothing starts; it needs no pace."""

    as_of: datetime
    horizon: timedelta
    columns: Sequence[Column]
    passing: Sequence[tuple[datetime, int]]

    def column(self, course: Course) -> Column | None:
        return next((one for one in self.columns if one.course == course), None)


_kept: dict[tuple[object, ...], Forecast] = {}


def forecast(lane: Lane, *, now: datetime, facts: LaneFacts | None = None, is_stalled: bool = False) -> Forecast:
    """The forecast of a lane (read with `where.lanes_to_read`), at most LASTS old."""
    key = (lane.pk, lane.run_id, lane.hold_id, lane.cap, lane.version, is_stalled)
    kept = _kept.get(key)
    if kept is not None and timedelta(0) <= now - kept.as_of < LASTS:
        return kept
    made = read_forecast(lane, now=now, facts=facts, is_stalled=is_stalled)
    if len(_kept) >= MOST_KEPT:
        _kept.pop(next(iter(_kept)))
    _kept[key] = made
    return made


def forget() -> None:
    """For tests: what one of them kept is nothing to the next."""
    _kept.clear()


def read_forecast(
    lane: Lane,
    *,
    now: datetime,
    facts: LaneFacts | None = None,
    is_stalled: bool = False,
    joining: Sequence[Cohort] = (),
) -> Forecast:
    """As `forecast`, read anew. `is_stalled`: it runs, but its headline says that nothing moves.

    `joining` are tickets that do not wait yet: what the forecast would be if they did (`backlog.requeued`).
    """
    facts = facts_of([lane], now=now)[lane.pk] if facts is None else facts
    order = order_of(lane)
    waiting = joined(read_backlog(lane, order, now=now), joining, now=now)
    window = pace.of_the_run(lane, now=now)
    measured = window if window.calls is not None else pace.of_the_last_healthy_time(lane, now=now)
    known = _known(lane, waiting, order, measured, needs=facts.needs, now=now)
    columns = _held(known, measured) if lane.run is None else [_running(lane, known, window, is_stalled=is_stalled)]
    higher = next_stage(lane)
    if higher is not None:
        columns.append(_higher(lane, higher, known, measured, window))
    passing = [] if lane.run is not None else _passing(waiting, now)
    return Forecast(now, timedelta(seconds=HORIZON), columns, passing)


def order_of(lane: Lane) -> Order:
    return Order(
        weight=lane.urgency_weight,
        severity_bonus=lane.severity_bonus.total_seconds(),
        max_attempts=lane.max_attempts,
        back_off=lane.backoff_base.total_seconds(),
        longest_back_off=lane.backoff_cap.total_seconds(),
    )


def _known(lane: Lane, waiting: Waiting, order: Order, measured: Window, *, needs: timedelta, now: datetime) -> Known:
    came, kinds = pace.arrivals(lane, now=now)
    calls: Calls = pace.calls_of(lane, measured.how, needs=needs)
    return Known(
        backlog=waiting.cohorts,
        waiting=waiting.number,
        arrivals=came,
        kinds=kinds,
        calls=calls,
        order=order,
        people=pace.people(lane, now=now),
        delivery=pace.delivery(lane, now=now),
        manual=pace.manual_share(measured.how),
    )


def _running(lane: Lane, known: Known, window: Window, *, is_stalled: bool) -> Column:
    if is_stalled:
        return Column(Course.AS_NOW, outlook.stalled(known))
    if window.calls is None:
        return Column(Course.AS_NOW, outlook.unknown(known), number=window.number)
    speed = speeds.of_run(window.calls, is_probe=lane.run is not None and lane.run.number == PROBE)
    found = outlook.at_speed(known, speed)
    return Column(Course.AS_NOW, found, None, window.since, window.until, window.number)


def _held(known: Known, measured: Window) -> list[Column]:
    columns = [Column(Course.NOTHING_STARTS, outlook.if_nothing_starts(known))]
    if measured.calls is not None:
        found = outlook.at_speed(known, speeds.of_run(measured.calls, basis=Basis.HEALTHY))
        columns.append(Column(Course.AS_BEFORE, found, None, measured.since, measured.until, measured.number))
    return columns


def _higher(lane: Lane, higher: Stage, known: Known, measured: Window, window: Window) -> Column:
    """The next stage by the length of calls; where none was measured nothing is made up."""
    if measured.calls is None:
        return Column(Course.NEXT_STAGE, outlook.unknown(known), higher, number=measured.number)
    step = _step(higher.cap, higher.rate, is_probe=higher.number == PROBE)
    present = None if lane.run is None or lane.cap is None else _step(lane.cap, lane.run.rate)
    speed = speeds.of_stage(step, known.calls, now=window.calls, present=present)
    found = outlook.at_speed(known, speed)
    return Column(Course.NEXT_STAGE, found, higher, measured.since, measured.until, measured.number)


def _step(cap: int, rate: int | None, *, is_probe: bool = False) -> Step:
    return Step(0.0, cap, None if rate is None else float(rate), is_probe)


def _passing(waiting: Waiting, now: datetime) -> list[tuple[datetime, int]]:
    """Only times that say something new."""
    found: list[tuple[datetime, int]] = []
    for length in MOMENTS:
        until = now + length
        number = sum(count for minute, _severity, count in waiting.due if minute < until)
        if number > (found[-1][1] if found else 0):
            found.append((until, number))
    return found
