"""One ticket at a time: sent, superseded, withdrawn, read."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Router, Status
from ninja.params.functions import Query

from queue_core import contract
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidJob, RevisionConflict
from queue_core.models.api_keys import KeyScope
from queue_core.states import ActOutcome, AddOutcome
from queue_core.ticket_file import Line, parse
from queue_core.ticket_import import Entry
from reviewboard.api import schemas
from reviewboard.api.admission import Admission, ticket_of
from reviewboard.api.bodies import read_as, read_body
from reviewboard.api.described import body_of, failures
from reviewboard.api.keys import Key, key_of
from reviewboard.api.problems import Problem
from reviewboard.api.ticket_state import ticket_out

router = Router(tags=["tickets"])


@router.post(
    "",
    auth=Key(KeyScope.SEND),
    summary="Send a ticket",
    response={201: schemas.Accepted, 200: schemas.Accepted, **failures(409, 413, 415)},
    openapi_extra=body_of(schemas.TicketIn),
)
def send(request: HttpRequest) -> Status[Any]:
    """201 for a new one, 200 for one that was sent before, also when its deadline is over by now. With `replaces` it
    takes the place of the revision that it names. Send it again as often as you like: nothing is stored twice."""
    answer, ticket = _take(request, read_body(request))
    row = ticket_of(key_of(request), ticket.external_id, ticket.source)
    status = 201 if answer == AddOutcome.STORED else 200
    return Status(
        status,
        {
            "outcome": answer.value,
            "source": ticket.source,
            "ticket": ticket.external_id,
            "revision": ticket.revision,
            "current_revision": row.current_revision,
        },
    )


def _take(request: HttpRequest, raw: bytes) -> tuple[AddOutcome, contract.NewTicket]:
    try:
        record = parse(Line(1, raw), now=DATABASE_CLOCK.now())
        admission = Admission(key_of(request))
        ticket = admission.ticket(record)
    except InvalidJob as fault:
        raise _refused(fault) from fault
    answer = admission.intake().take([Entry(1, ticket, record.replaces)])[1]
    if isinstance(answer, InvalidJob):
        raise _refused(answer)
    if isinstance(answer, RevisionConflict):
        raise conflict(answer)
    return answer, ticket


def _refused(fault: InvalidJob) -> Problem:
    return Problem("invalid_request" if fault.field else "invalid_json", str(fault), field=fault.field)


def conflict(fault: RevisionConflict) -> Problem:
    """409, with the revision that is current."""
    if not fault.current:
        detail = _("There is no such ticket whose revision could be replaced.")
        return Problem("revision_conflict", detail, field="replaces")
    detail = _("Revision “%(current)s” is the current one. To replace it, name it in the field replaces.")
    return Problem(
        "revision_conflict", detail % {"current": fault.current}, field="revision", current_revision=fault.current
    )


@router.get(
    "",
    auth=Key(KeyScope.READ),
    summary="Read a ticket",
    response={200: schemas.TicketOut, **failures(404)},
)
def read(
    request: HttpRequest, ticket: schemas.Id = Query(...), source: schemas.Source | None = Query(None)
) -> dict[str, Any]:
    """Its state, its decision in force, and the sentence of where it waits and what would move it."""
    return ticket_out(ticket_of(key_of(request), ticket, source), now=DATABASE_CLOCK.now())


@router.post(
    "/withdraw",
    auth=Key(KeyScope.SEND),
    summary="Withdraw a ticket",
    response={200: schemas.Withdrawn, **failures(404, 413, 415)},
    openapi_extra=body_of(schemas.TicketName),
)
def withdraw(request: HttpRequest) -> dict[str, Any]:
    """The content is gone at the source: nobody reviews it any more, and nothing is decided. Safe to repeat."""
    named = read_as(request, schemas.TicketName)
    row = ticket_of(key_of(request), named.ticket, named.source)
    outcome = contract.withdraw(source=row.source, external_id=row.external_id, clock=DATABASE_CLOCK)
    assert outcome == ActOutcome.DONE, outcome  # a ticket is never deleted
    return {"outcome": "done", "source": row.source, "ticket": row.external_id}
