"""The worker's loop: one task drains one lane in batches for a time slice."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from django.conf import settings

from queue_core import batch, calls, drainers, ramp, wakeups
from queue_core.batch import Batch, Claimed, Trail
from queue_core.calls import Desk
from queue_core.clock import Clock
from queue_core.connections import Connection, build
from queue_core.drainers import Place
from queue_core.errors import ConfigurationFault
from queue_core.models import Lane

logger = logging.getLogger(__name__)

#: How long a task stays with a lane before the next message has its turn. Overridden by QUEUE_CORE_DRAIN_SLICE.
SLICE = timedelta(seconds=10)
#: How often a task looks whether another lane with work has nobody.
LOOK_ROUND = 1.0


class Stop(StrEnum):
    """Why a drain ended."""

    NO_LANE = "no_lane"
    NO_PLACE = "no_place"
    PLACE_LOST = "place_lost"
    NOTHING = "nothing"
    SLICE_OVER = "slice_over"
    YIELDED = "yielded"
    STOPPING = "stopping"


#: Ends after which the lane may still have work that nobody else was told of.
UNFINISHED = (Stop.PLACE_LOST, Stop.SLICE_OVER, Stop.YIELDED, Stop.STOPPING)


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain did: how many claims it ended, why it stopped, and what refused its last claim, if anything did."""

    stop: Stop
    claims: int = 0
    refusal: str | None = None


def drain(
    lane_id: int, *, task: str, worker: str, clock: Clock, is_stopping: Callable[[], bool] = lambda: False
) -> Drained:
    """Drain a lane until it has nothing to claim, its slice is over, or another lane needs the process more."""
    lane = _lane(lane_id)
    if lane is None:
        return Drained(Stop.NO_LANE)
    place = drainers.take(lane, task=task, worker=worker, clock=clock)
    if place is None:
        _wake_all(drainers.lanes_in_want(clock.now(), but=lane))
        return Drained(Stop.NO_PLACE)
    stay = _Stay(place, worker, clock, is_stopping)
    try:
        drained = stay.work()
    finally:
        drainers.leave(place, clock=clock)
    if drained.stop in UNFINISHED:
        # After the place is free, and after the others' turn: their messages stand before this one.
        _wake_all([*stay.in_want, lane_id])
    return drained


@dataclass(slots=True)
class _Stay:
    """One task's stay with a lane."""

    place: Place
    worker: str
    clock: Clock
    is_stopping: Callable[[], bool]
    in_want: list[int] = field(default_factory=list)
    _trail: Trail = field(default_factory=Trail)
    _claims: int = 0
    _refusal: str | None = None
    _prepared: tuple[int, int] | None = None
    _started: float = field(default_factory=time.monotonic)
    _looked: float = field(default_factory=time.monotonic)
    _helped: bool = False
    _due: Stop | None = None

    def work(self) -> Drained:
        while True:
            lane = _lane(self.place.lane)
            stop = Stop.NO_LANE if lane is None else self._stop(lane) or self._turn(lane)
            if stop is not None:
                return Drained(stop, self._claims, self._refusal)

    def _stop(self, lane: Lane) -> Stop | None:
        if self._due is not None:
            return self._due
        if self.is_stopping():
            return Stop.STOPPING
        moment = time.monotonic()
        if moment - self._started >= _slice().total_seconds():
            return Stop.SLICE_OVER
        if moment - self._looked >= LOOK_ROUND:
            self._looked = moment
            self.in_want = drainers.lanes_in_want(self.clock.now(), but=lane)
            if self.in_want:
                return Stop.YIELDED
        return None if drainers.keep(self.place, lane, clock=self.clock) else Stop.PLACE_LOST

    def _turn(self, lane: Lane) -> Stop | None:
        """One takeover of a lapsed lease and one batch. A reason to stop if there was neither."""
        ramp.judge_if_due(lane.pk, clock=self.clock)
        try:
            adapter = build(lane.connection)
            if self._first_time(lane):
                # Loading may take long; the lane is read again before anything is claimed under it.
                adapter.prepare()
                return None
        except ConfigurationFault as fault:
            return self._turn_misconfigured(lane, fault)
        except Exception:
            # An adapter is foreign code. What its calls end as, the calls themselves will say.
            logger.exception("the connection of lane %d could not be prepared", lane.pk)
            return None
        return self._work_on(lane, adapter)

    def _first_time(self, lane: Lane) -> bool:
        present = (lane.connection.pk, lane.connection.version)
        is_first = self._prepared != present
        self._prepared = present
        return is_first

    def _work_on(self, lane: Lane, adapter: Connection) -> Stop | None:
        desk = Desk(lane, adapter, self.clock, self.worker, self.is_stopping)
        taken_over = self._take_over(desk)
        if taken_over and self.is_stopping():
            return Stop.STOPPING
        most = min(adapter.at_once, batch.MOST_AT_ONCE)
        claimed = batch.claim_next(lane.pk, most, clock=self.clock, worker=self.worker, trail=self._trail)
        found = self._claimed(claimed)
        if len(found.claims) == most:
            self._call_help(lane)
        calls.work_on(found.claims, desk, more=lambda room: self._more(lane, room))
        return None if found.claims or found.buried or taken_over else Stop.NOTHING

    def _more(self, lane: Lane, room: int) -> list[Claimed]:
        """Further claims while calls are out. None where this stay should end, or begin anew with the lane as it is."""
        self._due = self._due or self._stop(lane)
        if self._due is not None:
            return []
        ramp.judge_if_due(lane.pk, clock=self.clock)
        fresh = _lane(lane.pk)
        if fresh is None or fresh.run is None or _terms_of(fresh) != _terms_of(lane):
            return []
        # A takeover waits until nothing else runs here.
        if drainers.has_lapsed(fresh, now=self.clock.now()):
            return []
        most = min(room, batch.MOST_AT_ONCE)
        claimed = batch.claim_next(lane.pk, most, clock=self.clock, worker=self.worker, trail=self._trail)
        found = self._claimed(claimed)
        return found.claims

    def _take_over(self, desk: Desk) -> bool:
        """Claim one job whose last lease is over, and nothing else meanwhile: it may be what killed its worker."""
        lane = desk.lane
        if not drainers.has_lapsed(lane, now=self.clock.now()):
            return False
        if not drainers.go_alone(self.place, lane, clock=self.clock):
            return False
        found = self._claimed(batch.claim_expired(lane.pk, clock=self.clock, worker=self.worker))
        calls.work_on(found.claims, desk)
        # Not in a `finally`: the mark of a task that died here stands until its place is over.
        drainers.rejoin(self.place)
        return bool(found.claims)

    def _turn_misconfigured(self, lane: Lane, fault: ConfigurationFault) -> Stop | None:
        """A lane that cannot be worked on. Said through one claim, which is given back and holds the lane."""
        logger.error("lane %d cannot be worked on: %s", lane.pk, fault)
        found = self._claimed(batch.claim_next(lane.pk, 1, clock=self.clock, worker=self.worker))
        calls.end_misconfigured(found.claims, fault, clock=self.clock, worker=self.worker)
        return None if found.claims else Stop.NOTHING

    def _claimed(self, found: Batch) -> Batch:
        self._claims += len(found.claims)
        self._refusal = found.refusal
        return found

    def _call_help(self, lane: Lane) -> None:
        """A full batch means that there is more. Once a stay; the tick goes on from there."""
        if not self._helped:
            self._helped = True
            if drainers.has_free_place(lane, now=self.clock.now()):
                wakeups.wake(lane.pk)


def _lane(lane_id: int) -> Lane | None:
    return Lane.objects.select_related("connection", "run").filter(pk=lane_id).first()


def _terms_of(lane: Lane) -> tuple[int, int, int]:
    """What the calls of a lane are made by: a change of it is for the next turn."""
    return lane.version, lane.connection.pk, lane.connection.version


def _slice() -> timedelta:
    chosen: timedelta = getattr(settings, "QUEUE_CORE_DRAIN_SLICE", SLICE)
    return chosen


def _wake_all(lane_ids: list[int]) -> None:
    for lane_id in lane_ids:
        wakeups.wake(lane_id)
