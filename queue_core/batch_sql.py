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
#: Walks `job_deadline` from its far end.
PICK_FOR_THE_PROBE = """
SELECT j.id FROM queue_core_job j
WHERE j.lane_id = %(lane)s AND j.state = 'WAITING' AND j.available_at IS NULL AND j.deadline > %(needs_until)s
  AND j.severity <= %(most_severe)s AND (j.attempts + 1 < j.max_attempts OR j.max_attempts = 1)
  AND NOT EXISTS (
    SELECT FROM queue_core_attempt a JOIN queue_core_stagerun r ON r.id = a.run_id
    WHERE a.job_id = j.id AND a.started_at >= %(outage_since)s AND r.number = 1)
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

#: Lease the jobs that were locked and judged, close what their last lease left open, and open their attempts.
LEASE = """
WITH leased AS (
  UPDATE queue_core_job
  SET state = 'LEASED', attempts = attempts + 1, fence = fence + 1, available_at = NULL,
      lease_until = LEAST(%(now)s + %(lease)s, deadline)
  WHERE id = ANY(%(jobs)s)
  RETURNING id, ticket_id, evidence_id, revision, severity, fence, attempts, max_attempts, lease_until, deadline,
            queued_at),
closed AS (
  UPDATE queue_core_attempt a SET ended_at = %(now)s, outcome = 'lease_expired'
  FROM leased WHERE a.job_id = leased.id AND a.fence = leased.fence - 1 AND a.ended_at IS NULL
  RETURNING a.id),
opened AS (
  INSERT INTO queue_core_attempt
    (job_id, lane_id, fence, key, worker, run_id, policy_id, connection_id, number, started_at, lease_until)
  SELECT id, %(lane)s, fence, gen_random_uuid(), %(worker)s, %(run)s, %(policy)s, %(connection)s, attempts,
         %(now)s, lease_until
  FROM leased
  RETURNING id, job_id, key)
SELECT leased.id, leased.fence, leased.revision, opened.id, opened.key, leased.lease_until, leased.deadline,
       leased.severity, leased.attempts, leased.max_attempts, t.source, t.external_id, e.body, e.is_restricted,
       leased.queued_at, (SELECT count(*) FROM closed)
FROM leased
JOIN opened ON opened.job_id = leased.id
JOIN queue_core_ticket t ON t.id = leased.ticket_id
JOIN queue_core_evidence e ON e.id = leased.evidence_id
ORDER BY leased.id
"""

#: The results of tokens that were judged good, on rows that are locked.
END_DONE = """
UPDATE queue_core_job j SET state = 'DONE', result = x.result, finished_at = %(now)s
FROM unnest(%(jobs)s::bigint[], %(results)s::text[]) x(id, result)
WHERE j.id = x.id
"""

#: The ends of their attempts, by primary key. One array a column: a CASE a row and column took 30 times as long.
CLOSE_ATTEMPTS = """
UPDATE queue_core_attempt a
SET ended_at = %(ended_at)s, is_committed = TRUE, outcome = x.outcome, latency = x.latency, scores = x.scores::jsonb,
    cause = x.cause, detail = x.detail, model = x.model, request_id = x.request_id, usage = x.usage::jsonb
FROM unnest(%(attempts)s::bigint[], %(outcome)s::text[], %(latency)s::interval[], %(scores)s::text[], %(cause)s::text[],
            %(detail)s::text[], %(model)s::text[], %(request_id)s::text[], %(usage)s::text[])
     x(id, outcome, latency, scores, cause, detail, model, request_id, usage)
WHERE a.id = x.id
"""
