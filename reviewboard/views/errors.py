"""Pages for what went wrong. Each says whether anything was done, and gives back what was typed."""

import structlog
from django.contrib.staticfiles.storage import staticfiles_storage
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.csrf import requires_csrf_token

from reviewboard.typed import typed_text, whole_fields

log = structlog.get_logger(__name__)


@requires_csrf_token
def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001 - Django's call
    return render(request, "403.html", {"typed": typed_text(request)}, status=403)


@requires_csrf_token
def page_not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001 - Django's call
    return render(request, "404.html", {"typed": typed_text(request)}, status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    """No context processor, session or query: what broke may be the database itself."""
    context = {"typed": typed_text(request), "stylesheet": _stylesheet()}
    return HttpResponse(render_to_string("500.html", context), status=500)


def _stylesheet() -> str:
    try:
        address: str = staticfiles_storage.url("board.css")
    except ValueError:
        # The manifest does not know it: static files were not collected. The page is still readable without.
        log.exception("stylesheet_missing")
        return "/static/board.css"
    return address


@requires_csrf_token
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The form again, with its text, to be sent once more with a fresh token.

    Only when the browser says that it came from one of our own pages: else this page would be a stranger's way to
    have his form sent by a person's click.
    """
    log.warning("csrf_failure", reason=reason, path=request.path)
    fields = whole_fields(request) or []
    can_resend = bool(fields) and _came_from_here(request)
    context = {
        "can_resend": can_resend,
        "fields": fields,
        "shown": typed_text(request),
        "typed": typed_text(request),
    }
    return HttpResponseForbidden(render_to_string("403_csrf.html", context, request))


def _came_from_here(request: HttpRequest) -> bool:
    own = f"{request.scheme}://{request.get_host()}"
    return request.headers.get("Origin", "") == own and not request.FILES
