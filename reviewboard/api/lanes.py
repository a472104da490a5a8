"""The health of lanes, as the board says it: in codes and figures, for machines that watch."""

from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Router
from ninja.params.functions import Path, Query

from queue_core import figures, where
from queue_core.clock import DATABASE_CLOCK
from queue_core.last_look import model_answers
from queue_core.models import ApiKey, Lane
from queue_core.models.api_keys import KeyScope
from reviewboard.api import schemas
from reviewboard.api.described import failures
from reviewboard.api.keys import Key, key_of
from reviewboard.api.problems import Problem

router = Router(tags=["lanes"])
PAGE = 100


@router.get("", auth=Key(KeyScope.READ), summary="Health of lanes", response={200: schemas.LanePage, **failures()})
def lanes(
    request: HttpRequest,
    after: schemas.LaneName | None = Query(None),
    limit: int = Query(PAGE, ge=1, le=PAGE),
) -> dict[str, Any]:
    """The lanes of the key, by name."""
    found = list(_lanes_of(key_of(request)).filter(name__gt=after or "").order_by("name")[: limit + 1])
    shown = found[:limit]
    return {"lanes": _out(shown), "next": shown[-1].name if len(found) > limit else None}


@router.get(
    "/{name}", auth=Key(KeyScope.READ), summary="Health of a lane", response={200: schemas.LaneOut, **failures(404)}
)
def lane(request: HttpRequest, name: schemas.LaneName = Path(...)) -> dict[str, Any]:
    """One lane."""
    found = _lanes_of(key_of(request)).filter(name=name).first()
    if found is None:
        raise Problem("not_found", _("There is no such lane."))
    return _out([found])[0]


def _lanes_of(key: ApiKey) -> Any:
    own = Lane.objects.filter(pk__in=key.lanes) if key.lanes else Lane.objects.all()
    return where.lanes_to_read(own)


def _out(found: list[Lane]) -> list[dict[str, Any]]:
    return [_lane_out(one) for one in figures.board(found, now=DATABASE_CLOCK.now())]


def _lane_out(found: figures.LaneFigures) -> dict[str, Any]:
    lane, table, hold = found.lane, found.layers.value, found.facts.hold
    return {
        "name": lane.name,
        "title": lane.title,
        "state": figures.state_of(found).value,
        "hold": None
        if hold is None
        else {"reason": hold.reason, "automatic": hold.is_automatic, "since": hold.since, "until": hold.until},
        "stage": None if lane.run is None else {"number": lane.run.number, "name": lane.run.name, "cap": lane.cap},
        "model_answers": model_answers(lane.connection, found.now),
        "layers": None if table is None else {layer.value: table.count_of(layer) for layer in where.Layer},
        "oldest_ready_seconds": _seconds(table.oldest_ready if table else None),
        "oldest_held_seconds": _seconds(table.oldest_held if table else None),
    }


def _seconds(age: timedelta | None) -> float | None:
    return age.total_seconds() if age is not None else None
