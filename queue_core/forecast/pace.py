"""The paces of a lane, read from the kept figures: what comes, what goes, and how its calls go."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from queue_core import figures, relay, tally
from queue_core.contract.rules import CALL_MARGIN
from queue_core.figures import Counts
from queue_core.forecast import rates
from queue_core.forecast.outlook import Side
from queue_core.forecast.rates import Rate
from queue_core.forecast.terms import Arrivals, Calls, Kind
from queue_core.gate_measure import CALLS
from queue_core.models import Lane
from queue_core.states import AttemptOutcome, Result

#: A run's pace is told by its last minutes, arrivals and people's work by more of them: they come by fits.
RUN_WINDOW = timedelta(minutes=15)
ARRIVALS_WINDOW = timedelta(minutes=30)
PEOPLE_WINDOW = timedelta(hours=1)
#: How far back a healthy time is looked for, and how many of its minutes tell its pace.
HEALTHY_WITHIN = timedelta(hours=24)
HEALTHY_MINUTES = 15
#: More than this share of calls ending badly is not healthy. The plan's own usual limit.
HEALTHY_RATIO = 0.1
#: So many of the newest jobs tell which kinds of tickets come.
MOST_KINDS_READ = 2_000
MOST_DELIVERIES_READ = 5_000

UNAVAILABLE = (AttemptOutcome.UNAVAILABLE.value, AttemptOutcome.OVERLOADED.value)
INVALID = (AttemptOutcome.INVALID_ANSWER.value,)
TIMEOUTS = (AttemptOutcome.TIMEOUT.value, AttemptOutcome.LEASE_EXPIRED.value)

#: What came to the model of the newest jobs of all lanes. A pulled job with no claim went to people at intake.
NEWEST = """
SELECT severity, round(ln(greatest(extract(epoch FROM deadline - queued_at)::float8, 1)) / ln(2::float8))::int,
       avg(extract(epoch FROM deadline - queued_at))::float8, count(*) FILTER (WHERE NOT is_peoples), count(*)
FROM (
  SELECT lane_id, severity, deadline, queued_at, (dead_reason = 'pulled' AND fence <= 1) IS TRUE AS is_peoples
  FROM queue_core_job ORDER BY id DESC LIMIT %s) j
WHERE lane_id = %s
GROUP BY 1, 2
"""

DELIVERED = """
SELECT date_trunc('minute', ended_at), count(*) FROM (
  SELECT lane_id, kind, state, ended_at FROM queue_core_delivery ORDER BY id DESC LIMIT %s) d
WHERE lane_id = %s AND kind = 'decision' AND state = 'delivered' AND ended_at >= %s AND ended_at < %s
GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class Window:
    """Minutes that were measured: how many calls ended a minute, and how. `since` and `until` bound them."""

    calls: Rate | None
    how: Counts
    since: datetime | None
    until: datetime | None

    @property
    def number(self) -> int:
        return self.how.ended(*CALLS)


def of_the_run(lane: Lane, *, now: datetime) -> Window:
    """The running stage's own last whole minutes. On hold there are none."""
    if lane.run is None:
        return Window(None, Counts(), None, None)
    until = tally.minute_of(now)
    begun = tally.minute_of(lane.run.started_at) + tally.MINUTE
    since = max(begun, until - RUN_WINDOW)
    if since >= until:
        return Window(None, Counts(), None, None)
    return _window(figures.series([lane.pk], since=since, until=until)[lane.pk], since, until)


def of_the_last_healthy_time(lane: Lane, *, now: datetime) -> Window:
    """The last minutes in which calls ended, and well: what the lane did before it was held."""
    until = tally.minute_of(now)
    since = until - HEALTHY_WITHIN
    minutes = figures.series([lane.pk], since=since, until=until)[lane.pk]
    healthy = [(place, one) for place, one in enumerate(minutes) if _is_healthy(one)][-HEALTHY_MINUTES:]
    if not healthy:
        return Window(None, Counts(), None, None)
    first, last = since + healthy[0][0] * tally.MINUTE, since + (healthy[-1][0] + 1) * tally.MINUTE
    return _window([one for _place, one in healthy], first, last)


def arrivals(lane: Lane, *, now: datetime) -> tuple[Rate | None, list[Kind]]:
    """What comes to the model a minute, requeued or new, and of what kinds."""
    until = tally.minute_of(now)
    minutes = figures.series([lane.pk], since=until - ARRIVALS_WINDOW, until=until)[lane.pk]
    kinds, share = _kinds(lane)
    came = [one.of(tally.ADDED) * share + one.of(tally.REQUEUED) for one in minutes]
    return rates.measured(came, least=0), kinds


def calls_of(lane: Lane, how: Counts, *, needs: timedelta) -> Calls:
    """How calls go, from what was measured; from the lane's set-up where nothing was."""
    number = max(how.ended(*CALLS), 1)
    limit = lane.connection.call_time_limit.total_seconds()
    median, p95 = _quantile(how, 0.5), _quantile(how, 0.95)
    usual = (lane.usual_call_time or lane.least_call_time or CALL_MARGIN).total_seconds()
    p95 = max(p95 or usual, 0.01)
    return Calls(
        median=min(median or p95 / 2, p95),
        p95=p95,
        # Timeouts are a measured share already: the length of calls must not count them again.
        time_limit=max(limit, 4 * p95),
        needs=needs.total_seconds(),
        unavailable=how.ended(*UNAVAILABLE) / number,
        invalid=how.ended(*INVALID) / number,
        timeouts=how.ended(*TIMEOUTS) / number,
        manual=manual_share(how) or 0.0,
    )


def manual_share(how: Counts) -> float | None:
    """The share of results that go on to people; None where too few are known."""
    if how.completed < rates.LEAST_NUMBER:
        return None
    return how.results[Result.MANUAL] / how.completed


def people(lane: Lane, *, now: datetime) -> Side:
    until = tally.minute_of(now)
    minutes = figures.series([lane.pk], since=until - PEOPLE_WINDOW, until=until)[lane.pk]
    totals = figures.totals([lane.pk])[lane.pk]
    waiting = sum(number for code, number in totals.items() if code.startswith(f"{tally.ITEM}."))
    return Side(
        waiting=max(waiting, 0),
        arriving=rates.measured([one.of(tally.ITEM_OPENED) for one in minutes], least=0),
        leaving=rates.measured([one.of(tally.ITEM_CLOSED) for one in minutes]),
        set_up=lane.desk_items_per_hour / 60 if lane.desk_items_per_hour else None,
    )


def delivery(lane: Lane, *, now: datetime) -> Side:
    """What endpoints want and do not have. With nothing to deliver nothing comes to this line either."""
    until = tally.minute_of(now)
    since = until - RUN_WINDOW
    waiting = relay.undelivered([lane.pk]).get(lane.pk, (0, now))[0]
    with connection.cursor() as cursor:
        cursor.execute(DELIVERED, [MOST_DELIVERIES_READ, lane.pk, since, until])
        delivered = dict(cursor.fetchall())
    left = [delivered.get(since + place * tally.MINUTE, 0) for place in range(RUN_WINDOW // tally.MINUTE)]
    decided = [one.decided for one in figures.series([lane.pk], since=since, until=until)[lane.pk]]
    is_wanted = waiting > 0 or any(left)
    return Side(
        waiting=waiting,
        arriving=rates.measured(decided if is_wanted else [0] * len(decided), least=0),
        leaving=rates.measured(left, least=0 if waiting else 1),
    )


def as_arrivals(rate: Rate | None, kinds: Sequence[Kind]) -> Arrivals:
    return Arrivals(rate.mean if rate is not None else 0.0, kinds)


def _window(minutes: Sequence[Counts], since: datetime, until: datetime) -> Window:
    how: dict[str, int] = {}
    for one in minutes:
        for code, number in one.by_code.items():
            how[code] = how.get(code, 0) + number
    return Window(rates.measured([one.ended(*CALLS) for one in minutes]), Counts(how), since, until)


def _is_healthy(minute: Counts) -> bool:
    calls = minute.ended(*CALLS)
    bad = minute.ended(*UNAVAILABLE, *INVALID, *TIMEOUTS, AttemptOutcome.MISCONFIGURED.value)
    return calls > 0 and bad <= HEALTHY_RATIO * calls


def _kinds(lane: Lane) -> tuple[list[Kind], float]:
    """The kinds by their share of what comes to the model, and the model's share of all that comes."""
    with connection.cursor() as cursor:
        cursor.execute(NEWEST, [MOST_KINDS_READ, lane.pk])
        rows = cursor.fetchall()
    models, all_ = sum(row[3] for row in rows), sum(row[4] for row in rows)
    if not models:
        return [], 1.0
    return [Kind(row[0], row[3] / models, row[2]) for row in rows if row[3]], models / all_


def _quantile(how: Counts, share: float) -> float | None:
    """In seconds, within the bucket that it falls in: buckets widen by steps, so in equal ratios."""
    buckets = how.histogram(tally.LATENCY)
    total, below = sum(buckets), 0
    if total < rates.LEAST_NUMBER:
        return None
    ends = [end.total_seconds() for end in tally.LATENCY_ENDS]
    bounds = [ends[0] / 2, *ends, 2 * ends[-1]]
    for place, number in enumerate(buckets):
        if number and below + number >= share * total:
            part = (share * total - below) / number
            low, high = math.log(bounds[place]), math.log(bounds[place + 1])
            return math.exp(low + part * (high - low))
        below += number
    return None
