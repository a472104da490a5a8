"""One job: where it stands, what would move it, and its whole life."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from queue_core import contract, figures, people, where
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Assignment, Attempt, AuditEntry, Decision, Delivery, Item, Job, LateAnswer, Message
from queue_core.states import ActOutcome, DeadlineKind, JobState
from reviewboard import effect_text
from reviewboard.act_names import DENIED
from reviewboard.item_text import score_lines
from reviewboard.lengths import DEADLINES, length_of
from reviewboard.life import MOST_ATTEMPTS, Ledger, life_of
from reviewboard.live import LiveVersion, page_or_partial, wants_partial
from reviewboard.models import Person
from reviewboard.reading import content_to_read, may_read_words, note_look
from reviewboard.shapes import Conflict
from reviewboard.views.access import job_to_move, job_to_view
from reviewboard.views.item_chain import chain_acts
from reviewboard.views.keeping import RIGHTS as KEEPING
from reviewboard.views.permits import needs, person_of
from reviewboard.where_text import mover, sentence

TEMPLATE = "job/job.html"
MOST_ROWS = 50


class MoveDeadlineForm(forms.Form):
    seen = forms.CharField(widget=forms.HiddenInput, max_length=40)
    deadline = forms.ChoiceField(label=gettext_lazy("New deadline"), choices=DEADLINES, initial="4h")
    reason = forms.CharField(
        label=gettext_lazy("Reason"), max_length=500, widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("It stands in the audit."),
    )  # fmt: skip


@require_safe
@needs("view_board")
def job(request: HttpRequest, pk: int) -> HttpResponse:
    found, now = job_to_view(request, pk), DATABASE_CLOCK.now()
    standing = where.locate(found, now=now)
    version = LiveVersion.of(now, standing, found.state, found.fence, found.deadline)
    context: dict[str, Any] = {"nav": "jobs", "job": found, **_standing(standing)}
    if not wants_partial(request):
        context |= _whole_page(found, person_of(request), now)
        note_look(request, found, context["content"], person_of(request))
    return page_or_partial(request, TEMPLATE, "live", context, version=version)


def _messages(job: Job) -> QuerySet[Message]:
    """The ticket's messages, newest first, with what became of each at each endpoint."""
    deliveries = Prefetch("deliveries", Delivery.objects.select_related("endpoint").order_by("pk"))
    found = Message.objects.filter(ticket_id=job.ticket_id).prefetch_related(deliveries)
    return found.order_by("-seq")[:MOST_ROWS]


def _standing(standing: where.Standing) -> dict[str, str]:
    return {"sentence": sentence(standing), "mover": mover(standing)}


def _whole_page(job: Job, person: Person, now: datetime) -> dict[str, Any]:
    ledger = _ledger(job)
    answer = next((attempt for attempt in reversed(ledger.attempts) if attempt.is_committed), None)
    item = next((one for one in ledger.items if one.closed_at is None), None)
    return {
        "life": life_of(ledger, now=now),
        "left_out": max(Attempt.objects.filter(job=job).count() - MOST_ATTEMPTS, 0),
        "decisions": ledger.decisions,
        "chain_acts": chain_acts(job, ledger.decisions, person, is_worked_on=item is not None),
        "show_notes": may_read_words(person, job.lane, is_restricted=job.evidence.is_restricted),
        "answer": answer,
        "scores": score_lines(answer),
        "effect_lines": effect_text.of_job(figures.effects_of_job(job)),
        "item": item if people.may(person, "decide_item", job.lane_id) else None,
        "content": content_to_read(job.evidence, person, job.lane),
        "may_keep": any(people.may(person, right, job.lane_id) for right in KEEPING),
        "late_answers": LateAnswer.objects.filter(job=job).order_by("-pk")[:MOST_ROWS],
        "sent": _messages(job),
        "may_deliver": people.may(person, "manage_deliveries", job.lane_id),
        "is_hard": job.ticket.deadline_kind == DeadlineKind.HARD,
        "form": _form(job) if _may_move(job, person, now) else None,
    }


def _ledger(job: Job) -> Ledger:
    newest = Attempt.objects.filter(job=job).select_related("policy").order_by("-fence")[:MOST_ATTEMPTS]
    items = list(Item.objects.filter(job=job).order_by("pk"))
    acts = AuditEntry.objects.filter(subject_type="job", subject_id=str(job.pk)).exclude(act=DENIED).order_by("pk")
    return Ledger(
        job=job,
        attempts=list(reversed(newest)),
        acts=list(acts[:MOST_ROWS]),
        items=items,
        assignments=list(Assignment.objects.filter(item__in=items).select_related("person").order_by("pk")[:MOST_ROWS]),
        decisions=list(
            Decision.objects.filter(ticket_id=job.ticket_id, revision=job.revision)
            .select_related("person", "reason_code")
            .order_by("pk")
        ),
    )


def _may_move(job: Job, person: Person, now: datetime) -> bool:
    return (
        job.state == JobState.WAITING
        and now < job.deadline
        and job.ticket.deadline_kind == DeadlineKind.SERVICE
        and people.may(person, "move_deadlines", job.lane_id)
    )


def _form(job: Job) -> MoveDeadlineForm:
    return MoveDeadlineForm(initial={"seen": job.deadline.isoformat()})


@require_POST
@needs("move_deadlines")
def move_deadline(request: HttpRequest, pk: int) -> HttpResponse:
    found, person = job_to_move(request, pk), person_of(request)
    form = MoveDeadlineForm(request.POST)
    if not form.is_valid():
        return _refused(request, pk, status=422, form=form)
    if found.ticket.deadline_kind == DeadlineKind.HARD:
        return _refused(request, pk, status=409)
    with transaction.atomic():
        locked = contract.lock_job(pk)
        is_as_seen = locked is not None and locked[1].deadline.isoformat() == form.cleaned_data["seen"]
        outcome = _move(pk, form, person) if is_as_seen else ActOutcome.STALE
    if outcome != ActOutcome.DONE:
        return _refused(request, pk, status=409, form=form)
    messages.success(request, _("The deadline was moved."))
    return redirect("job", pk=pk)


def _move(pk: int, form: MoveDeadlineForm, person: Person) -> ActOutcome:
    deadline = DATABASE_CLOCK.now() + length_of(form.cleaned_data["deadline"])
    reason = form.cleaned_data["reason"]
    return contract.move_deadline(pk, deadline=deadline, clock=DATABASE_CLOCK, person=person, reason=reason)


def _refused(request: HttpRequest, pk: int, *, status: int, form: MoveDeadlineForm | None = None) -> HttpResponse:
    """The job as it is now: 409 says what changed, 422 what to correct."""
    found, person, now = job_to_view(request, pk), person_of(request), DATABASE_CLOCK.now()
    standing = where.locate(found, now=now)
    version = LiveVersion.of(now, standing, found.state, found.fence, found.deadline)
    context: dict[str, Any] = {"nav": "jobs", "job": found, "as_of": now, "live_version": str(version)}
    context |= _standing(standing) | _whole_page(found, person, now)
    note_look(request, found, context["content"], person)
    if status == 409:
        context["conflict"] = _conflict(found)
    if form is not None and context["form"] is not None:
        context["form"] = MoveDeadlineForm({**dict(form.data.items()), "seen": found.deadline.isoformat()})
    return render(request, TEMPLATE, context, status=status)


def _conflict(job: Job) -> Conflict:
    if job.ticket.deadline_kind == DeadlineKind.HARD:
        return Conflict(what=_("This deadline is hard: law sets it, and nobody here can move it."))
    last = AuditEntry.objects.filter(subject_type="job", subject_id=str(job.pk), act="job.deadline_moved").last()
    if job.state == JobState.WAITING and last is not None:
        who = _("Moved by %(name)s.") % {"name": last.actor_name}
        return Conflict(what=_("Somebody moved this deadline meanwhile. It was not moved again."), who=who, at=last.at)
    if job.state == JobState.WAITING:
        return Conflict(what=_("The deadline passed or changed meanwhile. It was not moved."))
    return Conflict(
        what=_("The job does not wait any more, so its deadline cannot be moved."), now_is=[(_("State"), job.state)]
    )
