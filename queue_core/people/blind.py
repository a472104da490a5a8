"""Blind checks: a person's verdict beside the model's, which that person did not see."""

from datetime import datetime
from typing import TYPE_CHECKING

from queue_core import audit
from queue_core.models import Assignment, BlindCheck, Decision, Item
from queue_core.states import AssignmentToken, Verdict

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser


def keep_check(item: Item, assignment: Assignment, head: Decision, verdict: Verdict, *, now: datetime) -> BlindCheck:
    """Write down a check, under the locks of its ticket, job and item. The caller replaces what it contradicts."""
    assert head.run_id is not None, "the model decides under a run"
    return BlindCheck.objects.create(
        item=item,
        assignment=assignment,
        decision=head,
        lane_id=item.lane_id,
        run_id=head.run_id,
        person_id=assignment.person_id,
        verdict=verdict,
        agrees=head.verdict == verdict,
        checked_at=now,
    )


def audit_check(check: BlindCheck, *, now: datetime) -> None:
    """A check that agrees is an act too, though it decides nothing."""
    audit.record(
        "item.checked",
        now=now,
        actor=check.person,
        subject=check.item,
        lane=check.item.lane,
        after={"verdict": check.verdict, "decision": check.decision_id, "agrees": check.agrees},
    )


def checked_before(token: AssignmentToken, person: "AbstractUser", verdict: str) -> bool:
    """Whether this very assignment checked the same before."""
    return BlindCheck.objects.filter(
        item_id=token.item,
        assignment__fence=token.fence,
        assignment__key=token.key,
        person_id=person.pk,
        verdict=verdict,
        agrees=True,
    ).exists()
