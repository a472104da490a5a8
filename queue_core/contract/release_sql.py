"""The statement that ends attempts and gives their jobs back, for any number of them."""

#: The attempt before its job, as everywhere: the database looks at the attempt of a job that stops being LEASED.
WRITE = """
WITH ended AS MATERIALIZED (
  SELECT * FROM json_to_recordset(%(rows)s::json) AS x(
    attempt bigint, outcome text, detail text, latency interval, is_charged boolean,
    job bigint, state text, attempts integer, available_at timestamptz, backoff_steps integer, dead_reason text,
    finished_at timestamptz)),
closed AS (
  UPDATE queue_core_attempt a
  SET ended_at = %(now)s, outcome = ended.outcome, detail = ended.detail, latency = ended.latency,
      is_charged = ended.is_charged
  FROM ended WHERE a.id = ended.attempt
  RETURNING ended.*)
UPDATE queue_core_job j
SET state = closed.state, attempts = closed.attempts, available_at = closed.available_at,
    backoff_steps = closed.backoff_steps, dead_reason = closed.dead_reason, finished_at = closed.finished_at
FROM closed WHERE j.id = closed.job
"""
