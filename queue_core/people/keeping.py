"""Content kept for an authority, and content erased on request."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db import transaction

from queue_core import audit
from queue_core.clock import Clock, is_instant
from queue_core.contract.erase import Erased, erase, preserved_until
from queue_core.contract.locks import lock_ticket, read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import PreservationHold, Ticket
from queue_core.models.preservation import MAX_AUTHORITY, MAX_REFERENCE
from queue_core.people.rights import require, require_somewhere

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

PRESERVE, ERASE = "preserve_evidence", "erase_evidence"
MOST_REASON = 500
#: A longer time is asked for again when this one is nearly over.
LONGEST = timedelta(days=3653)


class LiftOutcome(StrEnum):
    LIFTED = "lifted"
    ALREADY = "already"
    MISSING = "missing"


@transaction.atomic
def preserve(
    ticket_id: int,
    *,
    person: "AbstractUser",
    authority: str,
    reference: str,
    reason: str,
    until: datetime,
    clock: Clock,
) -> PreservationHold | None:
    """Keep a ticket's content for an authority until a time: until then nothing of it is erased. None: no such ticket.

    Raises InvalidRequest, naming the field, for a text that is empty or too long and a time not after now or beyond
    LONGEST.
    """
    require_somewhere(person, PRESERVE)
    authority = checked_text(authority, "authority", MAX_AUTHORITY)
    reference = checked_text(reference, "reference", MAX_REFERENCE)
    reason = checked_text(reason, "reason", MOST_REASON)
    ticket = lock_ticket(ticket_id)
    now = read_clock(clock, InvalidRequest)
    if ticket is None:
        return None
    require(person, PRESERVE, ticket.lane_id)
    if not is_instant(until) or not now < until <= now + LONGEST:
        raise InvalidRequest("A hold ends after now, and within ten years.", field="until")
    hold = PreservationHold.objects.create(
        ticket=ticket, authority=authority, reference=reference, reason=reason, placed_at=now, placed_by_id=person.pk,
        until=until,
    )  # fmt: skip
    after = {"hold": hold.pk, "authority": authority, "reference": reference, "until": until.isoformat()}
    audit.record(
        "ticket.preserved", now=now, actor=person, subject=ticket, lane=ticket.lane, reason=reason, after=after
    )
    return hold


@transaction.atomic
def lift(hold_id: int, *, person: "AbstractUser", reason: str, clock: Clock) -> LiftOutcome:
    """End a preservation hold before its time. ALREADY for one that was lifted, or is over by itself."""
    require_somewhere(person, PRESERVE)
    reason = checked_text(reason, "reason", MOST_REASON)
    ticket_id = PreservationHold.objects.filter(pk=hold_id).values_list("ticket_id", flat=True).first()
    ticket = lock_ticket(ticket_id) if ticket_id is not None else None
    now = read_clock(clock, InvalidRequest)
    if ticket is None:
        return LiftOutcome.MISSING
    require(person, PRESERVE, ticket.lane_id)
    hold = PreservationHold.objects.select_for_update(no_key=True).get(pk=hold_id)
    if hold.lifted_at is not None or now >= hold.until:
        return LiftOutcome.ALREADY
    hold.lifted_at, hold.lifted_by_id, hold.lifted_reason = now, person.pk, reason
    hold.save(update_fields=["lifted_at", "lifted_by", "lifted_reason"])
    before = {"hold": hold.pk, "until": hold.until.isoformat()}
    audit.record(
        "ticket.preservation_lifted", now=now, actor=person, subject=ticket, lane=ticket.lane, reason=reason,
        before=before, after={"hold": hold.pk, "until": now.isoformat()},
    )  # fmt: skip
    return LiftOutcome.LIFTED


def erase_content(ticket_id: int, *, person: "AbstractUser", ground: str, clock: Clock) -> Erased:
    """`contract.erase` for a person who may erase on the ticket's lane."""
    require_somewhere(person, ERASE)
    lane_id = Ticket.objects.filter(pk=ticket_id).values_list("lane_id", flat=True).first()
    if lane_id is not None:
        require(person, ERASE, lane_id)
    return erase(ticket_id, ground=ground, actor=person, clock=clock)


def erase_by_name(source: str, external_id: str, *, ground: str, is_trial: bool, clock: Clock) -> Erased:
    """`contract.erase` of the ticket that its source calls so, by the system itself: for whoever runs the machine.

    `is_trial`: the same, and undone again, so that what it says is what would happen.
    """
    ticket_id = Ticket.objects.filter(source=source, external_id=external_id).values_list("pk", flat=True).first()
    with transaction.atomic():
        erased = erase(ticket_id or 0, ground=ground, actor=None, clock=clock)
        transaction.set_rollback(is_trial)
    return erased


def kept_until(ticket: Ticket, *, now: datetime) -> datetime | None:
    """Until when nothing of a ticket may be erased; None where no hold stands."""
    return preserved_until(ticket.pk, now=now)


def checked_text(text: str, field: str, most: int) -> str:
    text = text.strip()
    if not text or len(text) > most or "\0" in text:
        raise InvalidRequest(f"Give 1 to {most} characters, none of them NUL.", field=field)
    return text
