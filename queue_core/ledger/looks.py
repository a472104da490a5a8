"""What holds where people look again: by another person, about the decision in force, and kept beside its item."""

from django.utils.translation import gettext_lazy as _

from queue_core.ledger.rules import Rule, in_sql
from queue_core.models import Appeal, BlindCheck, Decision, Item, ItemPass, SecondLook

#: Why a link replaces the one before follows from the work that it came of. What a recall or a taking back left without
#: a verdict is decided by whatever work there is, and so is what another round of the machine's ends with.
WHY = """
SELECT d.id FROM queue_core_decision d
JOIN queue_core_decision before ON before.id = d.replaces_id
LEFT JOIN queue_core_assignment s ON s.id = d.assignment_id
LEFT JOIN queue_core_item i ON i.id = s.item_id
WHERE d.id = ANY(%(ids)s::bigint[]) AND d.why IN ('second_look', 'correction', 'appeal') AND NOT CASE
  WHEN d.why = 'second_look' THEN coalesce(i.kind IN ('blind', 'disputed'), FALSE) AND before.verdict IS NOT NULL
  WHEN d.why = 'appeal' THEN coalesce(i.kind = 'appeal', FALSE) AND before.verdict IS NOT NULL
  ELSE before.verdict IS NULL OR coalesce(i.kind = 'correction', FALSE) END
"""

#: Who decided, or looked at it before, had their say. One's own decision one may correct as a lead, and take back.
BY_ANOTHER = """
SELECT d.id FROM queue_core_decision d
JOIN queue_core_assignment s ON s.id = d.assignment_id JOIN queue_core_item i ON i.id = s.item_id
JOIN queue_core_decision before ON before.id = d.replaces_id
WHERE d.id = ANY(%(ids)s::bigint[]) AND i.kind IN ('disputed', 'appeal') AND (
  before.person_id = d.person_id AND before.why <> 'taken_back'
  OR EXISTS (SELECT FROM queue_core_secondlook k WHERE k.decision_id = before.id AND k.person_id = d.person_id))
"""

#: The verdict before is in force again, the message never went out, and the work is the same person's again.
TAKEN_BACK = """
SELECT d.id FROM queue_core_decision d
JOIN queue_core_decision undone ON undone.id = d.replaces_id
LEFT JOIN queue_core_decision before ON before.id = undone.replaces_id
LEFT JOIN queue_core_assignment s ON s.id = undone.assignment_id
WHERE d.id = ANY(%(ids)s::bigint[]) AND d.why = 'taken_back' AND (
  s.id IS NULL OR undone.person_id IS DISTINCT FROM d.person_id OR d.verdict IS DISTINCT FROM before.verdict
  OR NOT EXISTS (
    SELECT FROM queue_core_message m
    WHERE m.decision_id = undone.id AND m.kind = 'decision' AND m.state = 'withdrawn' AND m.number IS NULL OFFSET 0)
  OR NOT EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'item' AND u.subject_id = s.item_id::text AND u.act = 'decision.taken_back'
      AND u.actor_id = d.person_id AND u.after->>'decision' = d.id::text)
  OR NOT EXISTS (
    SELECT FROM queue_core_item i JOIN queue_core_assignment o ON o.item_id = i.id AND o.fence = 1
    WHERE i.job_id = d.job_id AND i.opened_at = d.decided_at AND o.person_id = d.person_id))
"""

#: A disagreement goes to the leads in the same transaction.
SECOND_LOOK = """
SELECT k.id FROM queue_core_secondlook k
JOIN queue_core_item i ON i.id = k.item_id JOIN queue_core_assignment s ON s.id = k.assignment_id
JOIN queue_core_decision d ON d.id = k.decision_id
WHERE k.id = ANY(%(ids)s::bigint[]) AND (
  (i.kind, i.closed_as, i.closed_at, i.fence) IS DISTINCT FROM ('second', 'checked', k.looked_at, s.fence)
  OR (i.job_id, i.lane_id, i.params->>'decision') IS DISTINCT FROM (d.job_id, k.lane_id, d.id::text)
  OR (s.item_id, s.person_id, s.ended_as) IS DISTINCT FROM (k.item_id, k.person_id, 'checked')
  OR d.person_id IS NULL OR d.person_id = k.person_id
  OR k.agrees IS DISTINCT FROM (d.verdict = k.verdict)
  OR NOT k.agrees AND NOT EXISTS (
    SELECT FROM queue_core_item l
    WHERE l.job_id = i.job_id AND l.kind = 'disputed' AND l.for_leads AND l.opened_at = k.looked_at
      AND l.params->>'second_look' = k.id::text OFFSET 0))
"""

#: The decision is the model's. Where they disagree the person's replaces it.
BLIND_CHECK = """
SELECT b.id FROM queue_core_blindcheck b
JOIN queue_core_item i ON i.id = b.item_id JOIN queue_core_assignment s ON s.id = b.assignment_id
JOIN queue_core_decision d ON d.id = b.decision_id
LEFT JOIN queue_core_decision own ON own.assignment_id = b.assignment_id
WHERE b.id = ANY(%(ids)s::bigint[]) AND (
  (i.kind, i.closed_at, i.fence) IS DISTINCT FROM ('blind', b.checked_at, s.fence)
  OR (i.job_id, i.lane_id, i.params->>'decision') IS DISTINCT FROM (d.job_id, b.lane_id, d.id::text)
  OR (s.item_id, s.person_id) IS DISTINCT FROM (b.item_id, b.person_id)
  OR d.attempt_id IS NULL OR d.run_id IS DISTINCT FROM b.run_id
  OR b.agrees IS DISTINCT FROM (d.verdict = b.verdict)
  OR (own.id IS NULL) IS DISTINCT FROM b.agrees
  OR own.id IS NOT NULL AND (own.replaces_id, own.verdict) IS DISTINCT FROM (d.id, b.verdict))
"""

APPEAL = """
SELECT p.id FROM queue_core_appeal p
JOIN queue_core_item i ON i.id = p.item_id JOIN queue_core_job j ON j.id = i.job_id
JOIN queue_core_decision d ON d.id = p.decision_id
WHERE p.id = ANY(%(ids)s::bigint[]) AND (
  (i.kind, i.opened_at, i.params->>'appeal') IS DISTINCT FROM ('appeal', p.received_at, p.id::text)
  OR (i.ticket_id, i.lane_id) IS DISTINCT FROM (p.ticket_id, p.lane_id)
  OR (d.ticket_id, d.revision) IS DISTINCT FROM (p.ticket_id, j.revision)
  OR d.verdict IS NULL OR d.decided_at > p.received_at)
"""

PASSED_ON = """
SELECT p.id FROM queue_core_itempass p JOIN queue_core_item i ON i.id = p.item_id
WHERE p.id = ANY(%(ids)s::bigint[]) AND (
  p.lane_id <> i.lane_id OR p.at < i.opened_at
  OR NOT CASE p.passed_as
    WHEN 'escalated' THEN i.for_leads
    WHEN 'skipped' THEN EXISTS (
      SELECT FROM queue_core_assignment s
      WHERE s.item_id = i.id AND s.person_id = p.person_id AND s.ended_as = 'skipped' AND s.ended_at = p.at)
    ELSE EXISTS (
      SELECT FROM queue_core_assignment s
      WHERE s.item_id = i.id AND s.person_id = p.to_id AND s.taken_at = p.at) END)
"""

#: Why is kept beside the item, since it may quote what has to be erased one day. The item of an appeal may come back
#: as a new one, when its decision is taken back.
NOT_KEPT = """
SELECT i.id FROM queue_core_item i
WHERE i.id = ANY(%(ids)s::bigint[]) AND (
  i.kind = 'appeal' AND NOT EXISTS (
    SELECT FROM queue_core_appeal p WHERE p.id = (i.params->>'appeal')::bigint OFFSET 0)
  OR EXISTS (
    SELECT FROM queue_core_assignment s
    WHERE s.item_id = i.id AND s.ended_as IN ('skipped', 'escalated', 'handed_over') AND NOT EXISTS (
      SELECT FROM queue_core_itempass p
      WHERE p.item_id = i.id AND p.at = s.ended_at AND p.passed_as = s.ended_as OFFSET 0) OFFSET 0)
  OR EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'item' AND u.subject_id = i.id::text AND u.act IN ('item.escalated', 'item.handed_over')
      AND NOT EXISTS (SELECT FROM queue_core_itempass p WHERE p.item_id = i.id AND p.at = u.at OFFSET 0) OFFSET 0))
"""

#: What its author was told.
GROUND = """
SELECT d.id FROM queue_core_decision d
WHERE d.id = ANY(%(ids)s::bigint[]) AND d.reason_version IS NOT NULL AND NOT EXISTS (
  SELECT FROM queue_core_reasoncodeversion v
  WHERE v.ground_id = d.reason_code_id AND v.version = d.reason_version)
"""

RULES = (
    Rule("decision_why", Decision, _("replaces another for a reason that its work does not give"), in_sql(WHY)),
    Rule("decision_by_another", Decision, _("is by somebody who had a part in what it replaces"), in_sql(BY_ANOTHER)),
    Rule("decision_taken_back", Decision, _("takes back what was not its person's, or was told"), in_sql(TAKEN_BACK)),
    Rule("decision_ground", Decision, _("names a version of its reason code that is not kept"), in_sql(GROUND)),
    Rule("item_kept", Item, _("its appeal, or why it was passed on, is not kept"), in_sql(NOT_KEPT)),
    Rule("secondlook_made", SecondLook, _("is not the look that its item was closed with"), in_sql(SECOND_LOOK)),
    Rule("blindcheck_made", BlindCheck, _("is not the check that its item was closed with"), in_sql(BLIND_CHECK)),
    Rule("appeal_made", Appeal, _("is not of the decision and the item that it names"), in_sql(APPEAL)),
    Rule(
        "itempass_made", ItemPass, _("passed an item on that nothing shows to have been passed on"), in_sql(PASSED_ON)
    ),
)
