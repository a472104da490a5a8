"""The list of jobs: three filters, the exact id of a ticket, pages by keyset."""

from datetime import datetime

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from queue_core import where
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Job, Lane
from queue_core.states import JobState
from reviewboard.bulk_offers import JOBS, offered
from reviewboard.filters import CURSOR, JobsFilter
from reviewboard.paging import Order, Page, pager_of, read_in_time, read_page
from reviewboard.ticket_search import ticket_ids
from reviewboard.views.access import lanes_seen, seen
from reviewboard.views.permits import needs, person_of
from reviewboard.where_text import layer_name

NEWEST_FIRST = Order("newest", ("-pk",))
PAGE_SIZE = 50


@require_safe
@needs("view_board")
def jobs(request: HttpRequest) -> HttpResponse:
    lanes = list(lanes_seen(request))
    layers = [layer for layer in where.Layer if layer != where.Layer.DELIVERY]
    chosen = JobsFilter.read(request.GET, lanes=[lane.name for lane in lanes], layers=layers)
    now = DATABASE_CLOCK.now()
    page = read_in_time(lambda: _page(request, chosen, lanes, now))
    context = {
        "nav": "jobs",
        "as_of": now,
        "filter": chosen,
        "lanes": lanes,
        "states": JobState.values,
        "layers": [(layer.value, layer_name(layer)) for layer in layers],
        "jobs": page.rows if page else [],
        "is_too_slow": page is None,
        "bulk_kinds": offered(person_of(request), JOBS),
        "pager": pager_of(page, lambda cursor: chosen.url(reverse("jobs"), cursor=cursor)) if page else None,
    }
    return render(request, "jobs/jobs.html", context)


def _page(request: HttpRequest, chosen: JobsFilter, lanes: list[Lane], now: datetime) -> Page[Job]:
    cursor = request.GET.get(CURSOR, "")
    rows = seen(request, filtered(chosen, lanes, now)).select_related("ticket", "lane")
    return read_page(rows, NEWEST_FIRST, cursor=cursor, filter_hash=chosen.hash, size=PAGE_SIZE)


def filtered(chosen: JobsFilter, lanes: list[Lane], now: datetime) -> QuerySet[Job]:
    jobs = Job.objects.all()
    if chosen.is_impossible:
        return jobs.none()
    lane_ids = [lane.pk for lane in lanes if lane.name == chosen.lane] if chosen.lane else None
    if lane_ids is not None:
        jobs = jobs.filter(lane_id__in=lane_ids)
    if chosen.state:
        jobs = jobs.filter(state=chosen.state)
    if chosen.ticket:
        jobs = jobs.filter(ticket_id__in=ticket_ids(chosen.ticket))
    if chosen.layer:
        jobs = where.in_layer(jobs, where.Layer(chosen.layer), now=now, lane_ids=lane_ids)
    return jobs
