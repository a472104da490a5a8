"""Rows locked in the one order that all verbs keep: lane, ticket, job, item.

Foreign keys that these helpers follow before a lock (a job's lane and ticket) never change, so that reading them
unlocked is safe. All locks are FOR NO KEY UPDATE: they do not stop inserts that merely point at the row.
"""

from datetime import datetime

from queue_core.clock import Clock, is_instant
from queue_core.errors import CallerError
from queue_core.models import Job, Lane, Ticket


def lock_lane(lane_id: int) -> Lane:
    """The lane under its row lock, with its running stage and connection. Raises Lane.DoesNotExist.

    Read after it is locked, in a statement of its own: where a lock is waited for, PostgreSQL looks at the lane again
    but not at the rows joined to it, so that a run begun meanwhile would come back as none at all.
    """
    Lane.objects.select_for_update(no_key=True).values_list("pk").get(pk=lane_id)
    return Lane.objects.select_related("run", "connection").get(pk=lane_id)


def lock_job(job_id: int) -> tuple[Ticket, Job] | None:
    """Ticket and job under their row locks, in this order; None if there is no such job."""
    ticket = Ticket.objects.select_for_update(no_key=True, of=("self",)).filter(jobs=job_id).first()
    return (ticket, Job.objects.select_for_update(no_key=True).get(pk=job_id)) if ticket else None


def read_clock(clock: Clock, error: type[CallerError]) -> datetime:
    """The time of a verb. A clock that is none (not finite, before 1970, without a zone) is the caller's mistake."""
    now = clock.now()
    if not is_instant(now):
        raise error("The clock is not an instant from 1970 on.", field="now")
    return now
