"""What an outage came to: figures of its lanes over its time, and what its log keeps. Reads only.

Flows come from the kept figures of each minute; deaths by severity and decisions by hand from the ledger's own rows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from queue_core import figures, tally
from queue_core.figures import Counts
from queue_core.figures.folding import kept_for
from queue_core.models import Hold, Lane, Outage, StageRun
from queue_core.ramp_outages import lanes_of
from queue_core.states import ERROR_OUTCOMES, TIMEOUT_OUTCOMES

MOST_POINTS = 60
SOON = timedelta(hours=1)
#: How far ahead deadlines are looked at for the severity of what waits.
AHEAD = timedelta(days=7)

DECIDED = """
SELECT person_id IS NOT NULL, verdict, count(*) FROM queue_core_decision
WHERE lane_id = ANY(%s::bigint[]) AND decided_at >= %s AND decided_at <= %s AND verdict IS NOT NULL
GROUP BY 1, 2
"""

#: A death that people have to look after opens an item, and its row stays whatever becomes of the job. Two halves, each
#: by an index of its own.
DEATHS = """
SELECT severity, cause, count(*) FROM (
  SELECT severity, cause FROM queue_core_item
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND closed_at IS NULL AND kind = 'dead'
    AND opened_at >= %(since)s AND opened_at <= %(until)s
  UNION ALL
  SELECT severity, cause FROM queue_core_item
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND closed_at >= %(since)s AND kind = 'dead'
    AND opened_at >= %(since)s AND opened_at <= %(until)s
) died GROUP BY 1, 2
"""

LAST_CAPS = """
SELECT DISTINCT ON (lane_id) lane_id, cap FROM queue_core_stage
WHERE lane_id = ANY(%s::bigint[]) ORDER BY lane_id, number DESC
"""

USAGE = """
SELECT u.name, sum(u.number::numeric)::bigint
FROM queue_core_attempt a, jsonb_each_text(a.usage) u(name, number)
WHERE a.lane_id = ANY(%s::bigint[]) AND a.ended_at >= %s AND a.ended_at <= %s
  AND jsonb_typeof(a.usage -> u.name) = 'number'
GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One step of the chart: what happened in it, a minute."""

    at: datetime
    arriving: float
    by_model: float
    by_people: float
    died: float


@dataclass(frozen=True, slots=True)
class Waits:
    """How long tickets waited before a claim: the bucket's end that half, and that 95 of 100, stayed below.

    None in a bound: longer than the last bucket, or nothing was claimed. `oldest` is the longest that was seen waiting.
    """

    claims: int
    half: timedelta | None
    most: timedelta | None
    oldest: timedelta | None


@dataclass(frozen=True, slots=True)
class LaneProposal:
    """One lane in the order in which it is proposed to start them: by the severity of what waits, then by deaths."""

    lane: Lane
    severity: int | None
    dying: int
    waiting: int
    cap: int | None
    last_cap: int | None


@dataclass(frozen=True, slots=True)
class Record:
    """`counts` are None where the minutes of that time are not kept any more."""

    outage: Outage
    lanes: Sequence[Lane]
    until: datetime
    counts: Counts | None
    points: Sequence[Point]
    step: timedelta
    waits: Waits | None
    decisions: Mapping[tuple[bool, str], int] = field(default_factory=dict)
    deaths: Mapping[tuple[int, str], int] = field(default_factory=dict)
    usage: Mapping[str, int] = field(default_factory=dict)
    runs: Sequence[StageRun] = ()
    holds: Sequence[Hold] = ()

    @property
    def deaths_by_severity(self) -> dict[int, int]:
        found: Counter[int] = Counter()
        for (severity, _cause), number in self.deaths.items():
            found[severity] += number
        return dict(sorted(found.items(), reverse=True))

    def decided(self, *, by_people: bool) -> int:
        return sum(number for (people, _verdict), number in self.decisions.items() if people == by_people)

    @property
    def errors(self) -> int | None:
        return self.counts.ended(*ERROR_OUTCOMES) if self.counts else None

    @property
    def timeouts(self) -> int | None:
        return self.counts.ended(*TIMEOUT_OUTCOMES) if self.counts else None


def lanes_in(outage: Outage) -> list[Lane]:
    """The lanes that its log names; while it names none, as when it was opened by hand, all of its connection."""
    named = lanes_of([outage.pk])[outage.pk]
    if named:
        return list(named)
    return list(Lane.objects.filter(connection=outage.connection_id).select_related("run").order_by("name"))


def record_of(outage: Outage, *, now: datetime) -> Record:
    """Everything of one outage, until it was closed or until now."""
    lanes = lanes_in(outage)
    ids = [lane.pk for lane in lanes]
    since, until = outage.opened_at, outage.closed_at or now
    kept = now - kept_for() <= since
    points, step = _points(ids, since, until) if kept else ([], tally.MINUTE)
    counts = _sum(figures.counts(ids, since=since, until=until).values()) if kept else None
    return Record(
        outage=outage,
        lanes=lanes,
        until=until,
        counts=counts,
        points=points,
        step=step,
        waits=_waits(ids, counts, since, until) if counts else None,
        decisions={(people, verdict): number for people, verdict, number in _rows(DECIDED, [ids, since, until])},
        deaths={
            (severity, cause): number
            for severity, cause, number in _rows(DEATHS, {"lanes": ids, "since": since, "until": until})
        },
        usage=dict(_rows(USAGE, [ids, since, until])),
        runs=list(
            StageRun.objects.filter(lane__in=ids, started_at__gte=since, started_at__lte=until)
            .select_related("lane", "raised_by")
            .order_by("started_at", "pk")
        ),
        holds=list(
            Hold.objects.filter(lane__in=ids, started_at__gte=since, started_at__lte=until)
            .select_related("lane", "by")
            .order_by("started_at", "pk")
        ),
    )


def proposed_order(lanes: Sequence[Lane], *, now: datetime) -> list[LaneProposal]:
    """The lanes as they had best be started: the most severe waiting ticket first, then deaths in the next hour."""
    ids = [lane.pk for lane in lanes]
    due = figures.due(ids, since=now, until=now + AHEAD)
    totals = figures.totals(ids)
    last: dict[int, int] = dict(_rows(LAST_CAPS, [ids]))
    found = [
        LaneProposal(
            lane=lane,
            severity=max((severity for _at, severity, _n in due[lane.pk]), default=None),
            dying=sum(number for at, _severity, number in due[lane.pk] if at < now + SOON),
            waiting=totals[lane.pk].get("WAITING", 0),
            cap=lane.cap,
            last_cap=last.get(lane.pk),
        )
        for lane in lanes
    ]
    return sorted(
        found, key=lambda one: (-(one.severity if one.severity is not None else -1), -one.dying, one.lane.name)
    )


def _points(ids: list[int], since: datetime, until: datetime) -> tuple[list[Point], timedelta]:
    """At most 60 steps of whole minutes, each a rate a minute, so that a step's length changes no height."""
    minutes = max(1, -((since - until) // tally.MINUTE))
    step = tally.MINUTE * -(-minutes // (MOST_POINTS - 1))
    found = figures.series(ids, since=since, until=until, step=step)
    start, length = tally.minute_of(since), step / tally.MINUTE
    summed = [_sum(steps) for steps in zip(*found.values(), strict=True)] if found else []
    return [
        Point(
            at=start + place * step,
            arriving=one.added / length,
            by_model=one.completed / length,
            by_people=sum(one.under(tally.DECIDED).values()) / length,
            died=sum(one.under(tally.DIED).values()) / length,
        )
        for place, one in enumerate(summed)
    ], step


def _sum(many: Any) -> Counts:
    added: Counter[str] = Counter()
    for one in many:
        added.update(one.by_code)
    return Counts(dict(added))


def _waits(ids: list[int], counts: Counts, since: datetime, until: datetime) -> Waits:
    buckets = counts.histogram(tally.WAIT)
    samples = [one for many in figures.samples(ids, since=since, until=until).values() for one in many]
    seen = [age for one in samples for age in (one.oldest_ready, one.oldest_held) if age is not None]
    return Waits(sum(buckets), _bound(buckets, 0.5), _bound(buckets, 0.95), max(seen, default=None))


def _bound(buckets: Sequence[int], share: float) -> timedelta | None:
    """The end of the bucket in which this share of all is reached."""
    reached, wanted = 0, share * sum(buckets)
    for end, number in zip(tally.WAIT_ENDS, buckets, strict=False):
        reached += number
        if reached and reached >= wanted:
            return end
    return None


def _rows(statement: str, params: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
