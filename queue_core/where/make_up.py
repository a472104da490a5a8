"""What a lane's layers are made of: severity, what the content does meanwhile, and whether the model can still come."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from queue_core.models import Lane
from queue_core.states import NOT_OPEN_SQL, Exposure
from queue_core.where.counting import case_params, layer_case
from queue_core.where.facts import LaneFacts, facts_of
from queue_core.where.words import FOR_THE_MODEL, Layer, Prospect

#: So many rows of a kind are looked into; a page says so where a layer has more.
MOST_LOOKED_INTO = 2_000

#: The open jobs of a lane `l`. Each branch reads one partial index in its order and stops at the cap, so that a layer
#: of few is never lost behind one of many. Back-off and too-late rows have branches of their own for the same reason.
OPEN_COLUMNS = """id, ticket_id, lane_id, state, severity, lease_until, available_at, deadline, queued_at, attempts,
     max_attempts"""
OPEN_JOBS = f"""
    (SELECT TRUE AS by_item, p.id, p.ticket_id, p.lane_id, p.state, p.severity, p.lease_until, p.available_at,
       p.deadline, p.queued_at, p.attempts, p.max_attempts
     FROM queue_core_item o JOIN queue_core_job p ON p.id = o.job_id
     WHERE o.lane_id = l.id AND o.closed_at IS NULL AND o.kind NOT IN {NOT_OPEN_SQL} ORDER BY o.opened_at LIMIT %s)
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
BRANCHES = 5

#: As `locating.judge`: too late by the ticket's own time or attempts. `rest` is when a back-off or pause is over.
TOO_LATE_CASE = """
(o.layer = ANY(%s) AND (
  o.deadline <= o.needs
    + greatest(o.now, CASE WHEN o.layer = 'backoff' THEN greatest(o.available_at, o.retry_until) END)
  OR (o.layer = 'lease_over' AND o.attempts >= o.max_attempts)))
"""

LOOK_INTO = f"""
WITH open_row AS MATERIALIZED (
  SELECT j.*, l.now, l.needs, l.retry_until, {layer_case(job="j", needs_until="l.needs_until")} AS layer
  FROM (SELECT %s::bigint AS id, %s::timestamptz AS now, %s::interval AS needs, %s::timestamptz AS retry_until,
               %s::timestamptz AS needs_until) AS l
  CROSS JOIN LATERAL ({OPEN_JOBS}) AS j)
SELECT o.layer, o.severity, t.exposure, {TOO_LATE_CASE}, count(*)
FROM open_row o JOIN queue_core_ticket t ON t.id = o.ticket_id
WHERE o.by_item = (o.layer = 'people')
GROUP BY 1, 2, 3, 4
"""  # noqa: S608  (put together from constants)


@dataclass(frozen=True, slots=True)
class MakeUp:
    """One layer: counts by severity, by what the content does while it waits, and by what may come of the wait."""

    by_severity: Mapping[int, int] = field(default_factory=dict)
    by_exposure: Mapping[Exposure, int] = field(default_factory=dict)
    by_prospect: Mapping[Prospect, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.by_severity.values())


def make_up(lane: Lane, *, now: datetime, facts: LaneFacts | None = None) -> dict[Layer, MakeUp]:
    """What each layer of a lane (read with `lanes_to_read`) is made of; at most MOST_LOOKED_INTO rows of each kind."""
    facts = facts_of([lane], now=now)[lane.pk] if facts is None else facts
    places: list[Any] = [lane.pk, now, facts.needs, facts.retry_until, facts.needs_until]
    waiting = [layer.value for layer in FOR_THE_MODEL]
    limits = [MOST_LOOKED_INTO] * BRANCHES
    with connection.cursor() as cursor:
        cursor.execute(LOOK_INTO, [*case_params({lane.pk: facts}), *places, *limits, waiting])
        rows = cursor.fetchall()
    found: dict[Layer, list[tuple[int, Exposure, Prospect, int]]] = {}
    for layer, severity, exposure, is_too_late, number in rows:
        prospect = _prospect(Layer(layer), facts, is_too_late=is_too_late)
        found.setdefault(Layer(layer), []).append((severity, Exposure(exposure), prospect, number))
    return {layer: _made_up(found[layer]) for layer in Layer if layer in found}


def _prospect(layer: Layer, facts: LaneFacts, *, is_too_late: bool) -> Prospect:
    if is_too_late:
        return Prospect.TOO_LATE
    return Prospect.NEVER if facts.obstacle is not None and layer in FOR_THE_MODEL else Prospect.NOT_YET


def _made_up(rows: list[tuple[int, Exposure, Prospect, int]]) -> MakeUp:
    severities, exposures, prospects = dict[int, int](), dict[Exposure, int](), dict[Prospect, int]()
    for severity, exposure, prospect, number in rows:
        severities[severity] = severities.get(severity, 0) + number
        exposures[exposure] = exposures.get(exposure, 0) + number
        prospects[prospect] = prospects.get(prospect, 0) + number
    return MakeUp(dict(sorted(severities.items(), reverse=True)), exposures, prospects)
