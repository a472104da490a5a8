"""The guards let pass the steps that the contract has, and no longer what only looks like one of them.

By raw SQL one could still raise the fence of a job that nobody claimed, empty the count of its tries, move the deadline
of a job that had ended, give an open lease another end, close an item as decided by no decision, blank a model's answer
without an erasure, set a mark of erasure and keep the content, turn a delivery round, move a ticket to another lane, or
stand a lane on a run that is over. `audit_ledger` found some of it afterwards, and some nobody did.

Nothing here is looked at by a claim or a completion: what they write is judged by the functions that judged it before,
and the new triggers of jobs, attempts, messages and tickets stand on columns that neither sets, since every statement
that writes a table parses the conditions of the triggers that may fire (0027). Times of two different instants are not
compared, since a server's clock may be set back between them; an outage's end, which is, is written so that it never
stands before its beginning.

And each guard looks for its tables where they were made, whatever the session's search path says: a temporary table
called like one of them stood in for it.
"""

import re
from importlib import import_module

from django.db import migrations

from queue_core.migrations import _guards_of_0025 as of_0025

of_0027 = import_module("queue_core.migrations.0027_checked_together")
of_0028 = import_module("queue_core.migrations.0028_guards_of_peoples_work")

#: The ways as they were. New is what may change on each: the fence by a claim, a pull or a refusal, the count of tries
#: by a claim, a release or what was given back, the lease by a claim or to a later end. A fence that grows without a
#: claim has its mark among the attempts already (`contract.acts.raise_fences`).
JOB = """
CREATE OR REPLACE FUNCTION queue_core_guard_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  charged record;
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
  IF OLD.state = NEW.state AND OLD.state IN ('DONE', 'DEAD') THEN
    IF NEW IS DISTINCT FROM OLD THEN
      RAISE EXCEPTION 'job %: % stays as it ended', OLD.id, OLD.state
        USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF OLD.state <> NEW.state AND (
       NOT (OLD.state, NEW.state) IN (
         ('WAITING', 'LEASED'), ('WAITING', 'DEAD'), ('LEASED', 'WAITING'), ('LEASED', 'DONE'), ('LEASED', 'DEAD'),
         ('DEAD', 'WAITING'))
       OR OLD.state = 'DEAD' AND OLD.dead_reason NOT IN ('deadline', 'attempts')
       OR NEW.state = 'LEASED' AND NEW.fence = OLD.fence
       OR NEW.state = 'DONE' AND NEW.fence <> OLD.fence) THEN
    RAISE EXCEPTION 'job %: no way leads from % (%) to %', OLD.id, OLD.state, OLD.dead_reason, NEW.state
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.state = 'DEAD' AND (NEW.attempts, NEW.requeues, NEW.fence) <> (0, OLD.requeues + 1, OLD.fence) THEN
    RAISE EXCEPTION 'job %: a requeue counts itself, begins a budget and leaves the fence', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF (NEW.dead_reason = 'pulled') IS TRUE AND NEW.fence = OLD.fence
     OR NEW.fence > OLD.fence AND NOT (CASE NEW.state
       WHEN 'LEASED' THEN NEW.attempts = OLD.attempts + 1 OR OLD.state = 'LEASED' AND NEW.attempts = OLD.attempts
       WHEN 'WAITING' THEN OLD.state = 'LEASED'
       ELSE NEW.dead_reason = 'pulled' END) THEN
    RAISE EXCEPTION 'job %: its fence grows by a claim, a pull or a refusal, and by nothing else', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.fence > OLD.fence AND NOT (NEW.state = 'LEASED' AND NEW.attempts = OLD.attempts + 1) AND NOT EXISTS (
       SELECT FROM queue_core_attempt a WHERE a.job_id = NEW.id AND a.fence = NEW.fence) THEN
    RAISE EXCEPTION 'job %: no attempt marks that its fence grew', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.lease_until IS DISTINCT FROM OLD.lease_until AND NOT (
       NEW.state = 'LEASED' AND (NEW.fence > OLD.fence OR OLD.state = 'LEASED' AND NEW.lease_until > OLD.lease_until))
  THEN
    RAISE EXCEPTION 'job %: its lease keeps its last end, and only a renewal makes it later', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.attempts = OLD.attempts OR OLD.state = 'DEAD' OR NEW.state = 'LEASED' AND NEW.fence > OLD.fence THEN
    RETURN NEW;
  END IF;
  IF OLD.state = 'LEASED' AND NEW.state IN ('WAITING', 'DEAD') THEN
    -- A claim's own terms may have gone beyond the job's budget; what waits has a try left.
    IF NEW.attempts NOT IN (OLD.attempts - 1, least(OLD.attempts, OLD.max_attempts) - 1) THEN
      RAISE EXCEPTION 'job %: a lease that ends gives back one attempt or none', OLD.id
        USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  END IF;
  -- Since the last one that was the first of its budget: all before it are given back, or of a budget before.
  SELECT count(*) FILTER (WHERE a.is_charged) AS n, coalesce(bool_or(a.number > OLD.max_attempts), FALSE) AS is_beyond
  INTO charged FROM queue_core_attempt a
  WHERE a.job_id = OLD.id AND a.fence >= (
    SELECT coalesce(max(b.fence), 0) FROM queue_core_attempt b
    WHERE b.job_id = OLD.id AND b.number = 1
      AND (b.outcome = 'fence_raised' OR b.outcome = 'unknown' AND b.lease_until = b.started_at) IS NOT TRUE);
  IF NEW.attempts > OLD.attempts OR NEW.attempts <> charged.n AND NOT (charged.is_beyond AND NEW.attempts < charged.n)
  THEN
    RAISE EXCEPTION 'job %: its attempts are those that are charged', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION queue_core_guard_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.severity <> OLD.severity THEN
    RAISE EXCEPTION 'job %: its severity is that of its intake', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.state = 'DEAD' AND NEW.state = 'WAITING' THEN
    RETURN NEW;
  END IF;
  IF (NEW.queued_at, NEW.max_attempts, NEW.requeues) <> (OLD.queued_at, OLD.max_attempts, OLD.requeues) THEN
    RAISE EXCEPTION 'job %: only a requeue moves what it began to wait with', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF (NEW.deadline, NEW.urgency) <> (OLD.deadline, OLD.urgency)
     AND NOT (OLD.state = 'WAITING' AND NEW.state = 'WAITING') THEN
    RAISE EXCEPTION 'job %: its deadline and urgency move while it waits, and not else', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_terms
  BEFORE UPDATE OF severity, queued_at, deadline, urgency, max_attempts, requeues ON queue_core_job
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_terms();
"""

#: The job is renewed before its attempt.
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
  IF (NEW.scores, NEW.detail) IS DISTINCT FROM (OLD.scores, OLD.detail) AND EXISTS (
       SELECT FROM queue_core_job j JOIN queue_core_evidence e ON e.ticket_id = j.ticket_id
       WHERE j.id = NEW.job_id AND e.erased_at IS NULL) THEN
    RAISE EXCEPTION 'attempt %: only an erasure blanks it', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION queue_core_guard_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.lease_until < OLD.lease_until OR NOT EXISTS (
       SELECT FROM queue_core_job j
       WHERE j.id = NEW.job_id AND j.state = 'LEASED' AND j.fence = NEW.fence AND j.lease_until = NEW.lease_until) THEN
    RAISE EXCEPTION 'attempt %: its lease grows with its job''s, and is never shorter', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_lease BEFORE UPDATE OF lease_until ON queue_core_attempt
  FOR EACH ROW WHEN (NEW.lease_until <> OLD.lease_until) EXECUTE FUNCTION queue_core_guard_lease();
"""

#: An erasure blanks all revisions of a ticket first, and then what was said of them.
ERASURE = """
CREATE OR REPLACE FUNCTION queue_core_guard_evidence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.id, NEW.ticket_id, NEW.revision, NEW.size, NEW.received_at)
     IS DISTINCT FROM (OLD.id, OLD.ticket_id, OLD.revision, OLD.size, OLD.received_at)
     OR (NEW.body, NEW.digest) IS DISTINCT FROM (OLD.body, OLD.digest)
        AND NOT (NEW.body = '' AND NEW.erased_at IS NOT NULL) THEN
    RAISE EXCEPTION 'evidence %: it is sealed', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.erased_at IS NULL THEN
    RETURN NEW;
  END IF;
  IF NEW.body <> '' OR NEW.erased_ground = '' THEN
    RAISE EXCEPTION 'evidence %: what is erased is blank, on a ground', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.erased_at IS NULL AND EXISTS (
       SELECT FROM queue_core_preservationhold h
       WHERE h.ticket_id = NEW.ticket_id AND h.lifted_at IS NULL AND h.until > NEW.erased_at) THEN
    RAISE EXCEPTION 'evidence %: it is preserved', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION queue_core_guard_blanked() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  ticket bigint;
BEGIN
  ticket := CASE TG_ARGV[0]
    WHEN 'job' THEN (SELECT j.ticket_id FROM queue_core_job j WHERE j.id = (to_jsonb(NEW)->>'job_id')::bigint)
    WHEN 'item' THEN (SELECT i.ticket_id FROM queue_core_item i WHERE i.id = (to_jsonb(NEW)->>'item_id')::bigint)
    ELSE (to_jsonb(NEW)->>'ticket_id')::bigint END;
  IF ticket IS NULL OR EXISTS (
       SELECT FROM queue_core_evidence e WHERE e.ticket_id = ticket AND e.erased_at IS NULL) THEN
    RAISE EXCEPTION '% %: only an erasure blanks it', TG_TABLE_NAME, OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_blanked BEFORE UPDATE OF scores ON queue_core_lateanswer
  FOR EACH ROW WHEN (NEW.scores IS NULL AND OLD.scores IS NOT NULL) EXECUTE FUNCTION queue_core_guard_blanked('job');
CREATE TRIGGER queue_core_guard_blanked BEFORE UPDATE OF note ON queue_core_decision
  FOR EACH ROW WHEN (NEW.note = '' AND OLD.note <> '') EXECUTE FUNCTION queue_core_guard_blanked('ticket');
CREATE TRIGGER queue_core_guard_blanked BEFORE UPDATE OF body ON queue_core_message
  FOR EACH ROW WHEN (NEW.body = '{}'::jsonb AND OLD.body <> '{}'::jsonb) EXECUTE FUNCTION queue_core_guard_blanked('ticket');
CREATE TRIGGER queue_core_guard_blanked BEFORE UPDATE OF reason ON queue_core_itempass
  FOR EACH ROW WHEN (NEW.reason = '' AND OLD.reason <> '') EXECUTE FUNCTION queue_core_guard_blanked('item');
CREATE TRIGGER queue_core_guard_blanked BEFORE UPDATE OF note ON queue_core_secondlook
  FOR EACH ROW WHEN (NEW.note = '' AND OLD.note <> '') EXECUTE FUNCTION queue_core_guard_blanked('item');
CREATE TRIGGER queue_core_guard_blanked BEFORE UPDATE OF statement ON queue_core_appeal
  FOR EACH ROW WHEN (NEW.statement = '' AND OLD.statement <> '') EXECUTE FUNCTION queue_core_guard_blanked('ticket');
"""

#: What an item was opened with stays, and the two ends that say that something was written find it written. An appeal
#: is named by its item as soon as it has a key.
PEOPLE = """
CREATE OR REPLACE FUNCTION queue_core_guard_item() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.closed_at IS NOT NULL THEN
    RAISE EXCEPTION 'item %: it is closed once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.fence NOT IN (OLD.fence, OLD.fence + 1) THEN
    RAISE EXCEPTION 'item %: its fence grows by one', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF (NEW.id, NEW.job_id, NEW.ticket_id, NEW.lane_id, NEW.kind, NEW.cause, NEW.severity, NEW.deadline, NEW.is_hard,
      NEW.opened_at, NEW.queued_at)
     IS DISTINCT FROM (OLD.id, OLD.job_id, OLD.ticket_id, OLD.lane_id, OLD.kind, OLD.cause, OLD.severity, OLD.deadline,
      OLD.is_hard, OLD.opened_at, OLD.queued_at)
     OR OLD.for_leads AND NOT NEW.for_leads
     OR NEW.params <> OLD.params AND NOT (
       OLD.kind = 'appeal' AND NOT OLD.params ? 'appeal' AND NEW.params - 'appeal' = OLD.params) THEN
    RAISE EXCEPTION 'item %: what it is about never changes', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.fence > OLD.fence AND NEW.taken_by_id IS NULL
     OR NEW.fence = OLD.fence AND NEW.taken_by_id IS NOT NULL AND NEW.taken_by_id IS DISTINCT FROM OLD.taken_by_id THEN
    RAISE EXCEPTION 'item %: whoever takes it has a fence of their own', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NOT (CASE NEW.closed_as
    WHEN 'decided' THEN EXISTS (
      SELECT FROM queue_core_assignment s JOIN queue_core_decision d ON d.assignment_id = s.id
      WHERE s.item_id = NEW.id AND s.fence = NEW.fence AND d.decided_at = NEW.closed_at)
    WHEN 'checked' THEN
      EXISTS (SELECT FROM queue_core_blindcheck b WHERE b.item_id = NEW.id AND b.checked_at = NEW.closed_at)
      OR EXISTS (SELECT FROM queue_core_secondlook k WHERE k.item_id = NEW.id AND k.looked_at = NEW.closed_at)
    WHEN 'requeued' THEN EXISTS (SELECT FROM queue_core_job j WHERE j.id = NEW.job_id AND j.state = 'WAITING')
    ELSE TRUE END) THEN
    RAISE EXCEPTION 'item %: nothing of what it would be closed with has happened', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION queue_core_guard_assignment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.ended_at IS NOT NULL THEN
    RAISE EXCEPTION 'assignment %: it ends once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF (NEW.id, NEW.item_id, NEW.person_id, NEW.fence, NEW.key, NEW.taken_at)
     IS DISTINCT FROM (OLD.id, OLD.item_id, OLD.person_id, OLD.fence, OLD.key, OLD.taken_at) THEN
    RAISE EXCEPTION 'assignment %: who took what never changes', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.until <> OLD.until AND NOT EXISTS (
       SELECT FROM queue_core_item i
       WHERE i.id = NEW.item_id AND i.fence = NEW.fence AND i.taken_by_id = NEW.person_id AND i.taken_until = NEW.until)
  THEN
    RAISE EXCEPTION 'assignment %: it ends when its item says', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.ended_as = 'decided' AND NOT EXISTS (
       SELECT FROM queue_core_decision d WHERE d.assignment_id = NEW.id AND d.decided_at = NEW.ended_at) THEN
    RAISE EXCEPTION 'assignment %: nothing was decided under it', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION queue_core_guard_new_assignments() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost bigint;
BEGIN
  SELECT w.id INTO lost FROM written w
  WHERE w.ended_at IS NOT NULL OR NOT EXISTS (
    SELECT FROM queue_core_item i
    WHERE i.id = w.item_id AND i.closed_at IS NULL AND i.fence = w.fence AND i.taken_by_id = w.person_id
      AND i.taken_until = w.until)
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'assignment %: its item is not taken so', lost
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER queue_core_guard_new_assignments AFTER INSERT ON queue_core_assignment
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION queue_core_guard_new_assignments();
"""

#: A late success is a fact also where the try was taken for lost: from given up to delivered, and delivered again.
DELIVERIES = """
CREATE OR REPLACE FUNCTION queue_core_guard_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.id, NEW.message_id, NEW.endpoint_id, NEW.ticket_id, NEW.lane_id, NEW.kind, NEW.number, NEW.created_at)
     IS DISTINCT FROM (OLD.id, OLD.message_id, OLD.endpoint_id, OLD.ticket_id, OLD.lane_id, OLD.kind, OLD.number,
      OLD.created_at) THEN
    RAISE EXCEPTION 'delivery %: what goes where never changes', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.tries < OLD.tries THEN
    RAISE EXCEPTION 'delivery %: its tries never fall', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.state = 'withdrawn' AND NEW.state <> 'withdrawn' THEN
    RAISE EXCEPTION 'delivery %: it was withdrawn', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.state <> OLD.state AND NOT (OLD.state, NEW.state) IN (
       ('pending', 'delivered'), ('pending', 'given_up'), ('pending', 'withdrawn'), ('given_up', 'delivered'),
       ('delivered', 'pending'), ('given_up', 'pending')) THEN
    RAISE EXCEPTION 'delivery %: no way leads from % to %', OLD.id, OLD.state, NEW.state
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  -- A try begins with a lease, and each lease is one try.
  IF NEW.tries <> OLD.tries + (CASE WHEN NEW.lease IS NOT NULL AND NEW.lease IS DISTINCT FROM OLD.lease THEN 1 ELSE 0 END)
     OR NEW.lease IS NOT NULL AND OLD.lease IS NOT NULL
       AND (NEW.lease, NEW.lease_until) IS DISTINCT FROM (OLD.lease, OLD.lease_until) THEN
    RAISE EXCEPTION 'delivery %: each of its tries has a lease, and each lease is one try', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.budget <> OLD.budget AND NOT (OLD.state <> 'pending' AND NEW.state = 'pending' AND NEW.budget > OLD.tries)
     OR NEW.due_at <> OLD.due_at AND NEW.state <> 'pending'
     OR NEW.ended_at IS DISTINCT FROM OLD.ended_at AND NEW.state = OLD.state AND NEW.state <> 'delivered'
     OR (NEW.last_outcome, NEW.last_status) IS DISTINCT FROM (OLD.last_outcome, OLD.last_status)
       AND NOT (OLD.lease IS NOT NULL AND NEW.lease IS NULL OR NEW.state = 'delivered') THEN
    RAISE EXCEPTION 'delivery %: it stands as its tries left it', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_waits BEFORE UPDATE OF not_before ON queue_core_message
  FOR EACH ROW WHEN (NEW.not_before IS DISTINCT FROM OLD.not_before)
  EXECUTE FUNCTION queue_core_refuse('until when it waits never changes');
CREATE TRIGGER queue_core_guard_kept BEFORE DELETE ON queue_core_delivery
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_kept();
CREATE TRIGGER queue_core_guard_kept BEFORE DELETE ON queue_core_deliverytry
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_kept();
"""

#: What a source says of a ticket comes with a newer revision, whose evidence is stored after it is made the current one.
TICKET = """
CREATE FUNCTION queue_core_guard_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.current_revision <> OLD.current_revision THEN
    IF EXISTS (
      SELECT FROM queue_core_evidence e WHERE e.ticket_id = NEW.id AND e.revision = NEW.current_revision) THEN
      RAISE EXCEPTION 'ticket %: a revision that was replaced never comes back', OLD.id
        USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF (NEW.lane_id, NEW.severity, NEW.category, NEW.source_kind, NEW.exposure, NEW.deadline_kind)
     IS DISTINCT FROM
     (OLD.lane_id, OLD.severity, OLD.category, OLD.source_kind, OLD.exposure, OLD.deadline_kind)
     OR OLD.withdrawn_at IS NOT NULL AND NEW.withdrawn_at IS DISTINCT FROM OLD.withdrawn_at THEN
    RAISE EXCEPTION 'ticket %: what its source said of it changes with a revision', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_revision
  BEFORE UPDATE OF current_revision, lane_id, severity, category, source_kind, exposure, deadline_kind, withdrawn_at
  ON queue_core_ticket FOR EACH ROW EXECUTE FUNCTION queue_core_guard_revision();
"""

RAMP = """
CREATE OR REPLACE FUNCTION queue_core_guard_cap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM queue_core_stagerun r
    WHERE r.id = NEW.run_id AND r.lane_id = NEW.id AND r.cap >= NEW.cap AND r.ended_at IS NULL) THEN
    RAISE EXCEPTION 'lane %: nobody approved such a cap for it', NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION queue_core_guard_outage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.closed_at IS NOT NULL
     OR (NEW.id, NEW.connection_id, NEW.cause, NEW.opened_at, NEW.opened_by_id)
        IS DISTINCT FROM (OLD.id, OLD.connection_id, OLD.cause, OLD.opened_at, OLD.opened_by_id)
     OR NEW.closed_at < OLD.opened_at THEN
    RAISE EXCEPTION 'outage %: it stays as it was opened, and is closed once, afterwards', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""

#: Every guard there is, those of former migrations too. One that is replaced later has to pin its own again.
PIN = r"""
DO $$
DECLARE
  guard regprocedure;
BEGIN
  FOR guard IN
    SELECT p.oid FROM pg_proc p
    WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'queue\_core\_guard\_%'
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', guard, current_schema());
  END LOOP;
END $$;
"""
UNPIN = PIN.replace("SET search_path = %I, pg_temp', guard, current_schema()", "RESET search_path', guard")

GUARDS = JOB + ATTEMPT + ERASURE + PEOPLE + DELIVERIES + TICKET + RAMP
FORMER = "".join([of_0025.EVIDENCE, of_0025.MESSAGES, of_0027.JOB, of_0027.ATTEMPT, of_0028.PEOPLE, of_0028.RAMP])


def as_before(name: str) -> str:
    """The function as the last migration before this one left it."""
    found = re.findall(rf"CREATE (?:OR REPLACE )?FUNCTION {name}\(\).*?\$\$;", FORMER, re.DOTALL)
    return re.sub(r"^CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", found[-1]) + "\n"


UNGUARDED = (
    "".join(f"DROP FUNCTION {name}() CASCADE;\n" for name in re.findall(r"CREATE FUNCTION (\w+)\(\)", GUARDS))
    + "".join(as_before(name) for name in re.findall(r"CREATE OR REPLACE FUNCTION (\w+)\(\)", GUARDS))
    + """
DROP TRIGGER queue_core_guard_waits ON queue_core_message;
DROP TRIGGER queue_core_guard_kept ON queue_core_delivery;
DROP TRIGGER queue_core_guard_kept ON queue_core_deliverytry;
"""
)


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0029_guards_by_key")]

    operations = [migrations.RunSQL(GUARDS + PIN, UNPIN + UNGUARDED)]
