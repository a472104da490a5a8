"""Putting a version of the policy into force, from the lane's page."""

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from queue_core import ramp
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.models import Lane, Policy
from queue_core.ramp import Acted, RampOutcome
from reviewboard.lane_forms import PolicyForm
from reviewboard.ramp_text import policy_conflict, stage_name
from reviewboard.templatetags.board import count
from reviewboard.views.access import lane_to_judge_anew
from reviewboard.views.lane import answer_with_lane
from reviewboard.views.lane_acts import CONFLICT, UNPROCESSABLE, add_fault, done
from reviewboard.views.permits import needs, person_of


@require_POST
@needs("force_policy")
def force_policy(request: HttpRequest, name: str) -> HttpResponse:
    lane = lane_to_judge_anew(request, name)
    version = _version(lane, request.POST.get("policy-to", ""))
    form = PolicyForm(request.POST, lane=lane, version=version.pk)
    if not form.is_valid():
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={"policy_form": form})
    try:
        acted = ramp.force_policy(
            lane.pk,
            version.pk,
            person=person_of(request),
            reason=form.cleaned_data["reason"],
            replaces=form.cleaned_data["replaces"],
            clock=DATABASE_CLOCK,
        )
    except InvalidRequest as fault:
        add_fault(form, fault)
        return answer_with_lane(request, name, status=UNPROCESSABLE, bound={"policy_form": form})
    if acted.outcome != RampOutcome.DONE:
        conflict = policy_conflict(lane_to_judge_anew(request, name), acted)
        bound = {"typed": form.cleaned_data["reason"]}
        return answer_with_lane(request, name, status=CONFLICT, conflict=conflict, bound=bound)
    return done(request, name, _done_text(version, acted))


def _version(lane: Lane, sent: str) -> Policy:
    """The version that was chosen. The page offers no other lane's, so one is as if it did not exist."""
    try:
        return Policy.objects.get(pk=int(sent), lane=lane)
    except (ValueError, OverflowError, Policy.DoesNotExist) as error:
        raise Http404 from error


def _done_text(version: Policy, acted: Acted) -> str:
    run = acted.run
    if run is None:
        return _("Version %(version)d of the policy is in force from the next run on.") % {"version": version.version}
    # A cap that a lead had lowered stays lowered.
    cap = run.lane.cap or run.cap
    text = ngettext(
        "Version %(version)d of the policy is in force: a new run has begun (%(stage)s) at the same cap of %(cap)s "
        "call at once.",
        "Version %(version)d of the policy is in force: a new run has begun (%(stage)s) at the same cap of %(cap)s "
        "calls at once.",
        cap,
    )
    return text % {"version": version.version, "stage": stage_name(run), "cap": count(cap)}
