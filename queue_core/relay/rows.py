"""Taking deliveries, and what becomes of them: every change of a delivery that its sender makes.

Lock order: endpoint, messages by id, deliveries by id. A lease is a row's own, with an end by PostgreSQL's clock: a
sender that vanishes frees what it had by itself, and leaves a try of unknown effect.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db import connection, transaction

from queue_core.clock import Clock
from queue_core.models import Delivery, DeliveryTry, Endpoint
from queue_core.relay import circuit as circuits
from queue_core.relay.addresses import RESOLVE_WITHIN
from queue_core.relay.circuit import Circuit
from queue_core.relay.posting import Answer
from queue_core.states import DeliveryState, EndpointState, MessageKind, TryOutcome

#: Kept beyond the longest try, to write down how it ended.
SPARE = timedelta(seconds=15)
MOST_SWEPT = 1_000

#: In the order in which they are due; of a ticket the first alone, as long as it is neither delivered nor given up.
#: Whatever another session holds is passed over, and still keeps the later ones of its ticket back: the inner question
#: does not ask for a lock.
TAKE = """
WITH picked AS MATERIALIZED (
  SELECT d.id FROM queue_core_delivery d
  WHERE d.endpoint_id = %s AND d.state = 'pending' AND d.due_at <= %s AND d.lease IS NULL
    AND (%s OR d.kind = 'endpoint.test')
    AND NOT EXISTS (
      SELECT FROM queue_core_delivery b
      WHERE b.endpoint_id = d.endpoint_id AND b.ticket_id = d.ticket_id AND b.state = 'pending' AND b.number < d.number)
  ORDER BY d.due_at, d.id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED)
UPDATE queue_core_delivery d SET lease = %s, lease_until = %s, tries = d.tries + 1
FROM picked WHERE d.id = picked.id
RETURNING d.id
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """A delivery that this sender alone has out, until its lease is over."""

    delivery: Delivery
    lease: UUID
    number: int


def take(endpoint: Endpoint, limit: int, *, clock: Clock) -> list[Taken]:
    """Lease up to `limit` deliveries that are due, and begin a try of each. Tests alone for a disabled endpoint."""
    lease = uuid4()
    with transaction.atomic(), connection.cursor() as cursor:
        now = clock.now()
        until = now + endpoint.time_limit + timedelta(seconds=RESOLVE_WITHIN) + SPARE
        all_kinds = endpoint.state == EndpointState.ENABLED
        cursor.execute(TAKE, [endpoint.pk, now, all_kinds, limit, lease, until])
        ids = [row[0] for row in cursor.fetchall()]
        found = list(Delivery.objects.filter(pk__in=ids).select_related("message").order_by("due_at", "pk"))
        DeliveryTry.objects.bulk_create(
            [DeliveryTry(delivery=one, number=one.tries, lease=lease, started_at=now) for one in found]
        )
    return [Taken(one, lease, one.tries) for one in found]


@transaction.atomic
def end(endpoint_id: int, ended: Sequence[tuple[Taken, Answer]], *, clock: Clock) -> None:
    """Write down how tries ended: each try's row, its delivery, and the endpoint's circuit."""
    endpoint = Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint_id)
    ids = [taken.delivery.pk for taken, _answer in ended]
    locked = Delivery.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk").in_bulk()
    now = clock.now()
    _close_tries(ended, now)
    changed = []
    for taken, answer in ended:
        delivery = locked[taken.delivery.pk]
        delivery.endpoint = endpoint
        if _end_delivery(delivery, taken, answer, now):
            changed.append(delivery)
        _turn_circuit(endpoint, answer, now)
    _save_deliveries(changed)
    endpoint.save(update_fields=CIRCUIT_FIELDS)


CIRCUIT_FIELDS = [
    "failures", "failing_since", "opens", "open_until", "last_outcome", "last_status", "last_detail",
    "last_delivered_at", "state", "changed_state_at", "changed_state_by", "changed_state_key",
]  # fmt: skip
DELIVERY_FIELDS = ["state", "ended_at", "due_at", "lease", "lease_until", "last_outcome", "last_status"]

#: One that was swept as lost stays so: a try is closed once. Its delivery still learns of a success.
CLOSE = """
UPDATE queue_core_deliverytry t
SET ended_at = %s, outcome = x.outcome, status = x.status, length = x.length, duration = x.duration, detail = x.detail
FROM unnest(%s::bigint[], %s::int[], %s::uuid[], %s::text[], %s::int[], %s::int[], %s::interval[], %s::text[])
  x(delivery_id, number, lease, outcome, status, length, duration, detail)
WHERE t.delivery_id = x.delivery_id AND t.number = x.number AND t.lease = x.lease AND t.ended_at IS NULL
"""


def _close_tries(ended: Sequence[tuple[Taken, Answer]], now: datetime) -> None:
    columns = [
        (taken.delivery.pk, taken.number, taken.lease, answer.outcome.value, answer.status, answer.length,
         answer.duration, answer.detail)
        for taken, answer in ended
    ]  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(CLOSE, [now, *(list(column) for column in zip(*columns, strict=True))])


#: A statement for the batch, like the one above: a sender writes two for each batch, not two for each message.
SAVE = """
UPDATE queue_core_delivery d
SET state = x.state, ended_at = x.ended_at, due_at = x.due_at, lease = NULL, lease_until = NULL,
  last_outcome = x.last_outcome, last_status = x.last_status
FROM unnest(%s::bigint[], %s::text[], %s::timestamptz[], %s::timestamptz[], %s::text[], %s::int[])
  x(id, state, ended_at, due_at, last_outcome, last_status)
WHERE d.id = x.id
"""


def _save_deliveries(changed: Sequence[Delivery]) -> None:
    columns = [
        (one.pk, str(one.state), one.ended_at, one.due_at, str(one.last_outcome), one.last_status) for one in changed
    ]
    if not columns:
        return
    with connection.cursor() as cursor:
        cursor.execute(SAVE, [list(column) for column in zip(*columns, strict=True)])


def _end_delivery(delivery: Delivery, taken: Taken, answer: Answer, now: datetime) -> bool:
    """Set, not save, what an answer makes of a locked delivery. False where it changes nothing."""
    if answer.outcome == TryOutcome.DELIVERED:
        # A fact, whoever has the lease by now: the consumer said that it has the message.
        if delivery.state == DeliveryState.WITHDRAWN:
            return False
        delivery.state, delivery.ended_at = DeliveryState.DELIVERED, now
    elif delivery.lease != taken.lease:
        return False
    else:
        _rest_or_give_up(delivery, now, answer.retry_after)
    delivery.lease = delivery.lease_until = None
    delivery.last_outcome, delivery.last_status = answer.outcome, answer.status
    return True


def _rest_or_give_up(delivery: Delivery, now: datetime, retry_after: timedelta | None = None) -> None:
    if delivery.tries >= delivery.budget or delivery.kind == MessageKind.TEST:
        delivery.state, delivery.ended_at = DeliveryState.GIVEN_UP, now
        return
    chance = random.random()  # noqa: S311  (spreads waits, guards nothing)
    since_replay = delivery.tries - max(delivery.budget - delivery.endpoint.max_tries, 0)
    delivery.due_at = now + circuits.wait_after(max(since_replay, 1), chance=chance, retry_after=retry_after)


def circuit_of(endpoint: Endpoint) -> Circuit:
    return Circuit(endpoint.failures, endpoint.failing_since, endpoint.opens, endpoint.open_until)


def set_circuit(endpoint: Endpoint, circuit: Circuit) -> None:
    """Set, not save."""
    endpoint.failures, endpoint.failing_since = circuit.failures, circuit.failing_since
    endpoint.opens, endpoint.open_until = circuit.opens, circuit.open_until


def _turn_circuit(endpoint: Endpoint, answer: Answer, now: datetime) -> None:
    endpoint.last_outcome, endpoint.last_status = answer.outcome, answer.status
    endpoint.last_detail = answer.detail
    if answer.outcome == TryOutcome.DELIVERED:
        endpoint.last_delivered_at = now
        set_circuit(endpoint, circuits.after_success(circuit_of(endpoint)))
        return
    chance = random.random()  # noqa: S311  (spreads rests, guards nothing)
    set_circuit(
        endpoint,
        circuits.after_failure(circuit_of(endpoint), now, chance=chance, retry_after=answer.retry_after),
    )
    if answer.outcome == TryOutcome.GONE and endpoint.state == EndpointState.ENABLED:
        # 410 asks for no more (Standard Webhooks). Nothing is lost: its messages are kept for it.
        endpoint.state, endpoint.changed_state_at = EndpointState.DISABLED, now
        endpoint.changed_state_by = endpoint.changed_state_key = None


@transaction.atomic
def sweep(*, clock: Clock, most: int = MOST_SWEPT) -> int:
    """Take back the deliveries of senders that vanished, and end what waits for a retired endpoint. How many."""
    now = clock.now()
    lost = list(
        Delivery.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        .select_related("endpoint")
        .filter(lease__isnull=False, lease_until__lte=now)
        .order_by("pk")[:most]
    )
    for delivery in lost:
        assert delivery.lease is not None
        DeliveryTry.objects.filter(delivery=delivery, lease=delivery.lease, ended_at__isnull=True).update(
            ended_at=now, outcome=TryOutcome.LOST
        )
        _rest_or_give_up(delivery, now)
        delivery.lease = delivery.lease_until = None
        delivery.last_outcome, delivery.last_status = TryOutcome.LOST, None
        delivery.save(update_fields=DELIVERY_FIELDS)
    unwanted = (
        Delivery.objects.select_for_update(skip_locked=True, no_key=True)
        .filter(endpoint__in=retired_ids(), state=DeliveryState.PENDING, lease__isnull=True)
        .order_by("pk")[:most]
    )
    ids = [delivery.pk for delivery in unwanted]
    Delivery.objects.filter(pk__in=ids).update(state=DeliveryState.GIVEN_UP, ended_at=now)
    return len(lost) + len(ids)


def retired_ids() -> list[int]:
    return list(Endpoint.objects.filter(state=EndpointState.RETIRED).values_list("pk", flat=True))
