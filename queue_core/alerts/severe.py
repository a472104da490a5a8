"""Tickets of the highest severity that nobody looks at: an index of items, and what the kept figures know of jobs."""

from collections.abc import Collection
from datetime import datetime

from django.db import connection

from queue_core.models.lanes import SEVERITIES
from queue_core.states import NOT_OPEN_SQL

SEVERE = SEVERITIES[-1]

#: At most so many open items of that severity are asked for the oldest.
MOST_READ = 1_000

#: An item that somebody has taken is looked at; one whose time is over is not.
WITH_PEOPLE = f"""
SELECT l.id, (
  SELECT min(i.opened_at) FROM (
    SELECT opened_at FROM queue_core_item
    WHERE lane_id = l.id AND closed_at IS NULL AND severity = %s AND kind NOT IN {NOT_OPEN_SQL}
      AND (taken_by_id IS NULL OR taken_until <= %s)
    LIMIT %s) i)
FROM unnest(%s::bigint[]) AS l(id)
"""  # noqa: S608  (constants of ours)

#: Which lanes hold WAITING jobs of that severity at all. Nearly always none: they go to people at intake.
HOLDING = """
SELECT l.id FROM unnest(%s::bigint[]) AS l(id)
WHERE EXISTS (SELECT FROM queue_core_waitingdue d WHERE d.lane_id = l.id AND d.severity = %s AND d.number <> 0)
   OR EXISTS (SELECT FROM queue_core_figurechange f, jsonb_object_keys(f.due) k
              WHERE f.lane_id = l.id AND k LIKE %s)
"""

#: Asked only of those: the walk from the oldest ends at the first one.
WAITING = """
SELECT l.id, (
  SELECT queued_at FROM queue_core_job
  WHERE lane_id = l.id AND state = 'WAITING' AND severity = %s ORDER BY queued_at LIMIT 1)
FROM unnest(%s::bigint[]) AS l(id)
"""


def severe_waiting(lane_ids: Collection[int], *, now: datetime) -> dict[int, datetime]:
    """Since when the oldest one of each lane waits, for people or for the model. Lanes without any are left out."""
    ids = list(lane_ids)
    with connection.cursor() as cursor:
        cursor.execute(WITH_PEOPLE, [SEVERE, now, MOST_READ, ids])
        found = [(lane, since) for lane, since in cursor.fetchall() if since is not None]
        cursor.execute(HOLDING, [ids, SEVERE, f"%.{SEVERE}"])
        holding = [lane for (lane,) in cursor.fetchall()]
        if holding:
            cursor.execute(WAITING, [SEVERE, holding])
            found += [(lane, since) for lane, since in cursor.fetchall() if since is not None]
    oldest: dict[int, datetime] = {}
    for lane, since in found:
        oldest[lane] = min(since, oldest.get(lane, since))
    return oldest
