"""Whatever answers below /api/ answers as the API does: problem documents, and what is left of the key's calls."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from queue_core.api_keys import Allowance, seconds
from reviewboard.api import problems

PREFIX = "/api/"
#: Headers of an answer that stay when its body is replaced.
KEPT = ("Allow", "Retry-After", "WWW-Authenticate")


class ApiMiddleware:
    """Before all that may answer by itself: an unknown address, a method nobody takes, a host that is not ours."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if not request.path_info.startswith(PREFIX):
            return response
        if response.status_code >= 400 and problems.CONTENT_TYPE not in response.headers.get("Content-Type", ""):
            response = _as_problem(response)
        response.headers.setdefault("Cache-Control", "no-store")
        allowance = getattr(request, "allowance", None)
        if isinstance(allowance, Allowance):
            response.headers["RateLimit-Limit"] = str(allowance.limit)
            response.headers["RateLimit-Remaining"] = str(allowance.remaining)
            response.headers["RateLimit-Reset"] = str(seconds(allowance.refills_in))
        return response


def _as_problem(made: HttpResponseBase) -> HttpResponse:
    status = made.status_code
    response = problems.answer(problems.of_status(status))
    response.status_code = status
    for name in KEPT:
        if name in made.headers:
            response.headers[name] = made.headers[name]
    return response
