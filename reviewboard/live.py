"""Pages that live: what the server owes a poll, and one URL with two renderings.

A poll is a GET that board.js sends for the page's one `data-live` root, with the header X-Live-Poll. It is nobody's
click: it keeps no session alive, meets no sign-in page, and is answered with nothing when nothing has changed.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, Self

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseRedirectBase
from django.shortcuts import render, resolve_url
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails

POLL_HEADER, VERSION_HEADER, ORDER_HEADER = "X-Live-Poll", "X-Live-Version", "X-Live-Order"
AS_OF_HEADER = "X-Live-As-Of"
MOST_ORDERED = 500


class HtmxRequest(HttpRequest):
    htmx: HtmxDetails


class HasPk(Protocol):
    @property
    def pk(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class LiveVersion:
    """When figures were read, and what they were.

    The time decides which of two answers is the older one; the digest whether there is anything new to show.
    """

    as_of: datetime
    digest: str

    @classmethod
    def of(cls, as_of: datetime, *facts: object) -> Self:
        """`facts` are whatever the partial shows: frozen records, numbers, texts. Their repr must tell them apart."""
        return cls(as_of, hashlib.sha256(repr(facts).encode()).hexdigest()[:16])

    def __str__(self) -> str:
        return f"{int(self.as_of.timestamp() * 1_000_000)}-{self.digest}"

    def shows_the_same_as(self, sent: str) -> bool:
        return sent.partition("-")[2] == self.digest


def is_poll(request: HttpRequest) -> bool:
    return request.method == "GET" and request.headers.get(POLL_HEADER) == "1"


def wants_partial(request: HttpRequest) -> bool:
    """Whether htmx asks for a part. A restored history entry and a boosted link get the whole page."""
    htmx: HtmxDetails | None = getattr(request, "htmx", None)
    return bool(htmx) and htmx is not None and not htmx.history_restore_request and not htmx.boosted


def page_or_partial(
    request: HttpRequest,
    template: str,
    partial: str,
    context: dict[str, Any],
    *,
    version: LiveVersion | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page, or its named partial for htmx. With a `version`, a poll that finds nothing new gets 204.

    The server names the partial, never the client: each may hide what another shows.
    """
    if version:
        context = {"as_of": version.as_of, "live_version": str(version), **context}
        if is_poll(request) and version.shows_the_same_as(request.headers.get(VERSION_HEADER, "")):
            return _versioned(HttpResponse(status=204), version)
    name = f"{template}#{partial}" if wants_partial(request) else template
    response = render(request, name, context, status=status)
    return _versioned(response, version) if version else response


def _versioned(response: HttpResponse, version: LiveVersion) -> HttpResponse:
    response[VERSION_HEADER] = str(version)
    response[AS_OF_HEADER] = version.as_of.isoformat()
    return response


def in_kept_order[T: HasPk](request: HttpRequest, rows: Sequence[T]) -> tuple[list[T], bool]:
    """`rows` in the order that the reader's page has, new ones last, and whether the right order is another.

    Rows never move under a reader's hand: the page says "order has changed" and the reader sorts.
    """
    sent = request.headers.get(ORDER_HEADER, "")
    if not is_poll(request) or not sent:
        return list(rows), False
    place = {key: i for i, key in enumerate(sent.split(",")[:MOST_ORDERED])}
    kept = sorted(rows, key=lambda row: place.get(str(row.pk), len(place)))
    return kept, [row.pk for row in kept] != [row.pk for row in rows]


class LiveMiddleware:
    """Answers to signed-in readers are never stored; a lost session is told to htmx as 401, not as a sign-in page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if is_poll(request) and not request.user.is_authenticated:
            response = HttpResponse(status=401)
        else:
            response = self.get_response(request)
        if _is_turned_away(request, response):
            response = HttpResponse(status=401)
        if is_poll(request):
            # A message for the reader's next click must not be used up by a poll, nor the session kept alive by it.
            request.session.modified = False
        if request.user.is_authenticated or response.status_code == 401:
            response["Cache-Control"] = "no-store"
            patch_vary_headers(response, ("HX-Request", "Cookie"))
        return response


def _is_turned_away(request: HttpRequest, response: HttpResponse) -> bool:
    """A redirect to sign-in that htmx would follow and swap into the page."""
    if not getattr(request, "htmx", None) or not isinstance(response, HttpResponseRedirectBase):
        return False
    return response.url.partition("?")[0] == resolve_url(settings.LOGIN_URL) and not request.user.is_authenticated
