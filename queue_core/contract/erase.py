"""Content blanked on a stated ground. What was decided, by whom and why, stays; so do sizes, times and a keyed hash."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q
from django.utils.crypto import salted_hmac

from queue_core import audit, tally
from queue_core.clock import Clock
from queue_core.contract.deaths import end_dead
from queue_core.contract.locks import lock_ticket, read_clock
from queue_core.contract.refused_lines import forget_lines
from queue_core.errors import InvalidRequest
from queue_core.models import (
    Appeal,
    Attempt,
    Decision,
    Evidence,
    ItemPass,
    Job,
    LateAnswer,
    PreservationHold,
    SecondLook,
    Ticket,
)
from queue_core.models.preservation import MAX_GROUND
from queue_core.states import DeadReason, JobState

if TYPE_CHECKING:
    from queue_core.models.api_keys import Actor


class EraseOutcome(StrEnum):
    ERASED = "erased"
    #: Nothing of the ticket was left to erase.
    ALREADY = "already"
    #: A preservation hold stands: kept for a lawful reason, and nothing was changed.
    PRESERVED = "preserved"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Erased:
    """`revisions`: how many were blanked now; none where only what was said since was left.

    `until`: for PRESERVED, when the last hold that stands is over.
    """

    outcome: EraseOutcome
    revisions: int = 0
    until: datetime | None = None


@transaction.atomic
@tally.kept()
def erase(ticket_id: int, *, ground: str, actor: "Actor | None", clock: Clock) -> Erased:
    """Blank what a ticket's sources, models and people wrote of its content, in all of its revisions.

    What waits for the machine, or is with it, ends DEAD (withdrawn): nothing is left to review. Items stay open, for a
    person may still decide by what is known; what they write of it then is blanked by a repeat. Lines of uploaded files
    that named it and did not go in are blanked with it. Messages hold no content and are not touched; the audit never
    is. Who may is for the caller to ask. Raises InvalidRequest for a ground that is empty or too long.
    """
    ground = _checked(ground)
    ticket = lock_ticket(ticket_id)
    now = read_clock(clock, InvalidRequest)
    if ticket is None:
        return Erased(EraseOutcome.MISSING)
    until = preserved_until(ticket.pk, now=now)
    if until is not None:
        audit.record(
            "ticket.erase_refused", now=now, actor=actor, subject=ticket, lane=ticket.lane, reason=ground,
            after={"kept_until": until.isoformat()},
        )  # fmt: skip
        return Erased(EraseOutcome.PRESERVED, until=until)
    revisions = _blank_evidence(ticket, ground, now)
    ended = _end_jobs(ticket, now) if revisions else []
    said = _blank_what_was_said(ticket)
    lines = forget_lines(ticket)
    if not revisions and not said and not lines:
        return Erased(EraseOutcome.ALREADY)
    after = {"revisions": revisions, "ended": ended} | ({"refused_lines": lines} if lines else {})
    audit.record("ticket.erased", now=now, actor=actor, subject=ticket, lane=ticket.lane, reason=ground, after=after)
    return Erased(EraseOutcome.ERASED, revisions)


def preserved_until(ticket_id: int, *, now: datetime) -> datetime | None:
    """When the last preservation hold that stands on a ticket is over; None where none stands."""
    standing = PreservationHold.objects.filter(ticket_id=ticket_id, lifted_at__isnull=True, until__gt=now)
    return standing.order_by("-until").values_list("until", flat=True).first()


def keyed_digest(digest: str) -> str:
    """What is left of a seal: who has the content and the site's key can still tell that it was this one.

    The bare digest of a short text could be found by trying texts.
    """
    return salted_hmac("queue_core.contract.erase", digest, algorithm="sha256").hexdigest()


def _checked(ground: str) -> str:
    ground = ground.strip()
    if not ground or len(ground) > MAX_GROUND or "\0" in ground:
        raise InvalidRequest(f"A ground has 1 to {MAX_GROUND} characters, none of them NUL.", field="ground")
    return ground


def _blank_evidence(ticket: Ticket, ground: str, now: datetime) -> int:
    rows = list(Evidence.objects.filter(ticket=ticket, erased_at__isnull=True).order_by("pk"))
    for evidence in rows:
        evidence.body, evidence.digest = "", keyed_digest(evidence.digest)
        evidence.erased_at, evidence.erased_ground = now, ground
        evidence.save(update_fields=["body", "digest", "erased_at", "erased_ground"])
    return len(rows)


def _end_jobs(ticket: Ticket, now: datetime) -> list[int]:
    """End what waits for the machine or is with it. A token that is out is stale; its attempt keeps its seat."""
    mine = Job.objects.select_for_update(no_key=True).filter(ticket=ticket).order_by("pk")
    ended = [job for job in mine if job.state in (JobState.WAITING, JobState.LEASED)]
    for job in ended:
        end_dead(job, DeadReason.WITHDRAWN, now=now)
        job.save(update_fields=["state", "dead_reason", "finished_at", "available_at"])
    if ended and ticket.withdrawn_at is None:
        ticket.withdrawn_at = now
        ticket.save(update_fields=["withdrawn_at"])
    return [job.pk for job in ended]


def _blank_what_was_said(ticket: Ticket) -> int:
    """Model answers that are over, late ones, notes and reasons that may quote the content. Returns how many."""
    answers = Attempt.objects.filter(job__ticket=ticket, ended_at__isnull=False)
    return (
        answers.filter(Q(scores__isnull=False) | ~Q(detail="")).update(scores=None, detail="")
        + LateAnswer.objects.filter(job__ticket=ticket, scores__isnull=False).update(scores=None)
        + Decision.objects.filter(ticket=ticket).exclude(note="").update(note="")
        + ItemPass.objects.filter(item__ticket=ticket).exclude(reason="").update(reason="")
        + SecondLook.objects.filter(item__ticket=ticket).exclude(note="").update(note="")
        + Appeal.objects.filter(ticket=ticket).exclude(statement="").update(statement="")
    )
