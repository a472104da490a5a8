"""The triggers that hold what no constraint can, as 0004 to 0025 left them: they compare stored rows, never a clock.

They raise integrity errors, since that is what a writer that is refused has to handle.
"""

import re

REFUSE = """
CREATE FUNCTION queue_core_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% %: %', TG_TABLE_NAME, NEW.id, TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""

#: Which state of a job follows which, what of it never changes, and that its fence grows by one.
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

#: What was claimed stays, an attempt is closed once, and what it ended with may be blanked by an erasure only.
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
CREATE TRIGGER queue_core_guard_erased BEFORE UPDATE ON queue_core_evidence
  FOR EACH ROW WHEN (
    OLD.erased_at IS NOT NULL AND
    (NEW.body, NEW.digest, NEW.erased_at, NEW.erased_ground)
      IS DISTINCT FROM (OLD.body, OLD.digest, OLD.erased_at, OLD.erased_ground))
  EXECUTE FUNCTION queue_core_refuse('it is erased once');
"""

#: First links are held by a unique index alone; only a later one could lead out of its revision.
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

#: A run is accepted once and closed once; what was approved stays as it was.
RUN = """
CREATE FUNCTION queue_core_guard_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF to_jsonb(NEW) - '{accepted_at,ended_at,ended_as,ended_by_id,known_asked_at,blind_up_to}'::text[] IS DISTINCT FROM to_jsonb(OLD) - '{accepted_at,ended_at,ended_as,ended_by_id,known_asked_at,blind_up_to}'::text[]
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

ALERTS = """
CREATE FUNCTION queue_core_guard_alert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.kind, NEW.subject, NEW.lane_id, NEW.connection_id, NEW.begun_at)
     IS DISTINCT FROM (OLD.kind, OLD.subject, OLD.lane_id, OLD.connection_id, OLD.begun_at) THEN
    RAISE EXCEPTION 'alert %: what it is about never changes', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.over_at IS NOT NULL AND NEW.over_at IS DISTINCT FROM OLD.over_at
     OR OLD.acknowledged_at IS NOT NULL AND (NEW.acknowledged_at, NEW.acknowledged_by_id)
        IS DISTINCT FROM (OLD.acknowledged_at, OLD.acknowledged_by_id) THEN
    RAISE EXCEPTION 'alert %: it is acknowledged and over once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_alert BEFORE UPDATE ON queue_core_alertepisode
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_alert();

CREATE FUNCTION queue_core_guard_notice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.sent_at IS NOT NULL OR (NEW.episode_id, NEW.phase, NEW.channel, NEW.person_id, NEW.hook_id, NEW.key)
     IS DISTINCT FROM (OLD.episode_id, OLD.phase, OLD.channel, OLD.person_id, OLD.hook_id, OLD.key) THEN
    RAISE EXCEPTION 'notice %: it is sent once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_notice BEFORE UPDATE ON queue_core_alertnotice
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_notice();
"""

#: Recalls, known answers and blind checks: each is written once, and ends once.
GATE = """
CREATE FUNCTION queue_core_guard_known_reply() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.known_id, NEW.lane_id, NEW.run_id, NEW.policy_id, NEW.connection_id, NEW.version, NEW.expected, NEW.asked_at) IS DISTINCT FROM (OLD.known_id, OLD.lane_id, OLD.run_id, OLD.policy_id, OLD.connection_id, OLD.version, OLD.expected, OLD.asked_at)
     OR OLD.ended_at IS NOT NULL
        AND (NEW.ended_at, NEW.outcome, NEW.result, NEW.scores) IS DISTINCT FROM (OLD.ended_at, OLD.outcome, OLD.result, OLD.scores) THEN
    RAISE EXCEPTION 'reply to a known answer %: it is written once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_known_reply BEFORE UPDATE ON queue_core_knownreply
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_known_reply();
CREATE FUNCTION queue_core_guard_recall() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.lane_id, NEW.run_id, NEW.selection, NEW."to", NEW.deadline_after, NEW.reason, NEW.by_id, NEW.started_at) IS DISTINCT FROM (OLD.lane_id, OLD.run_id, OLD.selection, OLD."to", OLD.deadline_after, OLD.reason, OLD.by_id, OLD.started_at)
     OR OLD.ended_at IS NOT NULL
        AND (NEW.ended_at) IS DISTINCT FROM (OLD.ended_at) THEN
    RAISE EXCEPTION 'recall %: it is written once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_recall BEFORE UPDATE ON queue_core_recall
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_recall();
CREATE FUNCTION queue_core_guard_recall_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.recall_id, NEW.decision_id) IS DISTINCT FROM (OLD.recall_id, OLD.decision_id)
     OR OLD.outcome IS NOT NULL
        AND (NEW.outcome, NEW.job_id, NEW.at) IS DISTINCT FROM (OLD.outcome, OLD.job_id, OLD.at) THEN
    RAISE EXCEPTION 'entry of a recall %: it is written once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_recall_entry BEFORE UPDATE ON queue_core_recallentry
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_recall_entry();
CREATE FUNCTION queue_core_guard_blind_check() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'blind check %: it is written once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER queue_core_guard_blind_check BEFORE UPDATE ON queue_core_blindcheck
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_blind_check();
"""

#: Messages, deliveries and tries.
MESSAGES = """
CREATE FUNCTION queue_core_guard_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.ticket_id, NEW.lane_id, NEW.decision_id, NEW.seq, NEW.key, NEW.kind, NEW.created_at)
     IS DISTINCT FROM (OLD.ticket_id, OLD.lane_id, OLD.decision_id, OLD.seq, OLD.key, OLD.kind, OLD.created_at) THEN
    RAISE EXCEPTION 'message %: what it tells of never changes', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.number IS NOT NULL AND NEW.number IS DISTINCT FROM OLD.number THEN
    RAISE EXCEPTION 'message %: it is numbered once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.state <> OLD.state AND (OLD.state = 'withdrawn' OR NEW.state = 'kept_back')
     OR NEW.number IS NOT NULL AND NEW.state = 'kept_back' THEN
    RAISE EXCEPTION 'message %: no way leads from % to %', OLD.id, OLD.state, NEW.state
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_message BEFORE UPDATE ON queue_core_message
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_message();
CREATE FUNCTION queue_core_guard_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.message_id, NEW.endpoint_id, NEW.ticket_id, NEW.lane_id, NEW.kind, NEW.number, NEW.created_at)
     IS DISTINCT FROM (OLD.message_id, OLD.endpoint_id, OLD.ticket_id, OLD.lane_id, OLD.kind, OLD.number,
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
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_delivery BEFORE UPDATE ON queue_core_delivery
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_delivery();
CREATE FUNCTION queue_core_guard_deliverytry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.ended_at IS NOT NULL
     OR (NEW.delivery_id, NEW.number, NEW.lease, NEW.started_at)
     IS DISTINCT FROM (OLD.delivery_id, OLD.number, OLD.lease, OLD.started_at) THEN
    RAISE EXCEPTION 'try %: it is closed once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_deliverytry BEFORE UPDATE ON queue_core_deliverytry
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_deliverytry();
"""

#: Attempts and decisions have no foreign key to these two: every claim and completion would look them up.
NAMED = """
CREATE FUNCTION queue_core_guard_named() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  is_named boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT FROM queue_core_attempt WHERE %I = $1)', TG_ARGV[0]) INTO is_named USING OLD.id;
  IF is_named THEN
    RAISE EXCEPTION '% %: attempts name it', TG_TABLE_NAME, OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER queue_core_guard_named BEFORE DELETE ON queue_core_policy
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_named('policy_id');
CREATE TRIGGER queue_core_guard_named BEFORE DELETE ON queue_core_modelconnection
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_named('connection_id');
"""

#: Preservation holds and reports to authorities.
PRESERVATION = """
CREATE FUNCTION queue_core_guard_preservation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.ticket_id, NEW.authority, NEW.reference, NEW.reason, NEW.placed_at, NEW.placed_by_id, NEW.until)
     IS DISTINCT FROM
     (OLD.ticket_id, OLD.authority, OLD.reference, OLD.reason, OLD.placed_at, OLD.placed_by_id, OLD.until)
     OR OLD.lifted_at IS NOT NULL AND (NEW.lifted_at, NEW.lifted_by_id, NEW.lifted_reason)
       IS DISTINCT FROM (OLD.lifted_at, OLD.lifted_by_id, OLD.lifted_reason) THEN
    RAISE EXCEPTION 'preservation hold %: it is lifted once, and stays as it was placed', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_preservation BEFORE UPDATE ON queue_core_preservationhold
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_preservation();
CREATE TRIGGER queue_core_guard_report BEFORE UPDATE ON queue_core_evidencereport
  FOR EACH ROW EXECUTE FUNCTION queue_core_refuse('it is written once');
"""


def _payload_may_go(table, name, payload, says):
    """A trigger for rows that are written once, of which an erasure may blank one text."""
    return f"""
CREATE FUNCTION queue_core_guard_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF to_jsonb(NEW) - '{payload}' IS DISTINCT FROM to_jsonb(OLD) - '{payload}' OR NEW.{payload} NOT IN (OLD.{payload}, '') THEN
    RAISE EXCEPTION '{says} %: it is written once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_{name} BEFORE UPDATE ON queue_core_{table}
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_{name}();
"""


PASSED_ON = _payload_may_go("itempass", "item_pass", "reason", "passing on of an item")
SECOND_LOOKS = _payload_may_go("secondlook", "second_look", "note", "second look")
APPEALS = _payload_may_go("appeal", "appeal", "statement", "appeal")

#: What the author of a content was told stays as it was.
VERSIONS = """
CREATE TRIGGER queue_core_guard_ground_version BEFORE UPDATE ON queue_core_reasoncodeversion
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION queue_core_refuse('it is written once');
"""

#: A preview is made and thrown away as a draft is. Once confirmed an act stays, and each of its ends is written once.
BULK_ACTS = """
CREATE FUNCTION queue_core_guard_bulk_act() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF OLD.confirmed_at IS NOT NULL THEN
      RAISE EXCEPTION 'bulk act %: it is kept', OLD.id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
  END IF;
  IF (NEW.kind, NEW.selection, NEW.left_out, NEW.is_capped, NEW.by_id, NEW.previewed_at)
       IS DISTINCT FROM (OLD.kind, OLD.selection, OLD.left_out, OLD.is_capped, OLD.by_id, OLD.previewed_at)
     OR OLD.confirmed_at IS NOT NULL AND (NEW.confirmed_at, NEW.terms, NEW.reason, NEW.reason_code_id)
       IS DISTINCT FROM (OLD.confirmed_at, OLD.terms, OLD.reason, OLD.reason_code_id)
     OR OLD.seconded_at IS NOT NULL AND (NEW.seconded_at, NEW.seconded_by_id)
       IS DISTINCT FROM (OLD.seconded_at, OLD.seconded_by_id)
     OR OLD.begun_at IS NOT NULL AND NEW.begun_at IS DISTINCT FROM OLD.begun_at
     OR OLD.stopped_at IS NOT NULL AND (NEW.stopped_at, NEW.stopped_by_id)
       IS DISTINCT FROM (OLD.stopped_at, OLD.stopped_by_id)
     OR OLD.ended_at IS NOT NULL AND NEW.ended_at IS DISTINCT FROM OLD.ended_at THEN
    RAISE EXCEPTION 'bulk act %: it is written once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_bulk_act BEFORE UPDATE OR DELETE ON queue_core_bulkact
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_bulk_act();
"""

#: An act that is confirmed gets no entry more and loses none; what a preview saw never changes.
BULK_ENTRIES = """
CREATE FUNCTION queue_core_guard_bulk_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'UPDATE' THEN
    IF EXISTS (
      SELECT FROM queue_core_bulkact a
      WHERE a.id = (CASE TG_OP WHEN 'DELETE' THEN OLD.act_id ELSE NEW.act_id END) AND a.confirmed_at IS NOT NULL) THEN
      RAISE EXCEPTION 'bulk act: its entries are those of the preview' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  END IF;
  IF to_jsonb(NEW) - '{is_sample,outcome,fault,at}'::text[]
       IS DISTINCT FROM to_jsonb(OLD) - '{is_sample,outcome,fault,at}'::text[]
     OR OLD.outcome IS NOT NULL AND to_jsonb(NEW) IS DISTINCT FROM to_jsonb(OLD) THEN
    RAISE EXCEPTION 'entry of a bulk act %: it is written once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_bulk_entry BEFORE INSERT OR UPDATE OR DELETE ON queue_core_bulkentry
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_bulk_entry();
"""

#: A key is what it was made as, revoked at most once, and kept for the audit that names it.
KEYS = """
CREATE FUNCTION queue_core_guard_apikey() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.prefix, NEW.digest, NEW.made_at, NEW.made_by_id)
       IS DISTINCT FROM (OLD.prefix, OLD.digest, OLD.made_at, OLD.made_by_id)
     OR OLD.revoked_at IS NOT NULL
       AND (NEW.revoked_at, NEW.revoked_by_id) IS DISTINCT FROM (OLD.revoked_at, OLD.revoked_by_id) THEN
    RAISE EXCEPTION 'API key %: it is made once and revoked once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_apikey BEFORE UPDATE ON queue_core_apikey
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_apikey();
"""

#: How often refused lines are forgotten is no part of what a run was.
IMPORTS = """
CREATE TRIGGER queue_core_guard_import BEFORE UPDATE ON queue_core_importrun
  FOR EACH ROW WHEN (
    OLD.ended_at IS NOT NULL AND to_jsonb(NEW.*) - 'is_emptied' IS DISTINCT FROM to_jsonb(OLD.*) - 'is_emptied')
  EXECUTE FUNCTION queue_core_refuse('it has ended');
"""

#: Rows that are kept for ever.
KEPT = (
    "job", "attempt", "evidence", "decision", "auditentry", "lateanswer", "stagerun", "alertepisode", "alertnotice",
    "knownreply", "recall", "recallentry", "blindcheck", "preservationhold", "evidencereport", "itempass", "secondlook",
    "appeal", "reasoncodeversion", "apikey",
)
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

GUARDS = [
    REFUSE, JOB, RESULT, ATTEMPT, EVIDENCE, DECISION, AUDIT, RUN, ALERTS, GATE, MESSAGES, NAMED, PRESERVATION, PASSED_ON,
    SECOND_LOOKS, APPEALS, VERSIONS, BULK_ACTS, BULK_ENTRIES, KEYS, IMPORTS, DELETIONS,
]
NO_GUARDS = "".join(
    f"DROP FUNCTION {name}() CASCADE;\n" for name in re.findall(r"CREATE FUNCTION (\w+)\(\)", "".join(GUARDS))
)
