"""The statements of a completion, for any number of tokens: lock and read, then write.

Each is a constant, so that it can be prepared and its plan tested (tests/plans).
"""

#: Lock what a completion judges, in the one order: runs that keep decisions back (their acceptance writes the row and
#: then sends what was kept back, so that a decision committed in between would be kept back for ever), tickets, jobs.
#: Each step begins when the one before has all its locks, since it is gated by the count of its rows; the clock is read
#: last. A lock that was waited for gives the row as it stands then. The attempt is read unlocked by the key in the
#: token: its identity never changes, and its end is written under its job's lock alone.
#: No state in the search for jobs: the planner might walk an index of states instead of the keys.
_LOCKS = """
kept_back AS MATERIALIZED (
  SELECT id FROM queue_core_stagerun
  WHERE keeps_back AND accepted_at IS NULL AND id = ANY(ARRAY(SELECT run_id FROM attempt))
  ORDER BY id FOR SHARE),
ticket AS MATERIALIZED (
  SELECT id, seq, source, external_id, source_kind FROM queue_core_ticket
  WHERE id = ANY(ARRAY(SELECT ticket_id FROM queue_core_job WHERE id = ANY(%(jobs)s::bigint[])))
    AND (SELECT count(*) FROM kept_back) >= 0
  ORDER BY id FOR NO KEY UPDATE),
job AS MATERIALIZED (
  SELECT id, ticket_id, lane_id, revision, round, state, dead_reason, severity, available_at, fence, attempts,
         max_attempts, deadline, lease_until, result
  FROM queue_core_job
  WHERE id = ANY(%(jobs)s::bigint[]) AND (SELECT count(*) FROM ticket) >= 0
  ORDER BY id FOR NO KEY UPDATE),
clock AS MATERIALIZED (
  SELECT COALESCE(%(now)s::timestamptz, clock_timestamp()) AS now FROM (SELECT count(*) AS n FROM job) j WHERE n >= 0)
"""

LOCK = f"""
WITH attempt AS MATERIALIZED (
  SELECT id, job_id, fence, key, run_id, policy_id FROM queue_core_attempt WHERE id = ANY(%(attempts)s::bigint[])),
{_LOCKS}
SELECT clock.now, job.*, ticket.seq, ticket.source, ticket.external_id, ticket.source_kind,
       a.id, a.key, a.run_id, a.policy_id, a.run_id IN (SELECT id FROM kept_back)
FROM clock
LEFT JOIN job ON TRUE
LEFT JOIN ticket ON ticket.id = job.ticket_id
LEFT JOIN attempt a ON a.job_id = job.id AND a.fence = job.fence
"""  # noqa: S608  put together from constants

#: The reason codes that rejections name.
GROUNDS = "SELECT code, id FROM queue_core_reasoncode WHERE code = ANY(%(codes)s::text[])"

#: What tokens that were judged good end: jobs, attempts, and for a verdict the decision and its message. The rows come
#: as one JSON text: fifty values in each of twenty arrays took longer to send than to write. Jobs are ended from the
#: rows of their closed attempts: the database refuses a result that no attempt of its fence has committed.
WRITE = """
WITH ended AS MATERIALIZED (
  SELECT * FROM ROWS FROM (json_to_recordset(%(rows)s::json) AS (
    job bigint, result text, attempt bigint, outcome text, latency interval, scores jsonb, cause text, detail text,
    model text, request_id text, usage jsonb, ticket bigint, revision text, lane bigint, policy bigint, run bigint,
    source text, external_id text, source_kind text, ground bigint, ground_code text, replaces bigint, seq bigint,
    state text))
  WITH ORDINALITY AS x(job, result, attempt, outcome, latency, scores, cause, detail, model, request_id, usage, ticket,
    revision, lane, policy, run, source, external_id, source_kind, ground, ground_code, replaces, seq, state, place)),
closed AS (
  UPDATE queue_core_attempt a
  SET ended_at = %(now)s, is_committed = TRUE, outcome = ended.outcome, latency = ended.latency,
      scores = ended.scores, cause = ended.cause, detail = ended.detail, model = ended.model,
      request_id = ended.request_id, usage = ended.usage
  FROM ended WHERE a.id = ended.attempt
  RETURNING ended.job, ended.result),
done AS (
  UPDATE queue_core_job j SET state = 'DONE', result = closed.result, finished_at = %(now)s
  FROM closed WHERE j.id = closed.job),
decided AS (
  INSERT INTO queue_core_decision
    (ticket_id, revision, job_id, lane_id, verdict, why, replaces_id, attempt_id, reason_code_id, source_kind,
     automation, policy_id, run_id, decided_at)
  SELECT ticket, revision, job, lane, result, CASE WHEN replaces IS NULL THEN 'first' ELSE 'correction' END, replaces,
         attempt, ground, source_kind, %(automation)s, policy, run, %(now)s
  FROM ended WHERE seq IS NOT NULL ORDER BY place
  RETURNING id, job_id),
numbered AS (
  UPDATE queue_core_ticket t SET seq = last.seq
  FROM (SELECT ticket, max(seq) AS seq FROM ended WHERE seq IS NOT NULL GROUP BY ticket) last WHERE t.id = last.ticket),
told AS (
  INSERT INTO queue_core_message (ticket_id, lane_id, decision_id, seq, key, kind, body, state, created_at)
  SELECT ended.ticket, ended.lane, decided.id, ended.seq, gen_random_uuid(), 'decision',
         jsonb_build_object(
           'source', ended.source, 'ticket', ended.external_id, 'revision', ended.revision, 'verdict', ended.result,
           'reason_code', ended.ground_code, 'automation', %(automation)s, 'decision', decided.id,
           'decided_at', %(decided_at)s::text),
         ended.state, %(now)s
  FROM decided JOIN ended ON ended.job = decided.job_id ORDER BY ended.place)
INSERT INTO queue_core_figurechange (lane_id, minute, counts, totals, due)
SELECT * FROM json_to_recordset(%(figures)s::json) AS f(
  lane bigint, minute timestamptz, counts jsonb, totals jsonb, due jsonb)
"""

#: As Python's isoformat says it, which leaves out a fraction of nothing.
_ISO = """
to_char(now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS')
  || CASE WHEN now = date_trunc('second', now) THEN '' ELSE to_char(now, '.US') END || '+00:00'
"""

#: A message's key: a UUID of version 7, so that new ones stand together in their index. Its random part is the call's
#: own, with the decision's number at its end: PostgreSQL's function asks the system for randomness once a row.
_KEY = """
(lpad(to_hex((extract(epoch FROM now) * 1000)::bigint), 12, '0') || '7' || substr(%(seed)s, 1, 3) || '8'
  || substr(%(seed)s, 4, 7) || lpad(to_hex(mod(decision, 4294967296)), 8, '0'))::uuid
"""

#: A completion all of whose tokens are plain: of one lane and of first rounds, each of another ticket, each good by all
#: that `rules.judge_completion` asks, each verdict with its ground. Otherwise it writes nothing and counts none. The
#: rows that are locked are the newest, and so is what it updates, however old the statement's own view of them is by
#: then: PostgreSQL follows an updated row to its present form.
#: Few steps, and none that joins what two others wrote: setting up a step costs as much as some of its rows, and steps
#: of whose sizes nothing is known were joined row by row. So a decision's key is drawn before it is written, and a
#: message's fields come with the ticket's row that was numbered for it.
COMPLETE_PLAINLY = f"""
WITH attempt AS MATERIALIZED (
  SELECT given.*, a.run_id, a.policy_id,
         (a.job_id, a.fence, a.key) = (given.job, given.fence, given.key) AS is_theirs
  FROM json_to_recordset(%(rows)s::json) AS given(
    job bigint, result text, attempt bigint, fence bigint, revision text, key uuid, outcome text, latency interval,
    scores jsonb, cause text, detail text, model text, request_id text, usage jsonb, ground_code text)
  JOIN queue_core_attempt a ON a.id = given.attempt),
{_LOCKS},
holds AS MATERIALIZED (
  SELECT attempt.*, clock.now, job.ticket_id AS ticket, job.lane_id AS lane,
         CASE WHEN attempt.result = 'REJECTED'
           THEN (SELECT id FROM queue_core_reasoncode WHERE code = attempt.ground_code) END AS ground
  FROM attempt JOIN job ON job.id = attempt.job JOIN clock ON clock.now < job.lease_until
  WHERE attempt.is_theirs AND attempt.fence = job.fence AND attempt.revision = job.revision
    AND job.state = 'LEASED' AND job.round = 1),
ended AS MATERIALIZED (
  SELECT holds.*, nextval('queue_core_decision_id_seq') AS decision FROM holds
  WHERE (
    SELECT count(DISTINCT ticket) = %(number)s AND min(lane) = max(lane)
      AND bool_and(result = 'APPROVED' OR ground IS NOT NULL)
    FROM holds)),
closed AS (
  UPDATE queue_core_attempt a
  SET ended_at = e.now, is_committed = TRUE, outcome = e.outcome, latency = e.latency,
      scores = e.scores, cause = COALESCE(e.cause, ''), detail = COALESCE(e.detail, ''),
      model = COALESCE(e.model, ''), request_id = COALESCE(e.request_id, ''), usage = e.usage
  FROM ended e WHERE a.id = e.attempt
  RETURNING e.job, e.result, e.now),
done AS (
  UPDATE queue_core_job j SET state = 'DONE', result = closed.result, finished_at = closed.now
  FROM closed WHERE j.id = closed.job),
numbered AS (
  UPDATE queue_core_ticket t SET seq = t.seq + 1 FROM ended WHERE t.id = ended.ticket
  RETURNING ended.*, t.seq, t.source, t.external_id, t.source_kind),
decided AS (
  INSERT INTO queue_core_decision
    (id, ticket_id, revision, job_id, lane_id, verdict, why, attempt_id, reason_code_id, source_kind, automation,
     policy_id, run_id, decided_at)
  SELECT decision, ticket, revision, job, lane, result, 'first', attempt, ground, source_kind, %(automation)s,
         policy_id, run_id, now
  FROM numbered),
told AS (
  INSERT INTO queue_core_message (ticket_id, lane_id, decision_id, seq, key, kind, body, state, created_at)
  SELECT ticket, lane, decision, seq, {_KEY}, 'decision',
         jsonb_build_object(
           'source', source, 'ticket', external_id, 'revision', revision, 'verdict', result,
           'reason_code', ground_code, 'automation', %(automation)s, 'decision', decision, 'decided_at', {_ISO}),
         CASE WHEN run_id IN (SELECT id FROM kept_back) THEN 'kept_back' ELSE 'ready' END, now
  FROM numbered),
figures AS (
  INSERT INTO queue_core_figurechange (lane_id, minute, counts, totals, due)
  SELECT lane, date_trunc('minute', now), %(counts)s::jsonb, %(totals)s::jsonb, '{{}}' FROM ended LIMIT 1)
SELECT count(*) FROM ended
"""  # noqa: S608  put together from constants
