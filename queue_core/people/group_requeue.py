"""DEAD jobs of one lane and cause given back to the machine together.

The act changes exactly what was confirmed: the preview names its items by a fingerprint, and if that no longer fits,
nothing is done and the new count is shown (ADM-04). Deadlines are spread, so that the next outage of one minute does
not kill them all again.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import batched
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet

from queue_core import audit, contract
from queue_core.clock import Clock
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import AuditEntry, Item, Lane
from queue_core.people.resolving import check_reason
from queue_core.people.rights import may, require
from queue_core.states import HANDLED_DEATHS, ActOutcome, ItemKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

RIGHT = "requeue_item"
#: At once, in the request of one person: seconds, not minutes. The rest is said, and is the next preview.
MOST_AT_ONCE = 20_000
#: Locked and requeued in one transaction: short enough that workers and the sweep do not wait long.
CHUNK = 500
LONGEST_SPAN = timedelta(days=7)


class GroupOutcome(StrEnum):
    REQUEUED = "requeued"
    ALREADY = "already"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class GroupPreview:
    """What would be requeued now. `total` counts the group's free items, of which `count` come first."""

    lane_id: int
    cause: str
    count: int
    total: int
    fingerprint: str
    by_severity: dict[int, int]


@dataclass(frozen=True, slots=True)
class GroupRequeued:
    """`left` counts those of the group that stand there still; `passed_over` those that moved during the act."""

    outcome: GroupOutcome
    requeued: int = 0
    passed_over: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class Spread:
    """New deadlines: from `first` on, evenly over `span`, the most severe first."""

    first: datetime
    span: timedelta

    def deadlines(self, count: int) -> list[datetime]:
        step = self.span / (count - 1) if count > 1 else timedelta(0)
        return [self.first + step * i for i in range(count)]


def preview(lane_id: int, cause: str, *, now: datetime) -> GroupPreview:
    """Items that somebody holds are left out: they are being looked at. So is restricted evidence, and erased one."""
    rows = _free(lane_id, cause, now)
    chosen = list(rows.values_list("pk", "severity")[:MOST_AT_ONCE])
    severities: dict[int, int] = {}
    for _pk, severity in chosen:
        severities[severity] = severities.get(severity, 0) + 1
    total = len(chosen) if len(chosen) < MOST_AT_ONCE else rows.count()
    return GroupPreview(lane_id, cause, len(chosen), total, _fingerprint([pk for pk, _ in chosen]), severities)


def requeue_group(
    lane_id: int,
    cause: str,
    *,
    fingerprint: str,
    first: datetime,
    span: timedelta,
    person: "AbstractUser",
    reason: str,
    clock: Clock,
) -> GroupRequeued:
    """Requeue the confirmed items, each with its own audit row, most severe first with the nearest deadlines.

    CHANGED if the group is no longer what `fingerprint` names; nothing was done. ALREADY if this very group was
    requeued before. Raises InvalidRequest for deadlines or a reason out of bounds. Not one transaction: an act that a
    crash or the loss of the right cuts short has requeued some items, each whole, and the next preview shows the rest.
    """
    require(person, RIGHT, lane_id)
    check_reason(reason)
    now = read_clock(clock, InvalidRequest)
    _check(cause, first, span, now)
    ids = list(_free(lane_id, cause, now).values_list("pk", flat=True)[:MOST_AT_ONCE])
    if not ids or _fingerprint(ids) != fingerprint:
        return _not_as_confirmed(lane_id, cause, fingerprint, person, now)
    deadlines = dict(zip(ids, Spread(first, span).deadlines(len(ids)), strict=True))
    requeued = 0
    for chunk in batched(ids, CHUNK):
        if not may(get_user_model().objects.get(pk=person.pk), RIGHT, lane_id):
            break
        requeued += _requeue_chunk(chunk, deadlines, person, reason, clock)
    return _finish(lane_id, cause, fingerprint, requeued, len(ids), person, reason, clock)


def _free(lane_id: int, cause: str, now: datetime) -> QuerySet[Item]:
    dead = Item.objects.filter(lane_id=lane_id, closed_at__isnull=True, kind=ItemKind.DEAD, cause=cause)
    plain = dead.filter(job__evidence__is_restricted=False, job__evidence__erased_at__isnull=True)
    return plain.exclude(taken_until__gt=now).order_by("-severity", "deadline", "pk")


def _fingerprint(ids: list[int]) -> str:
    return hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()[:32]


def _check(cause: str, first: datetime, span: timedelta, now: datetime) -> None:
    if cause not in HANDLED_DEATHS:
        raise InvalidRequest("Only deaths by deadline or attempts are requeued.", field="cause")
    if first <= now:
        raise InvalidRequest("The new deadline is not after now.", field="first")
    if not timedelta(0) <= span <= LONGEST_SPAN:
        raise InvalidRequest("Deadlines are spread over at most 7 days.", field="span")


def _not_as_confirmed(
    lane_id: int, cause: str, fingerprint: str, person: "AbstractUser", now: datetime
) -> GroupRequeued:
    left = _free(lane_id, cause, now).count()
    own = AuditEntry.objects.filter(
        subject_type="lane", subject_id=str(lane_id), act="group.requeued", actor_id=person.pk,
        after__fingerprint=fingerprint,
    ).first()  # fmt: skip
    if own is not None and own.after is not None:
        return GroupRequeued(GroupOutcome.ALREADY, own.after["requeued"], own.after["passed_over"], left)
    return GroupRequeued(GroupOutcome.CHANGED, left=left)


def _requeue_chunk(
    item_ids: tuple[int, ...], deadlines: dict[int, datetime], person: "AbstractUser", reason: str, clock: Clock
) -> int:
    """One transaction. Items that somebody closed or took since are passed over there, under their locks."""
    jobs = Item.objects.filter(pk__in=item_ids, closed_at__isnull=True).values_list("job_id", "pk")
    terms = {job: deadlines[item] for job, item in jobs}
    outcomes = contract.requeue_many(terms, clock=clock, person=person, reason=reason)
    return list(outcomes.values()).count(ActOutcome.DONE)


@transaction.atomic
def _finish(
    lane_id: int,
    cause: str,
    fingerprint: str,
    requeued: int,
    confirmed: int,
    person: "AbstractUser",
    reason: str,
    clock: Clock,
) -> GroupRequeued:
    now = read_clock(clock, InvalidRequest)
    lane = Lane.objects.get(pk=lane_id)
    done = GroupRequeued(GroupOutcome.REQUEUED, requeued, confirmed - requeued, left=_free(lane_id, cause, now).count())
    after = {"cause": cause, "requeued": requeued, "passed_over": done.passed_over, "fingerprint": fingerprint}
    audit.record("group.requeued", now=now, actor=person, subject=lane, lane=lane, reason=reason, after=after)
    return done
