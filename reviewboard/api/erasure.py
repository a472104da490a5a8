"""Content erased on request, unless it is kept for a lawful reason."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Router

from queue_core import rights
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract.erase import EraseOutcome, erase
from queue_core.models.api_keys import KeyScope
from reviewboard.api import schemas
from reviewboard.api.admission import ticket_of
from reviewboard.api.bodies import read_as
from reviewboard.api.described import body_of, failures
from reviewboard.api.keys import Key, key_of
from reviewboard.api.problems import Problem

router = Router(tags=["tickets"])
RIGHT = "erase_evidence"


@router.post(
    "/erase",
    auth=Key(KeyScope.ERASE),
    summary="Erase a ticket's content",
    response={200: schemas.ErasedOut, **failures(404, 409, 413, 415)},
    openapi_extra=body_of(schemas.EraseIn),
)
def erase_content(request: HttpRequest) -> dict[str, Any]:
    """In all of its revisions, on a stated ground. What was decided and why stays, without what was said about it. 409
    while it is kept for a lawful reason. Safe to repeat: the second time there is nothing left."""
    asked, key = read_as(request, schemas.EraseIn), key_of(request)
    ticket = ticket_of(key, asked.ticket, asked.source)
    rights.require(key, RIGHT, ticket.lane_id)
    erased = erase(ticket.pk, ground=asked.ground, actor=key, clock=DATABASE_CLOCK)
    if erased.outcome == EraseOutcome.PRESERVED and erased.until is not None:
        until = erased.until.isoformat()
        raise Problem("preserved", _("It is kept for a lawful reason until %(until)s.") % {"until": until}, until=until)
    if erased.outcome == EraseOutcome.MISSING:
        raise Problem("not_found", _("There is no such ticket."))
    told = {"source": ticket.source, "ticket": ticket.external_id, "revisions": erased.revisions}
    return {"outcome": erased.outcome.value, **told}
