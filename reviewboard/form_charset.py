"""Forms come in UTF-8. Django refuses others when a view reads them; here it is before anything does.

Else the page that says what went wrong, which gives back what was typed, would read the form again and fail itself.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class FormCharsetMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.content_type in FORMS and not _is_utf8(request.encoding):
            return HttpResponseBadRequest("Send forms in UTF-8.\n", content_type="text/plain; charset=utf-8")
        return self.get_response(request)


def _is_utf8(charset: str | None) -> bool:
    """None: none was named, or one that nobody knows, and Django takes UTF-8. Other spellings of it Django refuses."""
    return charset is None or charset.lower() == "utf-8"
