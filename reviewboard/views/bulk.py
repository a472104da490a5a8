"""Bulk acts: the list of them, one with what became of each job, and the same as a file."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from queue_core import bulk, people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import BulkAct, BulkEntry
from queue_core.spreadsheet import csv_lines
from queue_core.states import BulkKind
from reviewboard.bulk_page import act_line, live_facts, preview_facts
from reviewboard.bulk_text import PENDING
from reviewboard.filters import CURSOR, BulkFilter, page_address
from reviewboard.live import LiveVersion, page_or_partial, wants_partial
from reviewboard.models import Person
from reviewboard.paging import Order, pager_of, read_in_time, read_page
from reviewboard.views.permits import needs, person_of

RIGHTS = ("requeue_item", "pull_job", "move_deadlines", "decide_item")
NEWEST_FIRST = Order("newest", ("-pk",))
BY_PLACE = Order("place", ("place",))
ACTS_A_PAGE, ENTRIES_A_PAGE = 20, 50
#: One read of the file; each a statement of its own, so that no download is the old snapshot that slows the claims.
CHUNK = 1_000
COLUMNS = ("place", "source", "ticket", "job", "item", "severity", "outcome", "fault", "at")


@require_safe
@needs(*RIGHTS)
def acts(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    cursor = request.GET.get(CURSOR, "")
    rows = _seen(person).select_related("by")
    page = read_in_time(lambda: read_page(rows, NEWEST_FIRST, cursor=cursor, filter_hash="", size=ACTS_A_PAGE))
    now = DATABASE_CLOCK.now()
    context = {
        "nav": "desk",
        "as_of": now,
        "acts": [act_line(one, now=now) for one in page.rows] if page else [],
        "is_too_slow": page is None,
        "pager": pager_of(page, page_address) if page else None,
    }
    return render(request, "bulk/acts.html", context)


@require_safe
@needs(*RIGHTS)
def act(request: HttpRequest, pk: int) -> HttpResponse:
    return answer_with_act(request, act_to_view(request, pk))


def act_to_view(request: HttpRequest, pk: int) -> BulkAct:
    """An act that the reader might have made, or a preview of their own."""
    found = _seen(person_of(request)).select_related("by", "seconded_by", "stopped_by", "reason_code").filter(pk=pk)
    one = found.first()
    if one is None:
        raise Http404
    return one


def answer_with_act(
    request: HttpRequest, act: BulkAct, *, status: int = 200, more: dict[str, Any] | None = None
) -> HttpResponse:
    """The preview with its form; once confirmed, how far the act is."""
    person, now = person_of(request), DATABASE_CLOCK.now()
    found = bulk.progress(act)
    context: dict[str, Any] = {"nav": "desk", "act": act, "kind": BulkKind(act.kind).label, "total": found.total}
    if act.confirmed_at is None:
        context |= {"as_of": now, **preview_facts(act, found, person, now=now)}
        return render(request, "bulk/preview.html", context | (more or {}), status=status)
    context |= live_facts(act, found, now=now)
    version = LiveVersion.of(now, found, context["state"].word, act.begun_at, act.ended_at)
    if not wants_partial(request):
        context |= _entries_page(request, act, person)
    return page_or_partial(request, "bulk/act.html", "live", context | (more or {}), version=version, status=status)


def _seen(person: Person) -> QuerySet[BulkAct]:
    """Their own, and those under way or over that they might have made on one of its lanes."""
    found = Q(by=person)
    for kind in BulkKind:
        lanes = bulk.lanes_where_may_make(person, kind)
        there = Q() if lanes is None else Q(pk=None)
        for lane in lanes or ():
            there |= Q(selection__lanes__contains=[lane])
        found |= Q(there, confirmed_at__isnull=False, kind=kind)
    return BulkAct.objects.filter(found)


def _entries(act: BulkAct, person: Person, chosen: BulkFilter) -> QuerySet[BulkEntry]:
    """Those on lanes that the reader may see."""
    rows = people.on_lanes_of(act.entries.all(), person, "view_board", field="job__lane_id")
    if chosen.outcome == PENDING:
        return rows.filter(outcome__isnull=True)
    return rows.filter(outcome=chosen.outcome) if chosen.outcome else rows


def _entries_page(request: HttpRequest, act: BulkAct, person: Person) -> dict[str, Any]:
    chosen = BulkFilter.read(request.GET)
    rows = _entries(act, person, chosen).select_related("job__ticket", "job__lane")
    page = read_page(
        rows, BY_PLACE, cursor=request.GET.get(CURSOR, ""), filter_hash=f"{act.pk} {chosen.hash}", size=ENTRIES_A_PAGE
    )
    address = reverse("bulk_act", args=[act.pk])
    return {
        "filter": chosen,
        "entries": page.rows,
        "pager": pager_of(page, lambda cursor: chosen.url(address, cursor=cursor)),
        "may_stop": act.ended_at is None and act.stopped_at is None and bulk.may_stop(act, person),
        "may_second": act.kind == BulkKind.REJECT
        and act.seconded_at is None
        and act.by_id != person.pk
        and bulk.may_make(person, BulkKind.REJECT),
        "csv_url": reverse("bulk_entries", args=[act.pk]),
    }


@require_safe
@needs(*RIGHTS)
def entries_csv(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    act, person = act_to_view(request, pk), person_of(request)
    rows = _entries(act, person, BulkFilter())
    answer = StreamingHttpResponse(csv_lines(_in_chunks(rows)), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="bulk-act-{act.pk}.csv"'
    return answer


def _in_chunks(rows: QuerySet[BulkEntry]) -> Iterator[Sequence[Any]]:
    yield COLUMNS
    last = -1
    fields = rows.order_by("place").values_list(
        "place",
        "job__ticket__source",
        "job__ticket__external_id",
        "job_id",
        "item_id",
        "severity",
        "outcome",
        "fault",
        "at",
    )
    while chunk := list(fields.filter(place__gt=last)[:CHUNK]):
        for row in chunk:
            yield [_flat(value) for value in row]
        last = chunk[-1][0]


def _flat(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
