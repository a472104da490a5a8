"""Items taken, extended, given back and handed over."""

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
from queue_core.models import Assignment, Item
from queue_core.people.outcomes import Held, HoldingOutcome, Stale, Taken, TakeOutcome
from queue_core.people.rights import may, require
from queue_core.states import AssignmentEnd, AssignmentToken

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: Items one person may hold at once. More would only keep them from others.
MOST_HELD = 5
#: What a person gave back is offered to them again only after everything else, for so long.
GIVEN_BACK_RESTS = timedelta(minutes=30)


@transaction.atomic
def take(item_id: int, *, person: "AbstractUser", clock: Clock, most_held: int = MOST_HELD) -> Taken:
    """Take one item. A repeat while one's own assignment runs returns that assignment again, not a new one."""
    require(person, "decide_item")
    lock_people(person.pk)
    item = lock_item(item_id)
    now = read_clock(clock, InvalidRequest)
    if item is None:
        return Taken(TakeOutcome.MISSING)
    if item.closed_at is not None:
        return Taken(TakeOutcome.ITEM_CLOSED)
    if is_held(item, now=now):
        return taken_already(item, person)
    if hands_full(person.pk, most_held, now=now):
        return Taken(TakeOutcome.HANDS_FULL)
    return _give_to(item, person, now)


@transaction.atomic
def take_next(
    *, person: "AbstractUser", lane_ids: Collection[int] | None = None, clock: Clock, most_held: int = MOST_HELD
) -> Taken:
    """Take the item that needs a person most: by severity, hard deadlines first, then time left.

    Never what somebody else holds. Rows that another take holds locked are passed over, so that two people who ask
    at once get two items without waiting for each other. `lane_ids` None means all lanes.
    """
    require(person, "decide_item")
    lock_people(person.pk)
    now = read_clock(clock, InvalidRequest)
    if hands_full(person.pk, most_held, now=now):
        return Taken(TakeOutcome.HANDS_FULL)
    # A time that was over before the row was locked is still over afterwards, so this test needs no second look.
    free = _free_items(lane_ids, now)
    item = _in_turn(free, person.pk, now).select_for_update(no_key=True, skip_locked=True, of=("self",)).first()
    if item is None:
        return Taken(TakeOutcome.NOTHING)
    return _give_to(item, person, read_clock(clock, InvalidRequest))


@transaction.atomic
def extend(token: AssignmentToken, *, person: "AbstractUser", clock: Clock) -> Held:
    """A whole new time for one item from now on. Nothing but this extends an assignment: no poll, no typing."""
    require(person, "decide_item")
    item = lock_item(token.item)
    now = read_clock(clock, InvalidRequest)
    why = judge_assignment(item, token, person, now=now)
    if item is None or why is not None:
        return Held(HoldingOutcome.STALE, why=why)
    item.taken_until = now + item.lane.assignment_time
    item.save(update_fields=["taken_until"])
    Assignment.objects.filter(item=item, fence=token.fence).update(until=item.taken_until)
    return Held(HoldingOutcome.EXTENDED, until=item.taken_until)


@transaction.atomic
def give_back(token: AssignmentToken, *, person: "AbstractUser", clock: Clock) -> Held:
    require(person, "decide_item")
    item = lock_item(token.item)
    now = read_clock(clock, InvalidRequest)
    why = judge_assignment(item, token, person, now=now)
    if item is None or why is not None:
        return Held(HoldingOutcome.STALE, why=why)
    _end_assignment(item, AssignmentEnd.GIVEN_BACK, now)
    item.taken_by = item.taken_until = None
    item.save(update_fields=["taken_by", "taken_until"])
    return Held(HoldingOutcome.GIVEN_BACK)


@transaction.atomic
def hand_over(
    token: AssignmentToken, *, person: "AbstractUser", to: "AbstractUser", clock: Clock, most_held: int = MOST_HELD
) -> Held:
    """Hand an item to somebody by name, with a whole new time. Raises InvalidRequest for one who may not decide it."""
    require(person, "decide_item")
    if to.pk == person.pk or not may(to, "decide_item"):
        raise InvalidRequest("Hand it over to somebody else who may decide items.", field="to")
    lock_people(person.pk, to.pk)
    item = lock_item(token.item)
    now = read_clock(clock, InvalidRequest)
    why = judge_assignment(item, token, person, now=now)
    if item is None or why is not None:
        return Held(HoldingOutcome.STALE, why=why)
    if hands_full(to.pk, most_held, now=now):
        return Held(HoldingOutcome.HANDS_FULL)
    _end_assignment(item, AssignmentEnd.HANDED_OVER, now)
    until = now + item.lane.assignment_time
    assign(item, to, now=now, until=until)
    return Held(HoldingOutcome.HANDED_OVER, until=until)


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
    items = Item.objects.select_for_update(no_key=True, of=("self",)).select_related("lane")
    return items.filter(pk=item_id).first()


def lock_people(*keys: int) -> None:
    """The rows of people whose hands are counted, in order of key, before any ticket, job or item.

    Without it two takes at once would each see room for one more.
    """
    list(get_user_model().objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk").values_list("pk"))


def is_held(item: Item, *, now: datetime) -> bool:
    """Whether an assignment runs. `taken_until` is the first instant at which it no longer does."""
    return item.taken_until is not None and now < item.taken_until


def hands_full(person_id: int, most_held: int, *, now: datetime) -> bool:
    running = Assignment.objects.filter(person_id=person_id, ended_at__isnull=True, until__gt=now)
    return running.count() >= most_held


def taken_already(item: Item, person: "AbstractUser") -> Taken:
    if item.taken_by_id != person.pk:
        return Taken(TakeOutcome.HELD_BY_ANOTHER, until=item.taken_until, held_by=item.taken_by_id)
    own = Assignment.objects.get(item=item, fence=item.fence)
    token = AssignmentToken(item.pk, own.fence, own.key)
    return Taken(TakeOutcome.ALREADY_YOURS, token, item.taken_until, person.pk)


def _give_to(item: Item, person: "AbstractUser", now: datetime) -> Taken:
    _end_assignment(item, AssignmentEnd.EXPIRED, now)
    until = now + item.lane.assignment_time
    return Taken(TakeOutcome.TAKEN, assign(item, person, now=now, until=until), until, person.pk)


def _end_assignment(item: Item, ended_as: AssignmentEnd, now: datetime) -> None:
    Assignment.objects.filter(item=item, ended_at__isnull=True).update(ended_at=now, ended_as=ended_as)


def _free_items(lane_ids: Collection[int] | None, now: datetime) -> QuerySet[Item]:
    items = Item.objects.select_related("lane").filter(closed_at__isnull=True)
    if lane_ids is not None:
        items = items.filter(lane_id__in=lane_ids)
    return items.filter(Q(taken_until__isnull=True) | Q(taken_until__lte=now))


def _in_turn(items: QuerySet[Item], person_id: int, now: datetime) -> QuerySet[Item]:
    given_back = Assignment.objects.filter(
        item=OuterRef("pk"),
        person_id=person_id,
        ended_as=AssignmentEnd.GIVEN_BACK,
        ended_at__gt=now - GIVEN_BACK_RESTS,
    )
    return items.order_by(Exists(given_back), "-severity", "-is_hard", "deadline", "pk")
