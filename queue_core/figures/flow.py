"""What came in and what went out of each lane lately, from the kept figures."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queue_core import sums, tally
from queue_core.at_once import Told
from queue_core.states import ERROR_OUTCOMES, TIMEOUT_OUTCOMES, Result

#: Flow is told over this many whole minutes, and what has passed of the present one.
WINDOW = timedelta(minutes=5)
#: How far back the last completion is looked for.
LAST_WITHIN = timedelta(minutes=30)
FAILED = [outcome.value for outcome in (*ERROR_OUTCOMES, *TIMEOUT_OUTCOMES)]

#: The kept figures say in which minute something was completed last; within it one walk back finds when. Not beyond it:
#: calls that fail since then may be many thousands.
LAST = """
SELECT 'last', l.id, NULL::text, NULL::bigint, (
  SELECT a.ended_at FROM queue_core_attempt a
  WHERE a.lane_id = l.id AND a.ended_at >= m.minute AND a.ended_at < m.minute + interval '1 minute'
    AND a.ended_at <= %(now)s::timestamptz AND a.is_committed
  ORDER BY a.ended_at DESC LIMIT 1)
FROM unnest(%(lanes)s::bigint[]) AS l(id)
LEFT JOIN (
  SELECT lane_id, max(minute) AS minute FROM fresh
  WHERE minute >= %(last_since)s::timestamptz AND minute <= %(now)s::timestamptz AND counts ?| %(results)s::text[]
  GROUP BY lane_id
) f ON f.lane_id = l.id
CROSS JOIN LATERAL (
  SELECT greatest(f.minute, (
    SELECT minute FROM queue_core_laneminute
    WHERE (lane_id, minute) >= (l.id, %(last_since)s::timestamptz) AND (lane_id, minute) <= (l.id, %(now)s::timestamptz)
      AND counts ?| %(results)s::text[]
    ORDER BY lane_id DESC, minute DESC LIMIT 1)) AS minute OFFSET 0
) m
WHERE m.minute IS NOT NULL
"""
FLOWS = (sums.COUNT_PART, LAST)


@dataclass(frozen=True, slots=True)
class Flow:
    """Of the last minutes, a minute. `reviewed` are results of the model, also those that went on to people; `errors`
    are calls that ended in an error or a timeout."""

    decided: float
    arriving: float
    reviewed: float
    last_completed_at: datetime | None
    errors: float = 0.0

    @property
    def growth(self) -> float:
        """By how many the machine's queue grows a minute. Below zero it shrinks."""
        return self.arriving - self.reviewed


def flow_params(lane_ids: Collection[int], *, now: datetime) -> dict[str, Any]:
    """What FLOWS asks about these lanes."""
    return {
        "now": now,
        "lanes": list(lane_ids),
        "count_since": tally.minute_of(now) - WINDOW,
        "count_until": now,
        "last_since": tally.minute_of(now - LAST_WITHIN),
        "results": [f"{tally.RESULT}.{result.value}" for result in Result],
    }


def flows_from(told: Told, lane_ids: Collection[int], *, now: datetime) -> dict[int, Flow]:
    """How each lane flows, by its id, from rows that were told."""
    minutes = (now - tally.minute_of(now) + WINDOW) / tally.MINUTE
    last = {row.lane: row.moment for row in told.get("last", ())}
    return {
        lane: Flow(
            decided=counts.decided / minutes,
            arriving=counts.added / minutes,
            reviewed=counts.completed / minutes,
            last_completed_at=last.get(lane),
            errors=counts.ended(*FAILED) / minutes,
        )
        for lane, counts in sums.counts_from(told, lane_ids).items()
    }
