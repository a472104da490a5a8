"""After a failover or a restore: every lane on hold, and no answer of the lost time can be taken for a present one."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import transaction

from queue_core import audit, hold, relay
from queue_core.clock import Clock
from queue_core.contract import lock_lane
from queue_core.contract.restored import LeftUnknown, leave_unknown
from queue_core.models import Lane
from queue_core.states import HoldReason


@dataclass(frozen=True, slots=True)
class Restored:
    """What was done to one lane. `is_held_now` is False where it was on this hold already."""

    lane: Lane
    is_held_now: bool
    left: LeftUnknown


def after_restore(*, clock: Clock) -> Iterator[Restored]:
    """Go through all lanes, each as it is asked for. A run that was cut short is simply run again.

    Holds come first, in all lanes: from then on nothing new is claimed. A second run finds nothing to do.
    """
    lane_ids = list(Lane.objects.order_by("name").values_list("pk", flat=True))
    held_now = {lane_id for lane_id in lane_ids if _hold(lane_id, clock)}
    if held_now:
        relay.skip_lost_numbers()
    for lane_id in lane_ids:
        left = _leave_all_unknown(lane_id, clock)
        yield Restored(Lane.objects.get(pk=lane_id), lane_id in held_now, left)


@transaction.atomic
def _hold(lane_id: int, clock: Clock) -> bool:
    lane = lock_lane(lane_id)
    if lane.run is None and lane.hold is not None and lane.hold.reason == HoldReason.RESTORED:
        return False
    hold.for_change(lane, reason=HoldReason.RESTORED, person=None, now=clock.now())
    return True


def _leave_all_unknown(lane_id: int, clock: Clock) -> LeftUnknown:
    waiting = for_takeover = 0
    while (left := _leave_some_unknown(lane_id, clock)).total:
        waiting += left.waiting
        for_takeover += left.for_takeover
    return LeftUnknown(waiting, for_takeover)


@transaction.atomic
def _leave_some_unknown(lane_id: int, clock: Clock) -> LeftUnknown:
    left = leave_unknown(lane_id, clock=clock)
    if left.total:
        lane = Lane.objects.get(pk=lane_id)
        after = {"waiting": left.waiting, "for_takeover": left.for_takeover}
        audit.record("lane.leases_unknown", now=clock.now(), actor=None, subject=lane, lane=lane, after=after)
    return left
