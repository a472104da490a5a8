"""Rows of one lane that every address and verb can be asked about, and people with each role."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import Group

from queue_core import people, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import (
    AlertEpisode,
    Decision,
    Delivery,
    Endpoint,
    Item,
    Job,
    Lane,
    LaneRole,
    Message,
    Outage,
    PreservationHold,
)
from queue_core.states import AlertKind, MessageKind
from reviewboard.models import Person
from tests.desk.backlog import make_live_lane, manual_now, waiting_now


@dataclass(frozen=True)
class Scene:
    lane: Lane
    job: Job
    item: Item
    waiting: Job
    decision: Decision
    outage: Outage
    alert: AlertEpisode
    endpoint: Endpoint
    delivery: Delivery
    preserved: PreservationHold


def make_scene(owner: Person) -> Scene:
    """A lane of its own connection. Its item's content is restricted, and its other item was decided by `owner`."""
    now, lane = DATABASE_CLOCK.now(), make_live_lane()
    item = manual_now(lane, is_restricted=True)
    decided = manual_now(lane)
    token = people.take(decided.pk, person=owner, clock=DATABASE_CLOCK).token
    assert token is not None
    decision = people.resolve(token, person=owner, verdict="APPROVED", clock=DATABASE_CLOCK).decision  # type: ignore[arg-type]
    assert decision is not None
    endpoint = Endpoint.objects.create(
        name=f"shop-{lane.pk}", address="https://shop.example/", kinds=["decision"], lanes=[lane.pk], created_at=now
    )
    message = Message.objects.get(decision=decision)
    return Scene(
        lane=lane,
        job=item.job,
        item=item,
        waiting=waiting_now(lane),
        decision=decision,
        outage=Outage.objects.create(connection=lane.connection, cause="precaution", opened_at=now),
        alert=AlertEpisode.objects.create(
            kind=AlertKind.GROWING, subject=str(lane.pk), lane=lane, begun_at=now, seen_at=now, params={"growth": 12.0}
        ),
        endpoint=endpoint,
        delivery=_delivery(endpoint, message, lane, now),
        preserved=PreservationHold.objects.create(
            ticket=item.ticket, authority="A", reference="1", reason="asked", placed_at=now, placed_by=owner,
            until=now + timedelta(days=1),
        ),
    )  # fmt: skip


def _delivery(endpoint: Endpoint, message: Message, lane: Lane, now: Any) -> Delivery:
    return Delivery.objects.create(
        message=message, endpoint=endpoint, ticket=message.ticket, lane=lane, kind=MessageKind.DECISION, budget=1,
        due_at=now, created_at=now,
    )  # fmt: skip


def with_role(role: str, lane: Lane | None = None) -> Person:
    """Somebody with a role everywhere, or on one lane alone."""
    person = Person.objects.create_user(f"{role}-{uuid4().hex[:6]}", is_staff=role == roles.ADMINISTRATOR)
    if lane is None:
        roles.assign(person, role)
    else:
        LaneRole.objects.create(person=person, role=Group.objects.get(name=role), lane=lane)
    return Person.objects.get(pk=person.pk)
