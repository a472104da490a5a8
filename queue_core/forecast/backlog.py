"""What waits in a lane, as cohorts: counted by the kept figures, with a bounded sample of what stands behind them.

How many wait by the minute of their deadline and severity is kept (`figures.due`). What is not kept, the place in the
order and the attempts left, is read of a few jobs in each stretch of deadlines: by probes of the deadline's index.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from queue_core import figures, tally
from queue_core.forecast.drain import widening
from queue_core.forecast.outlook import HORIZON
from queue_core.forecast.terms import Cohort, Order
from queue_core.models import Lane
from queue_core.states import JobState

#: Stretches of deadlines within the horizon, narrow at first, and the ends of those beyond it, in hours.
STRETCHES = 40
BEYOND = (16, 48)
#: Jobs read of each stretch, and cohorts made of one severity in it.
SAMPLED = 40
PARTS = 4
#: Cohorts made of one severity whose new deadlines are spread.
SPREAD_PARTS = 12

#: Deadlines that have passed without a sweep yet, and the last that a row can hold.
PASSED, LATEST = timedelta(days=1), timedelta(days=365_000)

type _Key = tuple[int, int]

SAMPLE = """
SELECT s.place, j.severity, extract(epoch FROM j.urgency - j.deadline)::float8, j.max_attempts - j.attempts,
       j.backoff_steps, extract(epoch FROM j.available_at - %s)::float8
FROM unnest(%s::int[], %s::timestamptz[], %s::timestamptz[]) AS s(place, since, until)
CROSS JOIN LATERAL (
  SELECT severity, urgency, deadline, max_attempts, attempts, backoff_steps, available_at FROM queue_core_job
  WHERE lane_id = %s AND state = 'WAITING' AND deadline >= s.since AND deadline < s.until
  ORDER BY deadline, id LIMIT %s) j
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits. `due` are those within the horizon: (deadline's minute, severity, number), exact."""

    cohorts: Sequence[Cohort]
    number: int
    due: Sequence[tuple[datetime, int, int]]


@dataclass(frozen=True, slots=True)
class _Sampled:
    severity: int
    before_deadline: float
    tries: int
    rested: int
    ready_at: float


@dataclass(slots=True)
class _Dealt:
    """How many of one severity have their deadline in one stretch, and their mean deadline."""

    number: int = 0
    seconds: float = 0.0

    @property
    def deadline(self) -> float:
        return self.seconds / self.number


def read_backlog(lane: Lane, order: Order, *, now: datetime) -> Waiting:
    """The waiting jobs of a lane as of `now`: a few hundred cohorts, however many wait."""
    ends = _ends(now)
    number = figures.totals([lane.pk])[lane.pk].get(JobState.WAITING.value, 0)
    due = figures.due([lane.pk], since=now - PASSED, until=now + timedelta(seconds=ends[-1]))[lane.pk]
    dealt = _deal(due, ends, now)
    rest = number - sum(one.number for one in dealt.values())
    places = {place for place, _severity in dealt} | ({len(ends)} if rest > 0 else set())
    sampled = _sample(lane, sorted(places), ends, now)
    cohorts = [
        cohort
        for (place, severity), one in sorted(dealt.items())
        for cohort in _parts(one.deadline, severity, one.number, _of(sampled, place, severity), order)
    ]
    if rest > 0:
        cohorts += _far_off(rest, 2 * ends[-1], sampled.get(len(ends), []), order)
    soon = now + timedelta(seconds=HORIZON)
    return Waiting(cohorts, max(number, 0), [row for row in due if row[0] < soon])


def requeued(by_severity: Mapping[int, int], order: Order, *, first: timedelta, span: timedelta) -> list[Cohort]:
    """Jobs given back now with new deadlines from `first` on, evenly over `span`, the most severe first."""
    total, before, cohorts = sum(by_severity.values()), 0, []
    for severity in sorted(by_severity, reverse=True):
        parts = min(SPREAD_PARTS, by_severity[severity])
        for part in range(parts):
            middle = (before + by_severity[severity] * (part + 0.5) / parts) / total
            deadline = (first + span * middle).total_seconds()
            count = by_severity[severity] * (part + 1) // parts - by_severity[severity] * part // parts
            cohorts.append(
                Cohort(order.urgency(0.0, deadline, severity), deadline, severity, count, order.max_attempts)
            )
        before += by_severity[severity]
    return cohorts


def joined(waiting: Waiting, joining: Sequence[Cohort], *, now: datetime) -> Waiting:
    """What waits, if these did too."""
    if not joining:
        return waiting
    soon = [one for one in joining if one.deadline < HORIZON]
    due = [(now + timedelta(seconds=one.deadline), one.severity, round(one.count)) for one in soon]
    number = waiting.number + round(sum(one.count for one in joining))
    return Waiting([*waiting.cohorts, *joining], number, [*waiting.due, *due])


def _ends(now: datetime) -> list[float]:
    """Where stretches end, in seconds from now: at whole minutes, as counts and samples both do."""
    lengths = [*widening(HORIZON, STRETCHES), *(hours * 3600.0 for hours in BEYOND)]
    into_the_minute = (now - tally.minute_of(now)).total_seconds()
    return [minute * 60.0 - into_the_minute for minute in sorted({math.ceil(length / 60) + 1 for length in lengths})]


def _deal(due: Sequence[tuple[datetime, int, int]], ends: Sequence[float], now: datetime) -> dict[_Key, _Dealt]:
    """By stretch and severity. A minute stands in the stretch that its middle is in."""
    found: dict[_Key, _Dealt] = {}
    for minute, severity, number in due:
        middle = max((minute - now).total_seconds() + 30, 0.0)
        one = found.setdefault((min(bisect_left(ends, middle), len(ends) - 1), severity), _Dealt())
        one.number += number
        one.seconds += number * middle
    return {key: one for key, one in found.items() if one.number > 0}


def _sample(lane: Lane, places: Sequence[int], ends: Sequence[float], now: datetime) -> dict[int, list[_Sampled]]:
    """By stretch. The last one has no end."""
    bounds = [-PASSED.total_seconds(), *ends, LATEST.total_seconds()]
    since = [now + timedelta(seconds=bounds[place]) for place in places]
    until = [now + timedelta(seconds=bounds[place + 1]) for place in places]
    found: dict[int, list[_Sampled]] = {}
    with connection.cursor() as cursor:
        cursor.execute(SAMPLE, [now, list(places), since, until, lane.pk, SAMPLED])
        for place, severity, before, tries, rested, ready_at in cursor.fetchall():
            found.setdefault(place, []).append(_Sampled(severity, before, tries, rested, max(ready_at or 0.0, 0.0)))
    return found


def _of(sampled: dict[int, list[_Sampled]], place: int, severity: int) -> list[_Sampled]:
    return [one for one in sampled.get(place, []) if one.severity == severity]


def _far_off(number: int, deadline: float, rows: Sequence[_Sampled], order: Order) -> list[Cohort]:
    """Those beyond what is counted by severity: so far off it decides no deadline, and the sample says enough of it."""
    if not rows:
        return _parts(deadline, 0, number, [], order)
    found = []
    for severity in sorted({one.severity for one in rows}):
        own = [one for one in rows if one.severity == severity]
        found += _parts(deadline, severity, number * len(own) / len(rows), own, order)
    return found


def _parts(deadline: float, severity: int, count: float, rows: Sequence[_Sampled] | None, order: Order) -> list[Cohort]:
    """A count dealt out over a few places in the order, as the sample stands in it."""
    if not rows:
        # Nobody of this severity was among those read: as if it had been queued now.
        return [Cohort(order.urgency(0.0, deadline, severity), deadline, severity, count, order.max_attempts)]
    ordered = sorted(rows, key=lambda one: one.before_deadline)
    step = max(1, -(-len(ordered) // PARTS))
    parts = [ordered[start : start + step] for start in range(0, len(ordered), step)]
    return [
        Cohort(
            urgency=deadline + sum(one.before_deadline for one in part) / len(part),
            deadline=deadline,
            severity=severity,
            count=count * len(part) / len(ordered),
            tries=round(sum(one.tries for one in part) / len(part)),
            rested=round(sum(one.rested for one in part) / len(part)),
            ready_at=min(one.ready_at for one in part),
        )
        for part in parts
    ]
