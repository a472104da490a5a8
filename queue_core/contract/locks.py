"""Rows locked in the one order that all verbs keep: lane, ticket, job, item.

Foreign keys that these helpers follow before a lock (a job's lane and ticket) never change, so that reading them
unlocked is safe. All locks are FOR NO KEY UPDATE: they do not stop inserts that merely point at the row.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queue_core import prepared
from queue_core.clock import DATABASE_CLOCK, Clock, is_instant
from queue_core.contract import claim_sql
from queue_core.errors import CallerError, InvalidClaim
from queue_core.models import Job, Lane, Ticket


def lock_lane(lane_id: int) -> Lane:
    """The lane under its row lock, with its running stage and connection. Raises Lane.DoesNotExist.

    Read after it is locked, in a statement of its own: where a lock is waited for, PostgreSQL looks at the lane again
    but not at the rows joined to it, so that a run begun meanwhile would come back as none at all.
    """
    Lane.objects.select_for_update(no_key=True).values_list("pk").get(pk=lane_id)
    return Lane.objects.select_related("run", "connection").get(pk=lane_id)


#: What a key can be: whoever names a larger one names nothing.
LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LockedLane:
    """What a claim judges of a lane, as it stands under its row lock. Raises InvalidClaim where leases go unseen."""

    pk: int
    cap: int | None
    lease: timedelta
    run_id: int | None
    policy_id: int | None
    connection_id: int
    claims_not_before: datetime | None
    judged_at: datetime | None
    usual_call_time: timedelta | None
    least_call_time: timedelta
    sees_others: bool

    def __post_init__(self) -> None:
        if not self.sees_others:
            raise InvalidClaim("A claim needs a READ COMMITTED transaction.", field="isolation")


def lock_lane_to_claim(lane_id: int, clock: Clock) -> tuple[LockedLane, datetime]:
    """The lane under its row lock, and the time, read when the lock was held. Raises Lane.DoesNotExist."""
    values = {"lane": lane_id, "now": own_instant(clock, InvalidClaim)}
    row: tuple[Any, ...] | None = prepared.run(claim_sql.LOCK_LANE, values).fetchone()
    if row is None:
        raise Lane.DoesNotExist(f"There is no lane {lane_id}.")
    return LockedLane(*row[:-1]), row[-1]


def lock_ticket(ticket_id: int) -> Ticket | None:
    """The ticket under its row lock, with its lane, which is only read: who holds that one may wait for the ticket."""
    own = Ticket.objects.select_for_update(no_key=True, of=("self",))
    return own.select_related("lane").filter(pk=ticket_id).first()


def lock_job(job_id: int) -> tuple[Ticket, Job] | None:
    """Ticket and job under their row locks, in this order; None if there is no such job."""
    ticket = Ticket.objects.select_for_update(no_key=True, of=("self",)).filter(jobs=job_id).first()
    return (ticket, Job.objects.select_for_update(no_key=True).get(pk=job_id)) if ticket else None


def lock_jobs(job_ids: Collection[int]) -> dict[int, tuple[Ticket, Job]]:
    """As `lock_job` for many: all their tickets first, then the jobs, each in the order of their ids."""
    wanted = Job.objects.filter(pk__in=[pk for pk in job_ids if abs(pk) <= LARGEST_ID])
    own = Ticket.objects.filter(pk__in=wanted.values("ticket_id")).order_by("pk")
    tickets = {ticket.pk: ticket for ticket in own.select_for_update(no_key=True)}
    jobs = wanted.filter(ticket__in=list(tickets)).order_by("pk").select_for_update(no_key=True)
    return {job.pk: (tickets[job.ticket_id], job) for job in jobs}


def read_clock(clock: Clock, error: type[CallerError]) -> datetime:
    """The time of a verb. A clock that is none (not finite, before 1970, without a zone) is the caller's mistake."""
    now = clock.now()
    if not is_instant(now):
        raise error("The clock is not an instant from 1970 on.", field="now")
    return now


def own_instant(clock: Clock, error: type[CallerError]) -> datetime | None:
    """None for the database's clock, which a statement reads itself once it holds its rows; else as `read_clock`."""
    return None if clock is DATABASE_CLOCK else read_clock(clock, error)
