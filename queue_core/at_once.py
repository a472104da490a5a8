"""Many small readings of lanes in one statement, planned once: a page's figures cost one way to the database.

A part is a SELECT of five columns: a word that names it, the lane, a code, a number and a moment, each of the last four
empty where it has no meaning. Each part stands beside the rule that it serves; who reads several joins them here.

A part may read `fresh`: the changes of the lanes (`%(lanes)s`) that are not folded into the kept figures yet. While
claims run their table holds more rows that are gone than ones that are not, so it is gone through once, not by each.
"""

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


FRESH = """
WITH fresh AS MATERIALIZED (
  SELECT lane_id, minute, counts, totals, due FROM queue_core_figurechange WHERE lane_id = ANY(%(lanes)s::bigint[]))
"""

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
    return FRESH + joined if "FROM fresh" in joined else joined
