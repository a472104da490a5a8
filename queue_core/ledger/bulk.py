"""What holds of acts on many jobs: each entry ended as something that happened, an act is the sum of its entries."""

from django.utils.translation import gettext_lazy as _

from queue_core.ledger.rules import Rule, in_sql
from queue_core.models import BulkAct, BulkEntry, Decision

ENDED = """
SELECT a.id FROM queue_core_bulkact a
WHERE a.id = ANY(%(ids)s::bigint[]) AND a.ended_at IS NOT NULL
  AND EXISTS (SELECT FROM queue_core_bulkentry e WHERE e.act_id = a.id AND e.outcome IS NULL)
"""

#: The entries are those of the preview, one for each place. What was confirmed is on record with its number, and what
#: ended with what became of them.
COUNTS = """
SELECT a.id FROM queue_core_bulkact a
CROSS JOIN LATERAL (
  SELECT count(*) AS n, coalesce(max(e.place), -1) AS last FROM queue_core_bulkentry e WHERE e.act_id = a.id) e
WHERE a.id = ANY(%(ids)s::bigint[]) AND (
  e.last <> e.n - 1
  OR a.confirmed_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'bulkact' AND u.subject_id = a.id::text AND u.act = 'bulk.confirmed'
      AND u.actor_id = a.by_id AND u.after->>'jobs' = e.n::text)
  OR a.seconded_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'bulkact' AND u.subject_id = a.id::text AND u.act = 'bulk.seconded'
      AND u.actor_id = a.seconded_by_id)
  OR a.ended_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'bulkact' AND u.subject_id = a.id::text AND u.act = 'bulk.ended'
      AND u.after = (
        SELECT coalesce(jsonb_object_agg(c.outcome, c.n), '{}') FROM (
          SELECT outcome, count(*) AS n FROM queue_core_bulkentry WHERE act_id = a.id GROUP BY outcome) c
        WHERE c.outcome IS NOT NULL)))
"""

#: The act's own rows say what it did; each is found by its job or its item.
DONE = """
SELECT e.id FROM queue_core_bulkentry e JOIN queue_core_bulkact a ON a.id = e.act_id
WHERE e.id = ANY(%(ids)s::bigint[]) AND e.outcome = 'done' AND NOT CASE
  WHEN a.kind IN ('requeue', 'pull', 'move_deadlines') THEN EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'job' AND u.subject_id = e.job_id::text AND u.actor_id = a.by_id
      AND u.act = CASE a.kind WHEN 'requeue' THEN 'job.requeued' WHEN 'pull' THEN 'job.pulled'
                              ELSE 'job.deadline_moved' END
      AND u.at BETWEEN a.begun_at AND e.at)
  WHEN a.kind = 'reject' THEN EXISTS (
    SELECT FROM queue_core_assignment s JOIN queue_core_decision d ON d.assignment_id = s.id
    WHERE s.item_id = e.item_id AND d.job_id = e.job_id AND d.is_unseen AND d.person_id = a.by_id
      AND d.reason_code_id = a.reason_code_id AND d.decided_at BETWEEN a.begun_at AND e.at)
  ELSE EXISTS (
    SELECT FROM queue_core_itempass p
    WHERE p.item_id = e.item_id AND p.person_id = a.by_id AND p.at BETWEEN a.begun_at AND e.at
      AND p.passed_as = CASE a.kind WHEN 'hand_over' THEN 'handed_over' ELSE 'escalated' END
      AND (a.kind <> 'hand_over' OR p.to_id::text = a.terms->>'to')) END
"""

#: Nothing happens before the act was confirmed, nor to a sample but by people; only what rejects has one.
TURN = """
SELECT e.id FROM queue_core_bulkentry e
JOIN queue_core_bulkact a ON a.id = e.act_id JOIN queue_core_job j ON j.id = e.job_id
LEFT JOIN queue_core_item i ON i.id = e.item_id
WHERE e.id = ANY(%(ids)s::bigint[]) AND (
  i.job_id <> e.job_id OR e.fence > j.fence OR e.item_fence > i.fence
  OR e.outcome IS NOT NULL AND (a.confirmed_at IS NULL OR e.at < a.confirmed_at)
  OR e.is_sample AND a.kind <> 'reject'
  OR e.outcome = 'sampled' AND NOT (e.is_sample AND a.seconded_at IS NOT NULL AND e.at = a.seconded_at)
  OR e.outcome = 'done' AND (a.begun_at IS NULL OR e.is_sample)
  OR e.outcome = 'stopped' AND (a.stopped_at IS NULL OR e.at <> a.stopped_at))
"""

#: Never an approval, nothing severe, and by such an act alone.
UNSEEN = """
SELECT d.id FROM queue_core_decision d
LEFT JOIN queue_core_assignment s ON s.id = d.assignment_id
LEFT JOIN queue_core_item i ON i.id = s.item_id
WHERE d.id = ANY(%(ids)s::bigint[]) AND d.is_unseen AND (
  d.verdict IS DISTINCT FROM 'REJECTED' OR i.id IS NULL OR i.severity > 1 OR i.for_leads
  OR NOT EXISTS (
    SELECT FROM queue_core_bulkact a JOIN queue_core_bulkentry e ON e.act_id = a.id AND e.job_id = d.job_id
    WHERE a.kind = 'reject' AND a.by_id = d.person_id AND a.seconded_by_id <> d.person_id
      AND a.begun_at <= d.decided_at AND e.item_id = i.id AND e.outcome = 'done'))
"""

RULES = (
    Rule("bulkact_ended", BulkAct, _("ended with a job that had no turn"), in_sql(ENDED)),
    Rule("bulkact_counts", BulkAct, _("its entries are not as many as its record says"), in_sql(COUNTS)),
    Rule("bulkentry_done", BulkEntry, _("is done and nothing of it happened"), in_sql(DONE)),
    Rule("bulkentry_turn", BulkEntry, _("had another turn than its act gave it"), in_sql(TURN)),
    Rule("decision_unseen", Decision, _("was made unseen by no act that may do so"), in_sql(UNSEEN)),
)
