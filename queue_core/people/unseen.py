"""Items rejected that nobody looked at: marked so for ever, and never by this module's own judgement.

Who may, how many, and after which sample is the bulk act's (`queue_core.bulk`). There is no such verb for approving:
what nobody looked at is never passed.
"""

from typing import TYPE_CHECKING

from django.db import transaction

from queue_core import audit, contract, signals, tally
from queue_core.clock import Clock
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import Assignment, Decision, Evidence
from queue_core.people import grounds
from queue_core.people.deciding import Words, last_link, lock, write_decision
from queue_core.people.rights import require
from queue_core.states import ItemEnd, Verdict

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: Severity 2 and 3 are looked at, each for itself.
MOST_SEVERE = 1
RIGHT = "reject_in_bulk"


@transaction.atomic
@tally.kept()
def reject_unseen(item_id: int, *, person: "AbstractUser", reason_code: str, note: str, clock: Clock) -> bool:
    """Reject an open item's content without a look. Whether it was: not where it is severe, restricted or decided.

    Raises NotPermitted, and InvalidRequest for a reason code that is not in use for rejecting on the item's lane.
    """
    locked = lock(item_id)
    if locked is None or locked.item.closed_at is not None:
        return False
    require(person, RIGHT, locked.item.lane_id)
    head = last_link(locked.ticket, locked.job.revision)
    is_decided = head is not None and head.verdict is not None
    is_severe = max(locked.item.severity, locked.ticket.severity) > MOST_SEVERE or locked.item.for_leads
    if is_decided or is_severe or Evidence.objects.filter(pk=locked.job.evidence_id, is_restricted=True).exists():
        return False
    ground = grounds.ground_of(Verdict.REJECTED, reason_code, lane_id=locked.item.lane_id)
    grounds.check_note(locked.item.kind, ground, note)
    now = read_clock(clock, InvalidRequest)
    token = contract.assign(locked.item, person, now=now, until=now + locked.item.lane.assignment_time)
    assignment = Assignment.objects.get(item=locked.item, fence=token.fence)
    words = Words(Verdict.REJECTED, ground, note)
    decision, _not_before = write_decision(locked, assignment, words, head, now=now, is_unseen=True)
    contract.close_open_item(locked.job, closed_as=ItemEnd.DECIDED, now=now)
    after = {"verdict": decision.verdict, "reason_code": reason_code, "decision": decision.pk, "is_unseen": True}
    audit.record(
        "item.decided",
        now=now,
        actor=person,
        subject=locked.item,
        lane=locked.item.lane,
        reason=reason_code,
        after=after,
    )
    signals.ticket_decided.send(Decision, decision=decision, ticket=locked.ticket)
    return True
