"""Waiting tickets that a person takes out of the machine's hands, before their deadline passes."""

from typing import TYPE_CHECKING

from django.db import transaction

from queue_core import contract
from queue_core.clock import Clock
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import Item, Job
from queue_core.people.assignments import hands_full, is_held, lock_people, taken_already
from queue_core.people.eligibility import DECIDE, RESTRICTED
from queue_core.people.outcomes import Taken, TakeOutcome
from queue_core.people.rights import may, require, require_somewhere
from queue_core.states import ActOutcome

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

NOT_PULLED = {
    ActOutcome.MISSING: TakeOutcome.MISSING,
    ActOutcome.NOT_ALLOWED_IN_STATE: TakeOutcome.NOT_ALLOWED_IN_STATE,
}


@transaction.atomic
def pull(job_id: int, *, person: "AbstractUser", reason: str, clock: Clock) -> Taken:
    """Pull one job and take its item. A repeat returns the assignment that the first pull gave.

    HELD_BY_ANOTHER if somebody else was quicker; NOT_ALLOWED_IN_STATE if the machine has it, or its deadline passed;
    NOT_FOR_YOU for restricted evidence that the person may not see.
    """
    require_somewhere(person, "pull_job")
    job = Job.objects.select_related("lane", "evidence").defer("evidence__body").filter(pk=job_id).first()
    if job is None:
        return Taken(TakeOutcome.MISSING)
    lane = job.lane
    require(person, "pull_job", lane)
    require(person, DECIDE, lane)
    if job.evidence.is_restricted and not may(person, RESTRICTED, lane):
        return Taken(TakeOutcome.NOT_FOR_YOU)
    lock_people(person.pk)
    now = read_clock(clock, InvalidRequest)
    if hands_full(person.pk, lane.most_held, now=now) and _item_of(job_id) is None:
        return Taken(TakeOutcome.HANDS_FULL, most_held=lane.most_held)
    outcome, token = contract.pull(job_id, person=person, clock=clock, reason=reason)
    if token is not None:
        until = Item.objects.values_list("taken_until", flat=True).get(pk=token.item)
        return Taken(TakeOutcome.TAKEN, token, until, person.pk)
    return _not_pulled(job_id, outcome, person, clock)


def _item_of(job_id: int) -> Item | None:
    return Item.objects.filter(job_id=job_id, closed_at__isnull=True).first()


def _not_pulled(job_id: int, outcome: ActOutcome, person: "AbstractUser", clock: Clock) -> Taken:
    item = _item_of(job_id)
    if item is None or not is_held(item, now=read_clock(clock, InvalidRequest)):
        return Taken(NOT_PULLED.get(outcome, TakeOutcome.NOT_ALLOWED_IN_STATE))
    return taken_already(item, person)
