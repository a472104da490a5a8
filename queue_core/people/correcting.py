"""A decision in force that a lead looks at once more, to replace it."""

from typing import TYPE_CHECKING

from django.db import transaction

from queue_core import audit, contract, tally
from queue_core.clock import Clock
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import Decision, Evidence, Item, Lane
from queue_core.people.assignments import hands_full, lock_people
from queue_core.people.deciding import last_link
from queue_core.people.eligibility import DECIDE, LEAD, RESTRICTED
from queue_core.people.outcomes import Correcting, CorrectOutcome
from queue_core.people.rights import may, require, require_somewhere
from queue_core.states import ItemKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser


@transaction.atomic
@tally.kept()
def correct(decision_id: int, *, person: "AbstractUser", clock: Clock) -> Correcting:
    """Open an item about a decision in force and give it to the lead who asks, to decide it anew with a note.

    The decision stands until then, and stays in the chain afterwards. BUSY, with the item, if people work on it
    already; NOT_IN_FORCE if it was replaced meanwhile; NOT_CURRENT for an older revision; HANDS_FULL, with the number,
    for a lead who holds as many items as the lane allows.
    """
    require_somewhere(person, LEAD)
    decision = Decision.objects.filter(pk=decision_id).first()
    if decision is None:
        return Correcting(CorrectOutcome.MISSING)
    for right in rights_to_correct(decision):
        require(person, right, decision.lane_id)
    lock_people(person.pk)
    locked = contract.lock_job(decision.job_id)
    assert locked is not None, "a decision's job is kept"
    ticket, job = locked
    now = read_clock(clock, InvalidRequest)
    head = last_link(ticket, decision.revision)
    if head is None or head.pk != decision.pk or head.verdict is None:
        return Correcting(CorrectOutcome.NOT_IN_FORCE)
    if ticket.current_revision != decision.revision or ticket.withdrawn_at is not None:
        return Correcting(CorrectOutcome.NOT_CURRENT)
    busy = Item.objects.filter(job=job, closed_at__isnull=True).values_list("pk", flat=True).first()
    if busy is not None:
        return Correcting(CorrectOutcome.BUSY, item=busy)
    lane = Lane.objects.get(pk=decision.lane_id)
    if hands_full(person.pk, lane.most_held, now=now):
        return Correcting(CorrectOutcome.HANDS_FULL, most_held=lane.most_held)
    item = contract.open_recheck(
        ticket, job, kind=ItemKind.CORRECTION, decision=decision.pk, deadline=now + lane.deadline_default,
        for_leads=True, now=now,
    )  # fmt: skip
    token = contract.assign(item, person, now=now, until=now + lane.assignment_time)
    audit.record(
        "decision.corrected_anew", now=now, actor=person, subject=item, lane=lane, after={"decision": decision.pk}
    )
    return Correcting(CorrectOutcome.OPENED, token, item.pk)


def may_correct(decision: Decision, person: "AbstractUser") -> bool:
    """Whether a person might decide the item that `correct` would give them."""
    return all(may(person, right, decision.lane_id) for right in rights_to_correct(decision))


def rights_to_correct(decision: Decision) -> list[str]:
    is_restricted = Evidence.objects.filter(jobs=decision.job_id, is_restricted=True).exists()
    return [LEAD, DECIDE, RESTRICTED] if is_restricted else [LEAD, DECIDE]
