"""What holds of people's work: items for jobs that need them, each end with its cause, assignments by fence."""

from django.utils.translation import gettext_lazy as _

from queue_core.ledger.rules import Rule, in_force, in_sql
from queue_core.models import Assignment, Item
from queue_core.states import NOT_OPEN_SQL

PLACE = """
SELECT i.id FROM queue_core_item i JOIN queue_core_job j ON j.id = i.job_id
WHERE i.id = ANY(%(ids)s::bigint[]) AND (i.ticket_id, i.lane_id) IS DISTINCT FROM (j.ticket_id, j.lane_id)
"""

#: Only an ended job needs a person, each kind of item another end. A recalled decision leaves the job as it ended. A
#: blind check is of a decision in force, the model's; so are the others that look at a decision, whoever's.
NEEDED = f"""
SELECT i.id FROM queue_core_item i
JOIN queue_core_job j ON j.id = i.job_id JOIN queue_core_ticket t ON t.id = i.ticket_id
WHERE i.id = ANY(%(ids)s::bigint[]) AND i.closed_at IS NULL AND (
  t.withdrawn_at IS NOT NULL OR t.current_revision <> j.revision
  OR NOT CASE i.kind
    WHEN 'manual' THEN coalesce(j.result = 'MANUAL', FALSE)
    WHEN 'dead' THEN coalesce(j.dead_reason IN ('deadline', 'attempts') AND j.dead_reason = i.cause, FALSE)
    WHEN 'recalled' THEN j.state IN ('DONE', 'DEAD')
    WHEN 'blind' THEN coalesce(j.result IN ('APPROVED', 'REJECTED'), FALSE)
    WHEN 'second' THEN j.state IN ('DONE', 'DEAD')
    WHEN 'disputed' THEN i.for_leads AND j.state IN ('DONE', 'DEAD')
    WHEN 'correction' THEN i.for_leads AND j.state IN ('DONE', 'DEAD')
    WHEN 'appeal' THEN j.state IN ('DONE', 'DEAD')
    ELSE coalesce(j.dead_reason = 'pulled', FALSE) END
  OR (i.kind IN {NOT_OPEN_SQL}) <> {in_force("j")})
"""  # noqa: S608  (constants of ours)

ENDED = f"""
SELECT i.id FROM queue_core_item i
JOIN queue_core_job j ON j.id = i.job_id JOIN queue_core_ticket t ON t.id = i.ticket_id
WHERE i.id = ANY(%(ids)s::bigint[]) AND NOT CASE i.closed_as
  WHEN 'decided' THEN EXISTS (
    SELECT FROM queue_core_assignment s JOIN queue_core_decision d ON d.assignment_id = s.id
    WHERE s.item_id = i.id AND s.fence = i.fence AND d.decided_at = i.closed_at)
  WHEN 'requeued' THEN i.kind = 'dead' AND j.requeues > 0
  WHEN 'superseded' THEN t.current_revision <> j.revision
  WHEN 'withdrawn' THEN t.withdrawn_at IS NOT NULL OR t.current_revision <> j.revision
  WHEN 'checked' THEN i.kind = 'blind' AND EXISTS (
    SELECT FROM queue_core_blindcheck b JOIN queue_core_assignment s ON s.id = b.assignment_id
    WHERE b.item_id = i.id AND s.fence = i.fence AND b.agrees AND b.checked_at = i.closed_at)
    OR i.kind = 'second' AND EXISTS (
    SELECT FROM queue_core_secondlook b JOIN queue_core_assignment s ON s.id = b.assignment_id
    WHERE b.item_id = i.id AND s.fence = i.fence AND b.looked_at = i.closed_at)
  WHEN 'recalled' THEN i.kind IN {NOT_OPEN_SQL} AND EXISTS (
    SELECT FROM queue_core_decision d WHERE d.job_id = j.id AND d.why = 'recall')
  WHEN 'taken_back' THEN i.kind = 'second' AND EXISTS (
    SELECT FROM queue_core_decision d WHERE d.job_id = j.id AND d.why = 'taken_back')
  WHEN 'appealed' THEN i.kind IN {NOT_OPEN_SQL} AND EXISTS (
    SELECT FROM queue_core_item a WHERE a.job_id = j.id AND a.kind = 'appeal' AND a.opened_at = i.closed_at OFFSET 0)
  ELSE TRUE END
"""  # noqa: S608  (constants of ours)

FENCES = """
SELECT i.id FROM queue_core_item i
CROSS JOIN LATERAL (
  SELECT count(*) AS n, coalesce(min(s.fence), 1) AS low, coalesce(max(s.fence), 0) AS high
  FROM queue_core_assignment s WHERE s.item_id = i.id) s
WHERE i.id = ANY(%(ids)s::bigint[]) AND (s.n, s.low, s.high) IS DISTINCT FROM (i.fence, 1::bigint, i.fence)
"""

TAKEN = """
SELECT i.id FROM queue_core_item i
LEFT JOIN queue_core_assignment s ON s.item_id = i.id AND s.ended_at IS NULL
WHERE i.id = ANY(%(ids)s::bigint[]) AND (
  (i.taken_by_id, i.taken_until) IS DISTINCT FROM (s.person_id, s.until) OR s.fence <> i.fence)
"""

ASSIGNMENT = """
SELECT s.id FROM queue_core_assignment s
JOIN queue_core_item i ON i.id = s.item_id
LEFT JOIN queue_core_decision d ON d.assignment_id = s.id
WHERE s.id = ANY(%(ids)s::bigint[]) AND (
  s.ended_at < s.taken_at OR (d.id IS NOT NULL) <> (s.ended_as IS NOT DISTINCT FROM 'decided')
  OR s.ended_as IN ('decided', 'requeued', 'checked') AND i.closed_as IS DISTINCT FROM s.ended_as)
"""

#: A requeue begins a new wait, and leaves what was opened before it as it was.
ITEM_TIMES = """
SELECT i.id FROM queue_core_item i JOIN queue_core_job j ON j.id = i.job_id
WHERE i.id = ANY(%(ids)s::bigint[])
  AND (i.closed_at < i.opened_at OR i.queued_at <> j.queued_at AND j.requeues = 0)
"""

#: Ended with its item, or by the next one, in one moment.
ASSIGNMENT_TIMES = """
SELECT s.id FROM queue_core_assignment s JOIN queue_core_item i ON i.id = s.item_id
WHERE s.id = ANY(%(ids)s::bigint[]) AND NOT CASE
  WHEN s.ended_as IN ('decided', 'requeued', 'checked', 'item_closed') THEN
    (s.fence, s.ended_at) IS NOT DISTINCT FROM (i.fence, i.closed_at)
  WHEN s.ended_as IN ('expired', 'handed_over') THEN EXISTS (
    SELECT FROM queue_core_assignment n
    WHERE n.item_id = s.item_id AND n.fence = s.fence + 1 AND n.taken_at = s.ended_at)
  ELSE TRUE END
"""

RULES = (
    Rule("item_place", Item, _("is of another ticket or lane than its job"), in_sql(PLACE)),
    Rule("item_needed", Item, _("is open though its job needs no person"), in_sql(NEEDED)),
    Rule("item_ended", Item, _("ended as nothing that happened"), in_sql(ENDED)),
    Rule("item_fences", Item, _("its assignments are not one for each fence from 1"), in_sql(FENCES)),
    Rule("item_taken", Item, _("is not taken by whom its open assignment names"), in_sql(TAKEN)),
    Rule("item_times", Item, _("waits since another time than its job, or ended before it began"), in_sql(ITEM_TIMES)),
    Rule(
        "assignment_times",
        Assignment,
        _("ended at another time than its item, or than the next one began"),
        in_sql(ASSIGNMENT_TIMES),
    ),
    Rule("assignment_ended", Assignment, _("its end, its decision and its item do not agree"), in_sql(ASSIGNMENT)),
)
