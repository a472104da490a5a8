"""Sending what is due: one task an endpoint, for a slice of time, so that a dead consumer delays no other.

relay step: number -> hand to endpoints -> sweep -> wake a sender of each endpoint with something due
"""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db.models import Exists, OuterRef, Q

from queue_core import wakeups
from queue_core.clock import Clock
from queue_core.models import Delivery, Endpoint
from queue_core.relay import circuit as circuits
from queue_core.relay.addresses import RESOLVE_WITHIN
from queue_core.relay.envelopes import content
from queue_core.relay.numbering import MOST_AT_ONCE, number_messages
from queue_core.relay.posting import Answer, post
from queue_core.relay.rows import SPARE, Taken, circuit_of, end, sweep, take
from queue_core.relay.signing import SecretLost, secrets_of, sign
from queue_core.states import DeliveryState, EndpointState, MessageKind, TryOutcome

logger = logging.getLogger(__name__)

#: Seconds that one task sends to one endpoint before it makes room for another's.
SLICE = 10.0


@dataclass(frozen=True, slots=True)
class Sent:
    """What a sender did, for its log line."""

    delivered: int = 0
    failed: int = 0
    stop: str = "nothing due"


def step(*, clock: Clock) -> int:
    """One step of the relay: number what is committed, take back what was lost, wake senders. How many it woke."""
    number_messages(clock=clock, most=MOST_AT_ONCE)
    sweep(clock=clock)
    due = endpoints_due(now=clock.now())
    for endpoint_id in due:
        wakeups.wake_sender(endpoint_id)
    return len(due)


def endpoints_due(*, now: datetime) -> list[int]:
    """Endpoints with something to send now, whose circuit is closed and whom nobody sends to."""
    due = Delivery.objects.filter(
        endpoint=OuterRef("pk"), state=DeliveryState.PENDING, due_at__lte=now, lease__isnull=True
    )
    tests = due.filter(kind=MessageKind.TEST)
    return list(
        Endpoint.objects.filter(
            Q(Exists(due), state=EndpointState.ENABLED) | Q(Exists(tests), state=EndpointState.DISABLED),
            Q(open_until__isnull=True) | Q(open_until__lte=now),
            Q(sender_until__isnull=True) | Q(sender_until__lte=now),
        )
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def send_due(
    endpoint_id: int, *, clock: Clock, is_stopping: Callable[[], bool] = lambda: False, slice_: float = SLICE
) -> Sent:
    """Send what is due to one endpoint until nothing is, its circuit opens, or the slice of time is over.

    One sender an endpoint: a second returns at once. Its place is the endpoint's row, with an end of its own.
    """
    place = uuid4()
    if not _take_place(endpoint_id, place, clock):
        return Sent(stop="somebody else sends")
    began, delivered, failed, stop = time.monotonic(), 0, 0, "slice is over"
    try:
        while time.monotonic() - began < slice_:
            if is_stopping():
                stop = "asked to stop"
                break
            answers = _send_batch(endpoint_id, place, clock)
            if not answers:
                stop = "nothing due"
                break
            good = sum(answer.outcome == TryOutcome.DELIVERED for answer in answers)
            delivered, failed = delivered + good, failed + len(answers) - good
    finally:
        _leave_place(endpoint_id, place)
    if stop == "slice is over":
        wakeups.wake_sender(endpoint_id)
    return Sent(delivered, failed, stop)


def _send_batch(endpoint_id: int, place: UUID, clock: Clock) -> list[Answer]:
    endpoint = Endpoint.objects.get(pk=endpoint_id)
    now = clock.now()
    circuit = circuit_of(endpoint)
    if endpoint.sender != place or endpoint.state == EndpointState.RETIRED or not circuits.may_send(circuit, now):
        return []
    taken = take(endpoint, circuits.at_once(circuit, endpoint.parallel), clock=clock)
    if not taken:
        return []
    _hold_place(endpoint, clock)
    ended = _post_all(endpoint, taken, now)
    end(endpoint_id, ended, clock=clock)
    return [answer for _taken, answer in ended]


def _post_all(endpoint: Endpoint, taken: Sequence[Taken], now: datetime) -> list[tuple[Taken, Answer]]:
    try:
        secrets = secrets_of(endpoint.secrets.order_by("-pk"), now=now)
    except SecretLost:
        return [(one, Answer(TryOutcome.NO_SECRET)) for one in taken]

    def one_post(one: Taken) -> Answer:
        key = str(one.delivery.message.key)
        try:
            body = content(one.delivery.message)
            headers = sign(secrets, key, now, body) | {"content-type": "application/json"}
            return post(endpoint.address, body, headers, time_limit=endpoint.time_limit, now=now)
        except Exception as fault:
            # A failed try of its own: raised, it would leave those beside it open, to be sent again until they are
            # given up, though the consumer has them (CEL-04).
            logger.exception("sending message %s raised", key)
            return Answer(TryOutcome.FAILED, detail=type(fault).__name__)

    if len(taken) == 1:
        return [(taken[0], one_post(taken[0]))]
    with ThreadPoolExecutor(len(taken), thread_name_prefix=f"send-{endpoint.pk}") as pool:
        return list(zip(taken, pool.map(one_post, taken), strict=True))


def _longest_batch(endpoint: Endpoint) -> timedelta:
    return endpoint.time_limit + timedelta(seconds=RESOLVE_WITHIN) + SPARE


def _take_place(endpoint_id: int, place: UUID, clock: Clock) -> bool:
    endpoint = Endpoint.objects.filter(pk=endpoint_id).first()
    if endpoint is None:
        return False
    now = clock.now()
    free = Q(sender_until__isnull=True) | Q(sender_until__lte=now)
    found = Endpoint.objects.filter(free, pk=endpoint_id)
    return bool(found.update(sender=place, sender_until=now + _longest_batch(endpoint)))


def _hold_place(endpoint: Endpoint, clock: Clock) -> None:
    Endpoint.objects.filter(pk=endpoint.pk, sender=endpoint.sender).update(
        sender_until=clock.now() + _longest_batch(endpoint)
    )


def _leave_place(endpoint_id: int, place: UUID) -> None:
    Endpoint.objects.filter(pk=endpoint_id, sender=place).update(sender=None, sender_until=None)
