"""A person's decision and its message, written together, under the locks of ticket, job and item."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queue_core import contract, outbox, relay, tally
from queue_core.models import Assignment, Attempt, Decision, Item, Job, Message, ReasonCode, Ticket
from queue_core.people import grounds
from queue_core.people.assignments import lock_item
from queue_core.states import NOT_OPEN_TICKETS, Automation, DecisionWhy, ItemKind, MessageKind, Verdict

#: For so long whoever decided may take it back: its message does not go out before.
TAKE_BACK_FOR = timedelta(seconds=10)
#: Why a decision replaces another, by the kind of its item. Of all others: the one before was recalled, or taken back.
WHY = {
    ItemKind.BLIND: DecisionWhy.SECOND_LOOK,
    ItemKind.DISAGREEMENT: DecisionWhy.SECOND_LOOK,
    ItemKind.APPEAL: DecisionWhy.APPEAL,
}


@dataclass(frozen=True, slots=True)
class Locked:
    """What a decision is judged on, each row under its lock."""

    ticket: Ticket
    job: Job
    item: Item


@dataclass(frozen=True, slots=True)
class Words:
    """What the person said. `policy` is the one whose proposal they confirmed, by its key."""

    verdict: Verdict
    ground: ReasonCode | None
    note: str
    policy: int | None = None


def lock(item_id: int) -> Locked | None:
    """Ticket, job and item in their order; None if there is no such item."""
    job_id = Item.objects.filter(pk=item_id).values_list("job_id", flat=True).first()
    locked = contract.lock_job(job_id) if job_id is not None else None
    item = lock_item(item_id)
    return None if locked is None or item is None else Locked(*locked, item)


def last_link(ticket: Ticket, revision: str) -> Decision | None:
    """The end of a revision's chain; a decision in force where it has a verdict."""
    return Decision.objects.filter(ticket=ticket, revision=revision, replaced_by__isnull=True).first()


def is_in_the_way(head: Decision | None, item: Item) -> bool:
    """Whether a decision in force is another one than the item is about."""
    if head is None or head.verdict is None:
        return False
    is_about_it = item.kind in NOT_OPEN_TICKETS and head.pk == item.params.get("decision")
    return not is_about_it or (item.kind == ItemKind.BLIND and head.attempt_id is None)


def write_decision(
    locked: Locked,
    assignment: Assignment,
    words: Words,
    head: Decision | None,
    *,
    now: datetime,
    is_unseen: bool = False,
) -> tuple[Decision, datetime | None]:
    """Write the next link, and until when it may be taken back.

    A message of the link before that nobody has seen goes to nobody any more. A blind check counts at once and is not
    taken back.
    """
    if head is not None and head.verdict is not None:
        withdraw_unseen(head, now=now)
    if words.ground is not None:
        grounds.keep_version(words.ground, now=now)
    decision = Decision.objects.create(
        ticket=locked.ticket,
        revision=locked.job.revision,
        job=locked.job,
        lane_id=locked.job.lane_id,
        verdict=words.verdict,
        why=DecisionWhy.FIRST if head is None else WHY.get(ItemKind(locked.item.kind), DecisionWhy.CORRECTION),
        replaces=head,
        assignment=assignment,
        person_id=assignment.person_id,
        reason_code=words.ground,
        reason_version=words.ground.version if words.ground is not None else None,
        note=words.note,
        source_kind=locked.ticket.source_kind,
        is_unseen=is_unseen,
        decided_at=now,
        **_owed_to_the_model(locked, words),
    )
    not_before = None if locked.item.kind == ItemKind.BLIND or is_unseen else now + TAKE_BACK_FOR
    tell(locked.ticket, decision, now=now, not_before=not_before)
    tally.count(locked.job.lane_id, f"{tally.DECIDED}.{decision.verdict}", now=now)
    return decision, not_before


def tell(ticket: Ticket, decision: Decision, *, now: datetime, not_before: datetime | None = None) -> Message:
    """Record the message of a decision. The caller holds the ticket's lock."""
    fact = outbox.Fact(
        MessageKind.DECISION, _body(ticket, decision), ticket=ticket, lane=decision.lane_id, decision=decision,
        not_before=not_before,
    )  # fmt: skip
    return outbox.record_many([fact], now=now)[0]


def withdraw_unseen(decision: Decision, *, now: datetime) -> None:
    messages = Message.objects.filter(decision=decision, kind=MessageKind.DECISION)
    relay.withdraw(list(messages.values_list("pk", flat=True)), now=now)


def _owed_to_the_model(locked: Locked, words: Words) -> dict[str, Any]:
    """Automation, policy and run.

    A committed answer was beside the content when the person decided: partly automated, under its policy and run. One
    who confirms what a newer policy proposes decides under that one. In a blind check nothing was beside it.
    """
    is_blind = locked.item.kind == ItemKind.BLIND
    answer = None if is_blind else Attempt.objects.filter(job=locked.job, is_committed=True).first()
    if answer is None:
        return {"automation": Automation.NONE}
    return {
        "automation": Automation.PARTLY,
        "policy_id": words.policy or answer.policy_id,
        "run_id": answer.run_id,
    }


def _body(ticket: Ticket, decision: Decision) -> dict[str, object]:
    ground = decision.reason_code
    body: dict[str, object] = {
        "source": ticket.source,
        "ticket": ticket.external_id,
        "revision": decision.revision,
        "verdict": decision.verdict,
        "reason_code": ground.code if ground else None,
        "automation": decision.automation,
        "decision": decision.pk,
        "decided_at": decision.decided_at.isoformat(),
    }
    if decision.reason_version is not None:
        body["reason_version"] = decision.reason_version
    before = decision.replaces
    if before is not None:
        body |= {"why": decision.why, "replaces": before.pk}
    if before is not None and decision.why == DecisionWhy.APPEAL:
        body["appeal"] = "upheld" if before.verdict == decision.verdict else "overturned"
    return body
