"""Which job comes first, and how long a job is left alone after a failure. Pure arithmetic."""

from datetime import datetime, timedelta

from queue_core.models import Lane

#: Beyond this many doublings every back-off is at its cap; the power is bounded before it is taken (RET-01).
MAX_DOUBLINGS = 40


def urgency(lane: Lane, *, queued_at: datetime, deadline: datetime, severity: int) -> datetime:
    """The instant by which claims are ordered: between `queued_at` (weight 0) and `deadline` (weight 1).

    Stored, and written again only by add, requeue, supersede and move_deadline.
    """
    return queued_at + lane.urgency_weight * (deadline - queued_at) - severity * lane.severity_bonus


def back_off(lane: Lane, steps: int) -> timedelta:
    """How long a job rests after its `steps`-th charged failure in a row: doubling from the lane's first to its cap."""
    doublings = min(max(steps, 0), MAX_DOUBLINGS)
    seconds = lane.backoff_base.total_seconds() * 2.0**doublings
    return timedelta(seconds=min(seconds, lane.backoff_cap.total_seconds()))
