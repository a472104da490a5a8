"""What the desk shows. Reads only; every figure of one answer is as of the `now` that it was asked for."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, F, Max, Min, Prefetch, Q, QuerySet

from queue_core.models import Assignment, Hold, Item, ItemPass, Job, Lane
from queue_core.people.assignments import skipped_by
from queue_core.people.eligibility import DECIDE, RESTRICTED, is_open_to, open_to
from queue_core.people.rights import lanes_where_may, on_lanes_of
from queue_core.states import HANDLED_DEATHS, ItemKind, JobState, PassedAs

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: Deadlines read to say how many can be reached in time. Above it the answer is "at least".
MOST_REACHED = 10_000
#: Somebody is on shift who took or held an item within this time.
SHIFT = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Group:
    """Open items of one lane and one cause, as one line.

    `for_you` counts those that the asking person may take, whoever has them now; `requeueable` those that a bulk act
    may give back to the machine: free, DEAD by deadline or attempts, neither restricted nor erased.
    """

    lane_id: int
    kind: ItemKind
    cause: str
    count: int
    for_you: int
    requeueable: int
    worst: int
    opened_from: datetime
    opened_to: datetime
    deadline_from: datetime
    deadline_to: datetime


def groups(lane_ids: Collection[int] | None = None, *, person: "AbstractUser", now: datetime) -> list[Group]:
    """Open items by lane, kind and cause; most severe and largest first."""
    may_live_again = Q(
        kind=ItemKind.DEAD,
        cause__in=HANDLED_DEATHS,
        job__evidence__is_restricted=False,
        job__evidence__erased_at__isnull=True,
    ) & (Q(taken_until__isnull=True) | Q(taken_until__lte=now))
    rows = (
        open_items(lane_ids)
        .order_by()
        .values("lane_id", "kind", "cause")
        .annotate(
            number=Count("pk"),
            for_you=Count("pk", filter=is_open_to(person)),
            requeueable=Count("pk", filter=may_live_again),
            worst=Max("severity"),
            opened_from=Min("opened_at"),
            opened_to=Max("opened_at"),
            deadline_from=Min("deadline"),
            deadline_to=Max("deadline"),
        )
    )
    found = [
        Group(
            lane_id=row["lane_id"],
            kind=ItemKind(row["kind"]),
            cause=row["cause"],
            count=row["number"],
            for_you=row["for_you"],
            requeueable=row["requeueable"],
            worst=row["worst"],
            opened_from=row["opened_from"],
            opened_to=row["opened_to"],
            deadline_from=row["deadline_from"],
            deadline_to=row["deadline_to"],
        )
        for row in rows
    ]
    return sorted(found, key=lambda g: (-g.worst, -g.count, g.lane_id, g.kind, g.cause))


def holds_over(dead: Sequence[Group]) -> dict[Group, Hold]:
    """The hold during which all deadlines of a group passed, where one hold covers them all."""
    holds = list(Hold.objects.filter(lane_id__in={group.lane_id for group in dead}).order_by("-started_at")[:200])
    found = {}
    for group in dead:
        for hold in holds:
            is_over = hold.ended_at is not None and hold.ended_at < group.deadline_to
            if hold.lane_id == group.lane_id and hold.started_at <= group.deadline_from and not is_over:
                found[group] = hold
    return found


def open_items(lane_ids: Collection[int] | None = None) -> QuerySet[Item]:
    items = Item.objects.filter(closed_at__isnull=True)
    return items if lane_ids is None else items.filter(lane_id__in=lane_ids)


def held_by(person_id: int, *, now: datetime) -> list[Item]:
    """What a person holds, the one that ends first on top. Read by their open assignments, of which there are few."""
    running = Assignment.objects.filter(person_id=person_id, ended_at__isnull=True, until__gt=now)
    items = Item.objects.filter(closed_at__isnull=True, pk__in=running.values("item_id"))
    return list(items.select_related("ticket", "lane").order_by("taken_until", "pk"))


def on_what(lane_ids: Collection[int] | None = None, *, now: datetime, limit: int = 50) -> list[Item]:
    """Items that somebody holds now, each with its person."""
    held = open_items(lane_ids).filter(taken_until__gt=now)
    return list(held.select_related("ticket", "lane", "taken_by").order_by("taken_by__username", "taken_until")[:limit])


@dataclass(frozen=True, slots=True)
class Supply:
    """What there is to take for one person. `next_free` is when the first item of another is free again, if nothing
    happens; `skipped` ones are free, and not offered to this person. `for_others` says whether anything is open that
    this person may never take; asked only where there is nothing else to say.
    """

    free: int
    held_by_others: int
    yours: int
    skipped: int
    next_free: datetime | None
    for_others: bool = False


def supply(person: "AbstractUser", lane_ids: Collection[int] | None = None, *, now: datetime) -> Supply:
    """Of the items that this person may take: what is for leads alone is nothing to others."""
    held = Q(taken_until__gt=now)
    others = held & ~Q(taken_by_id=person.pk)
    is_free = Q(taken_until__isnull=True) | Q(taken_until__lte=now)
    skipped = is_free & Q(pk__in=skipped_by(person.pk, now=now))
    mine = open_to(open_items(lane_ids), person)
    row = mine.aggregate(
        number=Count("pk"),
        others=Count("pk", filter=others),
        yours=Count("pk", filter=held & Q(taken_by_id=person.pk)),
        skipped=Count("pk", filter=skipped),
        next_free=Min("taken_until", filter=others),
    )
    free = row["number"] - row["others"] - row["yours"] - row["skipped"]
    for_others = not row["number"] and on_lanes_of(open_items(lane_ids), person, DECIDE).exists()
    return Supply(free, row["others"], row["yours"], row["skipped"], row["next_free"], for_others)


def takeable(items: Collection[Item], person: "AbstractUser") -> frozenset[int]:
    """The keys of those that the person may take, whoever holds them now."""
    chosen = open_to(Item.objects.filter(pk__in=[item.pk for item in items]), person)
    return frozenset(chosen.values_list("pk", flat=True))


def for_leads(lane_ids: Collection[int], *, limit: int = 20) -> list[Item]:
    """Open items that only leads take, the most severe and urgent first; each with who passed it on and why (`passed`),
    and whether its evidence is restricted (`is_restricted`)."""
    rows = open_items(lane_ids).filter(for_leads=True).select_related("ticket", "lane", "taken_by")
    rows = rows.annotate(is_restricted=F("job__evidence__is_restricted"))
    passed = Prefetch("passes", ItemPass.objects.select_related("person").order_by("-pk"), to_attr="passed")
    return list(rows.prefetch_related(passed).order_by("-severity", "deadline", "pk")[:limit])


def handed_to(person_id: int, items: Collection[Item]) -> dict[int, ItemPass]:
    """By item: who handed it to this person last, of those that they hold."""
    passes = ItemPass.objects.filter(
        item__in=[item.pk for item in items], to_id=person_id, passed_as=PassedAs.HANDED_OVER
    )
    return {one.item_id: one for one in passes.select_related("person").order_by("pk")}


def before_the_deadline(lanes: Iterable[Lane], *, person: "AbstractUser", now: datetime, limit: int = 20) -> list[Job]:
    """Tickets that wait in lanes on hold and have time left: most severe first, then by time left.

    Those with restricted evidence only for who may see it.
    """
    waiting = _waiting_on_hold(lanes, now)
    specialists = lanes_where_may(person, RESTRICTED)
    if specialists is not None:
        waiting = waiting.filter(Q(evidence__is_restricted=False) | Q(lane_id__in=sorted(specialists)))
    return list(waiting.select_related("ticket", "lane").order_by("-severity", "deadline", "pk")[:limit])


@dataclass(frozen=True, slots=True)
class Reach:
    """How many waiting tickets people could decide before their deadlines, if they did nothing else.

    `waiting` and `in_time` were read up to MOST_REACHED. `soonest` are the deadlines of the next hour by severity.
    """

    waiting: int
    in_time: int
    people: int
    an_hour: int
    next_hour: dict[int, int]


def reach(lanes: Sequence[Lane], *, now: datetime) -> Reach:
    """By the nearest deadline first, at the largest pace set for one of the lanes: their people are the same."""
    rows = _waiting_on_hold(lanes, now).order_by("deadline").values_list("deadline", "severity")
    waiting = list(rows[: MOST_REACHED + 1])
    an_hour = max((lane.desk_items_per_hour for lane in lanes), default=0)
    soon = Counter(severity for deadline, severity in waiting if deadline <= now + timedelta(hours=1))
    return Reach(
        waiting=len(waiting),
        in_time=in_time([deadline for deadline, _severity in waiting], an_hour, now=now),
        people=people_on_shift(now=now),
        an_hour=an_hour,
        next_hour=dict(sorted(soon.items(), reverse=True)),
    )


def in_time(deadlines: Sequence[datetime], an_hour: int, *, now: datetime) -> int:
    """The most of these, sorted, that can be done each before its deadline, one after another at an even pace."""
    if an_hour < 1:
        return 0
    each = timedelta(hours=1) / an_hour
    done = 0
    for deadline in deadlines:
        if now + each * (done + 1) < deadline:
            done += 1
    return done


def people_on_shift(*, now: datetime) -> int:
    recent = Assignment.objects.filter(Q(ended_at__isnull=True, until__gt=now - SHIFT) | Q(ended_at__gt=now - SHIFT))
    return recent.aggregate(n=Count("person_id", distinct=True))["n"] or 0


def _waiting_on_hold(lanes: Iterable[Lane], now: datetime) -> QuerySet[Job]:
    held = [lane.pk for lane in lanes if lane.is_on_hold]
    return Job.objects.filter(lane_id__in=held, state=JobState.WAITING, deadline__gt=now)
