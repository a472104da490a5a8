"""How many claims a lane may give now, counted from rows under the lane's lock.

Nothing here is a counter that could drift: running leases are open attempts whose lease is not over, grants are
attempts by their start. An expired lease fills nothing; work that was superseded keeps its seat until its holder
reports or its lease ends (PGQ-02, PGQ-03).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from queue_core.contract.rules import JUDGED_WITHIN, RATE_WINDOW
from queue_core.models import Attempt, Lane, ModelConnection
from queue_core.states import ClaimOutcome


@dataclass(frozen=True, slots=True)
class Room:
    """At most `grants` claims. With none, `refusal` says why."""

    grants: int
    refusal: ClaimOutcome | None = None


class Flow(Protocol):
    """The fields of a lane that say whether it gives anything at all."""

    @property
    def run_id(self) -> int | None: ...
    @property
    def cap(self) -> int | None: ...
    @property
    def claims_not_before(self) -> datetime | None: ...
    @property
    def judged_at(self) -> datetime | None: ...


def refusal_of(lane: Flow, *, now: datetime) -> ClaimOutcome | None:
    """Why a lane gives nothing now, however few leases run; None where only its cap and rate bound it."""
    if lane.run_id is None or lane.cap is None:
        return ClaimOutcome.ON_HOLD
    if lane.claims_not_before is not None and now < lane.claims_not_before:
        return ClaimOutcome.RETRY_AFTER
    if lane.judged_at is None or now - lane.judged_at > JUDGED_WITHIN:
        return ClaimOutcome.NOT_JUDGED
    return None


def measure_room(lane: Lane, *, now: datetime) -> Room:
    """The room of a lane whose row the caller holds locked."""
    refusal = refusal_of(lane, now=now)
    if refusal is not None or lane.run is None or lane.cap is None:
        return Room(0, refusal or ClaimOutcome.ON_HOLD)
    free = min(lane.cap - running_leases([lane.pk], now=now), _free_in_connection(lane.connection, now))
    if free <= 0:
        return Room(0, ClaimOutcome.STAGE_FULL)
    if lane.run.rate is not None:
        left = lane.run.rate - grants_in_window(lane, now=now)
        if left <= 0:
            return Room(0, ClaimOutcome.RATE_SPENT)
        free = min(free, left)
    return Room(free)


def running_leases(lane_ids: list[int], *, now: datetime) -> int:
    return Attempt.objects.filter(lane_id__in=lane_ids, ended_at__isnull=True, lease_until__gt=now).count()


def grants_in_window(lane: Lane, *, now: datetime) -> int:
    """Claims given in the 60 s up to now, over all the lane's runs: a raise does not make them forgotten.

    Rows that a raised fence left behind were no grants.
    """
    return Attempt.objects.filter(lane=lane, started_at__gt=now - RATE_WINDOW).exclude(outcome="fence_raised").count()


def _free_in_connection(connection: ModelConnection, now: datetime) -> int:
    """The rest of the connection's total cap. Its row is locked, after the lane's, so that two lanes take turns."""
    if connection.total_cap is None:
        return 2**31
    locked = ModelConnection.objects.select_for_update(no_key=True).get(pk=connection.pk)
    if locked.total_cap is None:
        return 2**31
    # By the connection they were claimed under: a lane that moved to another one leaves its running calls behind.
    running = Attempt.objects.filter(connection=locked, ended_at__isnull=True, lease_until__gt=now).count()
    return locked.total_cap - running
