"""What an act would touch, written down with its fences. Nothing else is changed by it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from queue_core.bulk.terms import (
    LARGEST_SAMPLED,
    MOST,
    MOST_REJECTED,
    OF_ITEMS,
    PASSED_ON,
    RIGHTS,
    SAMPLE,
    LeftOut,
    lanes_where_may_make,
)
from queue_core.clock import Clock
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import BulkAct, BulkEntry, Decision, Item, Job
from queue_core.people.eligibility import LEAD
from queue_core.people.rights import may, require_somewhere
from queue_core.states import HANDLED_DEATHS, BulkKind, DeadlineKind, ItemKind, JobState

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: A preview that nobody confirmed is thrown away after so long.
FORGOTTEN_AFTER = timedelta(hours=1)
AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Previewed:
    """`act` is None where nothing is left to act on; `left_out` says why."""

    act: BulkAct | None
    count: int
    left_out: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A job, and its open item where the act is about items, as they stand now."""

    job: int
    item: int | None
    lane: int
    fence: int
    item_fence: int | None
    deadline: datetime
    severity: int
    state: str
    is_restricted: bool
    is_hard: bool
    kind: str = ""
    cause: str = ""
    taken_by: int | None = None
    for_leads: bool = False
    is_decided: bool = False
    was_decided: bool = False
    is_erased: bool = False


@transaction.atomic
def preview(
    kind: BulkKind, jobs: QuerySet[Job], *, selection: dict[str, Any], person: "AbstractUser", clock: Clock
) -> Previewed:
    """Write down what an act of this kind would touch of `jobs`: at most MOST of them, the most severe first.

    Only jobs of lanes on which the person has the right; others are left out, and said. Raises NotPermitted where there
    is none, and InvalidRequest for a selection that an act of this kind may never have.
    """
    for right in RIGHTS[kind]:
        require_somewhere(person, right)
    now, (jobs, elsewhere) = clock.now(), _by_right(kind, jobs, person)
    looked_at = list(_seen(kind, jobs, now))
    why = [(one, _left_out(kind, one, person)) for one in looked_at[:MOST]]
    left_out = Counter(str(reason) for _one, reason in why if reason is not None)
    if elsewhere:
        left_out[LeftOut.NO_RIGHT.value] = elsewhere
    chosen = [one for one, reason in why if reason is None]
    if kind == BulkKind.REJECT:
        _check_rejected(chosen, is_capped=len(looked_at) > MOST)
    if not chosen:
        return Previewed(None, 0, dict(left_out))
    act = BulkAct.objects.create(
        kind=kind,
        # By its lanes others find an act: who has a right on none of them does not see it.
        selection=selection | {"lanes": sorted({one.lane for one in chosen})},
        left_out=dict(left_out),
        is_capped=len(looked_at) > MOST,
        by_id=person.pk,
        previewed_at=now,
    )
    BulkEntry.objects.bulk_create([_entry(act, place, one) for place, one in enumerate(chosen)], batch_size=AT_ONCE)
    return Previewed(act, len(chosen), dict(left_out))


def discard(act_id: int, *, person: "AbstractUser") -> bool:
    """Throw one's own preview away. Whether there was one that is not confirmed."""
    with transaction.atomic():
        own = BulkAct.objects.select_for_update().filter(pk=act_id, by_id=person.pk, confirmed_at__isnull=True).first()
        if own is None:
            return False
        _drop([own.pk])
        return True


def drop_old(*, clock: Clock, most: int = 20) -> int:
    """Throw previews away that nobody confirmed, at most so many. Safe to run twice at once. Returns how many."""
    with transaction.atomic():
        old = BulkAct.objects.filter(confirmed_at__isnull=True, previewed_at__lt=clock.now() - FORGOTTEN_AFTER)
        found = list(
            old.select_for_update(skip_locked=True).order_by("previewed_at").values_list("pk", flat=True)[:most]
        )
        _drop(found)
        return len(found)


def _drop(act_ids: Sequence[int]) -> None:
    BulkEntry.objects.filter(act__in=act_ids).delete()
    BulkAct.objects.filter(pk__in=act_ids).delete()


def _by_right(kind: BulkKind, jobs: QuerySet[Job], person: "AbstractUser") -> tuple[QuerySet[Job], int]:
    """Those of the lanes on which the person may make such an act, and how many others there are, counted to MOST."""
    lanes = lanes_where_may_make(person, kind)
    if lanes is None:
        return jobs, 0
    elsewhere = jobs.exclude(lane_id__in=sorted(lanes)).order_by()
    if kind in OF_ITEMS:
        elsewhere = elsewhere.filter(pk__in=Item.objects.filter(closed_at__isnull=True).values("job_id"))
    return jobs.filter(lane_id__in=sorted(lanes)), elsewhere[:MOST].count()


def _seen(kind: BulkKind, jobs: QuerySet[Job], now: datetime) -> Iterable[_Seen]:
    return _seen_items(jobs, now) if kind in OF_ITEMS else _seen_jobs(jobs)


def _seen_jobs(jobs: QuerySet[Job]) -> Iterable[_Seen]:
    rows = jobs.order_by("-severity", "deadline", "pk").values_list(
        "pk", "lane_id", "fence", "deadline", "severity", "state", "evidence__is_restricted", "ticket__deadline_kind"
    )
    for job, lane, fence, deadline, severity, state, is_restricted, deadline_kind in rows[: MOST + 1]:
        is_hard = deadline_kind == DeadlineKind.HARD
        yield _Seen(job, None, lane, fence, None, deadline, severity, state, is_restricted, is_hard)


def _seen_items(jobs: QuerySet[Job], now: datetime) -> Iterable[_Seen]:
    chain = Decision.objects.filter(ticket=OuterRef("ticket_id"), revision=OuterRef("job__revision"))
    in_force = chain.filter(replaced_by__isnull=True, verdict__isnull=False)
    items = Item.objects.filter(closed_at__isnull=True, job__in=jobs.order_by().values("pk"))
    # By values: evidence itself is no part of an act, and may be large.
    rows = items.order_by("-severity", "deadline", "pk").values(
        "pk", "job_id", "lane_id", "fence", "severity", "is_hard", "kind", "cause", "taken_by_id", "taken_until",
        "for_leads", "job__fence", "job__deadline", "job__state", "job__evidence__is_restricted",
        "job__evidence__erased_at", is_decided=Exists(in_force), was_decided=Exists(chain),
    )  # fmt: skip
    for row in rows[: MOST + 1]:
        yield _Seen(
            job=row["job_id"],
            item=row["pk"],
            lane=row["lane_id"],
            fence=row["job__fence"],
            item_fence=row["fence"],
            deadline=row["job__deadline"],
            severity=row["severity"],
            state=row["job__state"],
            is_restricted=row["job__evidence__is_restricted"],
            is_hard=row["is_hard"],
            kind=row["kind"],
            cause=row["cause"],
            taken_by=row["taken_by_id"] if row["taken_until"] is not None and now < row["taken_until"] else None,
            for_leads=row["for_leads"],
            is_decided=row["is_decided"],
            was_decided=row["was_decided"],
            is_erased=row["job__evidence__erased_at"] is not None,
        )


def _left_out(kind: BulkKind, one: _Seen, person: "AbstractUser") -> LeftOut | None:
    if one.is_restricted:
        return LeftOut.RESTRICTED
    if kind in (BulkKind.PULL, BulkKind.MOVE_DEADLINES):
        if one.state != JobState.WAITING:
            return LeftOut.NOT_WAITING
        return LeftOut.HARD if kind == BulkKind.MOVE_DEADLINES and one.is_hard else None
    if one.taken_by is not None and not (kind in PASSED_ON and _may_pass_on(one, person)):
        return LeftOut.TAKEN
    return _unfit(kind, one)


def _may_pass_on(one: _Seen, person: "AbstractUser") -> bool:
    """What one has oneself; what others have, only as a lead."""
    return one.taken_by == person.pk or may(person, LEAD, one.lane)


def _unfit(kind: BulkKind, one: _Seen) -> LeftOut | None:
    if kind == BulkKind.ESCALATE and one.for_leads:
        return LeftOut.FOR_LEADS
    if kind == BulkKind.REQUEUE:
        return _not_requeued(one)
    if kind == BulkKind.REJECT and one.severity > LARGEST_SAMPLED:
        return LeftOut.SEVERE
    if kind == BulkKind.REJECT and one.for_leads:
        return LeftOut.FOR_LEADS
    return LeftOut.DECIDED if kind == BulkKind.REJECT and one.is_decided else None


def _not_requeued(one: _Seen) -> LeftOut | None:
    """As `contract.may_requeue` would say."""
    if not (one.kind == ItemKind.DEAD and one.cause in HANDLED_DEATHS):
        return LeftOut.NOT_DEAD
    if one.is_erased:
        return LeftOut.ERASED
    return LeftOut.WAS_DECIDED if one.was_decided else None


def _check_rejected(chosen: Sequence[_Seen], *, is_capped: bool) -> None:
    """At most MOST_REJECTED items of one lane and cause, and more than the sample that is decided first."""
    if len(chosen) > MOST_REJECTED or is_capped:
        text = _("At most %(most)d items are rejected in bulk: choose fewer.")
        raise InvalidRequest(text % {"most": MOST_REJECTED}, field="selection")
    if len({(one.lane, one.kind, one.cause) for one in chosen}) > 1:
        raise InvalidRequest(_("Items of one lane and one cause are rejected together, no others."), field="selection")
    if chosen and len(chosen) <= SAMPLE:
        text = _("Of %(most)d items or fewer each is decided for itself.")
        raise InvalidRequest(text % {"most": SAMPLE}, field="selection")


def _entry(act: BulkAct, place: int, one: _Seen) -> BulkEntry:
    return BulkEntry(
        act=act,
        place=place,
        job_id=one.job,
        item_id=one.item,
        fence=one.fence,
        item_fence=one.item_fence,
        deadline=one.deadline,
        severity=one.severity,
    )


def lane_of(act: BulkAct) -> int:
    """The lane of an act's first job: of all of them, where the act is one that keeps to one lane."""
    found = BulkEntry.objects.filter(act=act).order_by("place").values_list("job__lane_id", flat=True).first()
    if found is None:
        raise NotPermitted("a bulk act without an entry")
    return found
