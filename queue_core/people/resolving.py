"""Items decided, and DEAD jobs given back to the machine."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction

from queue_core import audit, contract, outbox, signals, tally
from queue_core.clock import Clock
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import Assignment, Attempt, Decision, Item, Job, ReasonCode, Ticket
from queue_core.people.assignments import judge_assignment, lock_item
from queue_core.people.blind import audit_check, checked_before, is_of_check, keep_check
from queue_core.people.outcomes import Resolved, ResolveOutcome, Stale
from queue_core.people.rights import require
from queue_core.states import (
    ActOutcome,
    AssignmentEnd,
    AssignmentToken,
    Automation,
    DecisionWhy,
    ItemEnd,
    ItemKind,
    MessageKind,
    Verdict,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

MOST_NOTE = 4000


@transaction.atomic
@tally.kept()
def resolve(
    token: AssignmentToken,
    *,
    person: "AbstractUser",
    verdict: Verdict,
    reason_code: str | None = None,
    note: str = "",
    clock: Clock,
) -> Resolved:
    """Decide the content of an item: decision, message and audit row are written with the item's end, or not at all.

    ALREADY if this assignment decided the same before; STALE if it no longer holds; CONFLICT if the revision has a
    decision in force. A blind check that agrees with the model's decision is CHECKED and changes nothing; one that does
    not replaces it. The job's own fields are left alone: a DEAD job that a person decided stays DEAD.

    Raises InvalidRequest for a verdict or note out of bounds and, only where the token holds, for a reason code that
    is missing, not in use, or not for this verdict.
    """
    require(person, "decide_item")
    _check_words(verdict, note)
    locked = _lock(token)
    now = read_clock(clock, InvalidRequest)
    if locked is None:
        return Resolved(ResolveOutcome.STALE, why=Stale.MISSING)
    why = judge_assignment(locked.item, token, person, now=now)
    if why == Stale.ITEM_CLOSED:
        return _decided_before(token, person, verdict, reason_code)
    if why is not None:
        return Resolved(ResolveOutcome.STALE, why=why)
    head = Decision.objects.filter(ticket=locked.ticket, revision=locked.job.revision, replaced_by__isnull=True).first()
    is_blind = locked.item.kind == ItemKind.BLIND
    if head is not None and head.verdict is not None and not (is_blind and is_of_check(head, locked.item)):
        return Resolved(ResolveOutcome.CONFLICT, decision=head)
    ground = _ground(verdict, reason_code)
    assignment = Assignment.objects.get(item=locked.item, fence=token.fence)
    if is_blind and head is not None:
        check = keep_check(locked.item, assignment, head, Verdict(verdict), now=now)
        if check.agrees:
            contract.close_open_item(locked.job, closed_as=ItemEnd.CHECKED, now=now)
            audit_check(check, now=now)
            return Resolved(ResolveOutcome.CHECKED, decision=head)
    decision = _decide(locked, assignment, Verdict(verdict), ground, note, head, now)
    contract.close_open_item(locked.job, closed_as=ItemEnd.DECIDED, now=now)
    tally.count(locked.job.lane_id, f"{tally.DECIDED}.{decision.verdict}", now=now)
    # The note stays with the decision, where `erase` can blank it; the audit is never rewritten.
    audit.record(
        "item.decided",
        now=now,
        actor=person,
        subject=locked.item,
        lane=locked.item.lane,
        reason=ground.code if ground else "",
        after={"verdict": decision.verdict, "reason_code": ground.code if ground else None, "decision": decision.pk},
    )
    signals.ticket_decided.send(Decision, decision=decision, ticket=locked.ticket)
    return Resolved(ResolveOutcome.DECIDED, decision=decision)


@transaction.atomic
def resolve_requeue(
    token: AssignmentToken,
    *,
    person: "AbstractUser",
    deadline: datetime,
    reason: str,
    max_attempts: int | None = None,
    clock: Clock,
) -> Resolved:
    """Give the DEAD job of an item back to the machine, with a new deadline and a new budget.

    A MANUAL item is never requeued, nor one that was pulled: NOT_ALLOWED_IN_STATE. Raises InvalidRequest for a
    deadline that is not after now, a budget out of bounds or a missing reason.
    """
    require(person, "requeue_item")
    check_reason(reason)
    locked = _lock(token)
    now = read_clock(clock, InvalidRequest)
    if locked is None:
        return Resolved(ResolveOutcome.STALE, why=Stale.MISSING)
    why = judge_assignment(locked.item, token, person, now=now)
    if why == Stale.ITEM_CLOSED and _ended_as(token, person) == AssignmentEnd.REQUEUED:
        return Resolved(ResolveOutcome.ALREADY)
    if why is not None:
        return Resolved(ResolveOutcome.STALE, why=why)
    if locked.item.kind != ItemKind.DEAD:
        return Resolved(ResolveOutcome.NOT_ALLOWED_IN_STATE)
    outcome = contract.requeue(
        locked.job.pk, deadline=deadline, max_attempts=max_attempts, clock=clock, person=person, reason=reason
    )
    if outcome != ActOutcome.DONE:
        return Resolved(ResolveOutcome.NOT_ALLOWED_IN_STATE)
    return Resolved(ResolveOutcome.REQUEUED)


def check_reason(reason: str) -> None:
    if not reason.strip() or len(reason) > MOST_NOTE or "\0" in reason:
        raise InvalidRequest(f"A reason has 1 to {MOST_NOTE} characters.", field="reason")


@dataclass(frozen=True, slots=True)
class _Locked:
    ticket: Ticket
    job: Job
    item: Item


def _lock(token: AssignmentToken) -> _Locked | None:
    job_id = Item.objects.filter(pk=token.item).values_list("job_id", flat=True).first()
    locked = contract.lock_job(job_id) if job_id is not None else None
    item = lock_item(token.item)
    return None if locked is None or item is None else _Locked(*locked, item)


def _check_words(verdict: str, note: str) -> None:
    if verdict not in Verdict.values:
        raise InvalidRequest("A verdict is APPROVED or REJECTED.", field="verdict")
    if len(note) > MOST_NOTE or "\0" in note:
        raise InvalidRequest(f"A note has at most {MOST_NOTE} characters, none of them NUL.", field="note")


def _ground(verdict: str, code: str | None) -> ReasonCode | None:
    if not code:
        if verdict == Verdict.REJECTED:
            raise InvalidRequest("A REJECTED names its reason code.", field="reason_code")
        return None
    grounds = ReasonCode.objects.filter(is_active=True, is_for_rejection=verdict == Verdict.REJECTED)
    ground = grounds.filter(code=code).first() if "\0" not in code else None
    if ground is None:
        raise InvalidRequest("This reason code is not in use for this verdict.", field="reason_code")
    return ground


def _decided_before(token: AssignmentToken, person: "AbstractUser", verdict: str, reason_code: str | None) -> Resolved:
    """A repeat of what this very assignment decided is ALREADY, whatever its note; anything else came too late."""
    own = (
        Decision.objects.filter(
            assignment__item_id=token.item,
            assignment__fence=token.fence,
            assignment__key=token.key,
            assignment__person_id=person.pk,
        )
        .select_related("reason_code")
        .first()
    )
    ground = own.reason_code.code if own is not None and own.reason_code else ""
    if own is not None and (own.verdict, ground) == (verdict, reason_code or ""):
        return Resolved(ResolveOutcome.ALREADY, decision=own)
    if own is None and checked_before(token, person, verdict):
        return Resolved(ResolveOutcome.ALREADY)
    return Resolved(ResolveOutcome.STALE, decision=own, why=Stale.ITEM_CLOSED)


def _ended_as(token: AssignmentToken, person: "AbstractUser") -> str | None:
    own = Assignment.objects.filter(item_id=token.item, fence=token.fence, key=token.key, person_id=person.pk)
    return own.values_list("ended_as", flat=True).first()


def _decide(
    locked: _Locked,
    assignment: Assignment,
    verdict: Verdict,
    ground: ReasonCode | None,
    note: str,
    head: Decision | None,
    now: datetime,
) -> Decision:
    # A committed answer was beside the content when the person decided: partly automated, under its policy and run.
    # In a blind check it was not: the person's decision owes nothing to the model.
    is_blind = locked.item.kind == ItemKind.BLIND
    answer = None if is_blind else Attempt.objects.filter(job=locked.job, is_committed=True).first()
    why = DecisionWhy.SECOND_LOOK if is_blind else DecisionWhy.CORRECTION
    decision = Decision.objects.create(
        ticket=locked.ticket,
        revision=locked.job.revision,
        job=locked.job,
        lane_id=locked.job.lane_id,
        verdict=verdict,
        why=DecisionWhy.FIRST if head is None else why,
        replaces=head,
        assignment=assignment,
        person_id=assignment.person_id,
        reason_code=ground,
        note=note,
        source_kind=locked.ticket.source_kind,
        automation=Automation.NONE if answer is None else Automation.PARTLY,
        policy_id=answer.policy_id if answer else None,
        run_id=answer.run_id if answer else None,
        decided_at=now,
    )
    outbox.record(
        MessageKind.DECISION, _body(locked, decision, ground), now=now,
        ticket=locked.ticket, lane=locked.job.lane_id, decision=decision,
    )  # fmt: skip
    return decision


def _body(locked: _Locked, decision: Decision, ground: ReasonCode | None) -> dict[str, object]:
    return {
        "source": locked.ticket.source,
        "ticket": locked.ticket.external_id,
        "revision": locked.job.revision,
        "verdict": decision.verdict,
        "reason_code": ground.code if ground else None,
        "automation": decision.automation,
        "decision": decision.pk,
        "decided_at": decision.decided_at.isoformat(),
    }
