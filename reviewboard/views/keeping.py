"""A ticket's content: what is kept for an authority and until when, what was reported, and what was erased."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from queue_core.clock import DATABASE_CLOCK
from queue_core.contract.erase import Erased, EraseOutcome
from queue_core.errors import InvalidRequest
from queue_core.models import Evidence, EvidenceReport, PreservationHold, Ticket
from queue_core.people import keeping, restricting
from queue_core.people.eligibility import RESTRICTED
from queue_core.people.keeping import LiftOutcome
from queue_core.people.restricting import LiftRestrictionOutcome
from reviewboard.keeping_forms import EraseForm, LiftForm, PreserveForm, ReportForm
from reviewboard.shapes import Conflict
from reviewboard.views.access import may, not_there
from reviewboard.views.permits import needs, person_of

TEMPLATE = "keeping/keeping.html"
CONFLICT, UNPROCESSABLE = 409, 422
#: A ticket with more revisions than this shows its newest.
MOST_ROWS = 50
RIGHTS = (keeping.PRESERVE, keeping.ERASE, restricting.REPORT)
NOT_LIFTED = {
    LiftRestrictionOutcome.ALREADY: gettext_lazy("This content is not restricted any more. Nothing was changed."),
    LiftRestrictionOutcome.REPORTED: gettext_lazy(
        "This content was reported to an authority: it stays restricted. Nothing was changed."
    ),
}


@require_safe
@needs(*RIGHTS)
def page(request: HttpRequest, pk: int) -> HttpResponse:
    return _answer(request, _ticket(request, pk, *RIGHTS))


@require_POST
@needs(keeping.PRESERVE)
def preserve(request: HttpRequest, pk: int) -> HttpResponse:
    ticket, form = _ticket(request, pk, keeping.PRESERVE), PreserveForm(request.POST)
    if not form.is_valid():
        return _answer(request, ticket, status=UNPROCESSABLE, preserve_form=form)
    fields = {name: form.cleaned_data[name] for name in ("authority", "reference", "reason")}
    try:
        keeping.preserve(ticket.pk, person=person_of(request), until=form.end(), clock=DATABASE_CLOCK, **fields)
    except InvalidRequest as fault:
        _add_fault(form, fault)
        return _answer(request, ticket, status=UNPROCESSABLE, preserve_form=form)
    messages.success(request, _("The content is kept until then."))
    return redirect("keeping", ticket.pk)


@require_POST
@needs(keeping.PRESERVE)
def lift(request: HttpRequest, pk: int, hold: int) -> HttpResponse:
    ticket, form = _ticket(request, pk, keeping.PRESERVE), LiftForm(request.POST)
    if not PreservationHold.objects.filter(pk=hold, ticket=ticket).exists():
        raise Http404
    if not form.is_valid():
        return _answer(request, ticket, status=UNPROCESSABLE, lift_form=form, lifting=hold)
    lifted = keeping.lift(hold, person=person_of(request), reason=form.cleaned_data["reason"], clock=DATABASE_CLOCK)
    if lifted != LiftOutcome.LIFTED:
        what = _("This hold was lifted already, or its time is over. Nothing was changed.")
        return _answer(request, ticket, status=CONFLICT, conflict=Conflict(what=what))
    messages.success(request, _("The hold is lifted."))
    return redirect("keeping", ticket.pk)


@require_POST
@needs(RESTRICTED)
def lift_restriction(request: HttpRequest, pk: int, evidence: int) -> HttpResponse:
    ticket, form = _ticket(request, pk, RESTRICTED), LiftForm(request.POST)
    missing = [right for right in restricting.LIFTING if not may(request, right, ticket.lane_id)]
    if missing:
        raise not_there(request, ticket, missing[0], ticket.lane)
    if not Evidence.objects.filter(pk=evidence, ticket=ticket).exists():
        raise Http404
    if not form.is_valid():
        return _answer(request, ticket, status=UNPROCESSABLE, unrestrict_form=form, unrestricting=evidence)
    reason = form.cleaned_data["reason"]
    done = restricting.lift_restriction(evidence, person=person_of(request), reason=reason, clock=DATABASE_CLOCK)
    if done != LiftRestrictionOutcome.LIFTED:
        return _answer(request, ticket, status=CONFLICT, conflict=Conflict(what=NOT_LIFTED[done]))
    messages.success(request, _("The restriction is lifted: reviewers see this content, and models may get it."))
    return redirect("keeping", ticket.pk)


@require_POST
@needs(restricting.REPORT)
def report(request: HttpRequest, pk: int) -> HttpResponse:
    ticket = _ticket(request, pk, restricting.REPORT)
    form = ReportForm(request.POST, ticket=ticket)
    if not form.is_valid():
        return _answer(request, ticket, status=UNPROCESSABLE, report_form=form)
    fields = {name: form.cleaned_data[name] for name in ("authority", "reference", "reason")}
    restricting.report(form.cleaned_data["evidence"].pk, person=person_of(request), clock=DATABASE_CLOCK, **fields)
    messages.success(request, _("The report is on record."))
    return redirect("keeping", ticket.pk)


@require_POST
@needs(keeping.ERASE)
def erase(request: HttpRequest, pk: int) -> HttpResponse:
    ticket, form = _ticket(request, pk, keeping.ERASE), EraseForm(request.POST)
    if not form.is_valid():
        return _answer(request, ticket, status=UNPROCESSABLE, erase_form=form)
    try:
        erased = keeping.erase_content(
            ticket.pk, person=person_of(request), ground=form.cleaned_data["ground"], clock=DATABASE_CLOCK
        )
    except InvalidRequest as fault:
        _add_fault(form, fault)
        return _answer(request, ticket, status=UNPROCESSABLE, erase_form=form)
    if erased.outcome != EraseOutcome.ERASED:
        return _answer(request, ticket, status=CONFLICT, conflict=Conflict(what=not_erased(erased)))
    messages.success(request, _erased(erased))
    return redirect("keeping", ticket.pk)


def _erased(erased: Erased) -> str:
    if not erased.revisions:
        return _("The content was erased before. What was written about it since is erased now.")
    text = ngettext("%(number)d revision was erased.", "%(number)d revisions were erased.", erased.revisions)
    return text % {"number": erased.revisions}


def not_erased(erased: Erased) -> str:
    """Why nothing was erased. For whom it is kept is not said: whoever asked for the erasure may be the one."""
    if erased.until is not None:
        until = date_format(localtime(erased.until), "DATETIME_FORMAT")
        return _("The content is kept for a lawful reason until %(until)s. Nothing was erased.") % {"until": until}
    return _("Nothing of this ticket is left to erase.")


def _ticket(request: HttpRequest, pk: int, *any_of: str) -> Ticket:
    """A ticket on whose lane the reader has one of these permissions."""
    found = Ticket.objects.select_related("lane").filter(pk=pk).first()
    if found is None or not any(may(request, permission, found.lane_id) for permission in any_of):
        raise not_there(request, found, any_of[0], found.lane if found is not None else None)
    return found


def _answer(request: HttpRequest, ticket: Ticket, *, status: int = 200, **bound: Any) -> HttpResponse:
    now = DATABASE_CLOCK.now()
    holds = PreservationHold.objects.filter(ticket=ticket).select_related("placed_by", "lifted_by")
    reports = EvidenceReport.objects.filter(evidence__ticket=ticket).select_related("evidence", "reported_by")
    context: dict[str, Any] = {
        "nav": "jobs",
        "as_of": now,
        "ticket": ticket,
        "job": ticket.jobs.order_by("-pk").first(),
        "revisions": _revisions(ticket),
        "kept_until": keeping.kept_until(ticket, now=now),
        "holds": [(hold, hold.lifted_at is None and now < hold.until) for hold in holds.order_by("-pk")[:MOST_ROWS]],
        "reports": reports.order_by("-pk")[:MOST_ROWS],
        **_forms(request, ticket),
    }
    return render(request, TEMPLATE, context | bound, status=status)


def _revisions(ticket: Ticket) -> list[tuple[Evidence, bool]]:
    """The newest ones, each with whether its restriction could be lifted."""
    rows = Evidence.objects.filter(ticket=ticket).defer("body").order_by("-pk")[:MOST_ROWS]
    reported = set(EvidenceReport.objects.filter(evidence__ticket=ticket).values_list("evidence_id", flat=True))
    return [(row, row.is_restricted and row.pk not in reported) for row in rows]


def _forms(request: HttpRequest, ticket: Ticket) -> dict[str, forms.Form | None]:
    may_report = may(request, restricting.REPORT, ticket.lane_id)
    may_lift = all(may(request, right, ticket.lane_id) for right in restricting.LIFTING)
    has_restricted = Evidence.objects.filter(ticket=ticket, is_restricted=True).exists()
    return {
        "preserve_form": PreserveForm() if may(request, keeping.PRESERVE, ticket.lane_id) else None,
        "lift_form": LiftForm() if may(request, keeping.PRESERVE, ticket.lane_id) else None,
        "unrestrict_form": LiftForm() if may_lift else None,
        "report_form": ReportForm(ticket=ticket) if may_report and has_restricted else None,
        "erase_form": EraseForm() if may(request, keeping.ERASE, ticket.lane_id) else None,
    }


def _add_fault(form: forms.Form, fault: InvalidRequest) -> None:
    form.add_error(fault.field if fault.field in form.fields else None, str(fault))
