"""The statements of a claim: lock and look, then lease. One job by its id, or the most urgent ones of a lane.

Each is a constant, so that it can be prepared and its plan tested (tests/plans).
"""

from queue_core import tally

#: A lane under its lock, by the lane's own key. The clock is read when the lock is held: the row comes from a step of
#: its own. The run is joined as it was before the lock was waited for; what is read of it never changes, and a run that
#: began meanwhile is missing, which the caller sees.
LOCK_LANE = """
WITH lane AS MATERIALIZED (
  SELECT id, cap, lease, run_id, policy_id, connection_id, claims_not_before, judged_at, usual_call_time,
         least_call_time
  FROM queue_core_lane WHERE id = %(lane)s FOR NO KEY UPDATE)
SELECT lane.*, r.number, r.rate, COALESCE(%(now)s::timestamptz, clock_timestamp())
FROM lane LEFT JOIN queue_core_stagerun r ON r.id = lane.run_id
"""

#: As LOCK_LANE, by one of its jobs, with the job and its ticket locked after it and before the clock is read.
LOCK_LANE_AND_JOB = """
WITH lane AS MATERIALIZED (
  SELECT id, cap, lease, run_id, policy_id, connection_id, claims_not_before, judged_at, usual_call_time,
         least_call_time
  FROM queue_core_lane WHERE id = (SELECT lane_id FROM queue_core_job WHERE id = %(job)s) FOR NO KEY UPDATE),
ticket AS MATERIALIZED (
  SELECT id FROM queue_core_ticket
  WHERE id = (SELECT ticket_id FROM queue_core_job WHERE id = %(job)s) AND (SELECT count(*) FROM lane) >= 0
  FOR NO KEY UPDATE),
job AS MATERIALIZED (
  SELECT id, lane_id, revision, state, dead_reason, severity, available_at, queued_at, fence, attempts, max_attempts,
         deadline, lease_until, result
  FROM queue_core_job WHERE id = %(job)s AND (SELECT count(*) FROM ticket) >= 0
  FOR NO KEY UPDATE)
SELECT lane.*, r.number, r.rate, COALESCE(%(now)s::timestamptz, clock_timestamp()), job.*
FROM job JOIN lane ON lane.id = job.lane_id LEFT JOIN queue_core_stagerun r ON r.id = lane.run_id
"""

#: Running leases of a lane whose row is locked: open attempts whose lease is not over. No open attempt has a smaller
#: key than `oldest`: under the lock keys are given in order, and what is closed stays closed. So an old snapshot, which
#: keeps closed rows in the index, costs no more than what was closed since that was last looked at.
RUNNING = """
running AS MATERIALIZED (
  SELECT count(*) FILTER (WHERE lease_until > %(now)s) AS number, min(id) AS oldest FROM queue_core_attempt
  WHERE lane_id = %(lane)s AND ended_at IS NULL AND id >= %(oldest)s)
"""

#: A claim reads the clock first and may then see a job that came in, or came back, since: no attempt starts before its
#: job was queued, by which its budget is counted.
_OPEN_ATTEMPTS = """
  INSERT INTO queue_core_attempt
    (id, job_id, lane_id, fence, key, worker, run_id, policy_id, connection_id, number, started_at, lease_until)
  SELECT attempt, id, %(lane)s, fence, key, %(worker)s, %(run)s, %(policy)s, %(connection)s, attempts,
         GREATEST(%(now)s, queued_at), lease_until
  FROM leased
"""

_LEASE_ROWS = """
  SET state = 'LEASED', attempts = attempts + 1, fence = fence + 1, available_at = NULL,
      lease_until = LEAST(%(now)s + %(lease)s, deadline)
"""

#: With the attempt's key in the order of the lane's claims, and its random id: the call's own, with the job's number at
#: its end, since PostgreSQL's function asks the system for randomness once a row.
_LEASED_FIELDS = """
  id, ticket_id, evidence_id, revision, severity, fence, attempts, max_attempts, lease_until, deadline, queued_at,
  urgency, nextval('queue_core_attempt_id_seq') AS attempt,
  overlay(%(seed)s PLACING lpad(to_hex(mod(id, 4294967296)), 8, '0') FROM 25)::uuid AS key
"""

_CLAIMED = """
SELECT leased.id, leased.fence, leased.revision, leased.attempt, leased.key, leased.lease_until, leased.deadline,
       leased.severity, leased.attempts, leased.max_attempts, t.source, t.external_id, e.body, e.is_restricted
"""

_CLAIMED_FROM = """
FROM leased
JOIN queue_core_ticket t ON t.id = leased.ticket_id
JOIN queue_core_evidence e ON e.id = leased.evidence_id
"""

_WAIT_ENDS = ", ".join(f"interval '{end.total_seconds():g} s'" for end in tally.WAIT_ENDS)

#: Steady claims: pick, lease, open attempts, note figures, in one statement. The pick walks `job_claimable` in order
#: from `since` on and stops at its limit; rows that another claim holds are passed over. As an array it is picked once,
#: whatever the planner does with the rest (PGQ-04). The limit is what the cap leaves, counted here since the lane is
#: locked before this statement begins; a connection with a cap of its own leaves nothing here, and is claimed for in
#: steps. The last column says whether a deadline has passed: in order and not as EXISTS, for which a generic plan took
#: any index of the lane and walked its whole backlog.
CLAIM_MOST_URGENT = f"""
WITH {RUNNING},
leased AS (
  UPDATE queue_core_job {_LEASE_ROWS}
  WHERE id = ANY(ARRAY(
    SELECT id FROM queue_core_job
    WHERE lane_id = %(lane)s AND state = 'WAITING' AND available_at IS NULL AND deadline > %(needs_until)s
      AND urgency >= %(since)s
    ORDER BY urgency, id
    LIMIT (
      SELECT CASE WHEN total_cap IS NULL THEN GREATEST(LEAST(%(limit)s, %(cap)s - running.number), 0) ELSE 0 END
      FROM queue_core_modelconnection c, running WHERE c.id = %(connection)s)
    FOR NO KEY UPDATE SKIP LOCKED))
  RETURNING {_LEASED_FIELDS}),
opened AS ({_OPEN_ATTEMPTS}),
figures AS (
  INSERT INTO queue_core_figurechange (lane_id, minute, counts, totals, due)
  SELECT %(lane)s, date_trunc('minute', %(now)s),
         jsonb_build_object('{tally.CLAIMED}', number) || (
           SELECT jsonb_object_agg('{tally.WAIT}.' || bucket, number) FROM (
             SELECT width_bucket(%(now)s - queued_at, ARRAY[{_WAIT_ENDS}]) AS bucket, count(*) AS number
             FROM leased GROUP BY 1) waits),
         jsonb_build_object('WAITING', -number, 'LEASED', number) || (
           SELECT jsonb_object_agg('{tally.LEFT}.' || attempts_left, -number) FROM (
             SELECT LEAST(GREATEST(max_attempts - attempts + 1, 1), {tally.MOST_LEFT}) AS attempts_left,
                    count(*) AS number
             FROM leased GROUP BY 1) lefts),
         (SELECT jsonb_object_agg(minute || '.' || severity, -number) FROM (
           SELECT floor(extract(epoch FROM deadline) / 60)::bigint AS minute, severity, count(*) AS number
           FROM leased GROUP BY 1, 2) dues)
  FROM (SELECT count(*) AS number FROM leased) claims WHERE number > 0)
{_CLAIMED}, leased.urgency, (SELECT oldest FROM running),
  (SELECT TRUE FROM queue_core_job WHERE lane_id = %(lane)s AND state = 'WAITING' AND deadline <= %(now)s
   ORDER BY deadline, id LIMIT 1)
{_CLAIMED_FROM}
"""  # noqa: S608  put together from constants

#: Lease jobs that were locked and judged, close what their last lease left open, and open their attempts, as far as
#: the cap leaves room, and none where the connection has a cap of its own that nobody has measured. `closed` counts
#: what was left open.
LEASE = f"""
WITH {RUNNING},
leased AS (
  UPDATE queue_core_job {_LEASE_ROWS}
  WHERE id = ANY((%(jobs)s::bigint[])[:(
    SELECT CASE WHEN %(is_measured)s OR total_cap IS NULL THEN %(cap)s - running.number ELSE 0 END
    FROM queue_core_modelconnection c, running WHERE c.id = %(connection)s)::int])
  RETURNING {_LEASED_FIELDS}),
closed AS (
  UPDATE queue_core_attempt a SET ended_at = %(now)s, outcome = 'lease_expired'
  FROM leased WHERE a.job_id = leased.id AND a.fence = leased.fence - 1 AND a.ended_at IS NULL
  RETURNING a.id),
opened AS ({_OPEN_ATTEMPTS}),
figures AS (
  INSERT INTO queue_core_figurechange (lane_id, minute, counts, totals, due)
  SELECT f.* FROM json_to_recordset(%(figures)s::json) AS f(
    lane bigint, minute timestamptz, counts jsonb, totals jsonb, due jsonb)
  WHERE EXISTS (SELECT FROM leased))
{_CLAIMED}, leased.queued_at, (SELECT count(*) FROM closed)
{_CLAIMED_FROM}
"""  # noqa: S608  put together from constants
