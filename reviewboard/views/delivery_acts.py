"""What people do about deliveries: one address an act. The verbs judge, under the endpoint's lock."""

from collections.abc import Callable
from datetime import datetime

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from queue_core import relay
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.models import Delivery
from queue_core.relay import EndpointActed, EndpointOutcome
from reviewboard.delivery_text import act_conflict, replayed_text
from reviewboard.filters import DeliveriesFilter
from reviewboard.paging import read_in_time
from reviewboard.shapes import Conflict
from reviewboard.views.access import delivery_to_manage, endpoint_to_manage
from reviewboard.views.deliveries import RIGHT, answer_with_deliveries, endpoint_names, filtered
from reviewboard.views.permits import needs, person_of

CONFLICT, UNPROCESSABLE = 409, 422


@require_POST
@needs(RIGHT)
def disable(request: HttpRequest, pk: int) -> HttpResponse:
    reason = request.POST.get("reason", "")
    text = _("%(name)s is disabled. Its messages are kept, and go out when it is enabled again.")
    return _act(
        request, pk, text, lambda: relay.disable(pk, person=person_of(request), reason=reason, clock=DATABASE_CLOCK)
    )


@require_POST
@needs(RIGHT)
def enable(request: HttpRequest, pk: int) -> HttpResponse:
    text = _("%(name)s is enabled. What was kept for it goes out now, in order.")
    return _act(request, pk, text, lambda: relay.enable(pk, person=person_of(request), clock=DATABASE_CLOCK))


@require_POST
@needs(RIGHT)
def try_now(request: HttpRequest, pk: int) -> HttpResponse:
    text = _("What waits for %(name)s is tried now.")
    return _act(request, pk, text, lambda: relay.try_now(pk, person=person_of(request), clock=DATABASE_CLOCK))


@require_POST
@needs("change_endpoint")
def retire(request: HttpRequest, pk: int) -> HttpResponse:
    reason = request.POST.get("reason", "")
    text = _("%(name)s is retired. What waited for it was given up.")
    return _act(
        request, pk, text, lambda: relay.retire(pk, person=person_of(request), reason=reason, clock=DATABASE_CLOCK)
    )


@require_POST
@needs(RIGHT)
def send_test(request: HttpRequest, pk: int) -> HttpResponse:
    endpoint = endpoint_to_manage(request, pk)
    delivery = relay.send_test(pk, person=person_of(request), clock=DATABASE_CLOCK)
    if delivery is None:
        return _answer_conflict(request, EndpointActed(EndpointOutcome.RETIRED, endpoint))
    messages.success(
        request,
        _("A test message is on its way to %(name)s. This page shows its answer; load it anew.")
        % {"name": endpoint.name},
    )
    return redirect("delivery", delivery.pk)


def _act(request: HttpRequest, pk: int, text: str, verb: Callable[[], EndpointActed]) -> HttpResponse:
    endpoint_to_manage(request, pk)
    try:
        acted = verb()
    except InvalidRequest as fault:
        return answer_with_deliveries(request, status=UNPROCESSABLE, conflict=Conflict(what=str(fault)))
    if acted.outcome != EndpointOutcome.DONE:
        return _answer_conflict(request, acted)
    messages.success(request, text % {"name": acted.endpoint.name})
    return redirect("deliveries")


def _answer_conflict(request: HttpRequest, acted: EndpointActed) -> HttpResponse:
    return answer_with_deliveries(request, status=CONFLICT, conflict=act_conflict(acted))


@require_POST
@needs(RIGHT)
def replay_one(request: HttpRequest, pk: int) -> HttpResponse:
    delivery_to_manage(request, pk)
    one = Delivery.objects.filter(pk=pk)
    replayed = relay.replay(one, up_to=pk, what=f"delivery={pk}", person=person_of(request), clock=DATABASE_CLOCK)
    (messages.success if replayed.number else messages.warning)(request, replayed_text(replayed))
    return redirect("delivery", pk)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(RIGHT)
def replay_many(request: HttpRequest) -> HttpResponse:
    """The filter's deliveries that can be sent again: first how many, then the act, on those that were counted."""
    chosen = DeliveriesFilter.read(request.GET, endpoints=endpoint_names(request))
    found = filtered(request, chosen) if chosen.takes_all(request.GET) else Delivery.objects.none()
    if request.method == "POST":
        replayed = relay.replay(
            found.filter(ended_at__lte=_moment(request.POST.get("as_of", ""))),
            up_to=_number(request.POST.get("up_to", "")),
            what=chosen.query(),
            person=person_of(request),
            clock=DATABASE_CLOCK,
        )
        (messages.success if replayed.number else messages.warning)(request, replayed_text(replayed))
        return redirect(chosen.url(reverse("deliveries")))
    return _counted(request, chosen, found)


def _counted(request: HttpRequest, chosen: DeliveriesFilter, found: QuerySet[Delivery]) -> HttpResponse:
    as_of, back = DATABASE_CLOCK.now(), chosen.url(reverse("deliveries"))
    numbers = relay.replayable(found).order_by("pk").values_list("pk", flat=True)
    ids = read_in_time(lambda: list(numbers[: relay.MOST_REPLAYED + 1]))
    if ids is None:
        messages.warning(request, _("The list could not be read in time."))
        messages.warning(request, _("Choose an endpoint, a state or a ticket to narrow it."))
        return redirect(back)
    context = {
        "nav": "deliveries",
        "number": min(len(ids), relay.MOST_REPLAYED),
        "is_more": len(ids) > relay.MOST_REPLAYED,
        "most": relay.MOST_REPLAYED,
        "up_to": ids[-1] if ids else 0,
        # What was under way when they were counted, and ends before the click, was not counted.
        "as_of": as_of,
        "filter": chosen,
        "back_url": back,
    }
    return render(request, "deliveries/replay.html", context)


def _moment(sent: str) -> datetime:
    try:
        found = datetime.fromisoformat(sent)
    except ValueError as error:
        raise Http404 from error
    if found.tzinfo is None:
        raise Http404
    return found


def _number(sent: str) -> int:
    try:
        return min(max(int(sent), 0), 2**63 - 1)
    except ValueError as error:
        raise Http404 from error
