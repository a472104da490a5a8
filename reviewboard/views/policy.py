"""One version of a lane's policy: what it would have done, and a text tried on it."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from queue_core import trial
from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.models import Lane, Policy, ReasonCode
from queue_core.policy import Policy as Rules
from queue_core.questions import read_questions
from queue_core.what_if import LAST
from reviewboard import lane_policy, policy_page
from reviewboard.policy_page import LastForm, Tried, TryForm
from reviewboard.views.access import TRIES, lane_to_try, lane_to_view, may
from reviewboard.views.lane_acts import UNPROCESSABLE
from reviewboard.views.permits import needs

TEMPLATE = "lane/policy.html"


@require_safe
@needs("view_board")
def policy(request: HttpRequest, name: str, version: int) -> HttpResponse:
    lane, row = _version(request, name, version)
    return render(request, TEMPLATE, _context(request, lane, row))


@require_POST
@needs(*TRIES)
def try_policy(request: HttpRequest, name: str, version: int) -> HttpResponse:
    """The page again with what the model said of the text, which is neither stored nor logged."""
    lane_to_try(request, name)
    lane, row = _version(request, name, version)
    form = TryForm(request.POST)
    found = _tried(form, lane, row) if form.is_valid() else None
    context = _context(request, lane, row) | {"try_form": form, "tried": found}
    return render(request, TEMPLATE, context, status=200 if found else UNPROCESSABLE)


def _tried(form: TryForm, lane: Lane, row: Policy) -> Tried | None:
    try:
        found = trial.try_text(
            form.cleaned_data["text"],
            Rules.from_rules(row.rules),
            read_questions(row.questions),
            lane.connection,
            codes=ReasonCode.rejecting(lane.pk),
        )
    except (ConfigurationFault, InvalidRequest) as fault:
        form.add_error("text", str(fault))
        return None
    return policy_page.tried(found)


def _version(request: HttpRequest, name: str, version: int) -> tuple[Lane, Policy]:
    lane = lane_to_view(request, name)
    row = Policy.objects.filter(lane=lane, version=version).select_related("made_by").first()
    if row is None:
        raise Http404
    return lane, row


def _context(request: HttpRequest, lane: Lane, row: Policy) -> dict[str, Any]:
    last = LastForm(request.GET if "last" in request.GET else {"last": LAST})
    wanted = last.cleaned_data["last"] if last.is_valid() else LAST
    return {
        "nav": "board",
        "lane": lane,
        "version": lane_policy.shown_version(row),
        "is_in_force": row.pk == lane.policy_id,
        "reading": policy_page.read(lane, row, wanted),
        "last_form": last,
        "try_form": TryForm() if any(may(request, right, lane) for right in TRIES) else None,
        "may_decide": may(request, "decide_item", lane),
    }
