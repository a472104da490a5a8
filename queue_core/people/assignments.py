"""Items taken, extended and given back."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from queue_core.clock import Clock
from queue_core.contract import assign
from queue_core.contract.locks import read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import Assignment, Item, ItemPass, Lane
from queue_core.people.eligibility import DECIDE, may_work_on, open_to
from queue_core.people.outcomes import Held, HoldingOutcome, Stale, Taken, TakeOutcome
from queue_core.people.rights import require, require_somewhere
from queue_core.states import AssignmentEnd, AssignmentToken, PassedAs

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: What a person gave back is offered to them again only after everything else, for so long.
GIVEN_BACK_RESTS = timedelta(minutes=30)
#: What a person skipped is not offered to them again for so long: about a shift's half.
SKIPPED_RESTS = timedelta(hours=4)
#: So many of them are remembered: nobody looks into more items in that time.
MOST_SKIPPED = 1_000


@transaction.atomic
def take(item_id: int, *, person: "AbstractUser", clock: Clock) -> Taken:
    """Take one item. A repeat while one's own assignment runs returns that assignment again, not a new one.

    HANDS_FULL, with the number, for whoever holds as many items as the item's lane allows; NOT_FOR_YOU for what is for
    leads, or looks once more at what this very person had a part in.
    """
    require_somewhere(person, DECIDE)
    lock_people(person.pk)
    item = lock_item(item_id)
    now = read_clock(clock, InvalidRequest)
    if item is None:
        return Taken(TakeOutcome.MISSING)
    require(person, DECIDE, item.lane_id)
    if item.closed_at is not None:
        return Taken(TakeOutcome.ITEM_CLOSED)
    if is_held(item, now=now):
        return taken_already(item, person)
    if not may_work_on(item, person):
        return Taken(TakeOutcome.NOT_FOR_YOU)
    if hands_full(person.pk, item.lane.most_held, now=now):
        return Taken(TakeOutcome.HANDS_FULL, most_held=item.lane.most_held)
    return _give_to(item, person, now)


@transaction.atomic
def take_next(
    *,
    person: "AbstractUser",
    lane_ids: Collection[int] | None = None,
    without_categories: Collection[str] = (),
    clock: Clock,
) -> Taken:
    """Take the item that needs a person most: by severity, hard deadlines first, then time left.

    Never what somebody else holds, nor what the person skipped of late. Rows that another take holds locked are passed
    over, so that two people who ask at once get two items without waiting for each other. `lane_ids` None means all
    lanes; lanes in which the person holds as many items as one may are left out, and tickets of `without_categories`.
    """
    require_somewhere(person, DECIDE)
    lock_people(person.pk)
    now = read_clock(clock, InvalidRequest)
    # A time that was over before the row was locked is still over afterwards, so this test needs no second look.
    free = open_to(_free_items(lane_ids, now), person).exclude(pk__in=skipped_by(person.pk, now=now))
    if without_categories:
        free = free.exclude(ticket__category__in=without_categories)
    held = held_number(person.pk, now=now)
    roomy = _in_turn(free.filter(lane__most_held__gt=held), person.pk, now)
    item = roomy.select_for_update(no_key=True, skip_locked=True, of=("self",)).first()
    if item is not None:
        return _give_to(item, person, read_clock(clock, InvalidRequest))
    full = Lane.objects.filter(pk__in=free.order_by().values("lane_id"), most_held__lte=held).order_by("-most_held")
    most = full.values_list("most_held", flat=True).first() if held else None
    return Taken(TakeOutcome.NOTHING) if most is None else Taken(TakeOutcome.HANDS_FULL, most_held=most)


@transaction.atomic
def extend(token: AssignmentToken, *, person: "AbstractUser", clock: Clock) -> Held:
    """A whole new time for one item from now on. Nothing but this extends an assignment: no poll, no typing."""
    require_somewhere(person, DECIDE)
    item = lock_item(token.item)
    now = read_clock(clock, InvalidRequest)
    why = judge_assignment(item, token, person, now=now)
    if item is None or why is not None:
        return Held(HoldingOutcome.STALE, why=why)
    require(person, DECIDE, item.lane_id)
    item.taken_until = now + item.lane.assignment_time
    item.save(update_fields=["taken_until"])
    Assignment.objects.filter(item=item, fence=token.fence).update(until=item.taken_until)
    return Held(HoldingOutcome.EXTENDED, until=item.taken_until)


@transaction.atomic
def give_back(token: AssignmentToken, *, person: "AbstractUser", clock: Clock) -> Held:
    require_somewhere(person, DECIDE)
    item = lock_item(token.item)
    now = read_clock(clock, InvalidRequest)
    why = judge_assignment(item, token, person, now=now)
    if item is None or why is not None:
        return Held(HoldingOutcome.STALE, why=why)
    let_go(item, AssignmentEnd.GIVEN_BACK, now=now)
    return Held(HoldingOutcome.GIVEN_BACK)


def judge_assignment(
    item: Item | None, token: AssignmentToken, person: "AbstractUser", *, now: datetime
) -> Stale | None:
    """Which test the token fails on the locked item; None while it gives its person the right to act.

    The fence is compared before the person: one's own older assignment, in another tab, is as stale as anybody's.
    """
    if item is None:
        return Stale.MISSING
    if item.closed_at is not None:
        return Stale.ITEM_CLOSED
    if item.fence != token.fence:
        return Stale.TAKEN_AGAIN
    if item.taken_by_id is None or item.taken_until is None:
        return Stale.NOT_TAKEN
    if not Assignment.objects.filter(item=item, fence=token.fence, key=token.key, person_id=person.pk).exists():
        return Stale.NOT_YOURS
    return Stale.TIME_OVER if now >= item.taken_until else None


def lock_item(item_id: int) -> Item | None:
    items = Item.objects.select_for_update(no_key=True, of=("self",)).select_related("lane", "job__evidence")
    return items.filter(pk=item_id).first()


def lock_people(*keys: int) -> None:
    """The rows of people whose hands are counted, in order of key, before any ticket, job or item.

    Without it two takes at once would each see room for one more.
    """
    list(get_user_model().objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk").values_list("pk"))


def is_held(item: Item, *, now: datetime) -> bool:
    """Whether an assignment runs. `taken_until` is the first instant at which it no longer does."""
    return item.taken_until is not None and now < item.taken_until


def held_number(person_id: int, *, now: datetime) -> int:
    """How many items a person holds, of any lane. Exact only under the person's lock."""
    return Assignment.objects.filter(person_id=person_id, ended_at__isnull=True, until__gt=now).count()


def hands_full(person_id: int, most_held: int, *, now: datetime) -> bool:
    return held_number(person_id, now=now) >= most_held


def taken_already(item: Item, person: "AbstractUser") -> Taken:
    if item.taken_by_id != person.pk:
        return Taken(TakeOutcome.HELD_BY_ANOTHER, until=item.taken_until, held_by=item.taken_by_id)
    own = Assignment.objects.get(item=item, fence=item.fence)
    token = AssignmentToken(item.pk, own.fence, own.key)
    return Taken(TakeOutcome.ALREADY_YOURS, token, item.taken_until, person.pk)


def end_assignment(item: Item, ended_as: AssignmentEnd, *, now: datetime) -> None:
    Assignment.objects.filter(item=item, ended_at__isnull=True).update(ended_at=now, ended_as=ended_as)


def let_go(item: Item, ended_as: AssignmentEnd, *, now: datetime) -> None:
    """End the assignment on a locked item, which is free then."""
    end_assignment(item, ended_as, now=now)
    item.taken_by = item.taken_until = None
    item.save(update_fields=["taken_by", "taken_until", "for_leads"])


def _give_to(item: Item, person: "AbstractUser", now: datetime) -> Taken:
    end_assignment(item, AssignmentEnd.EXPIRED, now=now)
    until = now + item.lane.assignment_time
    return Taken(TakeOutcome.TAKEN, assign(item, person, now=now, until=until), until, person.pk)


def _free_items(lane_ids: Collection[int] | None, now: datetime) -> QuerySet[Item]:
    items = Item.objects.select_related("lane").filter(closed_at__isnull=True)
    if lane_ids is not None:
        items = items.filter(lane_id__in=lane_ids)
    return items.filter(Q(taken_until__isnull=True) | Q(taken_until__lte=now))


def skipped_by(person_id: int, *, now: datetime) -> list[int]:
    """The keys of items that a person skipped of late, the last ones first: few, and asked for once.

    Asked beside each open item it would cost a probe for each.
    """
    skipped = ItemPass.objects.filter(person_id=person_id, passed_as=PassedAs.SKIPPED, at__gt=now - SKIPPED_RESTS)
    return list(skipped.order_by("-at").values_list("item", flat=True)[:MOST_SKIPPED])


def _in_turn(items: QuerySet[Item], person_id: int, now: datetime) -> QuerySet[Item]:
    given_back = Assignment.objects.filter(
        item=OuterRef("pk"),
        person_id=person_id,
        ended_as=AssignmentEnd.GIVEN_BACK,
        ended_at__gt=now - GIVEN_BACK_RESTS,
    )
    return items.order_by(Exists(given_back), "-severity", "-is_hard", "deadline", "pk")
