"""What people do with endpoints: one verb an act, each with its right, its audit row, and its outcome."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import uuid4

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from queue_core import audit, wakeups
from queue_core.clock import Clock
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import ApiKey, Delivery, Endpoint, EndpointSecret, Message
from queue_core.relay.circuit import Circuit
from queue_core.relay.rows import CIRCUIT_FIELDS, set_circuit
from queue_core.relay.signing import fingerprint, make_secret
from queue_core.rights import may_on_each
from queue_core.states import DeliveryState, EndpointState, MessageKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

    from queue_core.models.api_keys import Actor

#: To see deliveries, replay them, and disable, enable and test endpoints.
RIGHT = "manage_deliveries"
#: To make secrets and to retire an endpoint.
CONFIGURING = "change_endpoint"
#: How long the old secret signs beside the new one.
LONGEST_ROTATION = timedelta(days=30)
USUAL_ROTATION = timedelta(hours=24)
MOST_REASON = 500


class EndpointOutcome(StrEnum):
    DONE = "done"
    ALREADY = "already"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class EndpointActed:
    """What an act came to, and the endpoint as it is now."""

    outcome: EndpointOutcome
    endpoint: Endpoint


def disable(endpoint_id: int, *, person: "Actor", reason: str = "", clock: Clock) -> EndpointActed:
    """Send it nothing more. Its messages are kept for it, and go out in their order when it is enabled again."""
    _require(person, RIGHT, endpoint_id)
    return _turn(endpoint_id, EndpointState.DISABLED, person=person, reason=reason, clock=clock)


def enable(endpoint_id: int, *, person: "Actor", reason: str = "", clock: Clock) -> EndpointActed:
    """Send again, beginning with what waits; a circuit that was open is closed."""
    _require(person, RIGHT, endpoint_id)
    return _turn(endpoint_id, EndpointState.ENABLED, person=person, reason=reason, clock=clock)


def retire(endpoint_id: int, *, person: "AbstractUser", reason: str = "", clock: Clock) -> EndpointActed:
    """The consumer is gone for good: what waits for it is given up, and nothing more is kept. There is no way back."""
    _require(person, CONFIGURING, endpoint_id)
    return _turn(endpoint_id, EndpointState.RETIRED, person=person, reason=reason, clock=clock)


@transaction.atomic
def _turn(endpoint_id: int, to: EndpointState, *, person: "Actor", reason: str, clock: Clock) -> EndpointActed:
    reason = _checked_reason(reason)
    endpoint, now = _locked(endpoint_id, clock)
    if endpoint.state == EndpointState.RETIRED:
        return EndpointActed(EndpointOutcome.RETIRED, endpoint)
    if endpoint.state == to:
        return EndpointActed(EndpointOutcome.ALREADY, endpoint)
    before = endpoint.state
    endpoint.state, endpoint.changed_state_at = to, now
    is_key = isinstance(person, ApiKey)
    endpoint.changed_state_by_id, endpoint.changed_state_key_id = (None, person.pk) if is_key else (person.pk, None)
    if to == EndpointState.ENABLED:
        set_circuit(endpoint, Circuit())
        wakeups.wake_sender(endpoint.pk)
    endpoint.save(update_fields=CIRCUIT_FIELDS)
    if to == EndpointState.RETIRED:
        # What a sender has out this moment, and what is being numbered, is ended by the sweep.
        Delivery.objects.filter(endpoint=endpoint, state=DeliveryState.PENDING, lease__isnull=True).update(
            state=DeliveryState.GIVEN_UP, ended_at=now
        )
    _audit(f"endpoint.{to.value}", endpoint, person, now, reason=reason, before=before)
    return EndpointActed(EndpointOutcome.DONE, endpoint)


@transaction.atomic
def try_now(endpoint_id: int, *, person: "Actor", clock: Clock) -> EndpointActed:
    """Close an open circuit, and make due what rests for this endpoint: its consumer is said to be back."""
    _require(person, RIGHT, endpoint_id)
    endpoint, now = _locked(endpoint_id, clock)
    if endpoint.state != EndpointState.ENABLED:
        is_retired = endpoint.state == EndpointState.RETIRED
        return EndpointActed(EndpointOutcome.RETIRED if is_retired else EndpointOutcome.ALREADY, endpoint)
    set_circuit(endpoint, Circuit())
    endpoint.save(update_fields=CIRCUIT_FIELDS)
    waiting = Delivery.objects.filter(endpoint=endpoint, state=DeliveryState.PENDING, due_at__gt=now)
    waiting.update(due_at=now)
    wakeups.wake_sender(endpoint.pk)
    _audit("endpoint.tried_now", endpoint, person, now)
    return EndpointActed(EndpointOutcome.DONE, endpoint)


@transaction.atomic
def send_test(endpoint_id: int, *, person: "Actor", clock: Clock) -> Delivery | None:
    """A message that says nothing, to this endpoint alone, at once, tried once. None for a retired endpoint.

    It goes to a disabled endpoint too, so that one is proved before it is enabled.
    """
    _require(person, RIGHT, endpoint_id)
    endpoint, now = _locked(endpoint_id, clock)
    if endpoint.state == EndpointState.RETIRED:
        return None
    set_circuit(endpoint, Circuit(endpoint.failures, endpoint.failing_since, endpoint.opens))
    endpoint.save(update_fields=CIRCUIT_FIELDS)
    body = {"endpoint": endpoint.name, "asked_at": now.isoformat()}
    message = Message.objects.create(key=uuid4(), kind=MessageKind.TEST, body=body, created_at=now)
    delivery = Delivery.objects.create(
        message=message, endpoint=endpoint, kind=MessageKind.TEST, budget=1, due_at=now, created_at=now
    )
    wakeups.wake_sender(endpoint.pk)
    _audit("endpoint.tested", endpoint, person, now)
    return delivery


@transaction.atomic
def new_secret(
    endpoint_id: int, *, person: "AbstractUser", clock: Clock, old_signs_for: timedelta = USUAL_ROTATION
) -> str:
    """Make a secret, and let the one before it sign beside it for a while. Returned once, and never again by anything.

    Raises InvalidRequest for a time below 0 or above LONGEST_ROTATION. 0 is for a secret that leaked.
    """
    _require(person, CONFIGURING, endpoint_id)
    if not timedelta(0) <= old_signs_for <= LONGEST_ROTATION:
        raise InvalidRequest(_("The old secret signs for at most 30 days."), field="old_signs_for")
    endpoint, now = _locked(endpoint_id, clock)
    ends = now + old_signs_for
    running = EndpointSecret.objects.filter(Q(ends_at__isnull=True) | Q(ends_at__gt=ends), endpoint=endpoint)
    had_one = running.update(ends_at=ends)
    salt = uuid4()
    secret = make_secret(salt)
    row = EndpointSecret.objects.create(
        endpoint=endpoint, salt=salt, fingerprint=fingerprint(secret), made_at=now, made_by_id=person.pk
    )
    audit.record(
        "endpoint.secret_made",
        now=now,
        actor=person,
        subject=endpoint,
        after={"fingerprint": row.fingerprint, "old_signs_until": ends.isoformat() if had_one else None},
    )
    return secret


def is_of(person: "Actor", endpoint: Endpoint) -> bool:
    """Whether a person may look after an endpoint: on each of its lanes, or on all where it is told of all."""
    return may_on_each(person, RIGHT, endpoint.lanes)


def _require(person: "Actor", right: str, endpoint_id: int) -> None:
    lanes = Endpoint.objects.values_list("lanes", flat=True).get(pk=endpoint_id)
    if not may_on_each(person, right, lanes):
        raise NotPermitted(right)


def _locked(endpoint_id: int, clock: Clock) -> tuple[Endpoint, datetime]:
    endpoint = Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint_id)
    return endpoint, clock.now()


def _checked_reason(text: str) -> str:
    stripped = text.strip()
    if "\x00" in stripped or len(stripped) > MOST_REASON:
        raise InvalidRequest(_("A reason has at most %(most)d characters.") % {"most": MOST_REASON}, field="reason")
    return stripped


def _audit(act: str, endpoint: Endpoint, person: "Actor", now: datetime, *, reason: str = "", before: str = "") -> None:
    audit.record(
        act,
        now=now,
        actor=person,
        subject=endpoint,
        reason=reason,
        before={"state": before} if before else None,
        after={"state": endpoint.state} if before else None,
    )
