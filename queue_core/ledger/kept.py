"""What holds of content that is kept for an authority, and of content that was erased."""

from django.utils.translation import gettext_lazy as _

from queue_core.ledger.rules import Rule, in_sql
from queue_core.models import Evidence, EvidenceReport, PreservationHold

PRESERVED = """
SELECT h.id FROM queue_core_preservationhold h
WHERE h.id = ANY(%(ids)s::bigint[]) AND (
  h.lifted_at < h.placed_at
  OR EXISTS (
    SELECT FROM queue_core_evidence e
    WHERE e.ticket_id = h.ticket_id AND e.erased_at >= h.placed_at
      AND e.erased_at < least(h.until, coalesce(h.lifted_at, h.until)))
  OR NOT EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'ticket' AND u.subject_id = h.ticket_id::text AND u.act = 'ticket.preserved'
      AND u.actor_id = h.placed_by_id AND u.after->>'hold' = h.id::text)
  OR h.lifted_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'ticket' AND u.subject_id = h.ticket_id::text
      AND u.act = 'ticket.preservation_lifted' AND u.actor_id = h.lifted_by_id AND u.after->>'hold' = h.id::text))
"""

#: Of what was said before the erasure nothing is left, and no machine has the rest to look at. What comes after it
#: (a late answer, a person's note) a repeat blanks.
ERASED = """
SELECT e.id FROM queue_core_evidence e
WHERE e.id = ANY(%(ids)s::bigint[]) AND e.erased_at IS NOT NULL AND (
  EXISTS (
    SELECT FROM queue_core_job j
    WHERE j.ticket_id = e.ticket_id AND j.revision = e.revision AND (
      j.state IN ('WAITING', 'LEASED')
      OR EXISTS (SELECT FROM queue_core_attempt a WHERE a.job_id = j.id AND a.ended_at < e.erased_at
                 AND (a.scores IS NOT NULL OR a.detail <> ''))
      OR EXISTS (SELECT FROM queue_core_lateanswer l WHERE l.job_id = j.id AND l.received_at < e.erased_at
                 AND l.scores IS NOT NULL)
      OR EXISTS (SELECT FROM queue_core_decision d WHERE d.job_id = j.id AND d.decided_at < e.erased_at
                 AND d.note <> '')
      OR EXISTS (SELECT FROM queue_core_item i JOIN queue_core_itempass p ON p.item_id = i.id
                 WHERE i.job_id = j.id AND p.at < e.erased_at AND p.reason <> '')
      OR EXISTS (SELECT FROM queue_core_item i JOIN queue_core_secondlook k ON k.item_id = i.id
                 WHERE i.job_id = j.id AND k.looked_at < e.erased_at AND k.note <> '')
      OR EXISTS (SELECT FROM queue_core_item i JOIN queue_core_appeal p ON p.item_id = i.id
                 WHERE i.job_id = j.id AND p.received_at < e.erased_at AND p.statement <> '')))
  OR NOT EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'ticket' AND u.subject_id = e.ticket_id::text AND u.act = 'ticket.erased'
      AND u.at = e.erased_at))
"""

REPORTED = """
SELECT r.id FROM queue_core_evidencereport r JOIN queue_core_evidence e ON e.id = r.evidence_id
WHERE r.id = ANY(%(ids)s::bigint[]) AND (
  NOT e.is_restricted OR NOT EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'ticket' AND u.subject_id = e.ticket_id::text AND u.act = 'evidence.reported'
      AND u.actor_id = r.reported_by_id AND u.after->>'report' = r.id::text))
"""

RULES = (
    Rule(
        "preservationhold_kept",
        PreservationHold,
        _("has no record, or content was erased while it stood"),
        in_sql(PRESERVED),
    ),
    Rule("evidence_erased", Evidence, _("was erased, and something of it is left"), in_sql(ERASED)),
    Rule(
        "evidencereport_made",
        EvidenceReport,
        _("is of content that is not restricted, or has no record"),
        in_sql(REPORTED),
    ),
)
