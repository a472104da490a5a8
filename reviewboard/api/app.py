"""The API put together: its operations, what its failures become, and its description for people and machines."""

import structlog
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from ninja.errors import HttpError, ValidationError

from queue_core.errors import CallerError, NotPermitted
from reviewboard.api import appeals, bulk, endpoints, erasure, lanes, messages, tickets
from reviewboard.api.bodies import invalid
from reviewboard.api.described import DescribedApi, DocsPage
from reviewboard.api.problems import Problem, answer, of_status

log = structlog.get_logger(__name__)

DESCRIPTION = """Tickets in, decisions out. Send a key as `Authorization: Bearer <key>`; administrators make keys.

Every failure is a problem document (`application/problem+json`, RFC 9457) with a `code` that stays as it is. A call
that got no answer, 429 or 5xx is safe to repeat: a ticket's revision is stored once, however often it is sent."""

api = DescribedApi(
    title="Reviewboard",
    version="1",
    description=DESCRIPTION,
    urls_namespace="api",
    docs=DocsPage(),
)
api.add_router("/tickets", tickets.router)
api.add_router("/tickets", bulk.router)
api.add_router("/tickets", appeals.router)
api.add_router("/tickets", erasure.router)
api.add_router("", messages.router)
api.add_router("/lanes", lanes.router)
api.add_router("", endpoints.router)


@csrf_exempt
def nothing(_request: HttpRequest) -> HttpResponse:
    """There is no such address."""
    return answer(Problem("not_found"))


@api.exception_handler(Problem)
def on_problem(_request: HttpRequest, problem: Problem) -> HttpResponse:
    return answer(problem)


@api.exception_handler(ValidationError)
def on_invalid(_request: HttpRequest, fault: ValidationError) -> HttpResponse:
    return answer(invalid(fault.errors))


@api.exception_handler(CallerError)
def on_mistake(_request: HttpRequest, fault: CallerError) -> HttpResponse:
    return answer(Problem("invalid_request", str(fault), field=fault.field))


@api.exception_handler(HttpError)
def on_http_error(_request: HttpRequest, fault: HttpError) -> HttpResponse:
    return answer(of_status(fault.status_code))


@api.exception_handler(Http404)
@api.exception_handler(NotPermitted)
@api.exception_handler(PermissionDenied)
def on_nothing(_request: HttpRequest, _fault: Exception) -> HttpResponse:
    """What one may not see does not exist."""
    return answer(Problem("not_found"))


@api.exception_handler(OperationalError)
def on_no_database(_request: HttpRequest, fault: DatabaseError) -> HttpResponse:
    log.error("api_unavailable", error=type(fault).__name__)
    return answer(Problem("unavailable", headers={"Retry-After": "5"}))


@api.exception_handler(Exception)
def on_fault(request: HttpRequest, fault: Exception) -> HttpResponse:
    """Nothing of the fault is told: it may hold what was sent."""
    log.error("api_broke", path=request.path_info, exc_info=fault)
    return answer(Problem("internal_error"))
