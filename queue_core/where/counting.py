"""How many open tickets stand in each layer, and how long the oldest: one statement for any number of lanes.

What waits and what is with people is known by the kept totals; probes of indexes find the longest waits. So a backlog
of millions costs what one of a thousand does.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, TextField
from django.db.models.expressions import RawSQL

from queue_core import at_once, sums, tally
from queue_core.at_once import Row, Told
from queue_core.models import Item, Job, Lane
from queue_core.relay.standing import UNDELIVERED
from queue_core.states import NOT_OPEN_SQL, NOT_OPEN_TICKETS, JobState
from queue_core.where.delivering import in_delivery
from queue_core.where.facts import (
    FACTS,
    LaneFacts,
    facts_from,
    facts_of,
    facts_params,
    lanes_to_read,
    needs_until,
    pauses_until,
)
from queue_core.where.words import CLAIMABLE, Layer

#: What is counted row by row is read up to here and no further; a page shows the number below with a plus.
COUNT_CAP = 10_001
#: What is too late is read no further than this, nor what waits longer than the oldest that is claimable: each row is a
#: look into the table, and none of them is swept while no scheduler is there.
LATE_CAP = 1_001
#: How far each of the layers is counted that are counted row by row.
CAPS: Mapping[Layer, int] = {
    Layer.RUNNING: COUNT_CAP,
    Layer.LEASE_OVER: COUNT_CAP,
    Layer.TOO_LATE: LATE_CAP,
    Layer.DELIVERY: COUNT_CAP,
}
#: Codes of open items in the kept totals, and those of work that keeps no ticket open.
ITEMS = f"{tally.ITEM}."
NOT_OPEN = frozenset(f"{ITEMS}{kind.value}" for kind in NOT_OPEN_TICKETS)

#: The precedence of `locating.judge` as SQL, up to where it ends for what is LEASED. OFFSET 0 has a job's items
#: found by the job: the planner may else look for them among all open ones, be it that these were few when it planned.
_LEASED_CASE = f"""
  WHEN EXISTS (
    SELECT FROM (SELECT closed_at, kind FROM queue_core_item WHERE job_id = {{job}}.id OFFSET 0) i
    WHERE i.closed_at IS NULL AND i.kind NOT IN {NOT_OPEN_SQL})
    THEN 'people'
  WHEN {{job}}.state = 'LEASED' AND {{job}}.lease_until > {{now}} THEN 'running'
  WHEN {{job}}.lane_id = ANY({{held}}::bigint[]) THEN 'held'
  WHEN {{job}}.available_at IS NOT NULL OR {{job}}.lane_id = ANY({{paused}}::bigint[]) THEN 'backoff'
  WHEN {{job}}.deadline <= {{needs_until}} THEN 'too_late'
  WHEN {{job}}.state = 'LEASED' THEN 'lease_over'
"""  # noqa: S608  (put together from constants)
_PLACES = {"now": "%s", "held": "%s", "paused": "%s"}
_NAMES = {"now": "%(now)s::timestamptz", "held": "%(held)s", "paused": "%(paused)s"}


def layer_case(*, job: str, needs_until: str) -> str:
    """A row's layer as SQL. Its parameters are those of `case_params`: what a lane's state says, as lists of lanes."""
    return f"""
CASE {_LEASED_CASE.format(job=job, needs_until=needs_until, **_PLACES)}
  WHEN {job}.lane_id = ANY(%s::bigint[]) THEN 'no_workers'
  WHEN {job}.lane_id = ANY(%s::bigint[]) THEN 'stage_full'
  ELSE 'ready'
END"""


#: What is LEASED by layer: number, oldest. At most as many as the lane's caps ever let through and what no sweep has
#: come to yet.
LEASED = f"""
SELECT 'leased', j.lane_id, CASE {_LEASED_CASE.format(job="j", needs_until="l.needs_until", **_NAMES)} END, count(*),
  min(j.queued_at)
FROM unnest(%(lanes)s::bigint[], %(needs)s::timestamptz[]) AS l(id, needs_until)
CROSS JOIN LATERAL (
  SELECT id, lane_id, state, lease_until, available_at, deadline, queued_at FROM queue_core_job
  WHERE lane_id = l.id AND state = 'LEASED' ORDER BY lease_until LIMIT {COUNT_CAP}) AS j
GROUP BY 2, 3
"""  # noqa: S608  (put together from constants)

#: The longest waits, each by one probe of an index in its order, and what is too late, which the sweep keeps few. A
#: lane that is held or pauses asks only for its oldest: what waits there stands in one layer. The oldest that is
#: claimable is among the oldest but where those all rest or are too late; where LATE_CAP of them do, no claimable one
#: waited longer than the last of these.
PROBES = f"""
SELECT 'probe', l.id, p.code, p.number, p.oldest
FROM unnest(%(lanes)s::bigint[], %(needs)s::timestamptz[], %(still)s::boolean[]) AS l(id, needs_until, stands_still)
CROSS JOIN LATERAL (
  SELECT 'oldest' AS code, NULL::bigint AS number, min(queued_at) AS oldest FROM heads
  WHERE l.stands_still AND lane_id = l.id
  UNION ALL
  (SELECT 'resting', NULL, queued_at FROM queue_core_job
   WHERE NOT l.stands_still AND lane_id = l.id AND state = 'WAITING' AND available_at IS NOT NULL
   ORDER BY queued_at LIMIT 1)
  UNION ALL
  SELECT 'late', count(*), min(queued_at) FROM (
    SELECT queued_at FROM queue_core_job
    WHERE NOT l.stands_still AND lane_id = l.id AND state = 'WAITING' AND available_at IS NULL
      AND deadline <= l.needs_until
    ORDER BY deadline LIMIT {LATE_CAP}) j
  UNION ALL
  SELECT 'claimable', NULL, coalesce(
    (SELECT min(queued_at) FROM heads WHERE lane_id = l.id AND available_at IS NULL AND deadline > l.needs_until),
    (SELECT coalesce(
       min(queued_at) FILTER (WHERE available_at IS NULL AND deadline > l.needs_until),
       CASE WHEN count(*) = {LATE_CAP} THEN max(queued_at) END)
     FROM (
       SELECT queued_at, available_at, deadline FROM queue_core_job WHERE lane_id = l.id AND state = 'WAITING'
       ORDER BY queued_at LIMIT {LATE_CAP}) o))
  WHERE NOT l.stands_still
  UNION ALL
  (SELECT 'item', NULL, queued_at FROM queue_core_item
   WHERE lane_id = l.id AND closed_at IS NULL AND kind NOT IN {NOT_OPEN_SQL} ORDER BY queued_at LIMIT 1)) p
"""  # noqa: S608  (put together from constants)
LAYERS = (sums.TOTAL_PART, UNDELIVERED, LEASED, PROBES)


@dataclass(frozen=True, slots=True)
class LayerCount:
    """`count` is exact up to its layer's cap (CAPS); what is too late beyond it is counted as if it were not.

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
    params = layer_params(lanes, now=now)
    if facts is not None:
        return layers_from(at_once.tell(LAYERS, params), facts)
    told = at_once.tell((*FACTS, *LAYERS), facts_params(lanes, now=now) | params)
    return layers_from(told, facts_from(told, lanes, now=now))


def layer_params(lanes: Sequence[Lane], *, now: datetime) -> dict[str, Any]:
    """What LAYERS asks about these lanes."""
    held = {lane.pk for lane in lanes if lane.run is None}
    paused = {lane.pk for lane in lanes if pauses_until(lane, now=now) is not None}
    return {
        "now": now,
        "lanes": [lane.pk for lane in lanes],
        "needs": [needs_until(lane, now=now) for lane in lanes],
        "still": [lane.pk in held or lane.pk in paused for lane in lanes],
        "held": list(held),
        "paused": list(paused),
        "most": COUNT_CAP,
    }


def layers_from(told: Told, facts: Mapping[int, LaneFacts]) -> dict[int, LayerTable]:
    """The layers of each lane from rows that were told."""
    totals, found = sums.totals_from(told, facts), {pk: _Filling(one.now) for pk, one in facts.items()}
    for row in told.get("undelivered", ()):
        found[row.lane].add(Layer.DELIVERY, row.number, row.moment)
    for row in told.get("leased", ()):
        found[row.lane].add(Layer(row.code), row.number, row.moment)
    probes: dict[int, dict[str, Row]] = {pk: {} for pk in facts}
    for row in told.get("probe", ()):
        probes[row.lane][row.code] = row
    for pk, filling in found.items():
        filling.add_waiting(facts[pk], totals[pk], probes[pk])
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

    def add_waiting(self, facts: LaneFacts, held: Mapping[str, int], probes: Mapping[str, Row]) -> None:
        """What waits, and what is with people: the kept totals, with the ages that the probes found."""
        oldest = {code: row.moment for code, row in probes.items()}
        waiting = held.get(JobState.WAITING.value, 0)
        items = sum(n for code, n in held.items() if code.startswith(ITEMS) and code not in NOT_OPEN)
        self.add(Layer.PEOPLE, items, oldest.get("item"))
        if facts.is_held:
            self.add(Layer.HELD, waiting, oldest.get("oldest"))
        elif facts.retry_until is not None:
            self.add(Layer.BACK_OFF, waiting, oldest.get("oldest"))
        else:
            rests, late = held.get(tally.RESTING, 0), probes["late"].number
            self.add(Layer.BACK_OFF, rests, oldest.get("resting"))
            self.add(Layer.TOO_LATE, late, oldest["late"])
            self.add(_claimable_layer(facts), waiting - rests - late, oldest.get("claimable"))


def _claimable_layer(facts: LaneFacts) -> Layer:
    """The end of `layer_case`, for what a claim would look at."""
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
        layer_case(job="queue_core_job", needs_until=until),
        [*params[:3], list(facts), [one.needs_until for one in facts.values()], *params[3:]],
        output_field=TextField(),
    )
    return jobs.filter(lane_id__in=list(facts)).alias(layer=case).filter(layer=layer.value)


def case_params(facts: Mapping[int, LaneFacts]) -> list[Any]:
    """The parameters of `layer_case` in their order. The lists are disjoint where the case tests them in turn."""
    states = list(facts.values())
    now = states[0].now if states else None
    return [
        now,
        [one.lane_id for one in states if one.is_held],
        [one.lane_id for one in states if one.retry_until is not None],
        [one.lane_id for one in states if is_unattended(one)],
        [one.lane_id for one in states if one.limit is not None],
    ]
