"""How many open tickets stand in each layer, and how long the oldest: one statement for all lanes.

Counts stop at COUNT_CAP, so that a backlog of millions costs what one of ten thousand does.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet, TextField
from django.db.models.expressions import RawSQL

from queue_core.models import Item, Job, Lane
from queue_core.states import NOT_OPEN_TICKETS, JobState
from queue_core.where.facts import LaneFacts, facts_of, lanes_to_read
from queue_core.where.words import CLAIMABLE, Layer

#: Read up to here and no further; a page shows the one below it with a plus.
COUNT_CAP = 10_001

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

#: The open jobs of a lane `l`. Each branch reads one partial index in its order and stops at the cap, so that a layer
#: of few is never lost behind one of many. Back-off and too-late rows have branches of their own for the same reason.
OPEN_COLUMNS = """id, ticket_id, lane_id, state, severity, lease_until, available_at, deadline, queued_at, attempts,
     max_attempts"""
OPEN_JOBS = f"""
    (SELECT TRUE AS by_item, p.id, p.ticket_id, p.lane_id, p.state, p.severity, p.lease_until, p.available_at,
       p.deadline, p.queued_at, p.attempts, p.max_attempts
     FROM queue_core_item o JOIN queue_core_job p ON p.id = o.job_id
     WHERE o.lane_id = l.id AND o.closed_at IS NULL AND o.kind <> 'blind' ORDER BY o.opened_at LIMIT %s)
    UNION ALL
    (SELECT FALSE, {OPEN_COLUMNS} FROM queue_core_job
     WHERE lane_id = l.id AND state = 'LEASED' ORDER BY lease_until LIMIT %s)
    UNION ALL
    (SELECT FALSE, {OPEN_COLUMNS} FROM queue_core_job
     WHERE lane_id = l.id AND state = 'WAITING' AND available_at IS NOT NULL ORDER BY available_at LIMIT %s)
    UNION ALL
    (SELECT FALSE, {OPEN_COLUMNS} FROM queue_core_job
     WHERE lane_id = l.id AND state = 'WAITING' AND available_at IS NULL AND deadline <= l.needs_until
     ORDER BY deadline LIMIT %s)
    UNION ALL
    (SELECT FALSE, {OPEN_COLUMNS} FROM queue_core_job
     WHERE lane_id = l.id AND state = 'WAITING' AND available_at IS NULL AND deadline > l.needs_until
     ORDER BY queued_at LIMIT %s)
"""  # noqa: S608  (put together from constants)

#: The last condition counts a job with an open item once, by its item.
COUNT_LAYERS = f"""
WITH open_row AS MATERIALIZED (
  SELECT j.by_item, j.lane_id, j.queued_at, {LAYER_CASE.format(job="j", needs_until="l.needs_until")} AS layer
  FROM unnest(%s::bigint[], %s::timestamptz[]) AS l(id, needs_until)
  CROSS JOIN LATERAL ({OPEN_JOBS}) AS j)
SELECT lane_id, layer, count(*), min(queued_at) FROM open_row
WHERE by_item = (layer = 'people')
GROUP BY lane_id, layer
"""  # noqa: S608  (put together from constants)

BRANCHES = 5


@dataclass(frozen=True, slots=True)
class LayerCount:
    """`count` is exact below COUNT_CAP. `oldest` is the longest wait in the layer."""

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
    with connection.cursor() as cursor:
        cursor.execute(COUNT_LAYERS, [*case_params(facts), *_needs(facts), *[COUNT_CAP] * BRANCHES])
        rows = cursor.fetchall()
    found: dict[int, dict[Layer, LayerCount]] = {lane.pk: {} for lane in lanes}
    for lane_id, layer, number, oldest in rows:
        found[lane_id][Layer(layer)] = LayerCount(min(number, COUNT_CAP), max(now - oldest, timedelta(0)))
    return {pk: LayerTable({one: counts[one] for one in Layer if one in counts}) for pk, counts in found.items()}


def in_layer(
    jobs: QuerySet[Job], layer: Layer, *, now: datetime, lane_ids: Collection[int] | None = None
) -> QuerySet[Job]:
    """The open jobs of a queryset that stand in one layer: the filter of the jobs' list."""
    if layer == Layer.DELIVERY:
        return jobs.none()
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
    unattended = [one.lane_id for one in states if not one.is_judged or (one.limit is None and not one.is_attended)]
    now = states[0].now if states else None
    return [
        now,
        [one.lane_id for one in states if one.is_held],
        [one.lane_id for one in states if one.retry_until is not None],
        unattended,
        [one.lane_id for one in states if one.limit is not None],
    ]


def _needs(facts: Mapping[int, LaneFacts]) -> list[Any]:
    return [list(facts), [one.needs_until for one in facts.values()]]
