"""Triggers that hold what no constraint can: which state follows which, and what is written once.

They compare the stored row with the new one, never a clock. They raise integrity errors, since that is what a writer
that is refused has to handle. TRUNCATE is not guarded: only the owner of the tables may do it.
"""

from django.db import migrations

JOB = """
CREATE FUNCTION queue_core_guard_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> 'WAITING' OR NEW.fence <> 0 THEN
      RAISE EXCEPTION 'a job begins WAITING, with fence 0' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF (NEW.ticket_id, NEW.lane_id, NEW.evidence_id, NEW.revision, NEW.round, NEW.added_at)
     IS DISTINCT FROM (OLD.ticket_id, OLD.lane_id, OLD.evidence_id, OLD.revision, OLD.round, OLD.added_at) THEN
    RAISE EXCEPTION 'job %: what it reviews never changes', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.fence < OLD.fence THEN
    RAISE EXCEPTION 'job %: its fence never falls', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.state = NEW.state THEN
    IF OLD.state IN ('DONE', 'DEAD') AND (NEW.fence, NEW.attempts, NEW.result, NEW.dead_reason, NEW.finished_at)
       IS DISTINCT FROM (OLD.fence, OLD.attempts, OLD.result, OLD.dead_reason, OLD.finished_at) THEN
      RAISE EXCEPTION 'job %: % stays as it ended', OLD.id, OLD.state
        USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF NOT (OLD.state, NEW.state) IN (
       ('WAITING', 'LEASED'), ('WAITING', 'DEAD'), ('LEASED', 'WAITING'), ('LEASED', 'DONE'), ('LEASED', 'DEAD'),
       ('DEAD', 'WAITING'))
     OR OLD.state = 'DEAD' AND OLD.dead_reason NOT IN ('deadline', 'attempts')
     OR NEW.state = 'LEASED' AND NEW.fence = OLD.fence
     OR NEW.state = 'DONE' AND NEW.fence <> OLD.fence THEN
    RAISE EXCEPTION 'job %: no way leads from % (%) to %', OLD.id, OLD.state, OLD.dead_reason, NEW.state
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_job BEFORE INSERT OR UPDATE ON queue_core_job
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_job();
"""

ATTEMPT = """
CREATE FUNCTION queue_core_guard_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.job_id, NEW.lane_id, NEW.fence, NEW.key, NEW.worker, NEW.run_id, NEW.policy_id, NEW.connection_id, NEW.number,
      NEW.started_at)
     IS DISTINCT FROM (OLD.job_id, OLD.lane_id, OLD.fence, OLD.key, OLD.worker, OLD.run_id, OLD.policy_id,
      OLD.connection_id, OLD.number, OLD.started_at) THEN
    RAISE EXCEPTION 'attempt %: what was claimed never changes', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.ended_at IS NOT NULL
     AND ((NEW.ended_at, NEW.outcome, NEW.lease_until, NEW.is_committed)
          IS DISTINCT FROM (OLD.ended_at, OLD.outcome, OLD.lease_until, OLD.is_committed)
          OR NEW.is_charged AND NOT OLD.is_charged) THEN
    RAISE EXCEPTION 'attempt %: it is closed once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_attempt BEFORE UPDATE ON queue_core_attempt
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_attempt();
"""

EVIDENCE = """
CREATE FUNCTION queue_core_guard_evidence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.ticket_id, NEW.revision, NEW.size, NEW.received_at)
     IS DISTINCT FROM (OLD.ticket_id, OLD.revision, OLD.size, OLD.received_at)
     OR (NEW.body, NEW.digest) IS DISTINCT FROM (OLD.body, OLD.digest)
        AND NOT (NEW.body = '' AND NEW.erased_at IS NOT NULL) THEN
    RAISE EXCEPTION 'evidence %: it is sealed', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_evidence BEFORE UPDATE ON queue_core_evidence
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_evidence();
"""

DECISION = """
CREATE FUNCTION queue_core_guard_decision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- A note is the only payload here, and may be blanked by an erasure; the rest of the chain is append-only.
  IF to_jsonb(NEW) - 'note' IS DISTINCT FROM to_jsonb(OLD) - 'note' OR NEW.note NOT IN (OLD.note, '') THEN
    RAISE EXCEPTION 'decision %: another one replaces it', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_decision BEFORE UPDATE ON queue_core_decision
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_decision();
"""

AUDIT = """
CREATE FUNCTION queue_core_guard_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- The sealer numbers and seals a row, once.
  IF OLD.number IS NOT NULL
     OR to_jsonb(NEW) - '{number,seal}'::text[] IS DISTINCT FROM to_jsonb(OLD) - '{number,seal}'::text[] THEN
    RAISE EXCEPTION 'audit entry %: it is written once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_audit BEFORE UPDATE ON queue_core_auditentry
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_audit();
"""

KEPT = ("job", "attempt", "evidence", "decision", "auditentry", "lateanswer", "stagerun")

DELETIONS = """
CREATE FUNCTION queue_core_guard_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% %: it is kept', TG_TABLE_NAME, OLD.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
""" + "".join(
    f"CREATE TRIGGER queue_core_guard_kept BEFORE DELETE ON queue_core_{table}"
    " FOR EACH ROW EXECUTE FUNCTION queue_core_guard_kept();\n"
    for table in KEPT
)


def _drop(table: str, name: str) -> str:
    return f"DROP TRIGGER queue_core_guard_{name} ON queue_core_{table}; DROP FUNCTION queue_core_guard_{name}();"


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0003_reason_codes")]

    operations = [
        migrations.RunSQL(JOB, _drop("job", "job")),
        migrations.RunSQL(ATTEMPT, _drop("attempt", "attempt")),
        migrations.RunSQL(EVIDENCE, _drop("evidence", "evidence")),
        migrations.RunSQL(DECISION, _drop("decision", "decision")),
        migrations.RunSQL(AUDIT, _drop("auditentry", "audit")),
        migrations.RunSQL(DELETIONS, "DROP FUNCTION queue_core_guard_kept() CASCADE;"),
    ]
