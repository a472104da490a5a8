"""The outages: a list, the page of one, and the act that closes it from a lane's page."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from queue_core import outage_record, ramp
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.models import Lane, Outage, OutageEntry
from queue_core.ramp import OutageOutcome
from reviewboard import outage_export, outage_page, outage_record_page
from reviewboard.filters import CURSOR, page_address
from reviewboard.lane_forms import CloseOutageForm
from reviewboard.outage_forms import HandOverForm, NoteForm
from reviewboard.outage_text import close_conflict, unsteady_text
from reviewboard.paging import Order, pager_of, read_page
from reviewboard.views.access import (
    lane_to_declare_steady,
    may_keep_outage,
    may_somewhere,
    outage_to_view,
    outages_seen,
)
from reviewboard.views.lane import answer_with_lane
from reviewboard.views.lane_acts import CONFLICT, UNPROCESSABLE, add_fault, done
from reviewboard.views.permits import needs, person_of

NEWEST_FIRST = Order("newest", ("-opened_at", "-pk"))
AS_IT_HAPPENED = Order("log", ("at", "pk"))
PAGE_SIZE = 50
LOG_SIZE = 200
#: A printed record has no pages to turn: its log stands on one, up to here.
MOST_WHOLE = 2_000
WHOLE = "whole"


@require_safe
@needs("view_board")
def outages(request: HttpRequest) -> HttpResponse:
    now = DATABASE_CLOCK.now()
    found = outages_seen(request).select_related("connection")
    page = read_page(found, NEWEST_FIRST, cursor=request.GET.get(CURSOR, ""), filter_hash="", size=PAGE_SIZE)
    context = {
        "nav": "outages",
        "as_of": now,
        "rows": outage_page.rows(page.rows, now=now),
        "may_open": may_somewhere(request, "manage_outage"),
        "pager": pager_of(page, page_address),
    }
    return render(request, "outages/outages.html", context)


@require_safe
@needs("view_board")
def outage(request: HttpRequest, pk: int) -> HttpResponse:
    return answer_with_outage(request, pk)


def answer_with_outage(
    request: HttpRequest, pk: int, *, status: int = 200, bound: Mapping[str, Any] | None = None
) -> HttpResponse:
    """The page of one outage, with the forms that `bound` gives in place of empty ones."""
    now = DATABASE_CLOCK.now()
    found = outage_to_view(request, pk)
    record = outage_record.record_of(found, now=now)
    entries = OutageEntry.objects.filter(outage=found).select_related("by", "lane")
    cursor = request.GET.get(CURSOR, "")
    is_whole = request.GET.get("log") == WHOLE
    size = MOST_WHOLE if is_whole else LOG_SIZE
    page = read_page(entries, AS_IT_HAPPENED, cursor="" if is_whole else cursor, filter_hash=str(found.pk), size=size)
    lanes = ramp.lanes_of([found.pk])[found.pk]
    context = {
        "nav": "outages",
        "as_of": now,
        "outage": found,
        "row": outage_page.row(found, lanes, now=now),
        "lanes": lanes,
        "record": outage_record_page.page_of(record, now=now),
        "log": outage_page.log(page.rows),
        "pager": None if is_whole else pager_of(page, page_address),
        "log_goes_on": bool(page.next or page.previous),
        "whole_log": WHOLE,
        "cut_at": MOST_WHOLE if is_whole and page.next else None,
        **(_what_is_left(lanes) if found.closed_at is None else {}),
        **(_forms(request, found, lanes) if may_keep_outage(request, found) else {}),
        **(bound or {}),
    }
    return render(request, "outages/outage.html", context, status=status)


@require_safe
@needs("view_board")
def outage_json(request: HttpRequest, pk: int) -> HttpResponse:
    found = outage_to_view(request, pk)
    record = outage_record.record_of(found, now=DATABASE_CLOCK.now())
    answer = JsonResponse(outage_export.as_json(record), json_dumps_params={"indent": 2, "ensure_ascii": False})
    answer.headers["Content-Disposition"] = f'attachment; filename="outage-{found.pk}.json"'
    return answer


@require_safe
@needs("view_board")
def outage_csv(request: HttpRequest, pk: int) -> HttpResponse:
    found = outage_to_view(request, pk)
    record = outage_record.record_of(found, now=DATABASE_CLOCK.now())
    answer = HttpResponse(outage_export.as_csv(record), content_type="text/csv; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="outage-{found.pk}.csv"'
    return answer


def _forms(request: HttpRequest, found: Outage, lanes: Sequence[Lane]) -> dict[str, Any]:
    """A note may be added at any time, the rest while it is open."""
    forms: dict[str, Any] = {"note_form": NoteForm()}
    if found.closed_at is None:
        forms["hand_over_form"] = HandOverForm(outage=found, person=person_of(request))
        if all(ramp.is_steady(lane) for lane in lanes):
            forms["close_form"] = CloseOutageForm(outage=found)
    return forms


def _what_is_left(lanes: Sequence[Lane]) -> dict[str, Any]:
    missing = [unsteady_text(lane) for lane in lanes if not ramp.is_steady(lane)]
    return {"missing": missing, "can_be_closed": not missing}


@require_POST
@needs("manage_outage")
def close_outage(request: HttpRequest, name: str) -> HttpResponse:
    lane = lane_to_declare_steady(request, name)
    found = _outage_of(lane, request.POST.get("outage-outage", ""))
    form = CloseOutageForm(request.POST, outage=found)
    if not form.is_valid():
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={"outage_form": form})
    reason = form.cleaned_data["reason"]
    try:
        acted = ramp.close_outage(found.pk, person=person_of(request), reason=reason, clock=DATABASE_CLOCK)
    except InvalidRequest as fault:
        add_fault(form, fault)
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={"outage_form": form})
    if acted.outcome != OutageOutcome.CLOSED:
        bound = {"typed": reason}
        return answer_with_lane(request, name, status=CONFLICT, conflict=close_conflict(acted), bound=bound)
    return done(request, name, _("The outage is closed: the lanes run steadily."))


def _outage_of(lane: Lane, sent: str) -> Outage:
    """The outage that was shown, open or closed meanwhile. Another connection's is none of this lane's."""
    try:
        return Outage.objects.get(pk=int(sent), connection=lane.connection_id)
    except (ValueError, OverflowError, Outage.DoesNotExist) as error:
        raise Http404 from error
