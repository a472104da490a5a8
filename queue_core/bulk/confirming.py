"""An act confirmed by who previewed it, seconded by another where it decides, and stopped between two jobs."""

import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from queue_core import audit, wakeups
from queue_core.bulk.previewing import lane_of
from queue_core.bulk.progress import Sample, sample_of
from queue_core.bulk.terms import (
    PREVIEW_HOLDS,
    RIGHTS,
    SAMPLE,
    WITH_DEADLINES,
    Spread,
    Terms,
    check_spread,
    checked_reason,
    lanes_where_may_make,
)
from queue_core.bulk.working import end_if_done
from queue_core.clock import Clock
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import BulkAct, BulkEntry, ReasonCode
from queue_core.people.grounds import in_use
from queue_core.people.rights import may_somewhere, require, require_somewhere
from queue_core.states import BulkKind, BulkOutcome

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractUser


class ConfirmOutcome(StrEnum):
    CONFIRMED = "confirmed"
    #: This very preview was confirmed before: nothing happened a second time.
    ALREADY = "already"
    #: Shown longer ago than a preview holds.
    TOO_OLD = "too_old"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Confirmed:
    outcome: ConfirmOutcome
    act: BulkAct | None = None


class SecondOutcome(StrEnum):
    SECONDED = "seconded"
    ALREADY = "already"
    #: One's own act: somebody else has to look.
    NOT_ANOTHER = "not_another"
    #: Not all of the sample is decided.
    SAMPLE_OPEN = "sample_open"
    #: A person decided one of the sample otherwise: the rest is decided item by item.
    SAMPLE_DISAGREES = "sample_disagrees"
    OVER = "over"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Seconded:
    outcome: SecondOutcome
    sample: Sample | None = None


@transaction.atomic
def confirm(act_id: int, *, terms: Terms, reason: str, person: "AbstractUser", clock: Clock) -> Confirmed:
    """Start what a preview of one's own showed. Raises NotPermitted, and InvalidRequest for terms out of bounds.

    Workers carry it out; an act that rejects waits for its sample and for a second person first.
    """
    act = BulkAct.objects.select_for_update(no_key=True).filter(pk=act_id, by_id=person.pk).first()
    if act is None:
        return Confirmed(ConfirmOutcome.MISSING)
    kind = BulkKind(act.kind)
    for right in RIGHTS[kind]:
        require_somewhere(person, right)
    if act.confirmed_at is not None:
        return Confirmed(ConfirmOutcome.ALREADY, act)
    reason = checked_reason(reason)
    now = clock.now()
    if now - act.previewed_at > PREVIEW_HOLDS:
        return Confirmed(ConfirmOutcome.TOO_OLD, act)
    act.terms, act.reason_code = _terms(act, kind, terms, now)
    act.reason, act.confirmed_at = reason, now
    if kind == BulkKind.REJECT:
        _draw_sample(act)
    act.save(update_fields=["terms", "reason", "reason_code", "confirmed_at"])
    after = {"kind": kind.value, "jobs": act.entries.count(), "selection": act.selection, "terms": act.terms}
    audit.record("bulk.confirmed", now=now, actor=person, subject=act, reason=reason, after=after)
    if kind != BulkKind.REJECT:
        wakeups.wake_bulk(act.pk)
    return Confirmed(ConfirmOutcome.CONFIRMED, act)


@transaction.atomic
def second(act_id: int, *, person: "AbstractUser", clock: Clock) -> Seconded:
    """Let an act begin that rejects: another person's word, after people decided its whole sample as it would.

    Raises NotPermitted for who may not reject in bulk on the act's lane.
    """
    act = BulkAct.objects.select_for_update(no_key=True).filter(pk=act_id, confirmed_at__isnull=False).first()
    if act is None or act.kind != BulkKind.REJECT:
        return Seconded(SecondOutcome.MISSING)
    for right in RIGHTS[BulkKind.REJECT]:
        require(person, right, lane_of(act))
    if act.seconded_at is not None:
        return Seconded(SecondOutcome.ALREADY)
    if act.stopped_at is not None or act.ended_at is not None:
        return Seconded(SecondOutcome.OVER)
    sample = sample_of(act)
    why_not = _why_not(act, sample, person)
    if why_not is not None:
        return Seconded(why_not, sample)
    now = clock.now()
    BulkEntry.objects.filter(act=act, is_sample=True).update(outcome=BulkOutcome.SAMPLED, at=now)
    act.seconded_by_id, act.seconded_at = person.pk, now
    act.save(update_fields=["seconded_by", "seconded_at"])
    after = {"decided": sample.decided, "rejected": sample.rejected}
    audit.record("bulk.seconded", now=now, actor=person, subject=act, reason=act.reason, after=after)
    wakeups.wake_bulk(act.pk)
    return Seconded(SecondOutcome.SECONDED, sample)


@transaction.atomic
def stop(act_id: int, *, person: "AbstractUser", clock: Clock) -> bool:
    """Stop an act between two jobs: what is done stays done, and says so. Whether it was under way.

    For its maker, and for whoever might have made all of it. Raises NotPermitted.
    """
    act = BulkAct.objects.select_for_update(no_key=True).filter(pk=act_id, confirmed_at__isnull=False).first()
    if act is None or act.stopped_at is not None or act.ended_at is not None:
        return False
    if not may_stop(act, person):
        raise NotPermitted("stop")
    now = clock.now()
    act.stopped_by_id, act.stopped_at = person.pk, now
    act.save(update_fields=["stopped_by", "stopped_at"])
    # What a worker has in its hands is passed over here; that worker ends the act after it.
    waiting = BulkEntry.objects.select_for_update(skip_locked=True).filter(act=act, outcome__isnull=True)
    left = BulkEntry.objects.filter(pk__in=waiting.values("pk")).update(outcome=BulkOutcome.STOPPED, at=now)
    audit.record("bulk.stopped", now=now, actor=person, subject=act, after={"left": left})
    end_if_done(act.pk, now=now)
    return True


def may_stop(act: BulkAct, person: "AbstractUser") -> bool:
    """Whether an act is a person's own, or they have its rights on the lane of each of its jobs."""
    if person.pk == act.by_id:
        return True
    lanes = lanes_where_may_make(person, BulkKind(act.kind))
    return lanes is None or not act.entries.exclude(job__lane_id__in=sorted(lanes)).exists()


def _why_not(act: BulkAct, sample: Sample, person: "AbstractUser") -> SecondOutcome | None:
    if person.pk == act.by_id:
        return SecondOutcome.NOT_ANOTHER
    if sample.otherwise:
        return SecondOutcome.SAMPLE_DISAGREES
    return SecondOutcome.SAMPLE_OPEN if sample.open else None


def _terms(act: BulkAct, kind: BulkKind, terms: Terms, now: "datetime") -> tuple[dict[str, Any], ReasonCode | None]:
    """What is kept of the terms: those of the kind, checked."""
    if kind in WITH_DEADLINES:
        check_spread(terms)
        assert terms.first is not None, "checked"
        kept = Spread(now + terms.first, terms.span, act.entries.count()).as_json()
        return kept | ({"moves_again": terms.moves_again} if kind == BulkKind.MOVE_DEADLINES else {}), None
    if kind == BulkKind.HAND_OVER:
        return {"to": _receiver(terms.to)}, None
    if kind == BulkKind.REJECT:
        ground = rejecting(act).filter(code=terms.reason_code).first()
        if ground is None:
            raise InvalidRequest(_("Choose the reason code that the rejection rests on."), field="reason_code")
        return {}, ground
    return {}, None


def rejecting(act: BulkAct) -> QuerySet[ReasonCode]:
    """The reason codes that an act's lane is rejected by."""
    return in_use(lane_of(act)).filter(is_for_rejection=True)


def _receiver(pk: int | None) -> int:
    """Each item's own lane is asked about when its turn comes."""
    found = get_user_model().objects.filter(pk=pk or 0, is_active=True).first()
    if found is None or not may_somewhere(found, "decide_item"):
        raise InvalidRequest(_("Choose somebody who may decide items."), field="to")
    return int(found.pk)


def _draw_sample(act: BulkAct) -> None:
    places = secrets.SystemRandom().sample(range(act.entries.count()), SAMPLE)
    act.entries.filter(place__in=places).update(is_sample=True)
