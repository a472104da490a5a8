"""What holds of decisions and their messages."""

from django.utils.translation import gettext_lazy as _

from queue_core.ledger.rules import Rule, in_sql
from queue_core.models import Decision, Message

#: With the unique indexes (one first link a revision, each link replaced once) this leaves one line and one end of it:
#: links that lead back within their revision cannot fork or close a circle.
CHAIN = """
SELECT d.id FROM queue_core_decision d JOIN queue_core_decision before ON before.id = d.replaces_id
WHERE d.id = ANY(%(ids)s::bigint[])
  AND ((before.ticket_id, before.revision) <> (d.ticket_id, d.revision) OR before.id >= d.id)
"""

OF_ITS_JOB = """
SELECT d.id FROM queue_core_decision d JOIN queue_core_job j ON j.id = d.job_id
WHERE d.id = ANY(%(ids)s::bigint[])
  AND (j.ticket_id, j.revision, j.lane_id) IS DISTINCT FROM (d.ticket_id, d.revision, d.lane_id)
"""

BY_THE_MACHINE = """
SELECT d.id FROM queue_core_decision d
JOIN queue_core_attempt a ON a.id = d.attempt_id
WHERE d.id = ANY(%(ids)s::bigint[]) AND (
  NOT a.is_committed
  OR (a.job_id, a.ended_at, a.policy_id, a.run_id) IS DISTINCT FROM (d.job_id, d.decided_at, d.policy_id, d.run_id))
"""

BY_A_PERSON = """
SELECT d.id FROM queue_core_decision d
JOIN queue_core_assignment s ON s.id = d.assignment_id
JOIN queue_core_item i ON i.id = s.item_id
WHERE d.id = ANY(%(ids)s::bigint[]) AND (
  (i.job_id, i.closed_as, i.closed_at) IS DISTINCT FROM (d.job_id, 'decided', d.decided_at)
  OR (s.person_id, s.fence, s.ended_as) IS DISTINCT FROM (d.person_id, i.fence, 'decided')
  OR NOT EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'item' AND u.subject_id = i.id::text AND u.after->>'decision' = d.id::text))
"""

#: An erased body is blank; what it still says must be what was decided. Whoever takes back a decision that replaced
#: another says so only where the message of that one went to nobody.
ANNOUNCED = """
SELECT d.id FROM queue_core_decision d
LEFT JOIN queue_core_message m ON m.decision_id = d.id AND m.kind = 'decision'
WHERE d.id = ANY(%(ids)s::bigint[]) AND d.verdict IS NOT NULL AND (d.why <> 'taken_back' OR m.id IS NOT NULL) AND (
  m.ticket_id IS DISTINCT FROM d.ticket_id
  OR m.body->>'verdict' <> d.verdict OR m.body->>'revision' <> d.revision OR m.body->>'decision' <> d.id::text)
"""

#: A message is written with what it tells of. Only a person's decision waits, for a while that it may be taken back in.
TOLD_AT = """
SELECT m.id FROM queue_core_message m LEFT JOIN queue_core_decision d ON d.id = m.decision_id
WHERE m.id = ANY(%(ids)s::bigint[]) AND (
  m.created_at <> d.decided_at
  OR m.not_before IS NOT NULL AND (d.assignment_id IS NULL OR m.not_before < m.created_at)
  OR m.kind IN ('item.opened', 'ticket.dead') AND EXISTS (
    SELECT FROM queue_core_item i WHERE i.id = (m.body->>'item')::bigint AND i.opened_at <> m.created_at OFFSET 0))
"""

KEPT_BACK = """
SELECT m.id FROM queue_core_message m
LEFT JOIN queue_core_decision d ON d.id = m.decision_id
LEFT JOIN queue_core_stagerun r ON r.id = d.run_id
WHERE m.id = ANY(%(ids)s::bigint[]) AND m.state = 'kept_back'
  AND (r.id IS NULL OR NOT r.keeps_back OR r.accepted_at IS NOT NULL)
"""

#: Of the machine's decisions. A run is accepted first, and then what it kept back is let go.
LET_GO = """
SELECT m.id FROM queue_core_message m
JOIN queue_core_decision d ON d.id = m.decision_id JOIN queue_core_stagerun r ON r.id = d.run_id
WHERE m.id = ANY(%(ids)s::bigint[]) AND m.state = 'ready' AND m.kind = 'decision' AND d.attempt_id IS NOT NULL
  AND r.keeps_back AND r.accepted_at IS NULL
"""

RULES = (
    Rule("decision_chain", Decision, _("replaces what is not an earlier decision of its revision"), in_sql(CHAIN)),
    Rule("decision_job", Decision, _("is of another ticket, revision or lane than its job"), in_sql(OF_ITS_JOB)),
    Rule("decision_attempt", Decision, _("is not what its attempt committed"), in_sql(BY_THE_MACHINE)),
    Rule(
        "decision_assignment", Decision, _("is not what its item was closed with and audited as"), in_sql(BY_A_PERSON)
    ),
    Rule("decision_message", Decision, _("has no message of its own that says the same"), in_sql(ANNOUNCED)),
    Rule("message_times", Message, _("was written at another time than what it tells of"), in_sql(TOLD_AT)),
    Rule(
        "message_kept_back", Message, _("is kept back though its run is accepted or keeps nothing"), in_sql(KEPT_BACK)
    ),
    Rule("message_let_go", Message, _("may go out though its run keeps it back and is not accepted"), in_sql(LET_GO)),
)
