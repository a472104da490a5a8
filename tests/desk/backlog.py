"""Rows of the present, made through the verbs: pages read the database's own clock."""

from dataclasses import replace
from datetime import datetime, timedelta

from queue_core import contract
from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.contract import Ending, NewTicket
from queue_core.models import Item, Job, Lane, Policy
from queue_core.states import AssignmentToken
from tests.factories import T0, make_ground, make_lane, new_ticket

RULES = [{"category": "offensive", "reject_at": 0.8, "approve_below": 0.4, "reason_code": "insult"}]


def make_live_lane(**fields: object) -> Lane:
    lane = make_lane(**fields)
    make_ground("insult")
    policy = Policy.objects.create(lane=lane, version=2, rules=RULES, made_at=T0)
    lane.policy, lane.judged_at = policy, now()
    lane.save()
    return lane


def now() -> datetime:
    return DATABASE_CLOCK.now()


def ticket(lane: Lane, *, left: float = 3600, **fields: object) -> NewTicket:
    made = new_ticket(lane, deadline=None, **fields)
    return NewTicket(
        **{name: getattr(made, name) for name in made.__slots__} | {"deadline": now() + timedelta(seconds=left)}
    )


def waiting_now(lane: Lane, **fields: object) -> Job:
    return contract.receive(ticket(lane, **fields), clock=DATABASE_CLOCK).job


def manual_now(lane: Lane, **fields: object) -> Item:
    job = waiting_now(lane, **fields)
    lane.judged_at = now()
    lane.save(update_fields=["judged_at"])
    token = contract.claim(job.pk, clock=DATABASE_CLOCK, worker="w1").token
    params = {"category": "offensive", "score": 0.62, "reject_at": 0.8, "approve_below": 0.4}
    ending = Ending(result="MANUAL", cause="grey_zone", params=params, scores={"offensive": 0.62}, model="words-1")
    assert contract.complete(token, ending, clock=DATABASE_CLOCK) == "committed"
    return Item.objects.get(job=job)


def dead_now(lane: Lane, **fields: object) -> Job:
    """Died by its deadline a minute ago."""
    past = now() - timedelta(minutes=2)
    made = replace(ticket(lane, **fields), deadline=past + timedelta(minutes=1))
    job = contract.receive(made, clock=FixedClock(past)).job
    contract.sweep(clock=FixedClock(past + timedelta(minutes=1)))
    job.refresh_from_db()
    assert job.state == "DEAD", job.state
    return job


def token_of(item: Item) -> AssignmentToken:
    own = item.assignments.latest("fence")
    return AssignmentToken(item.pk, own.fence, own.key)
