"""What holds of recalls: each decision taken back has its link, its message and its work; an act is all its entries."""

from django.utils.translation import gettext_lazy as _

from queue_core.ledger.rules import Rule, in_sql
from queue_core.models import Decision, Recall, RecallEntry

ENDED = """
SELECT r.id FROM queue_core_recall r
WHERE r.id = ANY(%(ids)s::bigint[]) AND r.ended_at IS NOT NULL
  AND EXISTS (SELECT FROM queue_core_recallentry e WHERE e.recall_id = r.id AND e.outcome IS NULL)
"""

COUNTS = """
SELECT r.id FROM queue_core_recall r
WHERE r.id = ANY(%(ids)s::bigint[]) AND NOT EXISTS (
  SELECT FROM queue_core_auditentry u
  WHERE u.subject_type = 'recall' AND u.subject_id = r.id::text AND u.act = 'decisions.recalled'
    AND u.actor_id = r.by_id AND u.after->>'decisions' = (
      SELECT count(*)::text FROM queue_core_recallentry e WHERE e.recall_id = r.id))
"""

#: What somebody may have read of is announced; of what nobody has, the message goes to nobody.
OUTCOME = """
SELECT e.id FROM queue_core_recallentry e
JOIN queue_core_recall r ON r.id = e.recall_id JOIN queue_core_decision d ON d.id = e.decision_id
LEFT JOIN queue_core_decision n ON n.replaces_id = d.id
WHERE e.id = ANY(%(ids)s::bigint[]) AND (
  d.lane_id <> r.lane_id OR d.attempt_id IS NULL OR e.at < r.started_at
  OR e.outcome = 'passed_over' AND (n.id IS NULL OR e.job_id IS NOT NULL)
  OR e.outcome IN ('withdrawn', 'announced') AND (
    n.why IS DISTINCT FROM 'recall' OR n.person_id IS DISTINCT FROM r.by_id
    OR NOT n.decided_at BETWEEN r.started_at AND e.at)
  OR (e.outcome = 'announced') IS DISTINCT FROM EXISTS (
    SELECT FROM queue_core_message m
    WHERE m.ticket_id = d.ticket_id AND m.decision_id = n.id AND m.kind = 'decision.recalled'
      AND e.outcome IN ('withdrawn', 'announced')) AND e.outcome IS NOT NULL
  OR e.outcome = 'withdrawn' AND NOT EXISTS (
    SELECT FROM queue_core_message m
    WHERE m.decision_id = d.id AND m.kind = 'decision' AND m.state = 'withdrawn' OFFSET 0))
"""

#: The ticket has an item again, or a later round. None where its revision was no longer current.
WORK = """
SELECT e.id FROM queue_core_recallentry e
JOIN queue_core_decision d ON d.id = e.decision_id
JOIN queue_core_job was ON was.id = d.job_id JOIN queue_core_job j ON j.id = e.job_id
WHERE e.id = ANY(%(ids)s::bigint[]) AND (
  (j.ticket_id, j.revision) <> (d.ticket_id, d.revision)
  OR NOT (j.round > was.round OR EXISTS (
    SELECT FROM queue_core_item i
    WHERE i.job_id = j.id AND i.kind = 'recalled' AND i.params->>'decision' = d.id::text OFFSET 0)))
"""

LINK = """
SELECT d.id FROM queue_core_decision d
WHERE d.id = ANY(%(ids)s::bigint[]) AND d.why = 'recall' AND NOT EXISTS (
  SELECT FROM queue_core_recallentry e
  WHERE e.decision_id = d.replaces_id AND e.outcome IN ('withdrawn', 'announced'))
"""

RULES = (
    Rule("recall_ended", Recall, _("ended with a decision that was not looked at"), in_sql(ENDED)),
    Rule("recall_counts", Recall, _("its entries are not as many as its record says"), in_sql(COUNTS)),
    Rule("recallentry_outcome", RecallEntry, _("ended as nothing that happened to its decision"), in_sql(OUTCOME)),
    Rule("recallentry_work", RecallEntry, _("names a job that nobody was asked to look at again"), in_sql(WORK)),
    Rule("decision_recalled", Decision, _("takes a decision back that no recall names"), in_sql(LINK)),
)
