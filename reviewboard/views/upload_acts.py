"""What people do with an uploaded file: one address an act. The verbs judge, under the run's lock."""

from collections.abc import Callable

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from queue_core import imports as importing
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.imports import RIGHT, Acted, ActedOn
from queue_core.models import ImportRun
from queue_core.states import ImportState
from reviewboard.shapes import Conflict
from reviewboard.views.permits import needs, person_of
from reviewboard.views.uploads import answer_with_run, run_to_see, settings_form

CONFLICT, UNPROCESSABLE = 409, 422


@require_POST
@needs(RIGHT)
def settle(request: HttpRequest, pk: int) -> HttpResponse:
    """How the file is to be read; then it is tried dry."""
    run = run_to_see(request, pk)
    if run.by_id != person_of(request).pk:
        raise Http404
    if run.state != ImportState.UPLOADED:
        return _not_now(request, run)
    run.delimiter = request.POST.get("delimiter", "")[:1]
    try:
        form = settings_form(request, run, importing.preview(run))
        if form.is_valid():
            acted = importing.settle(pk, form.settings(), person=person_of(request), clock=DATABASE_CLOCK)
            return redirect("import", pk) if acted.outcome == Acted.DONE else _not_now(request, acted.run)
    except InvalidRequest as fault:
        form.add_error(fault.field if fault.field in form.fields else None, str(fault))
    except ConfigurationFault:
        # The header cannot be read by that delimiter; the page says why.
        form = None
    return answer_with_run(request, run, status=UNPROCESSABLE, form=form)


@require_POST
@needs(RIGHT)
def begin(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, lambda: importing.begin(pk, person=person_of(request), clock=DATABASE_CLOCK))


@require_POST
@needs(RIGHT)
def change(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, lambda: importing.change(pk, person=person_of(request), clock=DATABASE_CLOCK))


@require_POST
@needs(RIGHT)
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    text = _("The import is stopped. What went in stays in.")
    return _act(request, pk, lambda: importing.stop(pk, person=person_of(request), clock=DATABASE_CLOCK), text)


@require_POST
@needs(RIGHT)
def discard(request: HttpRequest, pk: int) -> HttpResponse:
    text = _("The file is discarded. Nothing of it went in.")
    return _act(request, pk, lambda: importing.discard(pk, person=person_of(request), clock=DATABASE_CLOCK), text)


def _act(request: HttpRequest, pk: int, verb: Callable[[], ActedOn], text: str = "") -> HttpResponse:
    try:
        acted = verb()
    except ImportRun.DoesNotExist as error:
        raise Http404 from error
    if acted.outcome != Acted.DONE:
        return _not_now(request, run_to_see(request, pk))
    if text:
        messages.success(request, text)
    return redirect("import", pk)


def _not_now(request: HttpRequest, run: ImportRun) -> HttpResponse:
    what = _("The import went on meanwhile. This is how it stands.")
    now_is = [(_("State"), run.get_state_display())]
    return answer_with_run(request, run, status=CONFLICT, conflict=Conflict(what=what, now_is=now_is))
