"""What went wrong, as problem details (RFC 9457) with a code that stays as it is while sentences may change."""

import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

CONTENT_TYPE = "application/problem+json"

#: Each code with its status and title. Part of the interface: none is ever given another meaning.
CODES: dict[str, tuple[int, str | Promise]] = {
    "bad_request": (400, gettext_lazy("The request is wrong")),
    "invalid_request": (400, gettext_lazy("Something in the request is wrong")),
    "invalid_json": (400, gettext_lazy("The body is no JSON that is taken")),
    "body_incomplete": (400, gettext_lazy("The body ended too early")),
    "key_missing": (401, gettext_lazy("A key is needed")),
    "key_unknown": (401, gettext_lazy("This key is not known")),
    "key_expired": (401, gettext_lazy("This key has expired")),
    "key_revoked": (401, gettext_lazy("This key was revoked")),
    "scope_missing": (403, gettext_lazy("The key is not for this")),
    "forbidden": (403, gettext_lazy("This is not allowed")),
    "not_found": (404, gettext_lazy("There is no such thing here")),
    "method_not_allowed": (405, gettext_lazy("This method is not for this address")),
    "revision_conflict": (409, gettext_lazy("Another revision is current")),
    "not_possible": (409, gettext_lazy("This is not possible as things stand")),
    "preserved": (409, gettext_lazy("This content is preserved")),
    "length_required": (411, gettext_lazy("The body's length is needed")),
    "body_too_large": (413, gettext_lazy("The body is too large")),
    "media_type_not_supported": (415, gettext_lazy("This kind of content is not taken")),
    "encoding_not_supported": (415, gettext_lazy("A compressed body is not taken")),
    "rate_limited": (429, gettext_lazy("Too many calls")),
    "internal_error": (500, gettext_lazy("Something broke here")),
    "unavailable": (503, gettext_lazy("The service cannot answer now")),
}
#: What an answer without a code of its own is told as.
OF_STATUS = {
    400: "bad_request", 401: "key_missing", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    411: "length_required", 413: "body_too_large", 415: "media_type_not_supported", 429: "rate_limited",
    500: "internal_error", 503: "unavailable",
}  # fmt: skip


class Problem(Exception):
    """An answer that is no success. `members` go into the document beside what each has."""

    def __init__(
        self, code: str, detail: str = "", *, headers: Mapping[str, str] | None = None, **members: Any
    ) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.members = members

    @property
    def status(self) -> int:
        return CODES[self.code][0]


def too_large(limit: int) -> Problem:
    """A body over the limit, which is named."""
    return Problem(
        "body_too_large", _("The body is longer than %(most)d bytes.") % {"most": limit}, limit=limit, unit="bytes"
    )


def document(problem: Problem) -> dict[str, Any]:
    status, title = CODES[problem.code]
    found = {
        "type": f"urn:reviewboard:problem:{problem.code}",
        "title": str(title),
        "status": status,
        "code": problem.code,
        "detail": problem.detail or str(title),
    }
    return found | {name: value for name, value in problem.members.items() if value not in (None, "")}


def answer(problem: Problem) -> HttpResponse:
    response = HttpResponse(
        json.dumps(document(problem), ensure_ascii=False), status=problem.status, content_type=CONTENT_TYPE
    )
    for name, value in problem.headers.items():
        response.headers[name] = value
    return response


def of_status(status: int) -> Problem:
    """The problem of an answer that something below the API made: Django's own 404, 405 and the like."""
    fallback = "internal_error" if status >= 500 else "bad_request"
    return Problem(OF_STATUS.get(status, fallback))
