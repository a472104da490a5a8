"""The audit: who did what, to what, why; filters, pages by keyset, and the same as a file."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from queue_core import audit as auditing
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import AuditEntry, Lane
from queue_core.spreadsheet import csv_lines
from reviewboard.audit_text import CODES, COLUMNS, act_row, as_record
from reviewboard.filters import CURSOR, AuditFilter
from reviewboard.models import Person
from reviewboard.paging import Order, Page, pager_of, read_in_time, read_page
from reviewboard.reader import day_bounds
from reviewboard.views.access import lanes_seen, seen
from reviewboard.views.permits import needs, person_of

NEWEST_FIRST = Order("newest", ("-pk",))
PAGE_SIZE = 50
RIGHT = "view_auditentry"
#: One read of an export; each in a transaction of its own, so that no export is the old snapshot that slows the claims.
CHUNK = 1_000
MOST_EXPORTED = 500_000
TYPES = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}


@require_safe
@needs(RIGHT)
def audit(request: HttpRequest) -> HttpResponse:
    lanes = list(lanes_seen(request, RIGHT))
    chosen = AuditFilter.read(request.GET, lanes=[lane.name for lane in lanes], acts=CODES)
    page = read_in_time(lambda: _page(request, chosen, lanes))
    names = {lane.pk: str(lane) for lane in lanes}
    context = {
        "nav": "audit",
        "as_of": DATABASE_CLOCK.now(),
        "filter": chosen,
        "lanes": lanes,
        "acts": sorted(CODES.items(), key=lambda act: str(act[1])),
        "rows": [act_row(entry, names) for entry in page.rows] if page else [],
        "is_too_slow": page is None,
        "pager": pager_of(page, lambda cursor: chosen.url(reverse("audit"), cursor=cursor)) if page else None,
        "head": auditing.head(),
        "exports": [(kind, chosen.url(reverse("audit_export", args=[kind]))) for kind in TYPES],
        "most_exported": MOST_EXPORTED,
    }
    return render(request, "audit/audit.html", context)


@require_safe
@needs(RIGHT)
def export(request: HttpRequest, kind: str) -> HttpResponse | StreamingHttpResponse:
    """The entries of a filter as a file, the newest first, at most MOST_EXPORTED. An audited act itself."""
    lanes = list(lanes_seen(request, RIGHT))
    chosen = AuditFilter.read(request.GET, lanes=[lane.name for lane in lanes], acts=CODES)
    if kind not in TYPES or not chosen.takes_all(request.GET):
        # No file with more in it than was asked for.
        raise Http404
    person = person_of(request)
    now = DATABASE_CLOCK.now()
    exported = {"as": kind, "filter": chosen.query()}
    auditing.record("audit.exported", now=now, actor=person, subject=person, after=exported)
    write = _as_csv if kind == "csv" else _as_ndjson
    answer = StreamingHttpResponse(write(_in_chunks(_filtered(request, chosen, lanes))), content_type=TYPES[kind])
    answer["Content-Disposition"] = f'attachment; filename="audit-{now:%Y-%m-%d-%H%M%S}.{kind}"'
    return answer


def _page(request: HttpRequest, chosen: AuditFilter, lanes: Iterable[Lane]) -> Page[AuditEntry]:
    rows = _filtered(request, chosen, lanes)
    return read_page(rows, NEWEST_FIRST, cursor=request.GET.get(CURSOR, ""), filter_hash=chosen.hash, size=PAGE_SIZE)


def _filtered(request: HttpRequest, chosen: AuditFilter, lanes: Iterable[Lane]) -> QuerySet[AuditEntry]:
    """Acts on the reader's lanes; those on no lane only for one who reads the audit of all."""
    found = seen(request, AuditEntry.objects.select_related("lane"), RIGHT)
    if chosen.is_impossible:
        return found.none()
    if chosen.lane:
        found = found.filter(lane__in=[lane for lane in lanes if lane.name == chosen.lane])
    if chosen.who == auditing.SYSTEM:
        found = found.filter(actor__isnull=True)
    elif chosen.who:
        found = found.filter(actor__in=Person.objects.filter(username=chosen.who))
    if chosen.act:
        found = found.filter(act=chosen.act)
    since, until = day_bounds(chosen.since, chosen.until)
    if since is not None:
        found = found.filter(at__gte=since)
    if until is not None:
        found = found.filter(at__lt=until)
    return found


def _in_chunks(found: QuerySet[AuditEntry]) -> Iterator[AuditEntry]:
    last: int | None = None
    for _chunk in range(MOST_EXPORTED // CHUNK):
        rows = list((found if last is None else found.filter(pk__lt=last)).order_by("-pk")[:CHUNK])
        yield from rows
        if len(rows) < CHUNK:
            return
        last = rows[-1].pk


def _as_csv(entries: Iterable[AuditEntry]) -> Iterator[str]:
    records = (as_record(entry) for entry in entries)
    yield from csv_lines(chain([COLUMNS], ([_flat(record[name]) for name in COLUMNS] for record in records)))


def _as_ndjson(entries: Iterable[AuditEntry]) -> Iterator[str]:
    for entry in entries:
        yield json.dumps(as_record(entry), ensure_ascii=False) + "\n"


def _flat(value: object) -> object:
    return json.dumps(value, ensure_ascii=False, sort_keys=True) if isinstance(value, dict) else value
