"""Endpoints and their deliveries, for whoever runs the consumer."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Router
from ninja.params.functions import Path, Query

from queue_core import relay
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import CallerError
from queue_core.models import Delivery, Endpoint
from queue_core.models.api_keys import KeyScope
from queue_core.relay import EndpointActed, EndpointOutcome
from queue_core.states import DeliveryState, MessageKind
from reviewboard.api import schemas
from reviewboard.api.bodies import read_as
from reviewboard.api.described import body_of, failures
from reviewboard.api.keys import Key, key_of
from reviewboard.api.problems import Problem

router = Router(tags=["deliveries"])
PAGE, MOST = 100, 500
LARGEST = 2**63 - 1
KEY = Key(KeyScope.DELIVERIES)
ACTED: dict[int, Any] = {200: schemas.EndpointActed, **failures(404, 409, 413, 415)}
Name = schemas.LaneName


@router.get("/endpoints", auth=KEY, summary="Endpoints", response={200: schemas.EndpointPage, **failures()})
def endpoints(
    request: HttpRequest,  # noqa: ARG001 - Ninja's call
    after: Name | None = Query(None),
    limit: int = Query(PAGE, ge=1, le=PAGE),
) -> dict[str, Any]:
    """By name, also those that are retired."""
    found = list(Endpoint.objects.filter(name__gt=after or "").order_by("name")[: limit + 1])
    shown = found[:limit]
    return {
        "endpoints": [_endpoint_out(one) for one in shown],
        "next": shown[-1].name if len(found) > limit else None,
    }


@router.post(
    "/endpoints/{name}/disable", auth=KEY, summary="Disable an endpoint", response=ACTED,
    openapi_extra=body_of(schemas.Because),
)  # fmt: skip
def disable(request: HttpRequest, name: Name = Path(...)) -> dict[str, Any]:
    """Nothing more is sent to it. Its messages are kept, and go out in order when it is enabled."""
    return _turn(request, name, relay.disable)


@router.post(
    "/endpoints/{name}/enable", auth=KEY, summary="Enable an endpoint", response=ACTED,
    openapi_extra=body_of(schemas.Because),
)  # fmt: skip
def enable(request: HttpRequest, name: Name = Path(...)) -> dict[str, Any]:
    """What was kept for it goes out first."""
    return _turn(request, name, relay.enable)


@router.post(
    "/endpoints/{name}/test", auth=KEY, summary="Send a test message",
    response={200: schemas.DeliveryOut, **failures(404, 409)},
)  # fmt: skip
def send_test(request: HttpRequest, name: Name = Path(...)) -> dict[str, Any]:
    """To this endpoint alone, also while it is disabled, tried once. Read the delivery to see what came of it."""
    found = _endpoint(name)
    sent = relay.send_test(found.pk, person=key_of(request), clock=DATABASE_CLOCK)
    if sent is None:
        raise _retired()
    return _delivery_out(_deliveries().get(pk=sent.pk))


@router.get("/deliveries", auth=KEY, summary="Deliveries", response={200: schemas.DeliveryPage, **failures(404)})
def deliveries(
    request: HttpRequest,  # noqa: ARG001 - Ninja's call
    endpoint: Name | None = Query(None),
    state: DeliveryState | None = Query(None),
    before: int = Query(LARGEST, ge=0, le=LARGEST),
    limit: int = Query(PAGE, ge=1, le=MOST),
) -> dict[str, Any]:
    """The log, newest first."""
    rows = _deliveries().filter(pk__lt=before)
    if endpoint is not None:
        rows = rows.filter(endpoint=_endpoint(endpoint))
    if state is not None:
        rows = rows.filter(state=state)
    found = list(rows.order_by("-pk")[: limit + 1])
    shown = found[:limit]
    return {"deliveries": [_delivery_out(one) for one in shown], "next": shown[-1].pk if len(found) > limit else None}


@router.get(
    "/deliveries/{int:number}", auth=KEY, summary="A delivery", response={200: schemas.DeliveryOut, **failures(404)}
)
def delivery(
    request: HttpRequest,  # noqa: ARG001 - Ninja's call
    number: int = Path(..., ge=1, le=LARGEST),
) -> dict[str, Any]:
    """One of the log."""
    found = _deliveries().filter(pk=number).first()
    if found is None:
        raise Problem("not_found", _("There is no such delivery."))
    return _delivery_out(found)


@router.post(
    "/deliveries/{int:number}/replay", auth=KEY, summary="Send a delivery again",
    response={200: schemas.Replayed, **failures(404)},
)  # fmt: skip
def replay_one(request: HttpRequest, number: int = Path(..., ge=1, le=LARGEST)) -> dict[str, Any]:
    """The same message with the same id. 0 where it cannot be: it waits already, or was withdrawn."""
    one = Delivery.objects.filter(pk=number)
    if not one.exists():
        raise Problem("not_found", _("There is no such delivery."))
    replayed = relay.replay(one, up_to=number, what=f"delivery={number}", person=key_of(request), clock=DATABASE_CLOCK)
    return {"replayed": replayed.number, "more": replayed.more}


@router.post(
    "/deliveries/replay", auth=KEY, summary="Send many deliveries again",
    response={200: schemas.Replayed, **failures(404, 413, 415)}, openapi_extra=body_of(schemas.ReplayIn),
)  # fmt: skip
def replay_many(request: HttpRequest) -> dict[str, Any]:
    """Those of an endpoint that are over and fit, oldest first, at most ten thousand in a call."""
    asked = read_as(request, schemas.ReplayIn)
    if asked.kind is not None and asked.kind not in MessageKind.values:
        raise Problem("invalid_request", _("There is no such kind of message."), field="kind")
    fits = {"state": asked.state, "kind": asked.kind, "number__gte": asked.from_number, "number__lte": asked.to_number}
    rows = Delivery.objects.filter(
        endpoint=_endpoint(asked.endpoint), **{name: value for name, value in fits.items() if value is not None}
    )
    what = asked.model_dump_json(exclude_none=True)
    replayed = relay.replay(rows, up_to=LARGEST, what=what, person=key_of(request), clock=DATABASE_CLOCK)
    return {"replayed": replayed.number, "more": replayed.more}


def _turn(request: HttpRequest, name: str, verb: Callable[..., EndpointActed]) -> dict[str, Any]:
    because, found = read_as(request, schemas.Because), _endpoint(name)
    try:
        acted = verb(found.pk, person=key_of(request), reason=because.reason, clock=DATABASE_CLOCK)
    except CallerError as fault:
        raise Problem("invalid_request", str(fault), field=fault.field) from fault
    if acted.outcome == EndpointOutcome.RETIRED:
        raise _retired()
    return {"outcome": acted.outcome.value, "endpoint": _endpoint_out(acted.endpoint)}


def _retired() -> Problem:
    return Problem("not_possible", _("The endpoint is retired: nothing is sent to it any more."))


def _endpoint(name: str) -> Endpoint:
    found = Endpoint.objects.filter(name=name).first()
    if found is None:
        raise Problem("not_found", _("There is no such endpoint."))
    return found


def _endpoint_out(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "name": endpoint.name,
        "state": endpoint.state,
        "failing_since": endpoint.failing_since,
        "paused_until": endpoint.open_until,
        "last_delivered_at": endpoint.last_delivered_at,
    }


def _deliveries() -> Any:
    return Delivery.objects.select_related("endpoint", "message")


def _delivery_out(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": delivery.pk,
        "endpoint": delivery.endpoint.name,
        "type": delivery.kind,
        "message": str(delivery.message.key),
        "number": delivery.number,
        "state": delivery.state,
        "tries": delivery.tries,
        "last_outcome": delivery.last_outcome,
        "last_status": delivery.last_status,
        "created_at": delivery.created_at,
        "ended_at": delivery.ended_at,
    }
