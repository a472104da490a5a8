"""What the next stage would take first, were it raised this second. Reads only; claims nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from queue_core.batch import MOST_SEVERE_FOR_THE_PROBE, usual_call
from queue_core.contract.rules import PROBE
from queue_core.models import Lane, Outage, Stage
from queue_core.ramp_runs import next_stage

#: Tickets named, and tickets looked at for the sum by severity.
SHOWN = 10
MOST_SUMMED = 1_000

#: As `batch_sql.PICK_MOST_URGENT` and `PICK_FOR_THE_PROBE`, without their locks. A test holds the choices equal.
STEADY = """
SELECT id, severity FROM queue_core_job
WHERE lane_id = %(lane)s AND state = 'WAITING' AND available_at IS NULL AND deadline > %(needs_until)s
ORDER BY urgency, id
LIMIT %(limit)s
"""

FOR_THE_PROBE = """
SELECT j.id, j.severity FROM queue_core_job j
WHERE j.lane_id = %(lane)s AND j.state = 'WAITING' AND j.available_at IS NULL AND j.deadline > %(needs_until)s
  AND j.severity <= %(most_severe)s AND (j.attempts + 1 < j.max_attempts OR j.max_attempts = 1)
  AND NOT EXISTS (
    SELECT FROM queue_core_attempt a JOIN queue_core_stagerun r ON r.id = a.run_id
    WHERE a.job_id = j.id AND a.started_at >= %(outage_since)s AND r.number = 1)
ORDER BY j.deadline DESC, j.id DESC
LIMIT %(limit)s
"""

NAMED = """
SELECT j.id, t.source, t.external_id, j.severity, j.deadline, j.attempts, j.max_attempts
FROM unnest(%s::bigint[]) WITH ORDINALITY AS c(id, place)
JOIN queue_core_job j ON j.id = c.id JOIN queue_core_ticket t ON t.id = j.ticket_id
ORDER BY c.place
"""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A ticket that would be taken."""

    job: int
    source: str
    ticket: str
    severity: int
    deadline: datetime
    attempts: int
    most: int


@dataclass(frozen=True, slots=True)
class DryRun:
    """The first ten, and the sum by severity of all that the stage would take at once, at most MOST_SUMMED."""

    stage: Stage
    first: Sequence[Drawn] = ()
    by_severity: Mapping[int, int] = field(default_factory=dict)

    @property
    def number(self) -> int:
        return sum(self.by_severity.values())


def dry_run(lane: Lane, *, now: datetime) -> DryRun | None:
    """Of a lane with its run and connection; None where no stage is higher."""
    stage = next_stage(lane)
    if stage is None:
        return None
    at_once = min(stage.cap, stage.rate if stage.rate is not None else stage.cap, MOST_SUMMED)
    chosen = _chosen(lane, stage, at_once, now)
    by_severity: dict[int, int] = {}
    for _job, severity in sorted(chosen, key=lambda one: -one[1]):
        by_severity[severity] = by_severity.get(severity, 0) + 1
    first = [Drawn(*row) for row in _rows(NAMED, [[job for job, _severity in chosen[:SHOWN]]])]
    return DryRun(stage, first, by_severity)


def _chosen(lane: Lane, stage: Stage, limit: int, now: datetime) -> list[tuple[int, int]]:
    values: dict[str, Any] = {"lane": lane.pk, "needs_until": now + usual_call(lane), "limit": limit}
    if stage.number != PROBE:
        return _rows(STEADY, values)
    values["outage_since"] = _outage_since(lane) or now
    for most_severe in (MOST_SEVERE_FOR_THE_PROBE, 3):
        chosen = _rows(FOR_THE_PROBE, values | {"most_severe": most_severe})
        if chosen:
            return chosen
    return []


def _outage_since(lane: Lane) -> datetime | None:
    return (
        Outage.objects.filter(connection_id=lane.connection_id, closed_at__isnull=True)
        .values_list("opened_at", flat=True)
        .first()
    )


def _rows(statement: str, params: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return list(cursor.fetchall())
