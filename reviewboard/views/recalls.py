"""Recall, in two steps: which decisions, with their number; then, with a reason, whether. And runs that kept back."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from queue_core import ramp, recalls
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.models import Lane
from queue_core.ramp import RampOutcome
from queue_core.recalls import RecallActOutcome, Selection
from queue_core.states import RecallTo
from reviewboard import recall_text
from reviewboard.ramp_text import act_conflict
from reviewboard.recall_forms import AcceptForm, ChooseForm, RecallForm, recall_form
from reviewboard.templatetags.board import count
from reviewboard.views.access import lane_to_raise, lane_to_recall
from reviewboard.views.lane import answer_with_lane
from reviewboard.views.lane_acts import CONFLICT, UNPROCESSABLE, add_fault, done
from reviewboard.views.permits import needs, person_of

TEMPLATE = "lane/recall.html"
#: Of a number of a row that can be.
MOST_DIGITS = 18


@require_http_methods(["GET", "HEAD", "POST"])
@needs("recall_decision")
def recall(request: HttpRequest, name: str) -> HttpResponse:
    lane = lane_to_recall(request, name)
    if request.method == "POST":
        return _recall(request, lane)
    choose = ChooseForm(request.GET or None, lane=lane)
    if not choose.is_bound or not choose.is_valid():
        status = UNPROCESSABLE if choose.is_bound else 200
        return _page(request, lane, {"choose": choose}, status=status)
    chosen = choose.selection(now=DATABASE_CLOCK.now())
    return _page(request, lane, {"choose": choose, **_preview(lane, chosen)})


def _recall(request: HttpRequest, lane: Lane) -> HttpResponse:
    form = RecallForm(request.POST)
    if not form.is_valid():
        return _page(request, lane, _again(form), status=UNPROCESSABLE)
    chosen = form.selection(now=DATABASE_CLOCK.now())
    try:
        acted = recalls.recall(
            lane.pk,
            chosen,
            person=person_of(request),
            reason=form.cleaned_data["reason"],
            shown=form.cleaned_data["shown"],
            to=RecallTo(form.cleaned_data["to"]),
            deadline_after=form.deadline_after,
            clock=DATABASE_CLOCK,
        )
    except InvalidRequest as fault:
        add_fault(form, fault)
        return _page(request, lane, _again(form), status=UNPROCESSABLE)
    if acted.outcome != RecallActOutcome.RECALLED or acted.recall is None:
        context = _preview(lane, chosen) | {"conflict": recall_text.recall_conflict(acted)}
        context["typed"] = [(_("Reason"), form.cleaned_data["reason"])]
        return _page(request, lane, context, status=CONFLICT)
    messages.success(request, recall_text.done_text(acted, recalls.progress(acted.recall)))
    return redirect("lane_recall", lane.name)


def _preview(lane: Lane, chosen: Selection) -> dict[str, Any]:
    shown = recalls.preview(lane, chosen)
    return {
        "is_previewed": True,
        "number": shown.count,
        "lines": recall_text.preview_lines(shown),
        "form": recall_form(chosen, shown=shown.count) if shown.count else None,
        "verb": recall_text.button(shown.count),
        "previewed_at": chosen.until,
        "still_runs": lane.run_id is not None and chosen.run in (None, lane.run_id),
    }


def _again(form: RecallForm) -> dict[str, Any]:
    """The page with a mistake in its form: the numbers are those that the form was made with."""
    shown = form.cleaned_data.get("shown", 0)
    return {"is_previewed": True, "number": shown, "lines": [], "form": form, "verb": recall_text.button(shown)}


def _page(request: HttpRequest, lane: Lane, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    acts = [recall_text.row_of(act, progress) for act, progress in recalls.last_recalls(lane)]
    context = {"choose": ChooseForm(lane=lane), "nav": "board", "lane": lane, "acts": acts, **context}
    context["as_of"] = DATABASE_CLOCK.now()
    return render(request, TEMPLATE, context, status=status)


@require_POST
@needs("raise_stage")
def accept_run(request: HttpRequest, name: str) -> HttpResponse:
    """Let the decisions go out that an ended run kept back."""
    lane = lane_to_raise(request, name)
    sent = request.POST.get("accept-run", "")
    is_number = sent.isascii() and sent.isdecimal() and len(sent) <= MOST_DIGITS
    form = AcceptForm(request.POST, run_id=int(sent) if is_number else 0, shown=0)
    if not form.is_valid():
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={"accept_form": form})
    fields = form.cleaned_data
    try:
        acted = ramp.accept_held_run(
            lane.pk,
            fields["run"],
            person=person_of(request),
            reason=fields["reason"],
            shown=fields["shown"],
            clock=DATABASE_CLOCK,
        )
    except InvalidRequest as fault:
        add_fault(form, fault)
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={"accept_form": form})
    if acted.outcome != RampOutcome.DONE:
        conflict = act_conflict(lane_to_raise(request, name), acted)
        bound = {"typed": fields["reason"]}
        return answer_with_lane(request, name, status=CONFLICT, conflict=conflict, bound=bound)
    text = ngettext("%(number)s decision goes out.", "%(number)s decisions go out.", fields["shown"])
    return done(request, name, text % {"number": count(fields["shown"])})
