"""Second looks: another person decides anew what a person decided, without seeing how. Where the two disagree, a lead
decides who is neither of them.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from queue_core import audit, contract
from queue_core.models import Assignment, Decision, Item, SecondLook
from queue_core.people.deciding import Locked, Words
from queue_core.states import NOT_OPEN_TICKETS, AssignmentToken, ItemEnd, ItemKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

KEYS = 2**32


def open_if_due(locked: Locked, decision: Decision, assignment: Assignment, *, now: datetime) -> Item | None:
    """Open a second look at a decision just written, if its reason code asks for one or chance draws it.

    Chance is the assignment's random key, so that nobody foresees it and whoever looks again finds the same. What is
    itself a look at a decision is not looked at again; restricted evidence is shown to no more people by chance alone.
    The caller has closed the decision's own item: a job has one open item at most.
    """
    if locked.item.kind in NOT_OPEN_TICKETS:
        return None
    ground = decision.reason_code
    is_named = ground is not None and ground.needs_second_look
    if not is_named and not _is_drawn(locked, assignment):
        return None
    return contract.open_recheck(
        locked.ticket,
        locked.job,
        kind=ItemKind.SECOND_LOOK,
        decision=decision.pk,
        deadline=now + locked.item.lane.deadline_default,
        now=now,
    )


def keep_look(locked: Locked, assignment: Assignment, head: Decision, words: Words, *, now: datetime) -> SecondLook:
    """Write down a second look and close its item. One that disagrees opens an item for the leads; the decision stands
    until they decide.
    """
    look = SecondLook.objects.create(
        item=locked.item,
        assignment=assignment,
        decision=head,
        lane_id=locked.item.lane_id,
        person_id=assignment.person_id,
        verdict=words.verdict,
        reason_code=words.ground,
        note=words.note,
        agrees=head.verdict == words.verdict,
        looked_at=now,
    )
    contract.close_open_item(locked.job, closed_as=ItemEnd.CHECKED, now=now)
    if not look.agrees:
        contract.open_recheck(
            locked.ticket,
            locked.job,
            kind=ItemKind.DISAGREEMENT,
            decision=head.pk,
            params={"second_look": look.pk},
            deadline=now + locked.item.lane.deadline_default,
            for_leads=True,
            now=now,
        )
    audit.record(
        "item.looked_at_again",
        now=now,
        actor=assignment.person,
        subject=locked.item,
        lane=locked.item.lane,
        after={"verdict": look.verdict, "decision": head.pk, "agrees": look.agrees},
    )
    return look


def looked_before(token: AssignmentToken, person: "AbstractUser", verdict: str) -> bool:
    """Whether this very assignment decided the same before."""
    return SecondLook.objects.filter(
        item_id=token.item,
        assignment__fence=token.fence,
        assignment__key=token.key,
        person_id=person.pk,
        verdict=verdict,
    ).exists()


def _is_drawn(locked: Locked, assignment: Assignment) -> bool:
    share = locked.item.lane.second_look_share
    return assignment.key.int % KEYS < share * KEYS and not locked.job.evidence.is_restricted
