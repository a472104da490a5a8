"""Appeals, sent on by the source whose author objects."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from ninja import Router, Status

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models.api_keys import KeyScope
from queue_core.people import AppealOutcome
from reviewboard.api import schemas
from reviewboard.api.admission import ticket_of
from reviewboard.api.bodies import read_as
from reviewboard.api.described import body_of, failures
from reviewboard.api.keys import Key, key_of
from reviewboard.api.problems import Problem
from reviewboard.api.ticket_state import decision_that_is_out

router = Router(tags=["tickets"])

IMPOSSIBLE: dict[AppealOutcome, str | Promise] = {
    AppealOutcome.FINAL: gettext_lazy("The decision in force was itself made on an appeal: it is final."),
    AppealOutcome.NOTHING_DECIDED: gettext_lazy("There is no decision in force to appeal against."),
    AppealOutcome.NOT_CURRENT: gettext_lazy("This revision is no longer current, or the ticket was withdrawn."),
}


@router.post(
    "/appeal",
    auth=Key(KeyScope.APPEAL),
    summary="Appeal against a decision",
    response={201: schemas.Appealed, 200: schemas.Appealed, **failures(404, 409, 413, 415)},
    openapi_extra=body_of(schemas.AppealIn),
)
def appeal(request: HttpRequest) -> Status[Any]:
    """Against the decision in force. A person who had no part in it looks anew; what comes of it goes out as a decision
    with `appeal`: upheld or overturned. 201 for a new appeal, 200 where this decision was appealed against before."""
    asked = read_as(request, schemas.AppealIn)
    ticket = ticket_of(key_of(request), asked.ticket, asked.source)
    if decision_that_is_out(ticket) is None:
        # One that consumers may not know of yet is none for them.
        raise _impossible(AppealOutcome.NOTHING_DECIDED)
    appealed = people.appeal(
        source=ticket.source,
        external_id=ticket.external_id,
        revision=asked.revision,
        statement=asked.statement,
        person=key_of(request),
        clock=DATABASE_CLOCK,
    )
    if appealed.outcome == AppealOutcome.MISSING:
        raise Problem("not_found", _("There is no such ticket."))
    if appealed.outcome in IMPOSSIBLE:
        raise _impossible(appealed.outcome)
    told = {"outcome": appealed.outcome.value, "source": ticket.source, "ticket": ticket.external_id}
    return Status(201 if appealed.outcome == AppealOutcome.OPENED else 200, told)


def _impossible(outcome: AppealOutcome) -> Problem:
    return Problem("not_possible", str(IMPOSSIBLE[outcome]), reason=outcome.value)
