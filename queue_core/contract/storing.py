"""New tickets as rows: ticket, evidence and job. All of a call's are stored in one statement."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import connection

from queue_core import prepared, tally
from queue_core.contract import intake_sql
from queue_core.contract.order import urgency
from queue_core.models import Evidence, Job, Ticket

if TYPE_CHECKING:
    from queue_core.contract.intake import NewTicket, Sealed

type Rows = tuple[Ticket, Evidence, Job]


def store_new(new: Sequence["Sealed"], now: datetime) -> list[tuple[Ticket, Job]]:
    """Store judged tickets, each of another name, in the caller's transaction: what was stored, in order.

    Left out are those whose name another call stored first, also where it had to be waited for. Their figures are
    written with them.
    """
    if not new:
        return []
    made = [_rows_of(sealed, now) for sealed in new]
    jobs = [job for _ticket, _evidence, job in made]
    _note(jobs, now)
    values = {
        "rows": json.dumps([_told(place, rows) for place, rows in enumerate(made)], ensure_ascii=False),
        "figures": tally.taken(),
        "number": len(made),
        "now": now,
    }
    stored = []
    for place, *keys in prepared.run(intake_sql.STORE, values).fetchall():
        ticket, evidence, job = made[place]
        ticket.pk, evidence.pk, job.pk = keys
        # Set again now that they have keys, which a row takes over when it is set.
        evidence.ticket = job.ticket = ticket
        job.evidence = evidence
        for row in made[place]:
            # As Django's own inserts leave it.
            row._state.adding, row._state.db = False, connection.alias  # noqa: SLF001
        stored.append((ticket, job))
    if len(stored) < len(made):
        _note([job for _ticket, job in stored], now)
    return stored


def store_revision(row: Ticket, sealed: "Sealed", now: datetime) -> Job:
    """A newer revision's evidence and job, for a ticket whose row the caller holds locked, and their figures."""
    evidence = _evidence_row(row, sealed, now)
    evidence.save(force_insert=True)
    job = _job_row(row, sealed.ticket, evidence, now)
    job.save(force_insert=True)
    _note([job], now)
    return job


def _note(jobs: Sequence[Job], now: datetime) -> None:
    tally.enter_all(jobs, now=now)
    for job in jobs:
        tally.count(job.lane_id, tally.ADDED, now=now)


def _rows_of(sealed: "Sealed", now: datetime) -> Rows:
    ticket = _ticket_row(sealed.ticket, now)
    evidence = _evidence_row(ticket, sealed, now)
    return ticket, evidence, _job_row(ticket, sealed.ticket, evidence, now)


def _told(place: int, rows: Rows) -> dict[str, Any]:
    """One ticket as the statement reads it."""
    ticket, evidence, job = rows
    return {
        "place": place,
        "source": ticket.source,
        "external_id": ticket.external_id,
        "revision": job.revision,
        "lane": job.lane_id,
        "severity": ticket.severity,
        "category": ticket.category,
        "source_kind": ticket.source_kind,
        "exposure": ticket.exposure,
        "deadline_kind": ticket.deadline_kind,
        "since": job.queued_at.isoformat(),
        "body": evidence.body,
        "size": evidence.size,
        "digest": evidence.digest,
        "is_restricted": evidence.is_restricted,
        "deadline": job.deadline.isoformat(),
        "urgency": job.urgency.isoformat(),
        "max_attempts": job.max_attempts,
    }


def _ticket_row(ticket: "NewTicket", now: datetime) -> Ticket:
    lane = ticket.lane
    return Ticket(
        source=ticket.source,
        external_id=ticket.external_id,
        current_revision=ticket.revision,
        lane=lane,
        severity=lane.severity_default if ticket.severity is None else ticket.severity,
        category=ticket.category,
        source_kind=ticket.source_kind or lane.source_kind_default,
        exposure=ticket.exposure or lane.exposure_default,
        deadline_kind=ticket.deadline_kind or lane.deadline_kind_default,
        first_seen_at=_since(ticket, now),
    )


def _evidence_row(row: Ticket, sealed: "Sealed", now: datetime) -> Evidence:
    raw = sealed.body.encode()
    return Evidence(
        ticket=row,
        revision=sealed.ticket.revision,
        body=sealed.body,
        size=len(raw),
        digest=hashlib.sha256(raw).hexdigest(),
        is_restricted=sealed.ticket.is_restricted,
        received_at=now,
    )


def _job_row(row: Ticket, ticket: "NewTicket", evidence: Evidence, now: datetime) -> Job:
    queued_at = _since(ticket, now)
    deadline = ticket.deadline or now + ticket.lane.deadline_default
    return Job(
        lane=ticket.lane,
        ticket=row,
        evidence=evidence,
        revision=ticket.revision,
        severity=row.severity,
        added_at=now,
        queued_at=queued_at,
        deadline=deadline,
        urgency=urgency(ticket.lane, queued_at=queued_at, deadline=deadline, severity=row.severity),
        max_attempts=ticket.lane.max_attempts,
    )


def _since(ticket: "NewTicket", now: datetime) -> datetime:
    """The wait of a ticket that piled up at its source began there, not at its import."""
    return min(ticket.submitted_at, now) if ticket.submitted_at is not None else now
