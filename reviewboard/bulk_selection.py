"""Which jobs a bulk act was asked for: rows ticked in a list, or all that its filter finds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, QueryDict
from django.urls import reverse

from queue_core import people, where
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Item, Job, Lane
from reviewboard.bulk_offers import DESK, JOBS, KINDS
from reviewboard.filters import ItemsFilter, JobsFilter
from reviewboard.models import Person
from reviewboard.views.jobs import filtered

#: Rows of one page; no list shows as many.
MOST_TICKED = 500
#: Of those that the reader does not see, as only a form made by hand has them: so many go on record.
MOST_HIDDEN = 20
#: Of a filter: an id has at most 200 characters, each of which may be twelve in an address.
MOST_QUERY = 4_000


@dataclass(frozen=True, slots=True)
class Selected:
    """`what` is kept beside the act; `back` is the list that it was asked for from. `is_as_sent`: the filter has all
    that was sent of it. `hidden` were ticked on lanes that the reader does not see."""

    jobs: QuerySet[Job]
    what: dict[str, Any]
    back: str
    is_as_sent: bool = True
    is_empty: bool = False
    hidden: Sequence[Item | Job] = ()


def selected(request: HttpRequest) -> Selected:
    """What was sent: `from` a list, either `all` of a filter or the ticked rows."""
    source = request.POST.get("from", "")
    if source not in KINDS:
        raise Http404
    query = QueryDict(request.POST.get("filter", "")[:MOST_QUERY])
    lanes = list(people.on_lanes_of(Lane.objects.all(), _person(request), "view_board", field="pk"))
    found = _of_desk(query, lanes) if source == DESK else _of_jobs(query, lanes)
    if "all" in request.POST:
        return found if found.is_as_sent else replace(found, jobs=Job.objects.none())
    ids = _ids(request.POST.getlist("row"))
    rows = found.jobs.filter(pk__in=ids) if source == JOBS else found.jobs.filter(items__in=ids)
    hidden = _hidden(Item if source == DESK else Job, ids, lanes)
    return Selected(rows, found.what | {"ticked": len(ids)}, found.back, is_empty=not ids, hidden=hidden)


def _hidden(model: type[Item | Job], ids: Sequence[int], lanes: list[Lane]) -> Sequence[Item | Job]:
    rows = model._default_manager.select_related("lane").filter(pk__in=ids).exclude(lane__in=lanes)
    return list(rows.order_by("pk")[:MOST_HIDDEN])


def _of_desk(query: QueryDict, lanes: list[Lane]) -> Selected:
    chosen = ItemsFilter.read(query, lanes=[lane.name for lane in lanes])
    items = people.open_items([lane.pk for lane in lanes if chosen.lane in ("", lane.name)])
    if chosen.kind:
        items = items.filter(kind=chosen.kind)
        items = items.filter(cause=chosen.cause) if chosen.cause else items
    jobs = Job.objects.filter(pk__in=items.order_by().values("job_id"))
    return Selected(
        jobs, {"list": DESK, "filter": chosen.query()}, chosen.url(reverse("desk")), chosen.takes_all(query)
    )


def _of_jobs(query: QueryDict, lanes: list[Lane]) -> Selected:
    layers = [layer for layer in where.Layer if layer != where.Layer.DELIVERY]
    chosen = JobsFilter.read(query, lanes=[lane.name for lane in lanes], layers=layers)
    jobs = filtered(chosen, lanes, DATABASE_CLOCK.now())
    return Selected(
        jobs, {"list": JOBS, "filter": chosen.query()}, chosen.url(reverse("jobs")), chosen.takes_all(query)
    )


def _ids(sent: Sequence[str]) -> list[int]:
    """Each once, however often it was sent."""
    return list({int(one) for one in sent[:MOST_TICKED] if one.isascii() and one.isdecimal() and len(one) < 19})


def _person(request: HttpRequest) -> Person:
    if not isinstance(request.user, Person):
        raise Http404
    return request.user
