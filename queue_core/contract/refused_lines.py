"""Lines of uploaded files that did not go in hold content too: an erasure reaches those that name its ticket."""

import json

from django.db import connection

from queue_core.models import Ticket
from queue_core.models.imports import digest_of

#: A line that names its ticket is found by that name. One that is too broken to name any is searched for the id itself:
#: rather a line too many, which its sender still has, than one too few. Locked in the order of keys.
FORGET = """
WITH named AS (
  SELECT id FROM queue_core_importrefusal
  WHERE raw IS NOT NULL AND (ticket = %(name)s
    OR (ticket IS NULL AND (position(%(plain)s::bytea IN raw) > 0 OR position(%(escaped)s::bytea IN raw) > 0)))
  ORDER BY id FOR NO KEY UPDATE)
UPDATE queue_core_importrefusal r SET raw = NULL FROM named WHERE r.id = named.id
"""


def forget_lines(ticket: Ticket) -> int:
    """Blank the refused lines of a ticket. Returns how many.

    The caller holds the ticket's row lock, which whoever keeps a refused line of it takes first: a line comes either
    before this look or after the erasure that it then knows of.
    """
    plain, escaped = ticket.external_id.encode(), json.dumps(ticket.external_id)[1:-1].encode()
    name = digest_of(ticket.source, ticket.external_id)
    with connection.cursor() as cursor:
        cursor.execute(FORGET, {"name": name, "plain": plain, "escaped": escaped})
        return int(cursor.rowcount)
