"""Calls of which nobody knows what they did, and answers that were refused: counted, since neither is a failure."""

from collections.abc import Iterable
from dataclasses import dataclass

from queue_core.models import Attempt, Job, Lane, LateAnswer
from queue_core.states import UNKNOWN_EFFECTS

#: Beyond this a number is shown as "more than".
MOST_COUNTED = 10_001
#: Why a token did not hold: time alone, or that the job was in other hands, or at its end, by then.
LATE = "lease_over"


@dataclass(frozen=True, slots=True)
class Effects:
    """`unknown` calls, whose answer nobody heard. `late` answers, whose lease was over; `stale` ones, whose job had
    another fence, revision or end by then. Each refused answer is kept, and is one of the two. Each at most
    MOST_COUNTED."""

    unknown: int = 0
    late: int = 0
    stale: int = 0


def effects_of_lane(lane: Lane) -> Effects:
    """Under the present run, or on hold since the last run began."""
    since = lane.run.started_at if lane.run is not None else None
    if since is None and lane.hold is not None and lane.hold.run is not None:
        since = lane.hold.run.started_at
    if since is None:
        return Effects()
    unknown = Attempt.objects.filter(lane=lane, outcome__in=UNKNOWN_EFFECTS, ended_at__gte=since)
    refused = LateAnswer.objects.filter(lane=lane, received_at__gte=since).values_list("why", flat=True)
    return _counted(len(unknown.values_list("pk", flat=True)[:MOST_COUNTED]), refused[:MOST_COUNTED])


def effects_of_job(job: Job) -> Effects:
    """Over the job's whole life."""
    attempts = Attempt.objects.filter(job=job)
    unknown = attempts.filter(outcome__in=UNKNOWN_EFFECTS).count()
    return _counted(unknown, LateAnswer.objects.filter(job=job).values_list("why", flat=True)[:MOST_COUNTED])


def _counted(unknown: int, refused: Iterable[str]) -> Effects:
    whys = list(refused)
    late = whys.count(LATE)
    return Effects(unknown, late, len(whys) - late)
