"""Sums of people's work for their leads: how much, how long, how decided, how often two agreed. Nobody is ranked.

Read from the rows of closed items, the newest first and never more than MOST_READ of a lane, so that the page costs the
same after a storm. A sum that was cut says so.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import F

from queue_core.models import ItemPass
from queue_core.states import PassedAs

#: Closed items of one lane that are read; a team of fifty closes about so many in a week.
MOST_READ = 20_000
#: The windows that a lead may ask for.
WINDOWS = {"1": timedelta(days=1), "7": timedelta(days=7)}

#: What a person ended of each lane, without what they took back. Its length is from taking the item to its end.
HANDLED = """
WITH closed AS (
  SELECT l.id AS lane, i.id, i.fence, i.closed_as, i.closed_at
  FROM unnest(%(lanes)s::bigint[]) AS l(id)
  CROSS JOIN LATERAL (
    SELECT id, fence, closed_as, closed_at FROM queue_core_item
    WHERE lane_id = l.id AND closed_at IS NOT NULL AND closed_at > %(since)s
    ORDER BY closed_at DESC LIMIT %(most)s) i),
ended AS (
  SELECT closed.lane, s.person_id, s.ended_at - s.taken_at AS length, coalesce(d.verdict, closed.closed_as) AS ended_as
  FROM closed
  JOIN queue_core_assignment s ON s.item_id = closed.id AND s.fence = closed.fence AND s.ended_as = closed.closed_as
  LEFT JOIN queue_core_decision d ON d.assignment_id = s.id
  WHERE closed.closed_as IN ('decided', 'requeued', 'checked')
    AND NOT EXISTS (SELECT FROM queue_core_decision n WHERE n.replaces_id = d.id AND n.why = 'taken_back'))
SELECT {key}, ended_as, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY length)
FROM ended GROUP BY GROUPING SETS (({key}), ({key}, ended_as))
"""
BY_LANE, BY_PERSON = HANDLED.format(key="lane"), HANDLED.format(key="person_id")

LOOKS = """
SELECT lane_id, count(*), count(*) FILTER (WHERE agrees) FROM queue_core_secondlook
WHERE lane_id = ANY(%(lanes)s::bigint[]) AND looked_at > %(since)s GROUP BY lane_id
"""

PASSES = """
SELECT lane_id, passed_as, count(*) FROM queue_core_itempass
WHERE lane_id = ANY(%(lanes)s::bigint[]) AND at > %(since)s GROUP BY 1, 2
"""


@dataclass(slots=True)
class Sums:
    """What a lane's people, or one person, ended in the time asked for.

    `ended` is by verdict (APPROVED, REJECTED) and by other end (requeued, checked); `median` is the usual time for one
    item, None without any. `looks` counts second looks, `agreed` those of them that found the same.
    """

    handled: int = 0
    median: timedelta | None = None
    ended: dict[str, int] = field(default_factory=dict)
    looks: int = 0
    agreed: int = 0
    passed: dict[str, int] = field(default_factory=dict)

    @property
    def is_cut(self) -> bool:
        return self.handled >= MOST_READ

    @property
    def agreement(self) -> float | None:
        """The share of second looks that agreed; None where nobody looked."""
        return self.agreed / self.looks if self.looks else None


def of_lanes(lane_ids: Collection[int], *, since: datetime) -> dict[int, Sums]:
    """The sums of each lane, also of those in which nothing happened."""
    found = {pk: Sums() for pk in lane_ids}
    params: dict[str, Any] = {"lanes": list(lane_ids), "since": since, "most": MOST_READ}
    _fill(found, BY_LANE, params)
    with connection.cursor() as cursor:
        cursor.execute(LOOKS, params)
        for lane, looks, agreed in cursor.fetchall():
            found[lane].looks, found[lane].agreed = looks, agreed
        cursor.execute(PASSES, params)
        for lane, passed_as, number in cursor.fetchall():
            found[lane].passed[passed_as] = number
    return found


def of_people(lane_ids: Collection[int], *, since: datetime) -> dict[int, Sums]:
    """The sums of each person who ended something, by their key; asking needs a right of its own."""
    found: dict[int, Sums] = {}
    _fill(found, BY_PERSON, {"lanes": list(lane_ids), "since": since, "most": MOST_READ})
    return found


def last_skips(lane_ids: Collection[int], *, since: datetime, limit: int = 20) -> Sequence[ItemPass]:
    """Who skipped what and why, the newest first; with `is_restricted`, of the item's evidence."""
    rows = ItemPass.objects.filter(lane_id__in=lane_ids, at__gt=since, passed_as=PassedAs.SKIPPED)
    rows = rows.annotate(is_restricted=F("item__job__evidence__is_restricted"))
    return list(rows.select_related("person", "item__ticket", "lane").order_by("-at", "-pk")[:limit])


def _fill(found: dict[int, Sums], statement: str, params: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        for key, ended_as, number, median in cursor.fetchall():
            sums = found.setdefault(key, Sums())
            if ended_as is None:
                sums.handled, sums.median = number, median
            else:
                sums.ended[ended_as] = number
