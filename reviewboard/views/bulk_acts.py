"""What is done on bulk acts: preview, confirm, throw away, second, stop."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from queue_core import bulk
from queue_core.bulk import ConfirmOutcome, Previewed, SecondOutcome
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.states import BulkKind
from reviewboard import bulk_text
from reviewboard.bulk_forms import form_of
from reviewboard.bulk_offers import KINDS
from reviewboard.bulk_selection import Selected, selected
from reviewboard.paging import read_in_time
from reviewboard.views.access import note_denied
from reviewboard.views.bulk import RIGHTS, act_to_view, answer_with_act
from reviewboard.views.permits import needs, person_of

CONFLICT, UNPROCESSABLE = 409, 422


@require_POST
@needs(*RIGHTS)
def preview(request: HttpRequest) -> HttpResponse:
    """Write down what would be touched, and show it."""
    kind, chosen = request.POST.get("kind", ""), selected(request)
    if kind not in KINDS[request.POST["from"]]:
        raise Http404
    for row in chosen.hidden:
        note_denied(request, row, bulk.RIGHTS[BulkKind(kind)][0], row.lane)
    if chosen.is_empty:
        messages.warning(request, _("Tick the rows first, or choose all of this filter."))
        return redirect(chosen.back)
    try:
        found = read_in_time(lambda: _previewed(request, BulkKind(kind), chosen))
    except InvalidRequest as mistake:
        messages.warning(request, str(mistake))
        return redirect(chosen.back)
    if found is None:
        messages.warning(request, _("This could not be counted in time. Choose fewer, by a lane or a state."))
        return redirect(chosen.back)
    if found.act is None:
        lines = bulk_text.left_out_lines(found.left_out) or [_("Nothing of this can be handled so.")]
        for line in lines:
            messages.warning(request, str(line))
        return redirect(chosen.back)
    return redirect("bulk_act", found.act.pk)


def _previewed(request: HttpRequest, kind: BulkKind, chosen: Selected) -> Previewed:
    return bulk.preview(
        kind,
        chosen.jobs,
        selection=chosen.what | {"back": chosen.back},
        person=person_of(request),
        clock=DATABASE_CLOCK,
    )


@require_POST
@needs(*RIGHTS)
def confirm(request: HttpRequest, pk: int) -> HttpResponse:
    act, person = act_to_view(request, pk), person_of(request)
    form = form_of(act, person, request.POST)
    if not form.is_valid():
        return _again(request, pk, form)
    try:
        done = bulk.confirm(
            pk, terms=form.terms(), reason=form.cleaned_data["reason"], person=person, clock=DATABASE_CLOCK
        )
    except InvalidRequest as mistake:
        form.add_error(mistake.field if mistake.field in form.fields else None, str(mistake))
        return _again(request, pk, form)
    if done.outcome == ConfirmOutcome.MISSING:
        raise Http404
    if done.outcome == ConfirmOutcome.TOO_OLD:
        text = _("This was counted too long ago. Go back to the list and count it anew; nothing was changed.")
        form.add_error(None, text)
        return _again(request, pk, form, status=CONFLICT)
    return redirect("bulk_act", pk)


def _again(request: HttpRequest, pk: int, form: object, *, status: int = UNPROCESSABLE) -> HttpResponse:
    """The preview with what was typed; the act itself where somebody's second tab confirmed it meanwhile."""
    act = act_to_view(request, pk)
    return answer_with_act(request, act, status=status, more={"form": form} if act.confirmed_at is None else None)


@require_POST
@needs(*RIGHTS)
def discard(request: HttpRequest, pk: int) -> HttpResponse:
    act = act_to_view(request, pk)
    if bulk.discard(pk, person=person_of(request)):
        messages.success(request, _("Nothing was changed."))
    return redirect(act.selection.get("back") or "desk")


@require_POST
@needs(*RIGHTS)
def second(request: HttpRequest, pk: int) -> HttpResponse:
    act_to_view(request, pk)
    done = bulk.second(pk, person=person_of(request), clock=DATABASE_CLOCK)
    if done.outcome == SecondOutcome.MISSING:
        raise Http404
    if done.outcome != SecondOutcome.SECONDED:
        messages.warning(request, bulk_text.not_seconded(done.outcome))
    return redirect("bulk_act", pk)


@require_POST
@needs(*RIGHTS)
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    act_to_view(request, pk)
    if not bulk.stop(pk, person=person_of(request), clock=DATABASE_CLOCK):
        messages.warning(request, _("It was over before you stopped it."))
    return redirect("bulk_act", pk)
