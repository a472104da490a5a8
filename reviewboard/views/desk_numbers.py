"""The desk's figures for leads: sums of each lane's team, and of each person for who may see those."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Lane
from queue_core.people import team
from reviewboard.filters import CURSOR
from reviewboard.models import Person
from reviewboard.paging import Order, pager_of, read_page
from reviewboard.reading import with_words
from reviewboard.views.access import lanes_seen
from reviewboard.views.permits import needs, person_of

BY_NAME = Order("name", ("username", "pk"))
PAGE_SIZE = 50
SPANS = [("1", _("24 hours")), ("7", _("7 days"))]


@require_safe
@needs(people.LEAD)
def numbers(request: HttpRequest) -> HttpResponse:
    now, days = DATABASE_CLOCK.now(), request.GET.get("days", "1")
    days = days if days in team.WINDOWS else "1"
    since = now - team.WINDOWS[days]
    lanes = list(lanes_seen(request, people.LEAD))
    sums = team.of_lanes([lane.pk for lane in lanes], since=since)
    context = {
        "nav": "desk",
        "as_of": now,
        "days": days,
        "spans": SPANS,
        "most_read": team.MOST_READ,
        "lanes": [(lane, sums[lane.pk]) for lane in lanes],
        "skips": with_words(team.last_skips([lane.pk for lane in lanes], since=since), person_of(request)),
        **_of_people(request, lanes, since, days),
    }
    return render(request, "desk/numbers.html", context)


def _of_people(request: HttpRequest, lanes: list[Lane], since: datetime, days: str) -> dict[str, Any]:
    """By name, never by number: this is no ranking."""
    seen = [lane.pk for lane in lanes if people.may(person_of(request), "view_person_figures", lane)]
    if not seen:
        return {"may_see_people": False}
    sums = team.of_people(seen, since=since)
    named = Person.objects.filter(pk__in=list(sums))
    page = read_page(named, BY_NAME, cursor=request.GET.get(CURSOR, ""), filter_hash=days, size=PAGE_SIZE)
    return {
        "may_see_people": True,
        "people": [(one, sums[one.pk]) for one in page.rows],
        "pager": pager_of(page, lambda cursor: f"?{urlencode({'days': days, CURSOR: cursor})}"),
    }
