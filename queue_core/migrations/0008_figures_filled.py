"""Figures begin with what the ledger says: sums that started from nothing would be wrong for ever.

The newest days only, as many as minutes are kept. `manage.py rebuild_figures` does the same beside a live system.
"""

from django.db import migrations

TOTALS = """
INSERT INTO queue_core_lanetotal (lane_id, code, number)
SELECT lane_id, code, count(*) FROM (
  SELECT lane_id, CASE WHEN state = 'DEAD' THEN 'DEAD.' || dead_reason ELSE state END AS code FROM queue_core_job
  UNION ALL
  SELECT lane_id, 'resting' FROM queue_core_job WHERE state = 'WAITING' AND available_at IS NOT NULL
  UNION ALL
  SELECT lane_id, 'item.' || kind FROM queue_core_item WHERE closed_at IS NULL) held
GROUP BY lane_id, code;
"""

DUE = """
INSERT INTO queue_core_waitingdue (lane_id, minute, severity, number)
SELECT lane_id, date_trunc('minute', deadline), severity, count(*) FROM queue_core_job WHERE state = 'WAITING'
GROUP BY 1, 2, 3;
"""

#: Each requeue of the past is in the audit, and each death that people look after has an item of its own.
MINUTES = """
INSERT INTO queue_core_laneminute (lane_id, minute, counts)
SELECT lane_id, minute, jsonb_object_agg(code, number) FROM (
  SELECT lane_id, date_trunc('minute', at) AS minute, code, count(*) AS number FROM (
    SELECT lane_id, added_at AS at, 'added' AS code FROM queue_core_job
    UNION ALL
    SELECT lane_id, at, 'requeued' FROM queue_core_auditentry WHERE act = 'job.requeued'
    UNION ALL
    SELECT lane_id, started_at, 'claimed' FROM queue_core_attempt WHERE lease_until > started_at
    UNION ALL
    SELECT a.lane_id, a.started_at, 'wait.' || width_bucket(
      a.started_at - CASE WHEN a.started_at >= j.queued_at THEN j.queued_at ELSE j.added_at END,
      '{1 s,5 s,15 s,30 s,60 s,120 s,300 s,600 s,1800 s,3600 s,7200 s,14400 s,43200 s,86400 s}'::interval[])
    FROM queue_core_attempt a JOIN queue_core_job j ON j.id = a.job_id WHERE a.lease_until > a.started_at
    UNION ALL
    SELECT lane_id, ended_at, 'ended.' || outcome FROM queue_core_attempt
    WHERE ended_at IS NOT NULL AND lease_until > started_at
    UNION ALL
    SELECT lane_id, ended_at, 'latency.' || width_bucket(latency,
      '{10 ms,25 ms,50 ms,100 ms,250 ms,500 ms,1 s,2500 ms,5 s,10 s,30 s,60 s}'::interval[])
    FROM queue_core_attempt WHERE ended_at IS NOT NULL AND latency IS NOT NULL
      AND outcome NOT IN ('unavailable', 'overloaded', 'misconfigured', 'released')
    UNION ALL
    SELECT a.lane_id, a.ended_at, 'result.' || j.result
    FROM queue_core_attempt a JOIN queue_core_job j ON j.id = a.job_id WHERE a.is_committed
    UNION ALL
    SELECT lane_id, opened_at, 'died.' || cause FROM queue_core_item WHERE kind = 'dead'
    UNION ALL
    SELECT lane_id, finished_at, 'died.' || dead_reason FROM queue_core_job
    WHERE state = 'DEAD' AND dead_reason NOT IN ('deadline', 'attempts')
    UNION ALL
    SELECT lane_id, received_at, 'stale' FROM queue_core_lateanswer
    UNION ALL
    SELECT lane_id, decided_at, 'decided.' || verdict FROM queue_core_decision
    WHERE assignment_id IS NOT NULL AND verdict IS NOT NULL
    UNION ALL
    SELECT lane_id, opened_at, 'item_opened' FROM queue_core_item
    UNION ALL
    SELECT lane_id, closed_at, 'item_closed' FROM queue_core_item WHERE closed_at IS NOT NULL
  ) event
  WHERE at >= now() - interval '36 days' GROUP BY 1, 2, 3) s
GROUP BY lane_id, minute;
"""

FORGET = "TRUNCATE queue_core_lanetotal, queue_core_waitingdue, queue_core_laneminute;"


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0007_figures")]

    operations = [migrations.RunSQL([TOTALS, DUE, MINUTES], FORGET)]
