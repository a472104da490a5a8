"""People's work, holds, outages, policies and messages are guarded as the machine's rows are, and so is a live cap.

Until now a shell, a bulk update or a bug could open a closed item again, move an item to another job, edit a message
that is on its way, end a hold twice, rewrite a policy under which decisions were made, set a lane's cap above what was
approved, or take the mark of restricted evidence from what was reported to an authority. None of these is a step that
the rules have (DESIGN.md, the contract). The triggers compare stored rows, never a clock; those of tables that claims
and completions write fire on columns that neither sets.

TRUNCATE stays as it is (0004): only an owner may do it, and the flush that ends the tests of a project which embeds
this one is nothing else.
"""

from django.db import migrations

#: An item and an assignment have their own few steps: taken under a fence that grows by one, and closed once.
PEOPLE = """
CREATE FUNCTION queue_core_guard_item() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.closed_at IS NOT NULL THEN
    RAISE EXCEPTION 'item %: it is closed once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.fence NOT IN (OLD.fence, OLD.fence + 1) THEN
    RAISE EXCEPTION 'item %: its fence grows by one', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF (NEW.id, NEW.job_id, NEW.ticket_id, NEW.lane_id, NEW.kind)
     IS DISTINCT FROM (OLD.id, OLD.job_id, OLD.ticket_id, OLD.lane_id, OLD.kind) THEN
    RAISE EXCEPTION 'item %: what it is about never changes', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_item BEFORE UPDATE ON queue_core_item
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION queue_core_guard_item();

CREATE FUNCTION queue_core_guard_new_items() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost bigint;
BEGIN
  SELECT w.id INTO lost FROM written w JOIN queue_core_job j ON j.id = w.job_id
  WHERE (j.ticket_id, j.lane_id) IS DISTINCT FROM (w.ticket_id, w.lane_id) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'item %: it is of another ticket or lane than its job', lost
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER queue_core_guard_new_items AFTER INSERT ON queue_core_item
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION queue_core_guard_new_items();

CREATE FUNCTION queue_core_guard_assignment() RETURNS trigger LANGUAGE plpgsql AS $$
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
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_assignment BEFORE UPDATE ON queue_core_assignment
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION queue_core_guard_assignment();

CREATE FUNCTION queue_core_guard_new_recall_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM written w JOIN queue_core_recall r ON r.id = w.recall_id WHERE r.ended_at IS NOT NULL) THEN
    RAISE EXCEPTION 'recall: it has ended with the entries that it had'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER queue_core_guard_new_recall_entries AFTER INSERT ON queue_core_recallentry
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION queue_core_guard_new_recall_entries();
"""

#: A hold may come to refuse what runs, too. Of an outage the lead on duty changes until it is closed.
RAMP = """
CREATE FUNCTION queue_core_guard_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.ended_at IS NOT NULL
     OR to_jsonb(NEW) - '{ended_at,ended_by_id,form}'::text[]
        IS DISTINCT FROM to_jsonb(OLD) - '{ended_at,ended_by_id,form}'::text[]
     OR NEW.form NOT IN (OLD.form, 'refuse') THEN
    RAISE EXCEPTION 'hold %: it stays as it was pulled, and ends once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_hold BEFORE UPDATE ON queue_core_hold
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION queue_core_guard_hold();

CREATE FUNCTION queue_core_guard_outage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.closed_at IS NOT NULL
     OR (NEW.id, NEW.connection_id, NEW.cause, NEW.opened_at, NEW.opened_by_id)
        IS DISTINCT FROM (OLD.id, OLD.connection_id, OLD.cause, OLD.opened_at, OLD.opened_by_id) THEN
    RAISE EXCEPTION 'outage %: it stays as it was opened, and is closed once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_outage BEFORE UPDATE ON queue_core_outage
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION queue_core_guard_outage();
CREATE TRIGGER queue_core_guard_outage_entry BEFORE UPDATE ON queue_core_outageentry
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION queue_core_refuse('it is written once');

CREATE FUNCTION queue_core_guard_policy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM queue_core_attempt a WHERE a.lane_id = OLD.lane_id AND a.policy_id = OLD.id) THEN
    RAISE EXCEPTION 'policy %: attempts name it, a change is another version', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_policy BEFORE UPDATE ON queue_core_policy
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION queue_core_guard_policy();

CREATE FUNCTION queue_core_guard_cap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM queue_core_stagerun r WHERE r.id = NEW.run_id AND r.lane_id = NEW.id AND r.cap >= NEW.cap) THEN
    RAISE EXCEPTION 'lane %: nobody approved such a cap for it', NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_cap BEFORE UPDATE OF run_id, cap ON queue_core_lane
  FOR EACH ROW WHEN (
    NEW.run_id IS NOT NULL AND (NEW.run_id, NEW.cap) IS DISTINCT FROM (OLD.run_id, OLD.cap))
  EXECUTE FUNCTION queue_core_guard_cap();
"""

#: Triggers of single columns: numbering a message and counting a ticket's messages set none of them.
CONTENT = """
CREATE TRIGGER queue_core_guard_ticket BEFORE UPDATE OF id, source, external_id, first_seen_at ON queue_core_ticket
  FOR EACH ROW WHEN (
    (NEW.id, NEW.source, NEW.external_id, NEW.first_seen_at)
      IS DISTINCT FROM (OLD.id, OLD.source, OLD.external_id, OLD.first_seen_at))
  EXECUTE FUNCTION queue_core_refuse('what it is called at its source never changes');
CREATE FUNCTION queue_core_guard_restricted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM queue_core_evidencereport r WHERE r.evidence_id = OLD.id) THEN
    RAISE EXCEPTION 'evidence %: what was reported stays restricted', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_restricted BEFORE UPDATE OF is_restricted ON queue_core_evidence
  FOR EACH ROW WHEN (OLD.is_restricted AND NOT NEW.is_restricted)
  EXECUTE FUNCTION queue_core_guard_restricted();
CREATE TRIGGER queue_core_guard_body BEFORE UPDATE OF body ON queue_core_message
  FOR EACH ROW WHEN (NEW.body <> OLD.body AND NEW.body <> '{}'::jsonb)
  EXECUTE FUNCTION queue_core_refuse('what it says never changes');
"""

KEPT = ("item", "assignment", "message", "hold", "outage", "outageentry", "importrun")
KEEP = "".join(
    f"CREATE TRIGGER queue_core_guard_kept BEFORE DELETE ON queue_core_{table}"
    " FOR EACH ROW EXECUTE FUNCTION queue_core_guard_kept();\n"
    for table in KEPT
)
UNGUARDED = """
DROP FUNCTION queue_core_guard_item() CASCADE;
DROP FUNCTION queue_core_guard_new_items() CASCADE;
DROP FUNCTION queue_core_guard_assignment() CASCADE;
DROP FUNCTION queue_core_guard_new_recall_entries() CASCADE;
DROP FUNCTION queue_core_guard_hold() CASCADE;
DROP FUNCTION queue_core_guard_outage() CASCADE;
DROP TRIGGER queue_core_guard_outage_entry ON queue_core_outageentry;
DROP FUNCTION queue_core_guard_policy() CASCADE;
DROP FUNCTION queue_core_guard_cap() CASCADE;
DROP TRIGGER queue_core_guard_ticket ON queue_core_ticket;
DROP FUNCTION queue_core_guard_restricted() CASCADE;
DROP TRIGGER queue_core_guard_body ON queue_core_message;
""" + "".join(f"DROP TRIGGER queue_core_guard_kept ON queue_core_{table};\n" for table in KEPT)


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0027_checked_together")]

    operations = [migrations.RunSQL(PEOPLE + RAMP + CONTENT + KEEP, UNGUARDED)]
