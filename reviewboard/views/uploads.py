"""Imports: files of tickets that people upload, and the page of each."""

from datetime import timedelta

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods, require_safe

from queue_core import imports as importing
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.imports import RIGHT, NewFile, Preview
from queue_core.imports.uploading import MIB, MOST_BYTES, MOST_OPEN
from queue_core.imports.working import LEFT_OUT, MOST_REFUSALS
from queue_core.models import ImportRun, Presence
from queue_core.states import ENDED_IMPORTS, ImportState
from queue_core.ticket_csv import MAX_COLUMNS
from queue_core.ticket_file import MAX_EVIDENCE, MAX_LINE
from queue_core.ticket_formats import FileKind
from reviewboard.filters import CURSOR, page_address
from reviewboard.live import LiveVersion, page_or_partial, wants_partial
from reviewboard.paging import Order, pager_of, read_page
from reviewboard.shapes import Conflict
from reviewboard.upload_forms import DelimiterForm, SettingsForm, UploadForm
from reviewboard.upload_text import TONES, counts_of, row_of, standing_text
from reviewboard.views.permits import needs, person_of

NEWEST_FIRST = Order("newest", ("-pk",))
BY_LINE = Order("line", ("line",))
PAGE_SIZE = 50
TOO_LARGE, UNPROCESSABLE = 413, 422
#: Of a form beside its file.
MOST_AROUND = 64 * 1024
SEEN_WITHIN = timedelta(seconds=60)


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
@needs(RIGHT)
def imports(request: HttpRequest) -> HttpResponseBase:
    """The list, and the upload. The token is checked inside: looking for it in the form reads the whole file."""
    if request.method != "POST":
        return _list(request, UploadForm())
    announced = request.META.get("CONTENT_LENGTH") or ""
    if announced.isdecimal() and int(announced) > MOST_BYTES + MOST_AROUND:
        return _list(request, UploadForm(), status=TOO_LARGE, is_too_large=True)
    answer: HttpResponse = _upload(request)
    return answer


@csrf_protect
def _upload(request: HttpRequest) -> HttpResponse:
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _list(request, form, status=UNPROCESSABLE)
    data = form.cleaned_data
    kind = FileKind(data["kind"]) if data["kind"] else None
    new = NewFile(data["file"].name, data["source"], data["encoding"] or None, kind)
    try:
        run = importing.upload(data["file"].file, new, person=person_of(request), clock=DATABASE_CLOCK)
    except InvalidRequest as fault:
        form.add_error(fault.field if fault.field in form.fields else None, str(fault))
        return _list(request, form, status=UNPROCESSABLE)
    return redirect("import", run.pk)


def _list(request: HttpRequest, form: UploadForm, *, status: int = 200, is_too_large: bool = False) -> HttpResponse:
    runs = importing.visible_to(person_of(request)).select_related("by", "lane")
    cursor = request.GET.get(CURSOR, "")
    page = read_page(runs, NEWEST_FIRST, cursor=cursor, filter_hash="", size=PAGE_SIZE)
    context = {
        "nav": "imports",
        "as_of": DATABASE_CLOCK.now(),
        "form": form,
        "is_too_large": is_too_large,
        "rows": [row_of(run) for run in page.rows],
        "pager": pager_of(page, page_address),
        **limits(),
    }
    return render(request, "uploads/uploads.html", context, status=status)


def limits() -> dict[str, int]:
    """The limits of a file, for whoever chooses one."""
    return {
        "most_mib": MOST_BYTES // MIB,
        "most_open": MOST_OPEN,
        "most_line_kib": MAX_LINE // 1024,
        "most_evidence_kib": MAX_EVIDENCE // 1024,
        "most_columns": MAX_COLUMNS,
        "kept_days": importing.KEPT_FOR.days,
        "left_hours": importing.LEFT_ALONE // timedelta(hours=1),
    }


@require_safe
@needs(RIGHT)
def run(request: HttpRequest, pk: int) -> HttpResponse:
    return answer_with_run(request, run_to_see(request, pk))


def run_to_see(request: HttpRequest, pk: int) -> ImportRun:
    runs = importing.visible_to(person_of(request)).select_related("by", "lane")
    found = runs.filter(pk=pk).first()
    if found is None:
        raise Http404
    return found


def answer_with_run(
    request: HttpRequest,
    run: ImportRun,
    *,
    status: int = 200,
    conflict: Conflict | None = None,
    form: SettingsForm | None = None,
) -> HttpResponse:
    now = DATABASE_CLOCK.now()
    workers = Presence.objects.filter(kind=Presence.Kind.WORKER, seen_at__gt=now - SEEN_WITHIN).count()
    standing = standing_text(run, workers=workers)
    version = LiveVersion.of(now, run.state, run.counts, run.place, standing)
    refusals = read_page(
        run.refusals.defer("raw"), BY_LINE, cursor=request.GET.get(CURSOR, ""), filter_hash=str(run.pk), size=PAGE_SIZE
    )
    context = {
        "nav": "imports",
        "run": run,
        "tone": TONES[ImportState(run.state)],
        "has_ended": run.state in ENDED_IMPORTS,
        "is_part": wants_partial(request),
        "standing": standing,
        "counts": counts_of(run),
        "refusals": refusals.rows,
        "most_refusals": MOST_REFUSALS,
        "are_more_refused": sum(run.counts.get(name, 0) for name in LEFT_OUT) > MOST_REFUSALS,
        "pager": pager_of(refusals, page_address),
        "conflict": conflict,
        **limits(),
        **(_settings(request, run, form) if run.state == ImportState.UPLOADED else {}),
    }
    return page_or_partial(request, "uploads/run.html", "live", context, version=version, status=status)


def _settings(request: HttpRequest, run: ImportRun, form: SettingsForm | None) -> dict[str, object]:
    """The first rows and the form, for whoever uploaded the file and nobody else."""
    if run.by_id != person_of(request).pk:
        return {"is_anothers": True}
    chosen = DelimiterForm(request.GET)
    if chosen.is_valid() and "delimiter" in request.GET:
        run.delimiter = chosen.cleaned_data["delimiter"]
    try:
        shown = importing.preview(run)
    except ConfigurationFault as fault:
        return {"header_fault": str(fault), "delimiter_form": DelimiterForm(initial={"delimiter": run.delimiter})}
    return {
        "preview": shown,
        "form": form or settings_form(request, run, shown),
        "delimiter_form": DelimiterForm(initial={"delimiter": shown.header.delimiter}) if shown.header else None,
    }


def settings_form(request: HttpRequest, run: ImportRun, shown: Preview) -> SettingsForm:
    data = request.POST if request.method == "POST" else None
    return SettingsForm(data, person=person_of(request), run=run, header=shown.header)


@require_safe
@needs(RIGHT)
def refused(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """The refused lines as a file that can be mended and sent again."""
    try:
        run = importing.take_report(pk, person=person_of(request), clock=DATABASE_CLOCK)
        format_ = importing.format_of(run)
    except (ImportRun.DoesNotExist, ConfigurationFault) as error:
        raise Http404 from error
    kind = "text/csv" if run.kind == FileKind.CSV else "application/x-ndjson"
    response = StreamingHttpResponse(importing.report(run, format_), content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="refused-{run.pk}.{run.kind}"'
    return response
