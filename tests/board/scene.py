"""Lanes in the states that a board shows, made through the verbs around the present, for views and for eyes."""

from datetime import datetime, timedelta
from random import Random

from queue_core import contract, lanes, ramp
from queue_core.batch import claim_next, complete_many
from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.contract import Ending, NewTicket
from queue_core.gate import read as read_gate
from queue_core.models import Lane, ModelConnection, Presence
from queue_core.states import AttemptOutcome
from reviewboard.models import Person
from tests.factories import make_ground

MINUTE = timedelta(minutes=1)
RULES = [{"category": "offensive", "reject_at": 0.85, "approve_below": 0.45, "reason_code": "insult"}]


def ago(length: timedelta) -> FixedClock:
    return FixedClock(DATABASE_CLOCK.now() - length)


def a_connection(name: str, *, is_good: bool = True) -> ModelConnection:
    now = DATABASE_CLOCK.now()
    return ModelConnection.objects.create(
        name=name,
        kind="local",
        health_checked_at=now,
        health_is_good=is_good,
        health_since=now - 4 * MINUTE,
        health_detail="" if is_good else "connection refused",
    )


def a_lane(name: str, *, connection: ModelConnection | None = None, **fields: object) -> Lane:
    make_ground()
    return lanes.create_lane(
        name,
        connection or a_connection(f"{name}-model"),
        policy_rules=RULES,
        clock=ago(timedelta(hours=30)),
        **fields,
    )


def fill(lane: Lane, number: int, *, waited: timedelta, seed: int = 1, **fields: object) -> None:
    """Tickets whose waits and deadlines are spread, as a backlog's are."""
    chance, now = Random(seed), DATABASE_CLOCK.now()
    tickets = [
        NewTicket(
            source="forum",
            external_id=f"{lane.name}-{seed}-{count}",
            revision="v1",
            lane=lane,
            evidence={"text": f"post {count}"},
            severity=chance.choice([0, 0, 1, 1, 1, 2]),
            submitted_at=now - waited * chance.random(),
            deadline=now + timedelta(minutes=chance.uniform(5, 400)),
            **fields,
        )
        for count in range(number)
    ]
    contract.receive_many(tickets, clock=ago(timedelta(0)))


def start(lane: Lane, leo: Person, *, stages: int = 1, since: timedelta = timedelta(0)) -> Lane:
    """Raise a lane to a stage, as a lead with the right to override would."""
    for number in range(stages):
        clock = ago(since * (stages - number) / stages)
        lane = Lane.objects.select_related("run", "hold__run", "connection").get(pk=lane.pk)
        raised = ramp.raise_stage(
            lane.pk,
            person=leo,
            reason="the model answers again",
            figures_id=read_gate(lane, now=clock.now()).sign(),
            override_reason="a small lane, watched closely" if number else "",
            clock=clock,
        )
        assert raised.outcome == "raised", (raised, number)
    judged(lane)
    return Lane.objects.get(pk=lane.pk)


def work(lane: Lane, number: int, *, result: str = "APPROVED") -> None:
    """Claims and completes some of a running lane's tickets now."""
    done = 0
    while done < number:
        batch = claim_next(lane.pk, min(number - done, 50), clock=DATABASE_CLOCK, worker="w1@host/4711")
        assert batch.claims, batch.refusal
        endings = [
            (
                one.token,
                Ending(result=result, scores={"offensive": 0.6}, cause="grey_zone", latency=timedelta(seconds=0.8)),
            )
            for one in batch.claims
        ]
        complete_many(endings, clock=DATABASE_CLOCK, worker="w1@host/4711")
        done += len(batch.claims)


def run_some(lane: Lane, number: int) -> None:
    """Claims that run on."""
    claim_next(lane.pk, number, clock=DATABASE_CLOCK, worker="celery@worker-3/812")


def break_down(lane: Lane) -> None:
    """The model goes away: the lane holds itself."""
    batch = claim_next(lane.pk, 10, clock=DATABASE_CLOCK, worker="w1@host/4711")
    for one in batch.claims:
        ramp.end_badly(one.token, outcome=AttemptOutcome.UNAVAILABLE, clock=DATABASE_CLOCK, detail="refused")
    for _time in range(6):
        batch = claim_next(lane.pk, 5, clock=DATABASE_CLOCK, worker="w1@host/4711")
        for one in batch.claims:
            ramp.end_badly(one.token, outcome=AttemptOutcome.UNAVAILABLE, clock=DATABASE_CLOCK, detail="refused")
    assert Lane.objects.get(pk=lane.pk).is_on_hold


def workers_seen(at: datetime | None = None) -> None:
    now = at or DATABASE_CLOCK.now()
    for kind, name in [("worker", "celery@worker-3"), ("worker", "celery@worker-4"), ("scheduler", "scheduler")]:
        Presence.objects.update_or_create(kind=kind, name=name, defaults={"started_at": now - MINUTE, "seen_at": now})


def judged(lane: Lane) -> None:
    Lane.objects.filter(pk=lane.pk).update(judged_at=DATABASE_CLOCK.now())
