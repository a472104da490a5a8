"""What goes out: endpoints, failing ones first, and the log of deliveries."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from queue_core import relay
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Delivery, DeliveryTry, Endpoint, Lane
from queue_core.states import DeliveryState, MessageKind
from reviewboard.delivery_text import STATE_TONES, answer_text, endpoint_row, tries_text
from reviewboard.filters import CURSOR, DeliveriesFilter, page_address
from reviewboard.paging import Order, Page, pager_of, read_in_time, read_page
from reviewboard.shapes import Conflict, Tone
from reviewboard.ticket_search import ticket_ids
from reviewboard.views.access import delivery_to_manage, may, seen
from reviewboard.views.permits import needs, person_of

NEWEST_FIRST = Order("newest", ("-pk",))
OLDEST_FIRST = Order("tries", ("number",))
PAGE_SIZE = 50
RIGHT = "manage_deliveries"


@dataclass(frozen=True, slots=True)
class LogRow:
    delivery: Delivery
    tone: Tone
    tries: str


@require_safe
@needs(RIGHT)
def deliveries(request: HttpRequest) -> HttpResponse:
    return answer_with_deliveries(request)


def answer_with_deliveries(
    request: HttpRequest, *, status: int = 200, conflict: Conflict | None = None
) -> HttpResponse:
    now = DATABASE_CLOCK.now()
    mine = [one for one in relay.endpoints() if relay.is_of(person_of(request), one.endpoint)]
    names = endpoint_names(request)
    chosen = DeliveriesFilter.read(request.GET, endpoints=names)
    page = read_in_time(lambda: _page(request, chosen))
    lanes = {lane.pk: str(lane) for lane in Lane.objects.all()}
    context = {
        "nav": "deliveries",
        "as_of": now,
        "conflict": conflict,
        "endpoints": [endpoint_row(one, lanes, now=now) for one in mine],
        "filter": chosen,
        "names": names,
        "states": DeliveryState.choices,
        "kinds": MessageKind.values,
        "rows": log_rows(page.rows) if page else [],
        "is_too_slow": page is None,
        "pager": pager_of(page, lambda cursor: chosen.url(reverse("deliveries"), cursor=cursor)) if page else None,
        "replay_url": chosen.url(reverse("deliveries_replay")),
        "may_configure": may(request, "change_endpoint"),
    }
    return render(request, "deliveries/deliveries.html", context, status=status)


def endpoint_names(request: HttpRequest) -> list[str]:
    """The endpoints, retired ones too, that the reader looks after."""
    person = person_of(request)
    return [one.name for one in Endpoint.objects.order_by("name") if relay.is_of(person, one)]


def filtered(request: HttpRequest, chosen: DeliveriesFilter) -> QuerySet[Delivery]:
    """The deliveries of a filter on the reader's lanes, in no order."""
    found = seen(request, Delivery.objects.all(), RIGHT)
    if chosen.is_impossible:
        return found.none()
    if chosen.endpoint:
        found = found.filter(endpoint_id__in=list(_ids(chosen.endpoint)))
    if chosen.state:
        found = found.filter(state=chosen.state)
    if chosen.kind:
        found = found.filter(kind=chosen.kind)
    if chosen.ticket:
        found = found.filter(ticket_id__in=ticket_ids(chosen.ticket))
    return found


def _ids(name: str) -> QuerySet[Endpoint, int]:
    return Endpoint.objects.filter(name=name).values_list("pk", flat=True)


def _page(request: HttpRequest, chosen: DeliveriesFilter) -> Page[Delivery]:
    cursor = request.GET.get(CURSOR, "")
    rows = filtered(request, chosen).select_related("ticket", "lane", "endpoint", "message")
    return read_page(rows, NEWEST_FIRST, cursor=cursor, filter_hash=chosen.hash, size=PAGE_SIZE)


def log_rows(found: Sequence[Delivery]) -> list[LogRow]:
    outcomes: dict[int, list[str | None]] = defaultdict(list)
    tried = DeliveryTry.objects.filter(delivery__in=[row.pk for row in found]).order_by("delivery", "number")
    for delivery, outcome in tried.values_list("delivery", "outcome"):
        outcomes[delivery].append(outcome)
    return [LogRow(row, STATE_TONES[DeliveryState(row.state)], tries_text(row, outcomes[row.pk])) for row in found]


@dataclass(frozen=True, slots=True)
class TryRow:
    """`text` is empty while the try runs."""

    tried: DeliveryTry
    at: datetime
    text: str


@require_safe
@needs(RIGHT)
def delivery(request: HttpRequest, pk: int) -> HttpResponse:
    found = delivery_to_manage(request, pk)
    page = read_page(
        found.tried.all(), OLDEST_FIRST, cursor=request.GET.get(CURSOR, ""), filter_hash=str(pk), size=PAGE_SIZE
    )
    tries = [
        TryRow(one, one.started_at, answer_text(one.outcome, one.status) if one.outcome else "") for one in page.rows
    ]
    context = {
        "nav": "deliveries",
        "as_of": DATABASE_CLOCK.now(),
        "delivery": found,
        "tone": STATE_TONES[DeliveryState(found.state)],
        "tries": tries,
        "body": json.dumps(relay.envelope(found.message), ensure_ascii=False, indent=2),
        "can_replay": relay.replayable(Delivery.objects.filter(pk=pk)).exists(),
        "pager": pager_of(page, page_address),
    }
    return render(request, "deliveries/delivery.html", context)
