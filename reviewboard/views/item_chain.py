"""What follows a decision: its maker takes it back, a lead corrects it, an appeal against it comes in."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Decision, Job
from queue_core.people import AppealOutcome, CorrectOutcome, TakeBackOutcome
from reviewboard.models import Person
from reviewboard.views.access import decision_to_correct, job_to_appeal
from reviewboard.views.desk import hands_full
from reviewboard.views.permits import needs, person_of

NOT_TAKEN_BACK = {
    TakeBackOutcome.TOO_LATE: gettext_lazy("Too late: the decision is on its way. A lead can correct it."),
    TakeBackOutcome.NOT_IN_FORCE: gettext_lazy(
        "Not taken back: something followed the decision, or its content is gone."
    ),
}
NOT_CORRECTED = {
    CorrectOutcome.NOT_IN_FORCE: gettext_lazy("This decision is not in force any more: another one replaced it."),
    CorrectOutcome.NOT_CURRENT: gettext_lazy("A newer revision replaced this content, or it was withdrawn."),
    CorrectOutcome.BUSY: gettext_lazy("People look at this decision already. This is their item."),
}
APPEALED = {
    AppealOutcome.OPENED: gettext_lazy("The appeal is entered. Somebody who had no part in the decision looks at it."),
    AppealOutcome.KNOWN: gettext_lazy("There is an appeal against this decision already; nothing was added."),
    AppealOutcome.FINAL: gettext_lazy("This was decided on an appeal: there is no second one."),
    AppealOutcome.NOTHING_DECIDED: gettext_lazy("There is no decision in force to appeal against."),
    AppealOutcome.NOT_CURRENT: gettext_lazy("A newer revision replaced this content, or it was withdrawn."),
}


class AppealForm(forms.Form):
    statement = forms.CharField(
        label=gettext_lazy("What the appeal says"),
        max_length=people.MOST_STATEMENT,
        widget=forms.Textarea(attrs={"rows": 3}),
    )


def chain_acts(job: Job, decisions: Sequence[Decision], person: Person, *, is_worked_on: bool) -> dict[str, Any] | None:
    """What this person may do about the decision in force; None where there is none, or nothing that they may do.

    `is_worked_on`: people have an open item of the job, so that no lead opens another; an appeal would take its place.
    """
    head = decisions[-1] if decisions else None
    is_current = job.ticket.current_revision == job.revision and job.ticket.withdrawn_at is None
    if head is None or head.verdict is None or head.job_id != job.pk or not is_current:
        return None
    may_appeal = people.may(person, "appeal_decision", job.lane_id) and people.may_be_appealed(head)
    may_correct = not is_worked_on and people.may_correct(head, person)
    if not may_appeal and not may_correct:
        return None
    return {"correct": head.pk if may_correct else None, "appeal_form": AppealForm() if may_appeal else None}


@require_POST
@needs("decide_item")
def take_back(request: HttpRequest, pk: int) -> HttpResponse:
    taken = people.take_back(pk, person=person_of(request), clock=DATABASE_CLOCK)
    if taken.token is not None:
        messages.success(request, _("Taken back: nobody was told. The item is yours again."))
        return redirect("item", pk=taken.token.item)
    if taken.outcome == TakeBackOutcome.MISSING:
        raise Http404
    messages.warning(request, NOT_TAKEN_BACK[taken.outcome])
    return redirect("desk")


@require_POST
@needs("lead_desk")
def correct(request: HttpRequest, pk: int) -> HttpResponse:
    decision = decision_to_correct(request, pk)
    opened = people.correct(decision.pk, person=person_of(request), clock=DATABASE_CLOCK)
    if opened.most_held is not None:
        messages.warning(request, hands_full(opened.most_held))
    elif opened.outcome != CorrectOutcome.OPENED:
        messages.warning(request, NOT_CORRECTED[opened.outcome])
    return redirect("job", pk=decision.job_id) if opened.item is None else redirect("item", pk=opened.item)


@require_POST
@needs("appeal_decision")
def appeal(request: HttpRequest, pk: int) -> HttpResponse:
    job = job_to_appeal(request, pk)
    form = AppealForm(request.POST)
    if not form.is_valid():
        messages.warning(request, _("An appeal needs a statement of at most 4,000 characters."))
        return redirect("job", pk=pk)
    appealed = people.appeal(
        source=job.ticket.source,
        external_id=job.ticket.external_id,
        revision=job.revision,
        statement=form.cleaned_data["statement"],
        person=person_of(request),
        clock=DATABASE_CLOCK,
    )
    level = messages.SUCCESS if appealed.outcome == AppealOutcome.OPENED else messages.WARNING
    messages.add_message(request, level, APPEALED[appealed.outcome])
    return redirect("job", pk=pk)
