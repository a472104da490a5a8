"""A decision taken back by whoever made it, before anybody was told.

Its message waits TAKE_BACK_FOR before the relay gives it a number. Both take the message's row: the relay passes over
a row that is locked, and who comes second finds the message withdrawn, or numbered.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction

from queue_core import audit, contract, signals, tally
from queue_core.clock import Clock
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import Assignment, Decision, Item, Job, Message, Ticket
from queue_core.people.assignments import lock_people
from queue_core.people.deciding import tell
from queue_core.people.eligibility import DECIDE
from queue_core.people.outcomes import TakeBackOutcome, TakenBack
from queue_core.people.rights import require, require_somewhere
from queue_core.states import Automation, DecisionWhy, ItemEnd, ItemKind, MessageKind, MessageState

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: Decisions of one person's last seconds that are looked through for one that may still be taken back.
MOST_LOOKED_AT = 5


@transaction.atomic
@tally.kept()
def take_back(decision_id: int, *, person: "AbstractUser", clock: Clock) -> TakenBack:
    """Take back one's own decision while its message has not gone out; its work comes back to the same person.

    The chain says so with a link of its own, and what was in force before is in force again. The item comes back even
    to full hands. MISSING for a decision that is not this person's; TOO_LATE once its time is over; NOT_IN_FORCE if
    something followed it.
    """
    require_somewhere(person, DECIDE)
    own = Decision.objects.filter(pk=decision_id, person_id=person.pk, assignment__isnull=False)
    decision = own.select_related("assignment__item__lane", "reason_code", "replaces__reason_code").first()
    if decision is None or decision.assignment is None:
        return TakenBack(TakeBackOutcome.MISSING)
    require(person, DECIDE, decision.lane_id)
    lock_people(person.pk)
    locked = contract.lock_job(decision.job_id)
    assert locked is not None, "a decision's job is kept"
    ticket, job = locked
    follower = Item.objects.select_for_update(no_key=True).filter(job=job, closed_at__isnull=True).first()
    message = Message.objects.select_for_update(no_key=True).get(decision=decision, kind=MessageKind.DECISION)
    now = read_clock(clock, InvalidRequest)
    if not _is_unsent(message, now):
        return TakenBack(TakeBackOutcome.TOO_LATE)
    if _is_followed(decision, ticket, follower):
        return TakenBack(TakeBackOutcome.NOT_IN_FORCE)
    if follower is not None:
        contract.close_open_item(job, closed_as=ItemEnd.TAKEN_BACK, now=now)
    Message.objects.filter(pk=message.pk).update(state=MessageState.WITHDRAWN)
    link = _undo(decision, ticket, person, now)
    token = contract.assign(
        _again(decision.assignment, job, link, now), person, now=now,
        until=now + decision.assignment.item.lane.assignment_time,
    )  # fmt: skip
    audit.record(
        "decision.taken_back", now=now, actor=person, subject=decision.assignment.item,
        lane=decision.assignment.item.lane, before={"verdict": decision.verdict, "decision": decision.pk},
        after={"verdict": link.verdict, "decision": link.pk, "item": token.item},
    )  # fmt: skip
    signals.decision_taken_back.send(Decision, decision=decision, link=link, ticket=ticket)
    return TakenBack(TakeBackOutcome.TAKEN_BACK, token)


def to_take_back(person_id: int, *, now: datetime) -> tuple[Decision, datetime] | None:
    """The last decision of this person that they may still take back, and until when."""
    waiting = Message.objects.filter(not_before__gt=now, number__isnull=True, state=MessageState.READY)
    own = waiting.filter(kind=MessageKind.DECISION, decision__person_id=person_id)
    for message in own.select_related("decision__ticket").order_by("-not_before")[:MOST_LOOKED_AT]:
        decision, until = message.decision, message.not_before
        if decision is None or until is None:
            continue
        follower = Item.objects.filter(job=decision.job_id, closed_at__isnull=True).first()
        if not _is_followed(decision, decision.ticket, follower):
            return decision, until
    return None


def _is_unsent(message: Message, now: datetime) -> bool:
    is_waiting = message.number is None and message.state == MessageState.READY
    return is_waiting and message.not_before is not None and now < message.not_before


def _is_followed(decision: Decision, ticket: Ticket, follower: Item | None) -> bool:
    is_current = ticket.current_revision == decision.revision and ticket.withdrawn_at is None
    if not is_current or Decision.objects.filter(replaces=decision).exists():
        return True
    return follower is not None and follower.kind != ItemKind.SECOND_LOOK


def _undo(decision: Decision, ticket: Ticket, person: "AbstractUser", now: datetime) -> Decision:
    """The link that takes the decision back: with the verdict that was in force before, or with none."""
    before = decision.replaces
    link = Decision.objects.create(
        ticket=ticket,
        revision=decision.revision,
        job_id=decision.job_id,
        lane_id=decision.lane_id,
        verdict=before.verdict if before is not None else None,
        why=DecisionWhy.TAKEN_BACK,
        replaces=decision,
        person_id=person.pk,
        reason_code=before.reason_code if before is not None else None,
        reason_version=before.reason_version if before is not None else None,
        source_kind=decision.source_kind,
        automation=before.automation if before is not None else Automation.NONE,
        policy_id=before.policy_id if before is not None else None,
        run_id=before.run_id if before is not None else None,
        decided_at=now,
    )
    # The decision had withdrawn the message of the one before, if nobody had seen that: somebody has to say it again.
    if before is not None and before.verdict is not None and _was_withdrawn(before):
        tell(ticket, link, now=now)
    return link


def _was_withdrawn(decision: Decision) -> bool:
    return Message.objects.filter(decision=decision, kind=MessageKind.DECISION, state=MessageState.WITHDRAWN).exists()


def _again(assignment: Assignment, job: Job, link: Decision, now: datetime) -> Item:
    closed = assignment.item
    params = closed.params if link.verdict is None else {**closed.params, "decision": link.pk}
    return contract.open_again(closed, job, params=params, now=now)
