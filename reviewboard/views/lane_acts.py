"""A person's acts on a lane: one address each, POST only. The verb judges under the lane's lock."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from queue_core import hold, ramp
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.hold import HoldOutcome
from queue_core.models import Lane, Stage, StageRun
from queue_core.ramp import Acted, RaiseOutcome, RampOutcome
from queue_core.states import HoldForm
from reviewboard.lane_forms import CapForm, PullForm, RaiseForm, ResumeForm, StepDownForm
from reviewboard.live import wants_partial
from reviewboard.ramp_text import act_conflict, hold_conflict, raise_conflict
from reviewboard.templatetags.board import count
from reviewboard.views.access import lane_to_hold, lane_to_raise, may
from reviewboard.views.lane import answer_with_lane
from reviewboard.views.permits import needs, person_of

CONFLICT, UNPROCESSABLE = 409, 422
SAME_STEP = (RaiseOutcome.FIGURES_OLD, RaiseOutcome.FIGURES_WORSE, RaiseOutcome.NOT_MET)


@require_POST
@needs("raise_stage")
def raise_stage(request: HttpRequest, name: str) -> HttpResponse:
    lane = lane_to_raise(request, name)
    form = RaiseForm(request.POST, may_override=may(request, "override_guardrail", lane))
    typed = {field: form.data.get(form.add_prefix(field), "") for field in ("reason", "override_reason")}
    if not form.is_valid():
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={"raise_data": typed, "raise_errors": form})
    fields = form.cleaned_data
    try:
        raised = ramp.raise_stage(
            lane.pk,
            person=person_of(request),
            reason=fields["reason"],
            figures_id=fields["figures_id"],
            override_reason=fields.get("override_reason", ""),
            clock=DATABASE_CLOCK,
        )
    except InvalidRequest as fault:
        add_fault(form, fault)
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={"raise_data": typed, "raise_errors": form})
    if raised.outcome != RaiseOutcome.RAISED or raised.run is None:
        conflict = raise_conflict(lane_to_raise(request, name), raised)
        # Where the same step is still to be made its form keeps the reason; on another step it would be the wrong one.
        kept = "raise_data" if raised.outcome in SAME_STEP else "raise_typed"
        return answer_with_lane(request, name, status=CONFLICT, conflict=conflict, bound={kept: typed})
    text = ngettext(
        "Stage %(number)d, %(name)s, runs: at most %(cap)s call at once.",
        "Stage %(number)d, %(name)s, runs: at most %(cap)s calls at once.",
        raised.run.cap,
    )
    values = {"number": raised.run.number, "name": raised.run.name, "cap": count(raised.run.cap)}
    return done(request, name, text % values)


@require_POST
@needs("hold_lane")
def hold_lane(request: HttpRequest, name: str) -> HttpResponse:
    lane = lane_to_hold(request, name)
    form = PullForm(request.POST, lane=lane)
    if lane.hold is not None and lane.is_on_hold and form.data.get(form.add_prefix("form")) == HoldForm.HOLD:
        # Somebody was quicker. On a lane on hold the form has no such choice any more, which is not what went wrong.
        conflict = hold_conflict(lane, hold.Held(HoldOutcome.ALREADY_ON_HOLD, lane.hold))
        return answer_with_lane(request, name, status=CONFLICT, conflict=conflict)
    if not form.is_valid():
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={"hold_form": form})
    fields = form.cleaned_data
    length = fields.get("until")
    try:
        held = hold.pull(
            lane.pk,
            person=person_of(request),
            form=fields["form"],
            reason=fields["reason"],
            note=fields["note"],
            until=DATABASE_CLOCK.now() + length if length else None,
            clock=DATABASE_CLOCK,
        )
    except InvalidRequest as fault:
        add_fault(form, fault)
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={"hold_form": form})
    if held.outcome == HoldOutcome.ALREADY_ON_HOLD:
        conflict = hold_conflict(lane_to_hold(request, name), held)
        return answer_with_lane(request, name, status=CONFLICT, conflict=conflict)
    return done(request, name, _held_text(held))


def _held_text(held: hold.Held) -> str:
    if not held.refused:
        return _("The lane is on hold. Nothing new goes to the model.")
    text = ngettext(
        "The lane is on hold, and %(number)s running result is refused.",
        "The lane is on hold, and %(number)s running results are refused.",
        held.refused,
    )
    return text % {"number": count(held.refused)}


@require_POST
@needs("raise_stage")
def resume(request: HttpRequest, name: str) -> HttpResponse:
    lane = lane_to_raise(request, name)
    held = lane.hold
    if lane.run is not None or held is None or held.run is None:
        found = Acted(RampOutcome.RUNNING, lane.run) if lane.run else Acted(RampOutcome.NOT_A_PERSONS_HOLD)
        return answer_with_lane(request, name, status=CONFLICT, conflict=act_conflict(lane, found))
    form = ResumeForm(request.POST, hold=held, run=held.run, stages=_plan(lane))
    if _is_of_another(form, "hold", held.pk):
        return _answer_differs(request, lane, Acted(RampOutcome.DIFFERS, by=held.by, at=held.started_at))
    return _act(
        request,
        name,
        form,
        "resume_form",
        lambda fields: ramp.resume(
            lane.pk,
            person=person_of(request),
            reason=fields["reason"],
            to=fields["to"],
            hold_id=fields["hold"],
            clock=DATABASE_CLOCK,
        ),
        _("The lane runs again."),
    )


@require_POST
@needs("raise_stage")
def step_down(request: HttpRequest, name: str) -> HttpResponse:
    lane = lane_to_raise(request, name)
    if lane.run is None:
        return _on_hold(request, lane)
    form = StepDownForm(request.POST, run=lane.run, stages=_plan(lane))
    if _is_of_another(form, "run", lane.run.pk):
        return _answer_differs(request, lane, _differs(lane.run))
    return _act(
        request,
        name,
        form,
        "step_down_form",
        lambda fields: ramp.step_down(
            lane.pk,
            person=person_of(request),
            reason=fields["reason"],
            to=fields["to"],
            run_id=fields["run"],
            clock=DATABASE_CLOCK,
        ),
        _("A lower stage runs."),
    )


@require_POST
@needs("raise_stage")
def set_cap(request: HttpRequest, name: str) -> HttpResponse:
    lane = lane_to_raise(request, name)
    if lane.run is None:
        return _on_hold(request, lane)
    form = CapForm(request.POST, lane=lane, run=lane.run)
    if _is_of_another(form, "run", lane.run.pk):
        return _answer_differs(request, lane, _differs(lane.run))
    return _act(
        request,
        name,
        form,
        "cap_form",
        lambda fields: ramp.set_cap(
            lane.pk,
            person=person_of(request),
            cap=fields["cap"],
            reason=fields["reason"],
            run_id=fields["run"],
            clock=DATABASE_CLOCK,
        ),
        _("The cap is set."),
    )


def _act(
    request: HttpRequest,
    name: str,
    form: forms.Form,
    form_name: str,
    verb: Callable[[dict[str, Any]], Acted],
    sentence: str,
) -> HttpResponse:
    if not form.is_valid():
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={form_name: form})
    try:
        acted = verb(form.cleaned_data)
    except InvalidRequest as fault:
        add_fault(form, fault)
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={form_name: form})
    if acted.outcome != RampOutcome.DONE:
        conflict = act_conflict(lane_to_raise(request, name), acted)
        return answer_with_lane(request, name, status=CONFLICT, conflict=conflict)
    return done(request, name, sentence)


def _is_of_another(form: forms.Form, field: str, present: int) -> bool:
    """Whether a form was made for another run or hold. Its other fields would then only seem to be mistakes."""
    return form.data.get(form.add_prefix(field)) != str(present)


def _differs(run: StageRun) -> Acted:
    return Acted(RampOutcome.DIFFERS, run, by=run.raised_by, at=run.started_at)


def _answer_differs(request: HttpRequest, lane: Lane, acted: Acted) -> HttpResponse:
    return answer_with_lane(request, lane.name, status=CONFLICT, conflict=act_conflict(lane, acted))


def _on_hold(request: HttpRequest, lane: Lane) -> HttpResponse:
    hold_now = lane.hold
    acted = Acted(
        RampOutcome.ON_HOLD, by=hold_now.by if hold_now else None, at=hold_now.started_at if hold_now else None
    )
    return _answer_differs(request, lane, acted)


def _plan(lane: Lane) -> list[tuple[int, str]]:
    return [(stage.number, stage.name) for stage in Stage.objects.filter(lane=lane).order_by("number")]


def add_fault(form: forms.Form, fault: InvalidRequest) -> None:
    form.add_error(fault.field if fault.field in form.fields else None, str(fault))


def done(request: HttpRequest, name: str, text: str) -> HttpResponse:
    """The lane's page as it is now. htmx is told to go there: following a redirect it would swap a page into a part."""
    messages.success(request, text)
    address = redirect("lane", name)
    return HttpResponseClientRedirect(address.url) if wants_partial(request) else address
