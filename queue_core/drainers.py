"""Places for the tasks that drain a lane, and which lanes are in want of one.

A place is a row with its own end, so that a task that was killed frees it by itself. It bounds how many tasks work at
a lane; what they may claim is bounded by the cap alone.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from queue_core.batch import usual_call
from queue_core.clock import EPOCH, Clock
from queue_core.contract.rules import PROBE
from queue_core.models import Drainer, Job, Lane
from queue_core.states import JobState

#: Kept beyond the longest call, to write its answer down and come round again.
SPARE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Place:
    """A drainer's right to its place. Void when the row names another task."""

    row: int
    lane: int
    task: str


def take(lane: Lane, *, task: str, worker: str, clock: Clock) -> Place | None:
    """A free place of the lane, or None.

    None also where the lane has a drainer already and another lane with work has none: its next task is for them.
    """
    _make_places(lane)
    with transaction.atomic():
        row = _places(lane).select_for_update(skip_locked=True).filter(until__lte=clock.now()).first()
        if row is None:
            return None
        now = clock.now()
        if _live(lane, now).exclude(pk=row.pk).exists() and lanes_in_want(now, but=lane):
            return None
        row.task, row.worker, row.is_alone = task, worker[:200], False
        row.taken_at, row.until = now, now + lane.connection.call_time_limit + SPARE
        row.save(update_fields=["task", "worker", "is_alone", "taken_at", "until"])
    return Place(row.pk, lane.pk, task)


def keep(place: Place, lane: Lane, *, clock: Clock) -> bool:
    """Keep a place for one more batch. False: it was over, and another task has it."""
    until = clock.now() + lane.connection.call_time_limit + SPARE
    return bool(_held(place).update(until=until))


def leave(place: Place, *, clock: Clock) -> None:
    _held(place).update(until=clock.now(), is_alone=False)


def go_alone(place: Place, lane: Lane, *, clock: Clock) -> bool:
    """Mark a drainer as the one that takes over a job whose last lease expired. At most a quarter of the lane's.

    A ticket that kills its worker must not take the whole lane's processes with it, one after the other.
    """
    with transaction.atomic():
        rows = list(_places(lane).select_for_update().order_by("pk"))
        now = clock.now()
        alone = [row for row in rows if row.is_alone and row.until > now and row.pk != place.row]
        if len(alone) >= max(1, lane.drainers // 4):
            return False
        return bool(_held(place).update(is_alone=True))


def rejoin(place: Place) -> None:
    _held(place).update(is_alone=False)


def has_free_place(lane: Lane, *, now: datetime) -> bool:
    return _live(lane, now).count() < lane.drainers


def lanes_in_want(now: datetime, *, but: Lane) -> list[int]:
    """Other lanes with work, where nobody drains. A lane that keeps the last free process from them yields."""
    lanes = (
        Lane.objects.filter(Q(claims_not_before__isnull=True) | Q(claims_not_before__lte=now), run__isnull=False)
        .exclude(pk=but.pk)
        .exclude(drainer_places__until__gt=now)
        .select_related("run")
    )
    return [lane.pk for lane in lanes if has_work(lane, now=now)]


def has_work(lane: Lane, *, now: datetime) -> bool:
    """Whether a claim would find something: a ready job with time for a call, or a lease that is over."""
    in_time = Job.objects.filter(lane=lane, deadline__gt=now + usual_call(lane))
    return in_time.filter(state=JobState.WAITING, available_at__isnull=True).exists() or has_lapsed(lane, now=now)


def has_lapsed(lane: Lane, *, now: datetime) -> bool:
    """Whether a job waits to be taken over, with time and budget left. The probe takes nothing over."""
    if lane.run is None or lane.run.number == PROBE:
        return False
    return Job.objects.filter(
        lane=lane,
        state=JobState.LEASED,
        lease_until__lte=now,
        deadline__gt=now + usual_call(lane),
        attempts__lt=F("max_attempts"),
    ).exists()


def _make_places(lane: Lane) -> None:
    there = set(_places(lane).values_list("place", flat=True))
    missing = [place for place in range(1, lane.drainers + 1) if place not in there]
    Drainer.objects.bulk_create(
        [Drainer(lane=lane, place=place, task="", worker="", taken_at=EPOCH, until=EPOCH) for place in missing],
        ignore_conflicts=True,
    )


def _places(lane: Lane) -> QuerySet[Drainer]:
    """Places above the lane's number are left over from a time when it had more; nobody takes them."""
    return Drainer.objects.filter(lane=lane, place__lte=lane.drainers).order_by("place")


def _live(lane: Lane, now: datetime) -> QuerySet[Drainer]:
    return Drainer.objects.filter(lane=lane, until__gt=now)


def _held(place: Place) -> QuerySet[Drainer]:
    return Drainer.objects.filter(pk=place.row, task=place.task)
