"""The statements of a claim, of one job by its id or of a lane's most urgent ones: at once, or look first, then lease.

Each is a constant, so that it can be prepared and its plan tested (tests/plans).
"""

from queue_core import tally
from queue_core.contract.rules import CALL_MARGIN, JUDGED_WITHIN, LONGEST_LEASE, PROBE

#: In a transaction that sees the same state throughout, the lane's lock is given though leases were given since, which
#: would not be counted.
_LANE = """
  SELECT id, cap, lease, run_id, policy_id, connection_id, claims_not_before, judged_at, usual_call_time,
         least_call_time, current_setting('transaction_isolation') = 'read committed' AS sees_others
  FROM queue_core_lane WHERE id = """

#: A lane under its lock, by the lane's own key. The clock is read when the lock is held: the row comes from a step of
#: its own.
LOCK_LANE = f"""
WITH lane AS MATERIALIZED ({_LANE} %(lane)s FOR NO KEY UPDATE)
SELECT lane.*, COALESCE(%(now)s::timestamptz, clock_timestamp()) FROM lane
"""  # noqa: S608  put together from constants

#: A lane under its lock, by one of its jobs, with the job and its ticket locked after it.
_JOB = f"""
WITH lane AS MATERIALIZED ({_LANE} (SELECT lane_id FROM queue_core_job WHERE id = %(job)s) FOR NO KEY UPDATE),
ticket AS MATERIALIZED (
  SELECT id FROM queue_core_ticket
  WHERE id = (SELECT ticket_id FROM queue_core_job WHERE id = %(job)s) AND (SELECT count(*) FROM lane) >= 0
  FOR NO KEY UPDATE),
job AS MATERIALIZED (
  SELECT id, lane_id, revision, state, dead_reason, severity, available_at, queued_at, fence, attempts, max_attempts,
         deadline, lease_until, result
  FROM queue_core_job WHERE id = %(job)s AND (SELECT count(*) FROM ticket) >= 0
  FOR NO KEY UPDATE)
"""  # noqa: S608  put together from constants

#: The clock is read when all three are held.
LOCK_LANE_AND_JOB = f"""
{_JOB}
SELECT lane.*, COALESCE(%(now)s::timestamptz, clock_timestamp()), job.*
FROM job JOIN lane ON lane.id = job.lane_id
"""  # noqa: S608  put together from constants

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

#: A lane that gives claims by its cap alone, with the room that it has; otherwise no row. It holds all that
#: `room.refusal_of` asks, and no rate, and no probe, which chooses by itself. The clock is read when the locks are
#: held: `behind` says of which step, where the planner could begin with another. The room is counted by a function,
#: since this statement's own view may be older than a lock that it has waited for, and a function's query sees what is
#: committed when it begins (0031). It is NULL where the connection has a cap.
_GATE = f"""
clock AS MATERIALIZED (
  SELECT lane.*, COALESCE(%(now)s::timestamptz, clock_timestamp()) AS now FROM lane {{behind}}),
gate AS MATERIALIZED (
  SELECT c.id AS lane, c.run_id AS run, c.policy_id AS policy, c.connection_id AS connection, c.now,
         c.now + LEAST(COALESCE(%(lease)s::interval, c.lease), interval '{LONGEST_LEASE.days} days') AS until,
         c.now + GREATEST(c.usual_call_time, c.least_call_time)
           + interval '{CALL_MARGIN.total_seconds():g} s' AS needs_until,
         queue_core_room(c.id, c.connection_id, c.cap, c.now, %(oldest)s) AS room
  FROM clock c JOIN queue_core_stagerun r ON r.id = c.run_id
  WHERE r.number <> {PROBE} AND r.rate IS NULL AND c.cap IS NOT NULL AND c.sees_others
    AND (c.claims_not_before IS NULL OR c.claims_not_before <= c.now)
    AND c.judged_at >= c.now - interval '{JUDGED_WITHIN.total_seconds():g} s')
"""  # noqa: S608  put together from constants

#: What a lease writes, by a step `gate` of one row: under which terms it is given.
_LEASE_ROWS = """
  SET state = 'LEASED', attempts = attempts + 1, fence = fence + 1, available_at = NULL,
      lease_until = LEAST(until, deadline)
  FROM gate
"""

#: A claim reads the clock first and may then see a job that came in, or came back, since: no attempt starts before its
#: job was queued, by which its budget is counted.
_OPENED = """
opened AS (
  INSERT INTO queue_core_attempt
    (id, job_id, lane_id, fence, key, worker, run_id, policy_id, connection_id, number, started_at, lease_until)
  SELECT attempt, leased.id, lane, fence, key, %(worker)s, run, policy, connection, attempts,
         GREATEST(now, queued_at), lease_until
  FROM leased, gate)
"""

#: What leases change in the figures, as `tally` notes it. None of these jobs rested.
_BUCKET = f"width_bucket(now - queued_at, ARRAY[{_WAIT_ENDS}])"
_ATTEMPTS_LEFT = f"LEAST(GREATEST(max_attempts - attempts + 1, 1), {tally.MOST_LEFT})"
_DUE_MINUTE = "floor(extract(epoch FROM deadline) / 60)::bigint"
_CHANGES = "INSERT INTO queue_core_figurechange (lane_id, minute, counts, totals, due)"
_FIGURES = f"""
figures AS (
  {_CHANGES}
  SELECT lane, date_trunc('minute', now),
         jsonb_build_object('{tally.CLAIMED}', number) || (
           SELECT jsonb_object_agg('{tally.WAIT}.' || bucket, number) FROM (
             SELECT {_BUCKET} AS bucket, count(*) AS number FROM leased GROUP BY 1) waits),
         jsonb_build_object('WAITING', -number, 'LEASED', number) || (
           SELECT jsonb_object_agg('{tally.LEFT}.' || attempts_left, -number) FROM (
             SELECT {_ATTEMPTS_LEFT} AS attempts_left, count(*) AS number FROM leased GROUP BY 1) lefts),
         (SELECT jsonb_object_agg(minute || '.' || severity, -number) FROM (
           SELECT {_DUE_MINUTE} AS minute, severity, count(*) AS number FROM leased GROUP BY 1, 2) dues)
  FROM (SELECT count(*) AS number FROM leased) claims, gate WHERE number > 0)
"""  # noqa: S608  put together from constants
_FIGURES_OF_ONE = f"""
figures AS (
  {_CHANGES}
  SELECT lane, date_trunc('minute', now),
         jsonb_build_object('{tally.CLAIMED}', 1, '{tally.WAIT}.' || {_BUCKET}, 1),
         jsonb_build_object('WAITING', -1, 'LEASED', 1, '{tally.LEFT}.' || {_ATTEMPTS_LEFT}, -1),
         jsonb_build_object({_DUE_MINUTE} || '.' || severity, -1)
  FROM leased, gate)
"""  # noqa: S608  put together from constants

#: Steady claims, in one statement: lock, count, pick, lease, open attempts, note figures. The pick walks
#: `job_claimable` in order from `since` on and stops at its limit, which is 0 and never NULL where the gate is shut;
#: rows that another claim holds are passed over, and one that changed after this statement began is judged as it is
#: now. As an array it is picked once, whatever the planner does with the rest (PGQ-04). The last column says whether a
#: deadline has passed: in order and not as EXISTS, for which a generic plan took any index of the lane and walked its
#: whole backlog.
_MOST_URGENT = f"""
WITH lane AS MATERIALIZED ({_LANE} %(lane)s FOR NO KEY UPDATE),
{_GATE.format(behind="")},
leased AS (
  UPDATE queue_core_job j {_LEASE_ROWS}
  WHERE j.id = ANY(ARRAY(
    SELECT id FROM queue_core_job
    WHERE lane_id = %(lane)s AND state = 'WAITING' AND available_at IS NULL AND urgency >= %(since)s
      AND deadline > (SELECT needs_until FROM gate)
    ORDER BY urgency, id
    LIMIT COALESCE((SELECT LEAST(GREATEST(room[1], 0), %(limit)s) FROM gate), 0)
    FOR NO KEY UPDATE SKIP LOCKED))
  RETURNING {_LEASED_FIELDS}),
{_OPENED},
{{figures}}
{_CLAIMED}, leased.urgency, room[2], policy, run,
  (SELECT TRUE FROM queue_core_job
   WHERE lane_id = %(lane)s AND state = 'WAITING' AND deadline <= (SELECT now FROM gate)
   ORDER BY deadline, id LIMIT 1)
{_CLAIMED_FROM}, gate
"""  # noqa: S608  put together from constants
CLAIM_MOST_URGENT = _MOST_URGENT.format(figures=_FIGURES)
#: The same where no more than one is wanted: a third of the steps are for adding up.
CLAIM_MOST_URGENT_ONE = _MOST_URGENT.format(figures=_FIGURES_OF_ONE)

#: A plain claim of one job: as above, of a job that waits and neither rests nor has to die.
CLAIM_PLAINLY = f"""
{_JOB},
{_GATE.format(behind="WHERE (SELECT count(*) FROM job) >= 0")},
leased AS (
  UPDATE queue_core_job j {_LEASE_ROWS}
  WHERE j.id = (
    SELECT job.id FROM job, gate
    WHERE state = 'WAITING' AND available_at IS NULL AND deadline > now AND room[1] >= 1
      AND attempts < COALESCE(%(max_attempts)s::int, max_attempts))
  RETURNING {_LEASED_FIELDS}),
{_OPENED},
{_FIGURES_OF_ONE}
SELECT fence, revision, attempt, key, lease_until FROM leased
"""  # noqa: S608  put together from constants

#: Lease jobs that were locked and judged, as many as there is room for, close what their last lease left open, and open
#: their attempts. `closed` counts what was left open.
LEASE = f"""
WITH gate AS MATERIALIZED (
  SELECT %(lane)s::bigint AS lane, %(run)s::bigint AS run, %(policy)s::bigint AS policy,
         %(connection)s::bigint AS connection, %(now)s::timestamptz AS now,
         %(now)s::timestamptz + %(lease)s::interval AS until),
leased AS (
  UPDATE queue_core_job j {_LEASE_ROWS}
  WHERE j.id = ANY(%(jobs)s::bigint[])
  RETURNING {_LEASED_FIELDS}),
closed AS (
  UPDATE queue_core_attempt a SET ended_at = now, outcome = 'lease_expired'
  FROM leased, gate WHERE a.job_id = leased.id AND a.fence = leased.fence - 1 AND a.ended_at IS NULL
  RETURNING a.id),
{_OPENED},
figures AS (
  {_CHANGES}
  SELECT f.* FROM json_to_recordset(%(figures)s::json) AS f(
    lane bigint, minute timestamptz, counts jsonb, totals jsonb, due jsonb)
  WHERE EXISTS (SELECT FROM leased))
{_CLAIMED}, leased.queued_at, (SELECT count(*) FROM closed)
{_CLAIMED_FROM}
"""  # noqa: S608  put together from constants
