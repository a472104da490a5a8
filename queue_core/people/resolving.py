"""Items decided, and DEAD jobs given back to the machine."""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction

from queue_core import audit, contract, signals, tally
from queue_core.clock import Clock
from queue_core.contract.acts import may_requeue
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import Assignment, Decision, Item
from queue_core.people import grounds, second_looks
from queue_core.people.assignments import judge_assignment
from queue_core.people.blind import audit_check, checked_before, keep_check
from queue_core.people.deciding import Locked, Words, is_in_the_way, last_link, lock, write_decision
from queue_core.people.eligibility import DECIDE, is_own_matter, rights_for
from queue_core.people.outcomes import Resolved, ResolveOutcome, Stale
from queue_core.people.rights import require, require_somewhere
from queue_core.states import (
    ActOutcome,
    AssignmentEnd,
    AssignmentToken,
    DecisionWhy,
    ItemEnd,
    ItemKind,
    Verdict,
)
from queue_core.what_if import proposal_for

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
    proposed_by: int | None = None,
    clock: Clock,
) -> Resolved:
    """Decide the content of an item: decision, message and audit row are written with the item's end, or not at all.

    ALREADY if this assignment decided the same before; STALE if it no longer holds; CONFLICT if another decision is in
    force than the item is about. A blind check that agrees with the model's decision is CHECKED and changes nothing;
    one that does not replaces it. A second look is CHECKED either way: where it disagrees a lead decides. The job's own
    fields are left alone: a DEAD job that a person decided stays DEAD. `proposed_by` is the key of the policy whose
    proposal stood beside the content: who decides as it proposes decides under it.

    Raises InvalidRequest for a verdict or note out of bounds and, only where the token holds, for a reason code that is
    missing, not in use, or not for this verdict and lane, and for a note that is missing where one is asked for;
    NotPermitted also for who had a part in a decision that somebody else has to look at.
    """
    require_somewhere(person, DECIDE)
    _check_words(verdict, note)
    locked = lock(token.item)
    now = read_clock(clock, InvalidRequest)
    if locked is None:
        return Resolved(ResolveOutcome.STALE, why=Stale.MISSING)
    require(person, DECIDE, locked.item.lane_id)
    why = judge_assignment(locked.item, token, person, now=now)
    if why == Stale.ITEM_CLOSED:
        return _decided_before(token, person, verdict, reason_code)
    if why is not None:
        return Resolved(ResolveOutcome.STALE, why=why)
    # Only of its holder: one from whom it was escalated, or set apart, is told that they lost it.
    for right in rights_for(locked.item):
        require(person, right, locked.item.lane_id)
    if is_own_matter(locked.item, person):
        raise NotPermitted(DECIDE)
    head = last_link(locked.ticket, locked.job.revision)
    if is_in_the_way(head, locked.item):
        return Resolved(ResolveOutcome.CONFLICT, decision=head)
    ground = grounds.ground_of(verdict, reason_code, lane_id=locked.item.lane_id)
    grounds.check_note(locked.item.kind, ground, note)
    words = Words(Verdict(verdict), ground, note, _confirmed(locked, proposed_by, verdict))
    assignment = Assignment.objects.get(item=locked.item, fence=token.fence)
    if head is not None and _is_a_check(locked, assignment, head, words, now):
        return Resolved(ResolveOutcome.CHECKED, decision=head)
    return _decide(locked, assignment, words, head, now)


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
    require_somewhere(person, "requeue_item")
    check_reason(reason)
    locked = lock(token.item)
    now = read_clock(clock, InvalidRequest)
    if locked is None:
        return Resolved(ResolveOutcome.STALE, why=Stale.MISSING)
    require(person, "requeue_item", locked.item.lane_id)
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


def is_requeueable(item: Item) -> bool:
    """Whether the job of an open item may go back to the machine: it died, is current, and nobody ever decided it."""
    return item.kind == ItemKind.DEAD and may_requeue(
        item.ticket,
        item.job,
        is_decided=Decision.objects.filter(ticket=item.ticket_id, revision=item.job.revision).exists(),
        is_erased=item.job.evidence.erased_at is not None,
    )


def check_reason(reason: str) -> None:
    if not reason.strip() or len(reason) > MOST_NOTE or "\0" in reason:
        raise InvalidRequest(f"A reason has 1 to {MOST_NOTE} characters.", field="reason")


def _check_words(verdict: str, note: str) -> None:
    if verdict not in Verdict.values:
        raise InvalidRequest("A verdict is APPROVED or REJECTED.", field="verdict")
    if len(note) > MOST_NOTE or "\0" in note:
        raise InvalidRequest(f"A note has at most {MOST_NOTE} characters, none of them NUL.", field="note")


def _confirmed(locked: Locked, proposed_by: int | None, verdict: str) -> int | None:
    """The policy whose proposal was shown, still stands, and is what the person decides; else none."""
    proposal = proposal_for(locked.item) if proposed_by is not None else None
    if proposal is None or proposal.policy.pk != proposed_by or proposal.verdict != verdict:
        return None
    return proposal.policy.pk


def _is_a_check(locked: Locked, assignment: Assignment, head: Decision, words: Words, now: datetime) -> bool:
    """Whether the item only checks the decision in force, which stands; then that is written and the item closed."""
    if locked.item.kind == ItemKind.SECOND_LOOK:
        second_looks.keep_look(locked, assignment, head, words, now=now)
        return True
    if locked.item.kind != ItemKind.BLIND:
        return False
    check = keep_check(locked.item, assignment, head, words.verdict, now=now)
    if check.agrees:
        contract.close_open_item(locked.job, closed_as=ItemEnd.CHECKED, now=now)
        audit_check(check, now=now)
    return check.agrees


def _decide(locked: Locked, assignment: Assignment, words: Words, head: Decision | None, now: datetime) -> Resolved:
    decision, not_before = write_decision(locked, assignment, words, head, now=now)
    contract.close_open_item(locked.job, closed_as=ItemEnd.DECIDED, now=now)
    second_looks.open_if_due(locked, decision, assignment, now=now)
    code = words.ground.code if words.ground else None
    # The note stays with the decision, where `erase` can blank it; the audit is never rewritten.
    audit.record(
        "item.decided",
        now=now,
        actor=assignment.person,
        subject=locked.item,
        lane=locked.item.lane,
        reason=code or "",
        after={"verdict": decision.verdict, "reason_code": code, "decision": decision.pk},
    )
    signals.ticket_decided.send(Decision, decision=decision, ticket=locked.ticket)
    return Resolved(ResolveOutcome.DECIDED, decision=decision, not_before=not_before)


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
    if own is None:
        is_same = checked_before(token, person, verdict) or second_looks.looked_before(token, person, verdict)
        return Resolved(ResolveOutcome.ALREADY) if is_same else Resolved(ResolveOutcome.STALE, why=Stale.ITEM_CLOSED)
    ground = own.reason_code.code if own.reason_code else ""
    was_taken_back = Decision.objects.filter(replaces=own, why=DecisionWhy.TAKEN_BACK).exists()
    if (own.verdict, ground) == (verdict, reason_code or "") and not was_taken_back:
        return Resolved(ResolveOutcome.ALREADY, decision=own)
    return Resolved(ResolveOutcome.STALE, decision=own, why=Stale.ITEM_CLOSED)


def _ended_as(token: AssignmentToken, person: "AbstractUser") -> str | None:
    own = Assignment.objects.filter(item_id=token.item, fence=token.fence, key=token.key, person_id=person.pk)
    return own.values_list("ended_as", flat=True).first()
