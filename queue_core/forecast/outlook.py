"""Three lines, model, people and delivery: what comes in, what goes out, when each is empty. Pure, and in ranges."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from queue_core.forecast.drain import drain, widening
from queue_core.forecast.draws import Mean
from queue_core.forecast.rates import Rate
from queue_core.forecast.terms import Arrivals, Calls, Cohort, Course, Kind, Order, Plan, Step

#: How far a forecast looks, in seconds, and in how many steps.
HORIZON = 8 * 3600.0
STEPS = 72
#: Counts that came by chance lie within so many roots of what was expected.
ROOTS = 2.0


class LineState(StrEnum):
    """What a line does, worst first."""

    HELD = "held"
    STALLED = "stalled"
    GROWS = "grows"
    UNKNOWN = "unknown"
    EMPTIES = "empties"
    EMPTY = "empty"


class Basis(StrEnum):
    """What a pace rests on."""

    #: Measured in this run.
    RUN = "run"
    #: Measured when the lane last ran healthily.
    HEALTHY = "healthy"
    #: From the length of calls, at a stage that has not run.
    CALLS = "calls"
    #: As an administrator set it up.
    SET_UP = "set_up"
    #: Needs no pace.
    NONE = "none"
    #: Too little was measured.
    TOO_FEW = "too_few"


@dataclass(frozen=True, slots=True)
class Pace:
    """A minute, from `low` to `high`."""

    low: float
    high: float


NOBODY = Pace(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Span:
    """When something happens, in seconds from now. None: not within the horizon."""

    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """One of the three. `empty` is set only where the line empties; `grows` by how many a minute where it grows."""

    state: LineState
    waiting: int
    arriving: Pace | None = None
    leaving: Pace | None = None
    empty: Span | None = None
    grows: Pace | None = None
    basis: Basis = Basis.NONE


@dataclass(frozen=True, slots=True)
class Outlook:
    """What happens at one pace of the model.

    `missed` are those of the tickets that wait now who pass their deadline before their turn, by severity, from and to,
    within the horizon; `fresh` are those of the ones that come meanwhile.
    """

    model: Line
    people: Line
    delivery: Line
    missed: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    fresh: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast the model's line can go: calls a minute, and what the pace rests on.

    A measured speed has its rate, whose range narrows with the time ahead; a reckoned one has its bounds.
    """

    basis: Basis
    rate: Rate | None = None
    bounds: Pace = NOBODY
    is_probe: bool = False

    def calls(self, ahead: float) -> Pace:
        """Calls a minute over the next `ahead` minutes."""
        return self.bounds if self.rate is None else Pace(*self.rate.within(ahead))

    @property
    def usual(self) -> float:
        return (self.bounds.low + self.bounds.high) / 2 if self.rate is None else self.rate.mean


@dataclass(frozen=True, slots=True)
class Side:
    """The line of people or of delivery. `set_up` is their pace a minute as an administrator entered it."""

    waiting: int
    arriving: Rate | None = None
    leaving: Rate | None = None
    set_up: float | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What was read of a lane, in plain numbers. `manual` is the share of results that go on to people, or None."""

    backlog: Sequence[Cohort]
    waiting: int
    arrivals: Rate | None
    kinds: Sequence[Kind]
    calls: Calls
    order: Order
    people: Side
    delivery: Side
    manual: float | None = None
    horizon: float = HORIZON


def at_speed(known: Known, speed: Speed) -> Outlook:
    """What happens if the model's line goes on at this speed."""
    if known.arrivals is None:
        # Without a pace of arrivals nothing is made up; what waits is still counted.
        model = Line(LineState.UNKNOWN, known.waiting, basis=Basis.TOO_FEW)
        return Outlook(model, _side(known.people), _side(known.delivery))
    if known.waiting <= speed.usual:
        return _kept_up(known, known.arrivals, speed)
    usual = _course(known, speed.usual, known.arrivals.mean, speed)
    ahead = (usual.emptied_at or known.horizon) / 60
    arriving = Pace(*known.arrivals.within(ahead))
    leaving = speed.calls(ahead)
    quick = _course(known, leaving.high, arriving.low, speed)
    slow = _course(known, leaving.low, arriving.high, speed)
    answered = _scaled(leaving, known.calls)
    model = _model_line(known, arriving, answered, quick, slow, speed.basis)
    missed, fresh = _missed(quick, usual, slow), _fresh(quick, usual, slow)
    people = _people_line(known, _taken(arriving, answered, model), dying=_dying(known, missed, fresh))
    return Outlook(model, people, _side(known.delivery), missed, fresh)


def _kept_up(known: Known, arrivals: Rate, speed: Speed) -> Outlook:
    """Not a minute's work waits: what goes out is what comes in, and tells nothing of how much more could.

    So nobody is said to be lost, and nothing to grow: a queue that begins to grow has more than a minute's work soon.
    """
    arriving, answered = (
        Pace(*arrivals.within(known.horizon / 60)),
        _scaled(speed.calls(known.horizon / 60), known.calls),
    )
    model = Line(LineState.EMPTY, known.waiting, arriving, answered, basis=speed.basis)
    passed = dict.fromkeys(range(3, -1, -1), (0, 0))
    return Outlook(model, _people_line(known, _taken(arriving, answered, model)), _side(known.delivery), passed, (0, 0))


def if_nothing_starts(known: Known) -> Outlook:
    """On hold: no pace is needed, and none is used. Who passes is counted, not reckoned."""
    arrivals = known.arrivals
    course = _course(known, 0.0, 0.0, Speed(Basis.NONE))
    passed = {severity: (round(course.missed[severity]),) * 2 for severity in sorted(course.missed, reverse=True)}
    arriving = None if arrivals is None else Pace(*arrivals.within(known.horizon / 60))
    line = Line(LineState.HELD if known.waiting else LineState.EMPTY, known.waiting, arriving)
    people = _queue(known.people, _dying(known, passed, (0, 0)))
    return Outlook(line, people, _side(known.delivery), passed)


def unknown(known: Known) -> Outlook:
    """Too little was measured to say anything of the model's pace."""
    arriving = None if known.arrivals is None else Pace(*known.arrivals.within(known.horizon / 60))
    state = LineState.UNKNOWN if known.waiting else LineState.EMPTY
    line = Line(state, known.waiting, arriving, basis=Basis.TOO_FEW)
    return Outlook(line, _side(known.people), _side(known.delivery))


def stalled(known: Known) -> Outlook:
    """Work waits and no call has ended for a while: what waits goes on as on hold, but nobody meant it."""
    found = if_nothing_starts(known)
    return replace(found, model=replace(found.model, state=LineState.STALLED))


def _course(known: Known, calls_a_minute: float, arriving: float, speed: Speed) -> Course:
    """The expected course at a given number of calls a minute: a stage whose rate alone bounds it."""
    step = Step(0.0, 10**9 if calls_a_minute > 0 else 0, calls_a_minute, speed.is_probe)
    return drain(
        known.backlog,
        Plan([step]),
        arrivals=Arrivals(arriving, known.kinds),
        calls=known.calls,
        order=known.order,
        draw=Mean(),
        moments=widening(known.horizon, STEPS),
    )


def _model_line(known: Known, arriving: Pace, answered: Pace, quick: Course, slow: Course, basis: Basis) -> Line:
    line = Line(LineState.EMPTIES, known.waiting, arriving, answered, basis=basis)
    if quick.emptied_at is None:
        if arriving.low > answered.high:
            grows = Pace(arriving.low - answered.high, arriving.high - answered.low)
            return replace(line, state=LineState.GROWS, grows=grows)
        return replace(line, empty=Span(None, None))
    return replace(line, empty=Span(quick.emptied_at, slow.emptied_at))


def _people_line(known: Known, reviewed: Pace, *, dying: Pace = NOBODY) -> Line:
    """What comes to people follows the model's pace where the share that goes on to them is known, and the deaths."""
    if known.manual is None:
        return _side(known.people)
    low, high = reviewed.low * known.manual, reviewed.high * known.manual
    return _queue(known.people, Pace(low + dying.low, high + dying.high))


def _dying(known: Known, missed: Mapping[int, tuple[int, int]], fresh: tuple[int, int]) -> Pace:
    """Items a minute that open because a deadline passed, over the horizon."""
    minutes = known.horizon / 60
    low, high = (sum(ends) for ends in zip(*missed.values(), fresh, strict=True))
    return Pace(low / minutes, high / minutes)


def _side(side: Side) -> Line:
    arriving = None if side.arriving is None else Pace(*side.arriving.within(HORIZON / 60))
    return _queue(side, arriving)


def _queue(side: Side, arriving: Pace | None) -> Line:
    """A line of its own whose order does not matter here: it empties by the difference of its paces."""
    leaving, basis = _leaving(side)
    line = Line(LineState.UNKNOWN, side.waiting, arriving, leaving, basis=basis)
    if not side.waiting and (arriving is None or arriving.low == 0 or (leaving and leaving.low >= arriving.high)):
        return replace(line, state=LineState.EMPTY)
    if arriving is None or leaving is None:
        return replace(line, basis=Basis.TOO_FEW)
    if leaving.high == 0:
        return replace(line, state=LineState.STALLED)
    if arriving.low > leaving.high:
        grows = Pace(arriving.low - leaving.high, arriving.high - leaving.low)
        return replace(line, state=LineState.GROWS, grows=grows)
    quick, slow = leaving.high - arriving.low, leaving.low - arriving.high
    return replace(line, state=LineState.EMPTIES, empty=Span(_until(side.waiting, quick), _until(side.waiting, slow)))


def _leaving(side: Side) -> tuple[Pace | None, Basis]:
    if side.leaving is not None:
        return Pace(*side.leaving.within(HORIZON / 60)), Basis.RUN
    if side.set_up is not None:
        return Pace(side.set_up, side.set_up), Basis.SET_UP
    return None, Basis.TOO_FEW


def _until(waiting: int, a_minute: float) -> float | None:
    seconds = waiting / a_minute * 60 if a_minute > 0 else math.inf
    return seconds if seconds <= HORIZON else None


def _missed(*courses: Course) -> dict[int, tuple[int, int]]:
    """From the fewest to the most of the courses, and what chance adds to either."""
    found = {}
    for severity in sorted(courses[0].missed, reverse=True):
        found[severity] = _by_chance([course.missed[severity] - course.fresh[severity] for course in courses])
    return found


def _fresh(*courses: Course) -> tuple[int, int]:
    return _by_chance([sum(course.fresh.values()) for course in courses])


def _by_chance(numbers: Sequence[float]) -> tuple[int, int]:
    low, high = max(0.0, min(numbers)), max(0.0, *numbers)
    return max(0, math.floor(low - ROOTS * math.sqrt(low))), _most(high)


def _most(expected: float) -> int:
    return math.ceil(expected + ROOTS * math.sqrt(expected)) if expected >= 0.05 else 0


def _scaled(pace: Pace, calls: Calls) -> Pace:
    """Answers of so many calls."""
    share = (1 - calls.timeouts) * (1 - calls.unavailable) * (1 - calls.invalid)
    return Pace(pace.low * share, pace.high * share)


def _taken(arriving: Pace, answered: Pace, model: Line) -> Pace:
    """How many the model's line really reviews: no more than come, once it is empty."""
    if model.state == LineState.EMPTY:
        return Pace(min(arriving.low, answered.low), min(arriving.high, answered.high))
    return answered
