"""More of what the database refuses: a result nobody committed, a chain that leaves its revision, records rewritten.

Each is a trigger with its condition in WHEN, so that rows that do nothing of the kind pay no call. As in 0004 they
compare stored fields, never a clock, and raise integrity errors.
"""

from django.db import migrations

REFUSE = """
CREATE FUNCTION queue_core_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% %: %', TG_TABLE_NAME, NEW.id, TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""

FENCE_STEP = """
CREATE TRIGGER queue_core_guard_fence_step BEFORE UPDATE ON queue_core_job
  FOR EACH ROW WHEN (NEW.fence > OLD.fence + 1)
  EXECUTE FUNCTION queue_core_refuse('its fence grows by one');
"""

#: The attempt is closed first, in the same transaction; so this needs no deferred trigger, which would queue each row.
RESULT = """
CREATE FUNCTION queue_core_guard_result() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM queue_core_attempt a WHERE a.job_id = NEW.id AND a.fence = NEW.fence AND a.is_committed) THEN
    RAISE EXCEPTION 'job %: no attempt of fence % committed this result', NEW.id, NEW.fence
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_result BEFORE UPDATE ON queue_core_job
  FOR EACH ROW WHEN (NEW.state = 'DONE' AND OLD.state <> 'DONE')
  EXECUTE FUNCTION queue_core_guard_result();
"""

#: First links are held by a unique index alone; only a later one could lead out of its revision.
CHAIN = """
CREATE FUNCTION queue_core_guard_chain() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM queue_core_decision d
    JOIN queue_core_job j ON j.id = NEW.job_id AND j.ticket_id = d.ticket_id AND j.revision = d.revision
    WHERE d.id = NEW.replaces_id AND d.ticket_id = NEW.ticket_id AND d.revision = NEW.revision) THEN
    RAISE EXCEPTION 'decision %: it replaces none of its own revision', NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_chain BEFORE INSERT ON queue_core_decision
  FOR EACH ROW WHEN (NEW.replaces_id IS NOT NULL)
  EXECUTE FUNCTION queue_core_guard_chain();
"""

#: What an ended attempt says may be blanked by an erasure, and is never rewritten.
ANSWER = """
CREATE TRIGGER queue_core_guard_answer BEFORE UPDATE ON queue_core_attempt
  FOR EACH ROW WHEN (
    OLD.ended_at IS NOT NULL AND (
      (NEW.latency, NEW.cause, NEW.model, NEW.request_id, NEW.usage)
        IS DISTINCT FROM (OLD.latency, OLD.cause, OLD.model, OLD.request_id, OLD.usage)
      OR NEW.scores IS NOT NULL AND NEW.scores IS DISTINCT FROM OLD.scores
      OR NEW.detail NOT IN ('', OLD.detail)))
  EXECUTE FUNCTION queue_core_refuse('what it ended with is kept');
CREATE TRIGGER queue_core_guard_late_answer BEFORE UPDATE ON queue_core_lateanswer
  FOR EACH ROW WHEN (
    (NEW.job_id, NEW.lane_id, NEW.run_id, NEW.fence, NEW.revision, NEW.result, NEW.why, NEW.worker, NEW.received_at)
      IS DISTINCT FROM
    (OLD.job_id, OLD.lane_id, OLD.run_id, OLD.fence, OLD.revision, OLD.result, OLD.why, OLD.worker, OLD.received_at)
    OR NEW.scores IS NOT NULL AND NEW.scores IS DISTINCT FROM OLD.scores)
  EXECUTE FUNCTION queue_core_refuse('it is kept as it came');
"""

#: A run is accepted once and closed once; what was approved stays as it was.
RUN = """
CREATE FUNCTION queue_core_guard_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF to_jsonb(NEW) - '{accepted_at,ended_at,ended_as,ended_by_id}'::text[]
       IS DISTINCT FROM to_jsonb(OLD) - '{accepted_at,ended_at,ended_as,ended_by_id}'::text[]
     OR OLD.accepted_at IS NOT NULL AND NEW.accepted_at IS DISTINCT FROM OLD.accepted_at
     OR OLD.ended_at IS NOT NULL AND (NEW.ended_at, NEW.ended_as, NEW.ended_by_id)
       IS DISTINCT FROM (OLD.ended_at, OLD.ended_as, OLD.ended_by_id) THEN
    RAISE EXCEPTION 'stage run %: what was approved stays, and it is closed once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_run BEFORE UPDATE ON queue_core_stagerun
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_run();
"""


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0010_policy_questions")]

    operations = [
        migrations.RunSQL(REFUSE, "DROP FUNCTION queue_core_refuse() CASCADE;"),
        migrations.RunSQL(FENCE_STEP, migrations.RunSQL.noop),
        migrations.RunSQL(RESULT, "DROP FUNCTION queue_core_guard_result() CASCADE;"),
        migrations.RunSQL(CHAIN, "DROP FUNCTION queue_core_guard_chain() CASCADE;"),
        migrations.RunSQL(ANSWER, migrations.RunSQL.noop),
        migrations.RunSQL(RUN, "DROP FUNCTION queue_core_guard_run() CASCADE;"),
    ]
