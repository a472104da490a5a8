"""Many small readings of lanes in one statement, planned once: a page's figures cost one way to the database.

A part is a SELECT of five columns: a word that names it, the lane, a code, a number and a moment, each of the last four
empty where it has no meaning. Each part stands beside the rule that it serves; who reads several joins them here.

What several parts read stands in SHARED, and is gone through once: the indexes and tables behind it hold more rows
that are gone than ones that are not, while claims run.

Planned once means: by what the tables were when a session first asked, be they empty. So no part leaves a choice that
a small table makes otherwise. A row is found by its key in a subquery of its own, not by a join that may be hashed; the
last of a lane's minutes is found by comparing both columns of its index, since one of the minute alone has the same
order, and every other lane's rows in it.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from queue_core import prepared


class Row(NamedTuple):
    """One row of a part. The types are those of the five columns; a part's own note says which of them it fills."""

    lane: int
    code: str
    number: int
    moment: datetime


#: So many of the oldest waiting are asked what their content does meanwhile, each by a look into the tickets. The
#: lane's page looks into many more.
HEADS = 25

#: By name, of the lanes (`%(lanes)s`): `fresh` are the changes that are not folded into the kept figures yet, `heads`
#: the jobs that wait longest. How many is written into it: a plan for all values takes a bound that it does not know
#: for a tenth of the table.
SHARED = {
    "fresh": """
fresh AS MATERIALIZED (
  SELECT lane_id, minute, counts, totals, due FROM queue_core_figurechange WHERE lane_id = ANY(%(lanes)s::bigint[]))
""",
    "heads": f"""
heads AS MATERIALIZED (
  SELECT l.id AS lane_id, j.queued_at, j.available_at, j.deadline, j.ticket_id
  FROM unnest(%(lanes)s::bigint[]) AS l(id)
  CROSS JOIN LATERAL (
    SELECT queued_at, available_at, deadline, ticket_id FROM queue_core_job
    WHERE lane_id = l.id AND state = 'WAITING' ORDER BY queued_at LIMIT {HEADS}) j)
""",  # noqa: S608  (put together from constants)
}

type Told = Mapping[str, Sequence[Row]]


def tell(parts: Sequence[str], params: Mapping[str, Any]) -> Told:
    """The rows of all parts by their word; a part without rows is left out. `params` are those of every part."""
    found: dict[str, list[Row]] = {}
    for word, *columns in prepared.run(_joined(tuple(parts)), params).fetchall():
        found.setdefault(word, []).append(Row(*columns))
    return found


@cache
def _joined(parts: tuple[str, ...]) -> str:
    joined = " UNION ALL ".join(f"({part})" for part in parts)
    shared = ",".join(rows for name, rows in SHARED.items() if re.search(rf"\bFROM {name}\b", joined))
    return f"WITH {shared} {joined}" if shared else joined
