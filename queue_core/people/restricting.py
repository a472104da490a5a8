"""Restricted evidence: looked at for a stated purpose by few, reported to an authority, set apart by whoever meets it.

Reading any evidence is on record, once for each look; polls show none.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Model

from queue_core import audit
from queue_core.clock import Clock
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import AuditEntry, Evidence, EvidenceReport, Lane
from queue_core.models.preservation import MAX_AUTHORITY, MAX_REFERENCE
from queue_core.people.assignments import judge_assignment, let_go, lock_item
from queue_core.people.eligibility import DECIDE, LEAD, RESTRICTED
from queue_core.people.keeping import MOST_REASON, checked_text
from queue_core.people.outcomes import Stale
from queue_core.people.rights import require, require_somewhere
from queue_core.states import AssignmentEnd, AssignmentToken

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

READ, REPORT = "view_evidence", "report_evidence"
#: Both, to lift a restriction: who may see what it is, and answers for the lane.
LIFTING = (RESTRICTED, LEAD)
MOST_PURPOSE = 300


def note_reading(subject: Model, *, person: "AbstractUser", lane: Lane, clock: Clock) -> None:
    """Put on record that somebody reads the evidence of an item or job, before it is shown. One call a look."""
    require(person, READ, lane)
    with transaction.atomic():
        audit.record("evidence.read", now=clock.now(), actor=person, subject=subject, lane=lane)


def was_read(subject: Model, *, person: "AbstractUser") -> bool:
    """Whether it is on record that a person read the evidence of an item or job."""
    entries = AuditEntry.objects.filter(subject_type=subject._meta.model_name, subject_id=str(subject.pk))
    return entries.filter(act="evidence.read", actor_id=person.pk).exists()


def look(token: AssignmentToken, *, person: "AbstractUser", purpose: str, clock: Clock) -> Evidence | None:
    """Restricted evidence of the item that a person holds, after the purpose is on record; None: not theirs any more.

    Committed when it returns, so that the record stands before the bytes leave. Raises InvalidRequest for a purpose
    that is empty or too long.
    """
    require_somewhere(person, RESTRICTED)
    purpose = checked_text(purpose, "purpose", MOST_PURPOSE)
    with transaction.atomic():
        item = lock_item(token.item)
        now = read_clock(clock, InvalidRequest)
        if item is None or judge_assignment(item, token, person, now=now) is not None:
            return None
        for right in (RESTRICTED, READ):
            require(person, right, item.lane_id)
        audit.record(
            "evidence.looked_at", now=now, actor=person, subject=item, lane=item.lane, reason=purpose,
            after={"evidence": item.job.evidence_id, "revision": item.job.revision},
        )  # fmt: skip
    return item.job.evidence


class RestrictOutcome(StrEnum):
    RESTRICTED = "restricted"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Restricted:
    outcome: RestrictOutcome
    why: Stale | None = None


@transaction.atomic
def restrict_and_leave(token: AssignmentToken, *, person: "AbstractUser", clock: Clock) -> Restricted:
    """Set the content of the item in one's hands apart, and be rid of it, in one act.

    From then on only those who may see restricted evidence take it; models that are not marked for it never get it.
    """
    require_somewhere(person, DECIDE)
    item = lock_item(token.item)
    now = read_clock(clock, InvalidRequest)
    why = judge_assignment(item, token, person, now=now)
    if item is None or why is not None:
        return Restricted(RestrictOutcome.STALE, why)
    require(person, DECIDE, item.lane_id)
    changed = Evidence.objects.filter(pk=item.job.evidence_id, is_restricted=False).update(is_restricted=True)
    let_go(item, AssignmentEnd.GIVEN_BACK, now=now)
    if changed:
        audit.record(
            "evidence.restricted", now=now, actor=person, subject=item, lane=item.lane,
            before={"restricted": False}, after={"restricted": True, "evidence": item.job.evidence_id},
        )  # fmt: skip
    return Restricted(RestrictOutcome.RESTRICTED)


class LiftRestrictionOutcome(StrEnum):
    LIFTED = "lifted"
    #: It is not restricted.
    ALREADY = "already"
    #: It was reported to an authority, and stays restricted.
    REPORTED = "reported"
    MISSING = "missing"


@transaction.atomic
def lift_restriction(evidence_id: int, *, person: "AbstractUser", reason: str, clock: Clock) -> LiftRestrictionOutcome:
    """Let content that was restricted by mistake be what all others are: shown to reviewers, and sent to models.

    For a lead who may see restricted evidence; what was reported to an authority stays restricted. Raises
    InvalidRequest for a reason that is empty or too long.
    """
    for right in LIFTING:
        require_somewhere(person, right)
    reason = checked_text(reason, "reason", MOST_REASON)
    evidence = _locked_evidence(evidence_id)
    now = read_clock(clock, InvalidRequest)
    if evidence is None:
        return LiftRestrictionOutcome.MISSING
    for right in LIFTING:
        require(person, right, evidence.ticket.lane_id)
    if not evidence.is_restricted:
        return LiftRestrictionOutcome.ALREADY
    if EvidenceReport.objects.filter(evidence=evidence).exists():
        return LiftRestrictionOutcome.REPORTED
    evidence.is_restricted = False
    evidence.save(update_fields=["is_restricted"])
    audit.record(
        "evidence.restriction_lifted", now=now, actor=person, subject=evidence.ticket, lane=evidence.ticket.lane,
        reason=reason, before={"restricted": True},
        after={"restricted": False, "evidence": evidence.pk, "revision": evidence.revision},
    )  # fmt: skip
    return LiftRestrictionOutcome.LIFTED


def _locked_evidence(evidence_id: int) -> Evidence | None:
    rows = Evidence.objects.select_for_update(no_key=True, of=("self",)).select_related("ticket__lane")
    return rows.filter(pk=evidence_id).first()


@transaction.atomic
def report(
    evidence_id: int, *, person: "AbstractUser", authority: str, reference: str, reason: str, clock: Clock
) -> EvidenceReport | None:
    """Put on record that restricted content was reported to an authority, under its reference. None: no such content.

    A repeat with the same authority and reference answers the report there is. Raises InvalidRequest for a text that is
    empty or too long, and for content that is not restricted.
    """
    require_somewhere(person, REPORT)
    authority = checked_text(authority, "authority", MAX_AUTHORITY)
    reference = checked_text(reference, "reference", MAX_REFERENCE)
    reason = checked_text(reason, "reason", MOST_REASON)
    evidence = _locked_evidence(evidence_id)
    now = read_clock(clock, InvalidRequest)
    if evidence is None:
        return None
    require(person, REPORT, evidence.ticket.lane_id)
    if not evidence.is_restricted:
        raise InvalidRequest("Only restricted content is reported.", field="evidence")
    made, is_new = EvidenceReport.objects.get_or_create(
        evidence=evidence, authority=authority, reference=reference,
        defaults={"reported_at": now, "reported_by_id": person.pk},
    )  # fmt: skip
    if is_new:
        after = {"report": made.pk, "authority": authority, "reference": reference, "revision": evidence.revision}
        audit.record(
            "evidence.reported", now=now, actor=person, subject=evidence.ticket, lane=evidence.ticket.lane,
            reason=reason, after=after,
        )  # fmt: skip
    return made
