"""The gate's statements. Each is a constant and bounded: by a window, by a limit, or by a probe of a partial index."""

#: The calls of a run that ended in a window, and the answers of that run that came too late in it. Attempts that were
#: given back uncalled, or ended from outside (superseded, withdrawn, refused by a hold), say nothing of the model;
#: nor do late answers to them.
COUNTS = """
WITH calls AS MATERIALIZED (
  SELECT outcome, latency FROM queue_core_attempt
  WHERE lane_id = %(lane)s AND ended_at > %(since)s AND ended_at <= %(now)s
    AND run_id = %(run)s AND outcome = ANY(%(calls)s)),
late AS (
  SELECT count(*) AS stale FROM queue_core_lateanswer l
  LEFT JOIN queue_core_attempt a ON a.job_id = l.job_id AND a.fence = l.fence
  WHERE l.lane_id = %(lane)s AND l.received_at > %(since)s AND l.received_at <= %(now)s AND l.run_id = %(run)s
    AND l.result = ANY(%(results)s) AND (a.outcome IS NULL OR a.outcome = ANY(%(calls)s)))
SELECT count(*),
       count(*) FILTER (WHERE outcome = ANY(%(errors)s)),
       count(*) FILTER (WHERE outcome = ANY(%(timeouts)s)),
       (SELECT stale FROM late),
       count(latency) FILTER (WHERE outcome <> ALL(%(untimed)s)),
       percentile_disc(0.95) WITHIN GROUP (ORDER BY latency) FILTER (WHERE outcome <> ALL(%(untimed)s))
FROM calls
"""

#: What became of a run's claims.
CLAIMS_OF_RUN = """
WITH claims AS (
  SELECT job_id, fence, outcome, is_committed FROM queue_core_attempt
  WHERE lane_id = %(lane)s AND started_at >= %(since)s AND run_id = %(run)s
  ORDER BY started_at
  LIMIT %(limit)s)
SELECT count(*),
       count(*) FILTER (WHERE c.outcome = 'lease_expired'),
       count(*) FILTER (WHERE j.state = 'DEAD' AND j.dead_reason = 'attempts' AND j.fence = c.fence),
       count(*) FILTER (WHERE c.is_committed AND j.result = 'APPROVED'),
       count(*) FILTER (WHERE c.is_committed AND j.result = 'REJECTED'),
       count(*) FILTER (WHERE c.is_committed AND j.result = 'MANUAL')
FROM claims c JOIN queue_core_job j ON j.id = c.job_id
"""
