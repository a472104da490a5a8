"""What came in and what went out of each lane lately, by probes of time-ordered indexes."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

#: Flow is told over this long.
WINDOW = timedelta(minutes=5)
#: The newest jobs are walked back until here; more arrivals than this in the window read as at least so many.
MOST_WALKED = 10_001

#: Jobs have no index by their time of arrival: one more on the hot table would be paid for by every claim. Their keys
#: rise with time, so the newest are walked back by the primary key and stop at the limit.
ARRIVED = """
SELECT lane_id, count(*) FROM (
  SELECT lane_id, added_at FROM queue_core_job ORDER BY id DESC LIMIT %s
) newest
WHERE added_at > %s AND added_at <= %s GROUP BY lane_id
"""

ENDED = """
SELECT l.id,
  (SELECT count(*) FROM queue_core_decision d
   WHERE d.lane_id = l.id AND d.decided_at > %s AND d.decided_at <= %s AND d.verdict IS NOT NULL),
  (SELECT count(*) FROM queue_core_attempt a
   WHERE a.lane_id = l.id AND a.ended_at > %s AND a.ended_at <= %s AND a.is_committed),
  (SELECT max(a.ended_at) FROM queue_core_attempt a
   WHERE a.lane_id = l.id AND a.ended_at > %s AND a.ended_at <= %s AND a.is_committed)
FROM unnest(%s::bigint[]) AS l(id)
"""

#: How far back the last completion is looked for.
LAST_WITHIN = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Flow:
    """Of the last five minutes, a minute. `reviewed` are results of the model, also those that went on to people."""

    decided: float
    arriving: float
    reviewed: float
    last_completed_at: datetime | None

    @property
    def growth(self) -> float:
        """By how many the machine's queue grows a minute. Below zero it shrinks."""
        return self.arriving - self.reviewed


def flows(lane_ids: Collection[int], *, now: datetime) -> dict[int, Flow]:
    since, minutes = now - WINDOW, WINDOW.total_seconds() / 60
    with connection.cursor() as cursor:
        cursor.execute(ARRIVED, [MOST_WALKED, since, now])
        arrived = dict(cursor.fetchall())
        cursor.execute(ENDED, [since, now, since, now, now - LAST_WITHIN, now, list(lane_ids)])
        ended = cursor.fetchall()
    return {
        lane: Flow(decided / minutes, arrived.get(lane, 0) / minutes, reviewed / minutes, last)
        for lane, decided, reviewed, last in ended
    }
