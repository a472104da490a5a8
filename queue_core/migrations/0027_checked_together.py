"""What checked the workers' path row by row looks once a statement now, and not at all where all is usual.

Six foreign keys of attempts, decisions and messages looked up and locked a row for each row written, at the commit: a
sixth of all that the server did for a job. What they name is never deleted (0004), but for tickets, and those are held
by their jobs, so that it is enough to look once, when they are written, for all rows of a statement. What is looked for
is more than a key was: the lane, ticket and revision have to agree too, and a machine's decision needs the committed
attempt of its own job.

The guards of jobs and attempts begin with a condition now: the two usual steps of a job, and the closing of an open
attempt, call no function. That a result has its committed attempt is looked for once a statement too, when all of it is
written. And two indexes of decisions go into a third: one by job holds also that the machine decides it once, and that
no attempt decides twice follows from it.

Rejected: a row's trigger that only looks where a row ends DONE (fifty queries a batch instead of one); a deferred
constraint, which queues each row; the indexes of attempts by time as BRIN ones, since the count of a lane's last claims
would read those of all lanes.
"""

import django.db.models.deletion
from django.db import migrations, models

from queue_core.migrations import _guards_of_0025 as before

JOB = """
CREATE OR REPLACE FUNCTION queue_core_guard_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'a job begins WAITING, with fence 0' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF (NEW.id, NEW.ticket_id, NEW.lane_id, NEW.evidence_id, NEW.revision, NEW.round, NEW.added_at)
     IS DISTINCT FROM
     (OLD.id, OLD.ticket_id, OLD.lane_id, OLD.evidence_id, OLD.revision, OLD.round, OLD.added_at) THEN
    RAISE EXCEPTION 'job %: what it reviews never changes', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.fence < OLD.fence THEN
    RAISE EXCEPTION 'job %: its fence never falls', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.fence > OLD.fence + 1 THEN
    RAISE EXCEPTION 'job %: its fence grows by one', OLD.id USING ERRCODE = 'integrity_constraint_violation';
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
DROP TRIGGER queue_core_guard_job ON queue_core_job;
DROP TRIGGER queue_core_guard_fence_step ON queue_core_job;
CREATE TRIGGER queue_core_guard_new_job BEFORE INSERT ON queue_core_job
  FOR EACH ROW WHEN (NEW.state <> 'WAITING' OR NEW.fence <> 0)
  EXECUTE FUNCTION queue_core_guard_job();
CREATE TRIGGER queue_core_guard_job BEFORE UPDATE ON queue_core_job
  FOR EACH ROW WHEN (
    (NEW.id, NEW.ticket_id, NEW.lane_id, NEW.evidence_id, NEW.revision, NEW.round, NEW.added_at)
      IS DISTINCT FROM (OLD.id, OLD.ticket_id, OLD.lane_id, OLD.evidence_id, OLD.revision, OLD.round, OLD.added_at)
    OR NOT (OLD.state = 'WAITING' AND NEW.state = 'LEASED' AND NEW.fence = OLD.fence + 1
            OR OLD.state = 'LEASED' AND NEW.state = 'DONE' AND NEW.fence = OLD.fence))
  EXECUTE FUNCTION queue_core_guard_job();
"""

ATTEMPT = """
CREATE OR REPLACE FUNCTION queue_core_guard_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.id, NEW.job_id, NEW.lane_id, NEW.fence, NEW.key, NEW.worker, NEW.run_id, NEW.policy_id, NEW.connection_id,
      NEW.number, NEW.started_at)
     IS DISTINCT FROM (OLD.id, OLD.job_id, OLD.lane_id, OLD.fence, OLD.key, OLD.worker, OLD.run_id, OLD.policy_id,
      OLD.connection_id, OLD.number, OLD.started_at) THEN
    RAISE EXCEPTION 'attempt %: what was claimed never changes', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.ended_at IS NULL THEN
    RETURN NEW;
  END IF;
  IF (NEW.ended_at, NEW.outcome, NEW.lease_until, NEW.is_committed)
       IS DISTINCT FROM (OLD.ended_at, OLD.outcome, OLD.lease_until, OLD.is_committed)
     OR NEW.is_charged AND NOT OLD.is_charged THEN
    RAISE EXCEPTION 'attempt %: it is closed once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF (NEW.latency, NEW.cause, NEW.model, NEW.request_id, NEW.usage)
       IS DISTINCT FROM (OLD.latency, OLD.cause, OLD.model, OLD.request_id, OLD.usage)
     OR NEW.scores IS NOT NULL AND NEW.scores IS DISTINCT FROM OLD.scores
     OR NEW.detail NOT IN ('', OLD.detail) THEN
    RAISE EXCEPTION 'attempt %: what it ended with is kept', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
DROP TRIGGER queue_core_guard_attempt ON queue_core_attempt;
DROP TRIGGER queue_core_guard_answer ON queue_core_attempt;
CREATE TRIGGER queue_core_guard_attempt BEFORE UPDATE ON queue_core_attempt
  FOR EACH ROW WHEN (
    OLD.ended_at IS NOT NULL
    OR (NEW.id, NEW.job_id, NEW.lane_id, NEW.fence, NEW.key, NEW.worker, NEW.run_id, NEW.policy_id, NEW.connection_id,
        NEW.number, NEW.started_at)
       IS DISTINCT FROM (OLD.id, OLD.job_id, OLD.lane_id, OLD.fence, OLD.key, OLD.worker, OLD.run_id, OLD.policy_id,
        OLD.connection_id, OLD.number, OLD.started_at))
  EXECUTE FUNCTION queue_core_guard_attempt();
"""

#: All that a statement leaves DONE. Of what was DONE before, the attempt is there.
RESULT = """
DROP TRIGGER queue_core_guard_result ON queue_core_job;
CREATE OR REPLACE FUNCTION queue_core_guard_result() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost record;
BEGIN
  SELECT w.id, w.fence INTO lost FROM written w
  WHERE w.state = 'DONE' AND NOT EXISTS (
    SELECT FROM queue_core_attempt a WHERE a.job_id = w.id AND a.fence = w.fence AND a.is_committed)
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'job %: no attempt of fence % committed this result', lost.id, lost.fence
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER queue_core_guard_result AFTER UPDATE ON queue_core_job
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION queue_core_guard_result();
"""

#: What new rows name. Each also has to agree with it.
NAMES = """
CREATE FUNCTION queue_core_guard_new_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost bigint;
BEGIN
  SELECT w.id INTO lost FROM written w LEFT JOIN queue_core_job j ON j.id = w.job_id
  WHERE j.lane_id IS DISTINCT FROM w.lane_id LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'attempt %: it is of no job of its lane', lost USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER queue_core_guard_new_attempts AFTER INSERT ON queue_core_attempt
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION queue_core_guard_new_attempts();

CREATE FUNCTION queue_core_guard_new_decisions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost bigint;
BEGIN
  SELECT w.id INTO lost FROM written w
  LEFT JOIN queue_core_job j ON j.id = w.job_id
  LEFT JOIN queue_core_attempt a ON a.id = w.attempt_id
  WHERE (j.ticket_id, j.revision, j.lane_id) IS DISTINCT FROM (w.ticket_id, w.revision, w.lane_id)
     OR w.attempt_id IS NOT NULL AND (a.job_id = w.job_id AND a.is_committed) IS NOT TRUE
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'decision %: it is of no job of its ticket, or of no attempt that committed', lost
      USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER queue_core_guard_new_decisions AFTER INSERT ON queue_core_decision
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION queue_core_guard_new_decisions();

CREATE FUNCTION queue_core_guard_new_messages() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost bigint;
BEGIN
  SELECT w.id INTO lost FROM written w
  LEFT JOIN queue_core_decision d ON d.id = w.decision_id
  WHERE CASE WHEN w.decision_id IS NOT NULL THEN d.ticket_id IS DISTINCT FROM w.ticket_id
             ELSE w.ticket_id IS NOT NULL AND NOT EXISTS (SELECT FROM queue_core_ticket t WHERE t.id = w.ticket_id) END
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'message %: it tells of no decision of its ticket, or of no ticket', lost
      USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER queue_core_guard_new_messages AFTER INSERT ON queue_core_message
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION queue_core_guard_new_messages();

CREATE FUNCTION queue_core_guard_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM queue_core_message WHERE ticket_id = OLD.id) THEN
    RAISE EXCEPTION 'ticket %: messages tell of it', OLD.id USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER queue_core_guard_told BEFORE DELETE ON queue_core_ticket
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_told();
"""
NO_NAMES = """
DROP FUNCTION queue_core_guard_new_attempts() CASCADE;
DROP FUNCTION queue_core_guard_new_decisions() CASCADE;
DROP FUNCTION queue_core_guard_new_messages() CASCADE;
DROP FUNCTION queue_core_guard_told() CASCADE;
"""

#: The guards as they were. The one of late answers, which stands beside those of attempts, was not touched.
AS_BEFORE = f"""
DROP FUNCTION queue_core_guard_job() CASCADE;
{before.JOB}
DROP FUNCTION queue_core_guard_attempt() CASCADE;
{before.ATTEMPT.partition("CREATE TRIGGER queue_core_guard_late_answer")[0]}
DROP FUNCTION queue_core_guard_result() CASCADE;
{before.RESULT}
"""

ONCE = "decision_by_the_machine_once_a_job"
#: Beside the job: a machine's decisions all have 0 there, others each their own key.
PLACE = "CASE WHEN attempt_id IS NULL THEN id ELSE 0 END"
#: The new index stands, under a name of its own, before the old one goes.
BY_JOB = [
    "DROP INDEX CONCURRENTLY IF EXISTS decision_by_job",
    f"CREATE UNIQUE INDEX CONCURRENTLY decision_by_job ON queue_core_decision (job_id, ({PLACE}))",
    f"DROP INDEX CONCURRENTLY IF EXISTS {ONCE}",
    f"ALTER INDEX decision_by_job RENAME TO {ONCE}",
    "ALTER TABLE queue_core_decision DROP CONSTRAINT IF EXISTS queue_core_decision_attempt_id_key",
]
NOT_BY_JOB = [
    "ALTER TABLE queue_core_decision ADD CONSTRAINT queue_core_decision_attempt_id_key UNIQUE (attempt_id)",
    f"DROP INDEX {ONCE}",
    f"CREATE UNIQUE INDEX {ONCE} ON queue_core_decision (job_id) WHERE attempt_id IS NOT NULL",
]


def unchecked(to, related_name, *, kind=models.ForeignKey, **more):
    return kind(to, django.db.models.deletion.PROTECT, related_name=related_name, db_constraint=False, **more)


class Migration(migrations.Migration):
    atomic = False  # for indexes that are built while claims go on

    dependencies = [("queue_core", "0026_refused_lines_of_tickets")]

    operations = [
        migrations.RunSQL(JOB + ATTEMPT + RESULT, AS_BEFORE),
        # Before the keys go, so that there is no moment without either.
        migrations.RunSQL(NAMES, NO_NAMES),
        migrations.RunSQL(BY_JOB, NOT_BY_JOB),
        migrations.AlterField("attempt", "job", unchecked("queue_core.job", "attempt_rows", db_index=False)),
        migrations.AlterField("decision", "ticket", unchecked("queue_core.ticket", "decisions", db_index=False)),
        migrations.AlterField("decision", "job", unchecked("queue_core.job", "decisions", db_index=False)),
        migrations.AlterField(
            "decision",
            "attempt",
            unchecked("queue_core.attempt", "decision", kind=models.OneToOneField, null=True),
        ),
        migrations.AlterField(
            "message", "ticket", unchecked("queue_core.ticket", "messages", null=True, db_index=False)
        ),
        migrations.AlterField(
            "message", "decision", unchecked("queue_core.decision", "messages", null=True, db_index=False)
        ),
    ]
