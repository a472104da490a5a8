"""The list of jobs: three filters, the exact id of a ticket, pages by keyset."""

from datetime import datetime

from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from queue_core import where
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Job, Lane
from queue_core.states import JobState
from reviewboard.filters import CURSOR, JobsFilter
from reviewboard.paging import Order, Page, read_page
from reviewboard.shapes import Pager
from reviewboard.ticket_search import ticket_ids
from reviewboard.views.permits import needs
from reviewboard.where_text import layer_name

NEWEST_FIRST = Order("newest", ("-pk",))
PAGE_SIZE = 50
#: A list that takes longer says so, instead of standing in the way of claims.
TIME_LIMIT = "3s"


@require_safe
@needs("view_board")
def jobs(request: HttpRequest) -> HttpResponse:
    lanes = list(Lane.objects.all())
    layers = [layer for layer in where.Layer if layer != where.Layer.DELIVERY]
    chosen = JobsFilter.read(request.GET, lanes=[lane.name for lane in lanes], layers=layers)
    now = DATABASE_CLOCK.now()
    page = _read_in_time(chosen, lanes, request.GET.get(CURSOR, ""), now)
    context = {
        "nav": "jobs",
        "as_of": now,
        "filter": chosen,
        "lanes": lanes,
        "states": JobState.values,
        "layers": [(layer.value, layer_name(layer)) for layer in layers],
        "jobs": page.rows if page else [],
        "is_too_slow": page is None,
        "pager": _pager(chosen, page) if page else None,
    }
    return render(request, "jobs/jobs.html", context)


def _read_in_time(chosen: JobsFilter, lanes: list[Lane], cursor: str, now: datetime) -> Page[Job] | None:
    """None if the database did not answer in time: the page says that, and never shows a list that is not one."""
    try:
        with transaction.atomic(), connection.cursor() as statement:
            statement.execute("SELECT set_config('statement_timeout', %s, true)", [TIME_LIMIT])
            rows = _filtered(chosen, lanes, now).select_related("ticket", "lane")
            return read_page(rows, NEWEST_FIRST, cursor=cursor, filter_hash=chosen.hash, size=PAGE_SIZE)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != "57014":
            raise
        return None


def _filtered(chosen: JobsFilter, lanes: list[Lane], now: datetime) -> QuerySet[Job]:
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


def _pager(chosen: JobsFilter, page: Page[Job]) -> Pager:
    path = reverse("jobs")
    return Pager(
        previous_url=chosen.url(path, cursor=page.previous) if page.previous else "",
        next_url=chosen.url(path, cursor=page.next) if page.next else "",
        notice=_("That page belonged to another list. This is the first page.") if page.is_foreign else "",
    )
