"""Who reads the page: their language and their zone, for this request and no longer."""

import zoneinfo
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from reviewboard.models import Person

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
