"""What goes out, for whoever asks for it: messages by their number, which nothing committed later is ever below."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Router
from ninja.params.functions import Query

from queue_core import relay
from queue_core.models.api_keys import KeyScope
from queue_core.states import MessageKind
from reviewboard.api import schemas
from reviewboard.api.described import failures
from reviewboard.api.keys import Key, key_of
from reviewboard.api.problems import Problem

router = Router(tags=["decisions"])
MOST = relay.MOST_ON_A_PAGE
LARGEST = 2**63 - 1
PAGED = tuple(kind.value for kind in MessageKind if kind != MessageKind.TEST)
MOST_KINDS = len(PAGED)
DECISIONS = tuple(kind for kind in PAGED if kind.startswith("decision"))


@router.get(
    "/decisions",
    auth=Key(KeyScope.READ),
    summary="Read decisions since a cursor",
    response={200: schemas.MessagePage, **failures()},
)
def decisions(
    request: HttpRequest,
    after: int = Query(0, ge=0, le=LARGEST, description="The `next` of the page before; 0 at the very first."),
    limit: int = Query(100, ge=1, le=MOST),
) -> dict[str, Any]:
    """Decisions and what became of them later, each as the message that webhooks carry, in the order of their numbers.

    Keep `next` when you have handled a page, and begin there next time. A page may be empty and still move on."""
    return page(request, after, limit, DECISIONS)


@router.get(
    "/messages",
    auth=Key(KeyScope.READ),
    summary="Read all messages since a cursor",
    response={200: schemas.MessagePage, **failures()},
)
def messages(
    request: HttpRequest,
    after: int = Query(0, ge=0, le=LARGEST),
    limit: int = Query(100, ge=1, le=MOST),
    kind: list[str] = Query([], max_length=MOST_KINDS, description="Only these kinds; none named: all."),
) -> dict[str, Any]:
    """Items opened, tickets dead, lanes on hold and the like beside decisions."""
    unknown = sorted(set(kind) - set(PAGED))
    if unknown:
        raise Problem("invalid_request", _("There is no such kind of message."), field="kind", accepted=list(PAGED))
    return page(request, after, limit, tuple(kind) or PAGED)


def page(request: HttpRequest, after: int, limit: int, kinds: tuple[str, ...]) -> dict[str, Any]:
    key = key_of(request)
    found = relay.read_on(after, limit, kinds=kinds, lanes=key.lanes or None, source=key.source or None)
    return {
        "messages": [relay.envelope(message) for message in found.messages],
        "next": found.next,
        "more": found.more,
    }
