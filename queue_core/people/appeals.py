"""Appeals: a decision in force that its author objects to, looked at by a person who had no part in it."""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction

from queue_core import audit, contract, tally
from queue_core.clock import Clock
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import Appeal, Decision, Item, Job, Lane, Ticket
from queue_core.people.deciding import last_link
from queue_core.people.outcomes import Appealed, AppealOutcome
from queue_core.people.rights import require, require_somewhere
from queue_core.states import DecisionWhy, ItemEnd, ItemKind

if TYPE_CHECKING:
    from queue_core.models.api_keys import Actor

RIGHT = "appeal_decision"
MOST_STATEMENT = 4000


@transaction.atomic
@tally.kept()
def appeal(
    *, source: str, external_id: str, revision: str | None = None, statement: str, person: "Actor", clock: Clock
) -> Appealed:
    """Open an item against the decision in force on a ticket's current revision; who made it never decides the appeal.

    Each decision is appealed against once: a repeat is KNOWN, with the first one's appeal. What was decided on an
    appeal is FINAL. Other work on the same decision (a check, a second look, a correction) ends for the appeal; where
    leads were at it, the appeal is for leads. What is decided goes out as a decision with `appeal`: upheld or
    overturned.

    Raises InvalidRequest (`statement`) for an empty one, or one of more than MOST_STATEMENT characters.
    """
    require_somewhere(person, RIGHT)
    statement = _checked(statement)
    found = Ticket.objects.filter(source=source, external_id=external_id).first()
    if found is None:
        return Appealed(AppealOutcome.MISSING)
    job_id = Job.objects.filter(ticket=found).order_by("-pk").values_list("pk", flat=True).first()
    locked = contract.lock_job(job_id) if job_id is not None else None
    if locked is None:
        return Appealed(AppealOutcome.MISSING)
    ticket, newest = locked
    require(person, RIGHT, newest.lane_id)
    now = read_clock(clock, InvalidRequest)
    if ticket.withdrawn_at is not None or revision not in (None, ticket.current_revision):
        return Appealed(AppealOutcome.NOT_CURRENT)
    head = last_link(ticket, ticket.current_revision)
    if head is None or head.verdict is None:
        return Appealed(AppealOutcome.NOTHING_DECIDED)
    made = _made(head)
    known = Appeal.objects.filter(decision=made).first()
    if known is not None:
        return Appealed(AppealOutcome.KNOWN, known)
    if made.why == DecisionWhy.APPEAL:
        return Appealed(AppealOutcome.FINAL)
    return Appealed(AppealOutcome.OPENED, _open(ticket, head, made, statement, person, now))


def may_be_appealed(head: Decision) -> bool:
    """Whether the decision in force was not appealed against yet, nor made on an appeal."""
    made = _made(head)
    return made.why != DecisionWhy.APPEAL and not Appeal.objects.filter(decision=made).exists()


def _checked(statement: str) -> str:
    if not statement.strip() or len(statement) > MOST_STATEMENT or "\0" in statement:
        raise InvalidRequest(f"A statement has 1 to {MOST_STATEMENT} characters, none of them NUL.", field="statement")
    return statement


def _made(head: Decision) -> Decision:
    """The decision itself, where a link says that what followed it was taken back."""
    while head.why == DecisionWhy.TAKEN_BACK and head.replaces is not None and head.replaces.replaces is not None:
        head = head.replaces.replaces
    return head


def _open(ticket: Ticket, head: Decision, made: Decision, statement: str, person: "Actor", now: datetime) -> Appeal:
    """Against the decision that was made; the item is about the link that has it in force."""
    job = Job.objects.select_for_update(no_key=True).get(pk=head.job_id)
    lane = Lane.objects.get(pk=job.lane_id)
    was_for_leads = Item.objects.filter(job=job, closed_at__isnull=True, for_leads=True).exists()
    contract.close_open_item(job, closed_as=ItemEnd.APPEALED, now=now)
    item = contract.open_recheck(
        ticket, job, kind=ItemKind.APPEAL, decision=head.pk, deadline=now + lane.deadline_default,
        for_leads=was_for_leads, now=now,
    )  # fmt: skip
    opened = Appeal.objects.create(
        decision=made, item=item, ticket=ticket, lane_id=job.lane_id, statement=statement, received_at=now
    )
    item.params = {**item.params, "appeal": opened.pk}
    item.save(update_fields=["params"])
    audit.record("decision.appealed", now=now, actor=person, subject=item, lane=lane, after={"decision": head.pk})
    return opened
