"""How the endpoints stand, and which tickets wait for a delivery: read only."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from queue_core import at_once
from queue_core.models import Delivery, Endpoint
from queue_core.states import DeliveryState, EndpointState

#: Read up to here and no further.
COUNT_CAP = 10_001

WAITING = """
SELECT e.id, w.number, w.oldest, h.number
FROM unnest(%s::bigint[]) AS e(id)
CROSS JOIN LATERAL (
  SELECT count(*) AS number, min(created_at) AS oldest FROM (
    SELECT created_at FROM queue_core_delivery WHERE endpoint_id = e.id AND state = 'pending' LIMIT %s) p) w
CROSS JOIN LATERAL (
  SELECT count(*) AS number FROM (
    SELECT FROM queue_core_delivery
    WHERE endpoint_id = e.id AND state = 'given_up' AND NOT kind = 'endpoint.test' LIMIT %s) g) h
"""

#: A decision that has a number has its deliveries. One that has none is kept back, or younger than a step of the
#: relay, and is undelivered where an endpoint wants it. A part of `at_once`: lane, number, since when the oldest.
UNDELIVERED = """
SELECT 'undelivered', lane_id, NULL::text, count(DISTINCT ticket_id), min(created_at) FROM (
  SELECT l.id AS lane_id, f.ticket_id, f.created_at
  FROM unnest(%(lanes)s::bigint[]) AS l(id)
  CROSS JOIN LATERAL (
    (SELECT d.ticket_id, d.created_at FROM queue_core_delivery d
     WHERE d.lane_id = l.id AND d.state = 'pending' AND d.kind = 'decision' ORDER BY d.created_at LIMIT %(most)s)
    UNION ALL
    (SELECT m.ticket_id, m.created_at FROM queue_core_message m
     WHERE m.lane_id = l.id AND m.state = 'kept_back' AND m.kind = 'decision' AND EXISTS (
       SELECT FROM queue_core_endpoint e WHERE e.state <> 'retired' AND e.kinds @> '"decision"'::jsonb
         AND (e.lanes = '[]'::jsonb OR e.lanes @> to_jsonb(l.id)))
     ORDER BY m.decision_id LIMIT %(most)s)) f) u
GROUP BY lane_id
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """An endpoint with what waits for it. Counts stop at COUNT_CAP."""

    endpoint: Endpoint
    waiting: int
    oldest: datetime | None
    given_up: int

    @property
    def is_failing(self) -> bool:
        return self.endpoint.state == EndpointState.ENABLED and self.endpoint.failures > 0

    @property
    def needs_somebody(self) -> bool:
        return self.is_failing or (self.endpoint.state == EndpointState.DISABLED and self.waiting > 0)


def endpoints() -> list[Standing]:
    """Every endpoint that is not retired; failing ones first, then those that keep messages waiting while disabled."""
    rows = list(
        Endpoint.objects.exclude(state=EndpointState.RETIRED)
        .select_related("changed_state_by", "changed_state_key")
        .order_by("name")
    )
    with connection.cursor() as cursor:
        cursor.execute(WAITING, [[row.pk for row in rows], COUNT_CAP, COUNT_CAP])
        counts = {row[0]: row[1:] for row in cursor.fetchall()}
    found = [Standing(row, *counts[row.pk]) for row in rows]
    return sorted(found, key=lambda one: (not one.is_failing, not one.needs_somebody, one.endpoint.name))


def undelivered(lane_ids: Collection[int], *, most: int = COUNT_CAP) -> dict[int, tuple[int, datetime]]:
    """By lane: how many tickets have a decision that an endpoint wants and does not have, and since when the oldest.

    Lanes without any are left out. Counts stop near `most`.
    """
    told = at_once.tell([UNDELIVERED], {"lanes": list(lane_ids), "most": most})
    return {row.lane: (row.number, row.moment) for row in told.get("undelivered", ())}


def waiting_for(ticket_id: int) -> list[Delivery]:
    """What of a ticket's messages waits, with message and endpoint; in the order in which it goes out."""
    pending = Delivery.objects.filter(ticket=ticket_id, state=DeliveryState.PENDING)
    return list(pending.select_related("endpoint", "message").order_by("number", "pk"))
