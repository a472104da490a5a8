"""What a lane's figures add up to: the one state that its headline says. Pure."""

from datetime import datetime, timedelta
from enum import StrEnum

from queue_core.figures.board import LaneFigures
from queue_core.figures.flow import LAST_WITHIN
from queue_core.where import CLAIMABLE, PROBE, Layer

#: Work that waits, and nothing completed for this long, is no progress. Longer where a call may take longer.
STALL = timedelta(minutes=2)
CALLS_IN_A_STALL = 3
#: Growth below this, or within this share of what arrives, is noise.
LEAST_GROWTH = 1.0
GROWTH_SHARE = 0.1


class LaneState(StrEnum):
    """Worst first: the order of the board."""

    NOT_JUDGED = "not_judged"
    NOBODY = "nobody"
    HELD_AUTOMATICALLY = "held_automatically"
    NO_PROGRESS = "no_progress"
    HELD_BY_PERSON = "held_by_person"
    #: It runs, and how well could not be read in time, now or before: no state of health is made up.
    UNREAD = "unread"
    GROWING = "growing"
    LATE = "late"
    PAUSED = "paused"
    RAMPING = "ramping"
    STEADY = "steady"

    @property
    def needs_somebody(self) -> bool:
        return self != LaneState.STEADY

    @property
    def rank(self) -> int:
        return list(LaneState).index(self)


def state_of(figures: LaneFigures) -> LaneState:
    """The first that fits."""
    facts, run = figures.facts, figures.lane.run
    if run is None:
        is_person = facts.hold is not None and not facts.hold.is_automatic
        return LaneState.HELD_BY_PERSON if is_person else LaneState.HELD_AUTOMATICALLY
    if figures.layers.value is None or figures.flow.value is None:
        return LaneState.UNREAD
    if _work(figures) and not facts.is_judged:
        return LaneState.NOT_JUDGED
    if _work(figures) and not facts.is_attended:
        return LaneState.NOBODY
    if facts.retry_until is not None:
        return LaneState.PAUSED
    if _is_stalled(figures):
        return LaneState.NO_PROGRESS
    if is_growing(figures):
        return LaneState.GROWING
    oldest = figures.layers.value.oldest_ready
    if oldest is not None and oldest > figures.lane.wait_target:
        return LaneState.LATE if facts.is_highest else LaneState.RAMPING
    return LaneState.STEADY if facts.is_highest else LaneState.RAMPING


def is_growing(figures: LaneFigures) -> bool:
    flow = figures.flow.value
    return flow is not None and flow.growth >= LEAST_GROWTH and flow.growth > flow.arriving * GROWTH_SHARE


def stalled_since(figures: LaneFigures) -> datetime | None:
    """Since when nothing was completed in this run; None where that is not known, or longer ago than is looked back."""
    flow, since = figures.flow.value, _stands_since(figures)
    is_seen = flow is not None and flow.last_completed_at is not None
    return since if since is not None and (is_seen or figures.now - since <= LAST_WITHIN) else None


def _stands_since(figures: LaneFigures) -> datetime | None:
    """As `stalled_since`, or since the run began: then something may have been completed in it, and long ago."""
    flow, run = figures.flow.value, figures.lane.run
    if flow is None or run is None:
        return None
    return max(flow.last_completed_at or run.started_at, run.started_at)


def _work(figures: LaneFigures) -> int:
    """What a claim would find, were it to come."""
    table = figures.layers.value
    return table.count_of(*CLAIMABLE, Layer.LEASE_OVER) if table else 0


def _is_stalled(figures: LaneFigures) -> bool:
    run = figures.lane.run
    if run is not None and run.number == PROBE and figures.is_soaked:
        # The probe has shown what it can, and draws no ticket twice: it waits for a lead, and is not stuck.
        return False
    since, table = _stands_since(figures), figures.layers.value
    limit = max(STALL, CALLS_IN_A_STALL * figures.lane.connection.call_time_limit)
    if since is None or table is None or figures.now - since <= limit:
        return False
    oldest = table.oldest_ready
    return (oldest is not None and oldest > limit) or bool(table.count_of(Layer.LEASE_OVER))
