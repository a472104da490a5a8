"""Who reads the page: their language and their zone, for this request and no longer."""

import zoneinfo
from collections.abc import Callable
from datetime import date, datetime, time, timedelta

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from reviewboard.models import Person

#: Of days that are filtered by. Later ones could not be written in every zone.
LAST_YEAR = 9998

LANGUAGES = frozenset(code for code, _name in settings.LANGUAGES)


class ReaderMiddleware:
    """After authentication. A language chosen by the person wins over the browser's, which LocaleMiddleware read."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = request.user
        if not isinstance(user, Person):
            return self.get_response(request)
        if user.language in LANGUAGES:
            translation.activate(user.language)
            request.LANGUAGE_CODE = user.language
        with timezone.override(zone_of(user)):
            response = self.get_response(request)
        response.headers["Content-Language"] = translation.get_language() or settings.LANGUAGE_CODE
        patch_vary_headers(response, ("Cookie",))
        return response


def zone_of(person: Person) -> zoneinfo.ZoneInfo:
    """UTC for a zone that this machine's list does not know (any more): a page must still be readable."""
    try:
        return zoneinfo.ZoneInfo(person.timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return zoneinfo.ZoneInfo("UTC")


def day_bounds(since: str, until: str) -> tuple[datetime | None, datetime | None]:
    """When the first day begins and the last one is over, in the reader's zone. An empty text has no bound.

    A day at the very end of the calendar has no day after it, and no bound.
    """
    zone = timezone.get_current_timezone()
    first = date.fromisoformat(since) if since else None
    last = date.fromisoformat(until) if until else None
    after = last + timedelta(days=1) if last is not None and last.year < LAST_YEAR else None
    return (
        datetime.combine(first, time(), zone) if first is not None and first.year > 1 else None,
        datetime.combine(after, time(), zone) if after is not None else None,
    )
