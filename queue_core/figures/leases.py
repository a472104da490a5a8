"""Who holds what: the longest-running leases of a lane, and the rest as a number."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from queue_core.figures.effects import Effects, effects_of_lane
from queue_core.models import Attempt, Lane

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Lease:
    """One running call."""

    job: int
    source: str
    ticket: str
    worker: str
    fence: int
    number: int
    most: int
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Leases:
    longest: Sequence[Lease]
    rest: int
    effects: Effects


def running_leases(lane: Lane, *, now: datetime) -> Leases:
    """Open attempts whose lease runs, the oldest first. At most the cap's number of rows, so all of them are read."""
    running = Attempt.objects.filter(lane=lane, ended_at__isnull=True, lease_until__gt=now)
    rows = running.select_related("job__ticket").order_by("started_at", "pk")[:SHOWN]
    shown = [
        Lease(
            job=row.job_id,
            source=row.job.ticket.source,
            ticket=row.job.ticket.external_id,
            worker=row.worker,
            fence=row.fence,
            number=row.number,
            most=row.job.max_attempts,
            since=row.started_at,
            until=row.lease_until,
        )
        for row in rows
    ]
    return Leases(shown, running.count() - len(shown), effects_of_lane(lane))
