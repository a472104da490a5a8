"""The heads of the indexes that pages look into, kept short while claims run.

A job that is claimed leaves its entry at the head of its lane's index of waits, and one that ends in that of leases.
The first to walk over such entries looks each up in the table, finds it gone for everybody, and marks it; after that it
costs nothing. Claims walk other indexes: at hundreds of claims a second thousands would wait for the next page.
"""

from queue_core import prepared

WALK = """
SELECT count(w.queued_at), count(r.lease_until)
FROM queue_core_lane l
LEFT JOIN LATERAL (
  SELECT queued_at FROM queue_core_job WHERE lane_id = l.id AND state = 'WAITING' ORDER BY queued_at LIMIT 1
) w ON TRUE
LEFT JOIN LATERAL (
  SELECT lease_until FROM queue_core_job WHERE lane_id = l.id AND state = 'LEASED' ORDER BY lease_until LIMIT 1
) r ON TRUE
WHERE l.run_id IS NOT NULL
"""


def walk_heads() -> tuple[int, int]:
    """Walk to the first entry of each running lane that is not gone. In how many lanes something waits, and runs."""
    [[waiting, running]] = prepared.run(WALK, {}).fetchall()
    return waiting, running
