"""Reading on from a cursor, bounded in what is read however few of it fits."""

from collections.abc import Collection
from dataclasses import dataclass

from queue_core.models import Message
from queue_core.relay.numbering import newest_number, page

#: Numbers that one call looks through. A lane with a message in a million costs many calls, and no long one.
LOOKED_THROUGH = 10_000


@dataclass(frozen=True, slots=True)
class Slice:
    """Messages after a number. `next` is where to go on, also where none of them fitted; `more`: at once."""

    messages: list[Message]
    next: int
    more: bool


def read_on(
    after: int,
    limit: int,
    *,
    kinds: Collection[str] | None = None,
    lanes: Collection[int] | None = None,
    source: str | None = None,
) -> Slice:
    """Messages after a number that fit, in its order, at most `limit` and at most MOST_ON_A_PAGE.

    The end of what is looked through is read first: what gets a number meanwhile lies behind it and is for the next
    call.
    """
    newest = newest_number()
    end = _end_of_look(after) or newest
    found = page(after, limit, kinds=kinds, lanes=lanes, source=source, up_to=end)
    # Not by how many came: one that is withdrawn while it is read must not make a full page look like the last one.
    reached = found.full_at if found.full_at is not None else max(end, after)
    return Slice(found.messages, reached, reached < newest)


def _end_of_look(after: int) -> int | None:
    """The number of the last message to look at; None: there are not so many."""
    beyond = Message.objects.filter(number__gt=after).order_by("number").values_list("number", flat=True)
    return next(iter(beyond[LOOKED_THROUGH - 1 : LOOKED_THROUGH]), None)
