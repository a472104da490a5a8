"""Figures for Prometheus, for whoever holds the token."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from reviewboard.metrics import exposition


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Off, and not there at all, without METRICS_TOKEN; else for `Authorization: Bearer <token>` alone."""
    token: str = settings.METRICS_TOKEN
    if not token:
        raise Http404
    if not constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {token}"):
        refused = HttpResponse("The token is missing or wrong.\n", status=401, content_type="text/plain; charset=utf-8")
        refused.headers["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return refused
    answer = HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)
    answer.headers["Cache-Control"] = "no-store"
    return answer
