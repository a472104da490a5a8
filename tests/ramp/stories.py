"""A lane with a short plan, and what happens on it, as short sentences with times in seconds."""

from datetime import datetime, timedelta
from itertools import count
from typing import Any

from queue_core import contract, gate, hold, lanes, ramp
from queue_core.contract import Ending
from queue_core.gate import GateReading
from queue_core.lanes import StagePlan
from queue_core.models import Attempt, Lane
from queue_core.ramp import Raised
from queue_core.states import AttemptOutcome, LeaseOutcome, LeaseToken
from reviewboard.models import Person
from tests.factories import at, claim, clock, make_connection, make_ground, waiting_job

RULES = [{"category": "offensive", "reject_at": 0.85, "approve_below": 0.45, "reason_code": "insult"}]
MINUTE = timedelta(minutes=1)
PLAN = (
    StagePlan(1, "probe", cap=2, soak_completions=2, soak_time=MINUTE, least_sample=2),
    StagePlan(2, "trickle", cap=10, soak_completions=3, soak_time=MINUTE, least_sample=2),
    StagePlan(3, "steady", cap=50, soak_completions=0, soak_time=timedelta(0), least_sample=2),
)
WHY = "the model answers again"

_numbers = count(1)


def new_lane(*, stages: tuple[StagePlan, ...] = PLAN, **settings: Any) -> Lane:
    """A lane on hold since 0 s, with the plan above."""
    defaults: dict[str, Any] = {"lease": timedelta(seconds=100), "least_call_time": timedelta(0)}
    connection = settings.pop("connection", None) or make_connection()
    return lanes.create_lane(
        f"ramp-{next(_numbers)}",
        connection,
        policy_rules=RULES,
        stages=stages,
        clock=clock(0),
        **(defaults | settings),
    )


def again(lane: Lane) -> Lane:
    return Lane.objects.select_related("run", "hold", "connection", "policy").get(pk=lane.pk)


def read(lane: Lane, *, when: float) -> GateReading:
    return gate.read(again(lane), now=at(when))


def raise_(lane: Lane, person: Person, *, when: float, shown: str | None = None, **words: Any) -> Raised:
    """Raise by figures of the same moment, or by those that were `shown`."""
    figures_id = read(lane, when=when).sign() if shown is None else shown
    return ramp.raise_stage(
        lane.pk, person=person, figures_id=figures_id, clock=clock(when), **({"reason": WHY} | words)
    )


def probing(person: Person, *, when: float = 10, **settings: Any) -> Lane:
    """A lane whose probe was started."""
    lane = new_lane(**settings)
    assert raise_(lane, person, when=when).outcome == "raised"
    return again(lane)


def soaked(person: Person, *, when: float = 10, **settings: Any) -> Lane:
    """A lane whose probe was started and has seen what it needs, up to a minute later."""
    lane = probing(person, when=when, **settings)
    for _number in range(2):
        answer(lane, when=when + 50)
    return lane


def running(person: Person, *, stage: int = 2, **settings: Any) -> Lane:
    """A lane that runs this stage since 80 s."""
    lane = soaked(person, **settings)
    assert raise_(lane, person, when=80).outcome == "raised"
    if stage == 3:
        for _number in range(3):
            answer(lane, when=130)
        assert raise_(lane, person, when=145).outcome == "raised"
    return again(lane)


def judged(lane: Lane, *, when: float) -> None:
    """Somebody has judged the lane at this time: claims want that."""
    Lane.objects.filter(pk=lane.pk).update(judged_at=at(when))


def leased(lane: Lane, *, when: float, **fields: Any) -> LeaseToken:
    judged(lane, when=when)
    return claim(waiting_job(lane, added=when, deadline=when + 10_000, **fields), when=when)


def answer(lane: Lane, *, when: float, took: float = 0.5, result: str = "APPROVED") -> None:
    """A call that brought a result."""
    token = leased(lane, when=when)
    ending = Ending(
        result=result,
        reason_code=make_ground().code if result == "REJECTED" else None,
        cause="grey_zone" if result == "MANUAL" else "",
        latency=timedelta(seconds=took),
    )
    assert contract.complete(token, ending, clock=clock(when)) == "committed"


def fail(lane: Lane, outcome: str, *, when: float, **words: Any) -> LeaseOutcome:
    """A call that brought none."""
    return end(leased(lane, when=when), outcome, when=when, **words)


def end(token: LeaseToken, outcome: str, *, when: float, **words: Any) -> LeaseOutcome:
    return ramp.end_badly(token, outcome=AttemptOutcome(outcome), clock=clock(when), **words)


def pull(lane: Lane, person: Person, *, when: float, until: datetime | None = None, **words: Any) -> hold.Held:
    return hold.pull(
        lane.pk, person=person, until=until, clock=clock(when), **({"form": "hold", "reason": "precaution"} | words)
    )


def attempt_of(token: LeaseToken) -> Attempt:
    return Attempt.objects.select_related("job").get(pk=token.attempt)
