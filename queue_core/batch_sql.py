"""The statements of the batch core. Each is a constant, so that it can be prepared and its plan tested."""

#: Steady claims: the most urgent jobs that have time for a call. Walks `job_claimable` in its order and stops at the
#: limit; rows that another claim holds are passed over. LIMIT stands beside FOR UPDATE at the top level, where it
#: cannot be run again for each row (PGQ-04).
PICK_MOST_URGENT = """
SELECT id FROM queue_core_job
WHERE lane_id = %(lane)s AND state = 'WAITING' AND available_at IS NULL AND deadline > %(needs_until)s
ORDER BY urgency, id
LIMIT %(limit)s
FOR NO KEY UPDATE SKIP LOCKED
"""

#: The probe's choice: the most time left, harmless, not on the last attempt, each ticket at most once an outage.
#: Walks `job_deadline` from its far end, and asks for each job's own attempts: without OFFSET 0 it could become a join
#: that reads all attempts first.
PICK_FOR_THE_PROBE = """
SELECT j.id FROM queue_core_job j
WHERE j.lane_id = %(lane)s AND j.state = 'WAITING' AND j.available_at IS NULL AND j.deadline > %(needs_until)s
  AND j.severity <= %(most_severe)s AND (j.attempts + 1 < j.max_attempts OR j.max_attempts = 1)
  AND NOT EXISTS (
    SELECT FROM queue_core_attempt a JOIN queue_core_stagerun r ON r.id = a.run_id
    WHERE a.job_id = j.id AND a.started_at >= %(outage_since)s AND r.number = 1 OFFSET 0)
ORDER BY j.deadline DESC, j.id DESC
LIMIT %(limit)s
FOR NO KEY UPDATE OF j SKIP LOCKED
"""

#: One expired lease, the longest over first. Its holder may still be killing workers, so it is claimed alone.
PICK_EXPIRED = """
SELECT id FROM queue_core_job
WHERE lane_id = %(lane)s AND state = 'LEASED' AND lease_until <= %(now)s
  AND deadline > %(needs_until)s AND attempts < max_attempts
ORDER BY lease_until
LIMIT 1
FOR NO KEY UPDATE SKIP LOCKED
"""

#: Heads of the claimable index that time has ended. `%(now)s` is a value, so it can bound an index.
PICK_PASSED_DEADLINES = """
SELECT id FROM queue_core_job
WHERE lane_id = %(lane)s AND state = 'WAITING' AND deadline <= %(now)s
ORDER BY deadline, id
LIMIT %(limit)s
"""
