"""Sending again what was delivered or given up: the same message, with the same id."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F, OuterRef, QuerySet, Subquery

from queue_core import audit, wakeups
from queue_core.clock import Clock
from queue_core.models import Delivery, Endpoint
from queue_core.relay.endpoints import RIGHT
from queue_core.relay.numbering import keep_ready
from queue_core.rights import on_lanes_of, require_somewhere
from queue_core.states import DeliveryState, EndpointState, MessageKind, MessageState

if TYPE_CHECKING:
    from queue_core.models.api_keys import Actor

#: In one act. More are replayed by another.
MOST_REPLAYED = 10_000
REPLAYABLE = (DeliveryState.DELIVERED, DeliveryState.GIVEN_UP)


@dataclass(frozen=True, slots=True)
class Replayed:
    """How many deliveries wait anew. `more`: others fit too, and were left for the next act."""

    number: int
    more: bool = False


def replayable(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Those of a queryset that can be sent again: over, not withdrawn, and for an endpoint that still wants messages.

    A message that was withdrawn after its delivery was recalled, and is never sent again.
    """
    return deliveries.filter(
        state__in=REPLAYABLE, message__state=MessageState.READY, endpoint__state__in=_WANTING
    ).exclude(kind=MessageKind.TEST)


_WANTING = (EndpointState.ENABLED, EndpointState.DISABLED)


@transaction.atomic
def replay(deliveries: QuerySet[Delivery], *, up_to: int, what: str, person: "Actor", clock: Clock) -> Replayed:
    """Send the deliveries of a queryset again whose id is at most `up_to`: those that the person saw, on their lanes.

    Oldest first, at most MOST_REPLAYED. `what` says in the audit what was chosen, for instance a filter's query.
    """
    require_somewhere(person, RIGHT)
    rows = on_lanes_of(replayable(deliveries), person, RIGHT).filter(pk__lte=up_to)
    found = list(rows.order_by("pk").values_list("pk", "message_id")[: MOST_REPLAYED + 1])
    chosen = found[:MOST_REPLAYED]
    # Messages before deliveries, as a recall takes them: one that it withdrew meanwhile goes out no more.
    ready = keep_ready(message_id for _pk, message_id in chosen)
    ids = [pk for pk, message_id in chosen if message_id in ready]
    mine = Delivery.objects.select_for_update(no_key=True).filter(pk__in=ids, state__in=REPLAYABLE)
    locked = list(mine.order_by("pk").values_list("pk", "endpoint_id"))
    now = clock.now()
    tries = Endpoint.objects.filter(pk=OuterRef("endpoint_id")).values("max_tries")
    Delivery.objects.filter(pk__in=[pk for pk, _endpoint in locked]).update(
        state=DeliveryState.PENDING, ended_at=None, due_at=now, budget=F("tries") + Subquery(tries)
    )
    by_endpoint: dict[int, int] = {}
    for _pk, endpoint_id in locked:
        by_endpoint[endpoint_id] = by_endpoint.get(endpoint_id, 0) + 1
    for endpoint in Endpoint.objects.filter(pk__in=by_endpoint).order_by("pk"):
        wakeups.wake_sender(endpoint.pk)
        after = {"deliveries": by_endpoint[endpoint.pk], "chosen": what[:1000], "up_to": up_to}
        audit.record("deliveries.replayed", now=now, actor=person, subject=endpoint, after=after)
    return Replayed(len(locked), more=len(found) > MOST_REPLAYED)
