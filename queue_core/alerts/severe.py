"""Tickets of the highest severity that nobody looks at: probes of two small indexes."""

from collections.abc import Collection
from datetime import datetime

from django.db import connection

from queue_core.models.lanes import SEVERITIES

SEVERE = SEVERITIES[-1]

#: At most so many open items of that severity are asked for the oldest.
MOST_READ = 1_000

#: An item that somebody has taken is looked at; one whose time is over is not.
OLDEST = """
SELECT l.id, least(
  (SELECT min(i.opened_at) FROM (
     SELECT opened_at FROM queue_core_item
     WHERE lane_id = l.id AND closed_at IS NULL AND severity = %s AND (taken_by_id IS NULL OR taken_until <= %s)
     LIMIT %s) i),
  (SELECT min(j.queued_at) FROM queue_core_job j WHERE j.lane_id = l.id AND j.state = 'WAITING' AND j.severity = %s))
FROM unnest(%s::bigint[]) AS l(id)
"""


def severe_waiting(lane_ids: Collection[int], *, now: datetime) -> dict[int, datetime]:
    """Since when the oldest one of each lane waits, for people or for the model. Lanes without any are left out."""
    with connection.cursor() as cursor:
        cursor.execute(OLDEST, [SEVERE, now, MOST_READ, SEVERE, list(lane_ids)])
        return {lane: since for lane, since in cursor.fetchall() if since is not None}
