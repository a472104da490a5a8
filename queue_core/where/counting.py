"""How many open tickets stand in each layer, and how long the oldest: a few statements for any number of lanes.

What waits and what is with people is known by the kept totals; probes of indexes find the longest waits. So a backlog
of millions costs what one of a thousand does.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet, TextField
from django.db.models.expressions import RawSQL

from queue_core import relay, sums, tally
from queue_core.models import Item, Job, Lane
from queue_core.states import NOT_OPEN_TICKETS, JobState
from queue_core.where.delivering import in_delivery
from queue_core.where.facts import LaneFacts, facts_of, lanes_to_read
from queue_core.where.words import CLAIMABLE, Layer

#: What is counted row by row is read up to here and no further; a page shows the one below it with a plus.
COUNT_CAP = 10_001
#: Codes of open items in the kept totals, and those of work that keeps no ticket open.
ITEMS = f"{tally.ITEM}."
NOT_OPEN = frozenset(f"{ITEMS}{kind.value}" for kind in NOT_OPEN_TICKETS)

#: The precedence of `locating.judge` as SQL. What a lane's state says is handed in as lists of lanes.
LAYER_CASE = """
CASE
  WHEN EXISTS (SELECT FROM queue_core_item i WHERE i.job_id = {job}.id AND i.closed_at IS NULL AND i.kind <> 'blind')
    THEN 'people'
  WHEN {job}.state = 'LEASED' AND {job}.lease_until > %s THEN 'running'
  WHEN {job}.lane_id = ANY(%s::bigint[]) THEN 'held'
  WHEN {job}.available_at IS NOT NULL OR {job}.lane_id = ANY(%s::bigint[]) THEN 'backoff'
  WHEN {job}.deadline <= {needs_until} THEN 'too_late'
  WHEN {job}.state = 'LEASED' THEN 'lease_over'
  WHEN {job}.lane_id = ANY(%s::bigint[]) THEN 'no_workers'
  WHEN {job}.lane_id = ANY(%s::bigint[]) THEN 'stage_full'
  ELSE 'ready'
END
"""

#: What is LEASED, at most as many as the lane's caps ever let through and what no sweep has come to yet.
LEASED_LAYERS = f"""
SELECT j.lane_id, {LAYER_CASE.format(job="j", needs_until="l.needs_until")} AS layer, count(*), min(j.queued_at)
FROM unnest(%s::bigint[], %s::timestamptz[]) AS l(id, needs_until)
CROSS JOIN LATERAL (
  SELECT id, lane_id, state, lease_until, available_at, deadline, queued_at FROM queue_core_job
  WHERE lane_id = l.id AND state = 'LEASED' ORDER BY lease_until LIMIT %s) AS j
GROUP BY 1, 2
"""  # noqa: S608  (put together from constants)

#: The longest waits, each by one probe of an index in its order, and what is too late, which the sweep keeps few. A
#: lane that is held or pauses asks only for its oldest: what waits there stands in one layer.
PROBES = """
SELECT l.id, oldest.queued_at, resting.queued_at, late.number, late.queued_at, claimable.queued_at, item.queued_at
FROM unnest(%s::bigint[], %s::timestamptz[], %s::boolean[], %s::boolean[])
  AS l(id, needs_until, stands_still, has_resting)
LEFT JOIN LATERAL (
  SELECT queued_at FROM queue_core_job WHERE l.stands_still AND lane_id = l.id AND state = 'WAITING'
  ORDER BY queued_at LIMIT 1) oldest ON TRUE
LEFT JOIN LATERAL (
  SELECT queued_at FROM queue_core_job
  WHERE l.has_resting AND NOT l.stands_still AND lane_id = l.id AND state = 'WAITING' AND available_at IS NOT NULL
  ORDER BY queued_at LIMIT 1) resting ON TRUE
LEFT JOIN LATERAL (
  SELECT count(*) AS number, min(queued_at) AS queued_at FROM (
    SELECT queued_at FROM queue_core_job
    WHERE NOT l.stands_still AND lane_id = l.id AND state = 'WAITING' AND available_at IS NULL
      AND deadline <= l.needs_until
    ORDER BY deadline LIMIT %s) j) late ON TRUE
LEFT JOIN LATERAL (
  SELECT queued_at FROM queue_core_job
  WHERE NOT l.stands_still AND lane_id = l.id AND state = 'WAITING' AND available_at IS NULL
    AND deadline > l.needs_until
  ORDER BY queued_at LIMIT 1) claimable ON TRUE
LEFT JOIN LATERAL (
  SELECT queued_at FROM queue_core_item WHERE lane_id = l.id AND closed_at IS NULL AND kind <> 'blind'
  ORDER BY queued_at LIMIT 1) item ON TRUE
"""


@dataclass(frozen=True, slots=True)
class LayerCount:
    """`count` is exact, but for what is LEASED, too late or undelivered beyond COUNT_CAP.

    `oldest` is the layer's longest wait; in delivery, since the decision.
    """

    count: int
    oldest: timedelta


@dataclass(frozen=True, slots=True)
class LayerTable:
    """The layers of one lane, in order of precedence; empty ones are left out."""

    counts: Mapping[Layer, LayerCount] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All open tickets. At least this many where a layer was capped."""
        return sum(one.count for one in self.counts.values())

    @property
    def oldest_ready(self) -> timedelta | None:
        """The longest wait of what a claim would look at, whether or not a seat is free this second."""
        return max((self.counts[one].oldest for one in CLAIMABLE if one in self.counts), default=None)

    @property
    def oldest_held(self) -> timedelta | None:
        return self.counts[Layer.HELD].oldest if Layer.HELD in self.counts else None

    def count_of(self, *layers: Layer) -> int:
        return sum(self.counts[one].count for one in layers if one in self.counts)


def layers(
    lanes: Sequence[Lane], *, now: datetime, facts: Mapping[int, LaneFacts] | None = None
) -> dict[int, LayerTable]:
    """The layers of each lane (read with `lanes_to_read`), by its id. Every open ticket is in exactly one."""
    facts = facts_of(lanes, now=now) if facts is None else facts
    held = sums.totals(facts)
    found = {pk: _Filling(now) for pk in facts}
    for lane_id, (number, oldest) in relay.undelivered(list(facts), most=COUNT_CAP).items():
        found[lane_id].add(Layer.DELIVERY, number, oldest)
    for lane_id, layer, number, oldest in _rows(LEASED_LAYERS, [*case_params(facts), *_needs(facts), COUNT_CAP]):
        found[lane_id].add(Layer(layer), number, oldest)
    still = [one.is_held or one.retry_until is not None for one in facts.values()]
    has_resting = [held[pk].get(tally.RESTING, 0) > 0 for pk in facts]
    for lane_id, *probes in _rows(PROBES, [*_needs(facts), still, has_resting, COUNT_CAP]):
        found[lane_id].add_waiting(facts[lane_id], held[lane_id], probes)
    return {pk: one.table() for pk, one in found.items()}


@dataclass(slots=True)
class _Filling:
    """The layers of one lane while they are added up."""

    now: datetime
    counts: dict[Layer, LayerCount] = field(default_factory=dict)

    def add(self, layer: Layer, number: int, oldest: datetime | None) -> None:
        """`oldest` is when the longest wait began. Unknown: the present, since no longer wait was seen."""
        if number <= 0:
            return
        wait = max(self.now - oldest, timedelta(0)) if oldest is not None else timedelta(0)
        before = self.counts.get(layer, LayerCount(0, timedelta(0)))
        self.counts[layer] = LayerCount(before.count + number, max(before.oldest, wait))

    def table(self) -> LayerTable:
        return LayerTable({layer: self.counts[layer] for layer in Layer if layer in self.counts})

    def add_waiting(self, facts: LaneFacts, held: Mapping[str, int], probes: Sequence[Any]) -> None:
        """What waits, and what is with people: the kept totals, with the ages that the probes found."""
        oldest, resting, late, late_oldest, claimable, item = probes
        waiting = held.get(JobState.WAITING.value, 0)
        items = sum(n for code, n in held.items() if code.startswith(ITEMS) and code not in NOT_OPEN)
        self.add(Layer.PEOPLE, items, item)
        if facts.is_held:
            self.add(Layer.HELD, waiting, oldest)
        elif facts.retry_until is not None:
            self.add(Layer.BACK_OFF, waiting, oldest)
        else:
            rests = held.get(tally.RESTING, 0)
            self.add(Layer.BACK_OFF, rests, resting)
            self.add(Layer.TOO_LATE, late, late_oldest)
            self.add(_claimable_layer(facts), waiting - rests - late, claimable)


def _claimable_layer(facts: LaneFacts) -> Layer:
    """The end of LAYER_CASE, for what a claim would look at."""
    if is_unattended(facts):
        return Layer.NO_WORKERS
    return Layer.STAGE_FULL if facts.limit is not None else Layer.READY


def is_unattended(facts: LaneFacts) -> bool:
    return not facts.is_judged or (facts.limit is None and not facts.is_attended)


def in_layer(
    jobs: QuerySet[Job], layer: Layer, *, now: datetime, lane_ids: Collection[int] | None = None
) -> QuerySet[Job]:
    """The open jobs of a queryset that stand in one layer: the filter of the jobs' list."""
    if layer == Layer.DELIVERY:
        return in_delivery(jobs if lane_ids is None else jobs.filter(lane_id__in=lane_ids))
    if layer == Layer.PEOPLE:
        items = Item.objects.filter(job=OuterRef("pk"), closed_at__isnull=True)
        return jobs.filter(Exists(items.exclude(kind__in=NOT_OPEN_TICKETS)))
    lanes = lanes_to_read(None if lane_ids is None else Lane.objects.filter(pk__in=lane_ids))
    facts = facts_of(list(lanes), now=now)
    # Named beside the case, because a case bounds no index.
    if layer in (Layer.RUNNING, Layer.LEASE_OVER):
        jobs = jobs.filter(state=JobState.LEASED)
    else:
        jobs = jobs.filter(state__in=[JobState.WAITING, JobState.LEASED])
    until = "(SELECT n.u FROM unnest(%s::bigint[], %s::timestamptz[]) n(l, u) WHERE n.l = queue_core_job.lane_id)"
    params = case_params(facts)
    case = RawSQL(  # noqa: S611  (constants and placeholders only)
        LAYER_CASE.format(job="queue_core_job", needs_until=until),
        [*params[:3], *_needs(facts), *params[3:]],
        output_field=TextField(),
    )
    return jobs.filter(lane_id__in=list(facts)).alias(layer=case).filter(layer=layer.value)


def case_params(facts: Mapping[int, LaneFacts]) -> list[Any]:
    """The parameters of LAYER_CASE in its order. The lists are disjoint where the case tests them in turn."""
    states = list(facts.values())
    now = states[0].now if states else None
    return [
        now,
        [one.lane_id for one in states if one.is_held],
        [one.lane_id for one in states if one.retry_until is not None],
        [one.lane_id for one in states if is_unattended(one)],
        [one.lane_id for one in states if one.limit is not None],
    ]


def _needs(facts: Mapping[int, LaneFacts]) -> list[Any]:
    return [list(facts), [one.needs_until for one in facts.values()]]


def _rows(statement: str, params: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
