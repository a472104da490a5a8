"""The alerts that stand, the last that are over, and the act of saying that somebody looks after one."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from queue_core import alerts as alerting
from queue_core.alerts import AckOutcome
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import AlertEpisode
from reviewboard import alert_text
from reviewboard.shapes import Conflict
from reviewboard.views.access import lane_ids_seen, may_somewhere, not_there, seen
from reviewboard.views.permits import needs, person_of

CONFLICT = 409
SHOWN_OVER = 50


@require_safe
@needs("view_board")
def alerts(request: HttpRequest) -> HttpResponse:
    return _page(request)


@require_POST
@needs("hold_lane")
def acknowledge(request: HttpRequest, pk: int) -> HttpResponse:
    found = AlertEpisode.objects.select_related("lane").filter(pk=pk)
    if not seen(request, found, "hold_lane").exists():
        row = found.first()
        raise not_there(request, row, "hold_lane", row.lane if row is not None else None)
    try:
        acted = alerting.acknowledge(pk, person=person_of(request), clock=DATABASE_CLOCK)
    except AlertEpisode.DoesNotExist as error:
        raise Http404 from error
    if acted.outcome == AckOutcome.ACKNOWLEDGED:
        messages.success(request, _("It is on record that you look after it."))
        return redirect("alerts")
    return _page(request, status=CONFLICT, conflict=_conflict(acted.outcome, acted.episode))


def _page(request: HttpRequest, *, status: int = 200, conflict: Conflict | None = None) -> HttpResponse:
    lanes = lane_ids_seen(request)
    context = {
        "nav": "alerts",
        "as_of": DATABASE_CLOCK.now(),
        "standing": [alert_text.line(one) for one in alerting.open_episodes(lanes)],
        "over": [alert_text.line(one) for one in alerting.newest(SHOWN_OVER, lanes)],
        "may_acknowledge": may_somewhere(request, "hold_lane"),
        "has_mail": alerting.is_mail_set_up(),
        "conflict": conflict,
    }
    return render(request, "alerts/alerts.html", context, status=status)


def _conflict(outcome: AckOutcome, episode: AlertEpisode) -> Conflict:
    if outcome == AckOutcome.OVER:
        return Conflict(what=_("The alert is over already."), at=episode.over_at)
    by = episode.acknowledged_by
    return Conflict(
        what=_("Somebody looks after it already."),
        who=by.get_username() if by else "",
        at=episode.acknowledged_at,
    )
