"""What has to happen though nobody asks: each second, by whichever worker gets the scheduler's message.

Every step may run twice at once and change nothing the second time. A tick that never comes stops the flow within
half a minute, since nobody judges the guardrails of idle lanes; it opens nothing.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial

from django.db import transaction

from queue_core import (
    audit,
    blind_samples,
    bulk,
    contract,
    drainers,
    figures,
    imports,
    presence,
    ramp,
    recalls,
    relay,
    set_back,
    wakeups,
)
from queue_core.clock import Clock
from queue_core.models import Lane

logger = logging.getLogger(__name__)

SCHEDULER = "scheduler"
#: Ticks that come closer together than this were waiting in the broker, or are a second scheduler's.
APART = timedelta(milliseconds=400)


def tick_in_turn(*, clock: Clock) -> bool:
    """A tick, unless another was seen just now. Whether there was one."""
    set_back.notice(SCHEDULER, clock=clock)
    if not presence.scheduler_has_turn(SCHEDULER, apart=APART):
        return False
    tick(clock=clock)
    return True


def tick(*, clock: Clock) -> None:
    """Sweep, judge guardrails, wake workers, go on with what is under way.

    A step that fails does not keep the next from its turn.
    """
    steps: list[Callable[[], object]] = [
        lambda: presence.scheduler_seen(SCHEDULER, clock=clock),
        lambda: contract.sweep(clock=clock),
        lambda: contract.wake_due(clock=clock),
        lambda: _judge_running(clock),
        lambda: _wake_lanes(clock),
        lambda: figures.keep(clock=clock),
        lambda: relay.step(clock=clock),
        lambda: recalls.go_on(clock=clock),
        lambda: blind_samples.draw_due(clock=clock),
        lambda: bulk.wake_waiting(clock=clock),
        lambda: bulk.drop_old(clock=clock),
        lambda: imports.wake_waiting(clock=clock),
        lambda: imports.forget_old(clock=clock),
        audit.seal_committed,
    ]
    _each(steps)


def _each(steps: Iterable[Callable[[], object]]) -> None:
    """Give each its turn, whatever the others do; raise the first fault when all had theirs."""
    faults = [fault for step in steps if (fault := _fault_of(step)) is not None]
    if faults:
        raise faults[0]


def _fault_of(step: Callable[[], object]) -> Exception | None:
    try:
        step()
    except Exception as fault:
        logger.exception("a step of the tick failed")
        return fault
    return None


def _judge_running(clock: Clock) -> None:
    """Each by itself: a lane that cannot be judged must not stop the claims of the others, too."""
    lane_ids = Lane.objects.filter(run__isnull=False).order_by("pk").values_list("pk", flat=True)
    _each([partial(ramp.judge_if_due, lane_id, clock=clock) for lane_id in lane_ids])


def _wake_lanes(clock: Clock) -> None:
    """Lanes with something to claim, room to claim it in and a place for one more drainer."""
    lanes = Lane.objects.filter(run__isnull=False).select_related("run", "connection").order_by("pk")
    _each([partial(_wake_lane, lane, clock) for lane in lanes])


def _wake_lane(lane: Lane, clock: Clock) -> None:
    now = clock.now()
    if drainers.has_free_place(lane, now=now) and drainers.has_work(lane, now=now) and _has_room(lane, clock):
        wakeups.wake(lane.pk)


def _has_room(lane: Lane, clock: Clock) -> bool:
    # Measured without the lane's lock: a hint, not a grant. The claim measures again, under it.
    with transaction.atomic():
        return contract.measure_room(lane, now=clock.now()).grants > 0
