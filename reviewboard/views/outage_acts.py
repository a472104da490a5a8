"""What a lead does with the record of an outage: open one by hand, write into it, hand it over, close it."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from queue_core import ramp
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.models import Outage
from queue_core.ramp import OutageActed, OutageOutcome
from reviewboard.lane_forms import CloseOutageForm
from reviewboard.outage_forms import HandOverForm, NoteForm, OpenOutageForm
from reviewboard.outage_text import act_conflict
from reviewboard.views.access import outage_to_keep
from reviewboard.views.lane_acts import CONFLICT, UNPROCESSABLE, add_fault
from reviewboard.views.outages import answer_with_outage
from reviewboard.views.permits import needs, person_of


@require_http_methods(["GET", "HEAD", "POST"])
@needs("manage_outage")
def open_outage(request: HttpRequest) -> HttpResponse:
    form = OpenOutageForm(request.POST or None, person=person_of(request))
    conflict, status = None, UNPROCESSABLE if form.is_bound else 200
    if form.is_valid():
        fields = form.cleaned_data
        try:
            acted = ramp.open_outage(
                fields["connection"].pk,
                person=person_of(request),
                cause=fields["cause"],
                reason=fields["reason"],
                clock=DATABASE_CLOCK,
            )
        except InvalidRequest as fault:
            add_fault(form, fault)
        else:
            if acted.outcome == OutageOutcome.OPENED:
                messages.success(request, _("The outage is open. It holds no lane: that is an act of its own."))
                return redirect("outage", acted.outage.pk)
            conflict, status = act_conflict(acted), CONFLICT
    return render(request, "outages/open.html", {"nav": "outages", "form": form, "conflict": conflict}, status=status)


@require_POST
@needs("manage_outage")
def write_note(request: HttpRequest, pk: int) -> HttpResponse:
    outage = outage_to_keep(request, pk)
    form = NoteForm(request.POST)

    def act() -> OutageActed:
        return ramp.write_note(
            outage.pk, person=person_of(request), text=form.cleaned_data["text"], clock=DATABASE_CLOCK
        )

    return _acted(request, outage, {"note_form": form}, act, _("The note is in the log."))


@require_POST
@needs("manage_outage")
def hand_over(request: HttpRequest, pk: int) -> HttpResponse:
    outage = outage_to_keep(request, pk)
    form = HandOverForm(request.POST, outage=outage, person=person_of(request))

    def act() -> OutageActed:
        fields = form.cleaned_data
        return ramp.hand_over(
            outage.pk,
            to=fields["to"],
            shown=fields["shown"],
            note=fields["note"],
            person=person_of(request),
            clock=DATABASE_CLOCK,
        )

    return _acted(request, outage, {"hand_over_form": form}, act, _("The outage is handed over."))


@require_POST
@needs("manage_outage")
def close_here(request: HttpRequest, pk: int) -> HttpResponse:
    """Close it from its own page; a lane's page has the same act."""
    outage = outage_to_keep(request, pk)
    form = CloseOutageForm(request.POST, outage=outage)

    def act() -> OutageActed:
        return ramp.close_outage(
            outage.pk, person=person_of(request), reason=form.cleaned_data["reason"], clock=DATABASE_CLOCK
        )

    return _acted(request, outage, {"close_form": form}, act, _("The outage is closed: the lanes run steadily."))


def _acted(
    request: HttpRequest, outage: Outage, bound: dict[str, forms.Form], act: Callable[[], OutageActed], said: str
) -> HttpResponse:
    [form] = bound.values()
    if not form.is_valid():
        return answer_with_outage(request, outage.pk, status=UNPROCESSABLE, bound=bound)
    try:
        acted = act()
    except InvalidRequest as fault:
        add_fault(form, fault)
        return answer_with_outage(request, outage.pk, status=UNPROCESSABLE, bound=bound)
    if acted.outcome not in (OutageOutcome.NOTED, OutageOutcome.HANDED_OVER, OutageOutcome.CLOSED):
        told: dict[str, Any] = {**bound, "conflict": act_conflict(acted)}
        return answer_with_outage(request, outage.pk, status=CONFLICT, bound=told)
    messages.success(request, said)
    return redirect("outage", outage.pk)
