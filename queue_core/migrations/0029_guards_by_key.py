"""What the guards of new rows look for is found by its key, whatever the planner knew when it first looked.

A function keeps the plan of its query for the session. Where 0027 joined all new rows of a statement to the table that
they name, a plan made while that table was small read the whole of it, and went on doing so until the next ANALYZE: a
third of all that the server did for a batch, two thirds for a single claim, and more with each row. A query for each new
row cannot become such a join, and without sequential scans it takes the key of a table that is empty yet, too.

They look for a little more. An attempt begins open, with the fence that its job has; or closed and not charged, where a
fence is raised without a claim. And what the machine decides is what the job ended with.

Nothing is put back backwards: what 0027 refuses is refused.
"""

from django.db import migrations

RESULT = """
CREATE OR REPLACE FUNCTION queue_core_guard_result() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost record;
BEGIN
  SELECT w.id, w.fence INTO lost FROM written w
  WHERE w.state = 'DONE' AND (
    SELECT a.is_committed FROM queue_core_attempt a WHERE a.job_id = w.id AND a.fence = w.fence) IS NOT TRUE
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'job %: no attempt of fence % committed this result', lost.id, lost.fence
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
"""

ATTEMPTS = """
CREATE OR REPLACE FUNCTION queue_core_guard_new_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost record;
BEGIN
  SELECT w.id, named.lane_id = w.lane_id AS is_of_its_lane INTO lost FROM written w
  LEFT JOIN LATERAL (SELECT j.lane_id, j.fence FROM queue_core_job j WHERE j.id = w.job_id OFFSET 0) named ON TRUE
  WHERE named.lane_id IS DISTINCT FROM w.lane_id OR w.is_committed
     OR CASE WHEN w.ended_at IS NULL THEN w.fence <> named.fence
        ELSE w.fence NOT IN (named.fence, named.fence + 1) OR w.is_charged
          OR w.outcome NOT IN ('fence_raised', 'unknown') END
  LIMIT 1;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  IF lost.is_of_its_lane THEN
    RAISE EXCEPTION 'attempt %: it begins open, under the fence of its job', lost.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RAISE EXCEPTION 'attempt %: it is of no job of its lane', lost.id USING ERRCODE = 'foreign_key_violation';
END $$;
"""

DECISIONS = """
CREATE OR REPLACE FUNCTION queue_core_guard_new_decisions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost bigint;
BEGIN
  SELECT w.id INTO lost FROM written w
  WHERE (
    SELECT (j.ticket_id, j.revision, j.lane_id) = (w.ticket_id, w.revision, w.lane_id)
       AND (w.attempt_id IS NULL OR j.result = w.verdict)
    FROM queue_core_job j WHERE j.id = w.job_id) IS NOT TRUE
     OR w.attempt_id IS NOT NULL AND (
    SELECT a.job_id = w.job_id AND a.is_committed FROM queue_core_attempt a WHERE a.id = w.attempt_id) IS NOT TRUE
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'decision %: it is of no job of its ticket, or of no attempt that committed it', lost
      USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NULL;
END $$;
"""

MESSAGES = """
CREATE OR REPLACE FUNCTION queue_core_guard_new_messages() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost bigint;
BEGIN
  SELECT w.id INTO lost FROM written w
  WHERE CASE WHEN w.decision_id IS NOT NULL
    THEN (SELECT d.ticket_id FROM queue_core_decision d WHERE d.id = w.decision_id) IS DISTINCT FROM w.ticket_id
    ELSE w.ticket_id IS NOT NULL AND (SELECT t.id FROM queue_core_ticket t WHERE t.id = w.ticket_id) IS NULL END
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'message %: it tells of no decision of its ticket, or of no ticket', lost
      USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NULL;
END $$;
"""

ITEMS = """
CREATE OR REPLACE FUNCTION queue_core_guard_new_items() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost bigint;
BEGIN
  SELECT w.id INTO lost FROM written w
  WHERE (
    SELECT (j.ticket_id, j.lane_id) = (w.ticket_id, w.lane_id) FROM queue_core_job j WHERE j.id = w.job_id) IS FALSE
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'item %: it is of another ticket or lane than its job', lost
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
"""

ENTRIES = """
CREATE OR REPLACE FUNCTION queue_core_guard_new_recall_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM written w
    WHERE (SELECT r.ended_at FROM queue_core_recall r WHERE r.id = w.recall_id) IS NOT NULL) THEN
    RAISE EXCEPTION 'recall: it has ended with the entries that it had'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
"""

BY_KEY = "".join(
    f"ALTER FUNCTION queue_core_guard_{name}() SET enable_seqscan = off;\n"
    for name in ("result", "new_attempts", "new_decisions", "new_messages", "new_items", "new_recall_entries")
)


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0028_guards_of_peoples_work")]

    operations = [
        migrations.RunSQL(RESULT + ATTEMPTS + DECISIONS + MESSAGES + ITEMS + ENTRIES + BY_KEY, migrations.RunSQL.noop),
    ]
