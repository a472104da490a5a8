"""What holds of tickets and their evidence: one current revision, sealed content, numbered messages, nothing lost."""

from django.utils.translation import gettext_lazy as _

from queue_core.ledger.rules import Rule, in_sql
from queue_core.ledger.sums import PLACES
from queue_core.models import Evidence, Ticket

CURRENT = """
SELECT t.id FROM queue_core_ticket t
WHERE t.id = ANY(%(ids)s::bigint[]) AND NOT EXISTS (
  SELECT FROM queue_core_job j JOIN queue_core_evidence e ON e.id = j.evidence_id
  WHERE j.ticket_id = t.id AND j.revision = t.current_revision)
"""

#: A job stays in the lane that its revision came in for; so does the ticket, until a newer revision names another.
LANE = """
SELECT t.id FROM queue_core_ticket t
WHERE t.id = ANY(%(ids)s::bigint[]) AND EXISTS (
  SELECT FROM queue_core_job j
  WHERE j.ticket_id = t.id AND j.revision = t.current_revision AND j.lane_id <> t.lane_id)
"""

SEQUENCE = """
SELECT t.id FROM queue_core_ticket t
CROSS JOIN LATERAL (
  SELECT count(*) AS n, coalesce(min(m.seq), 1) AS low, coalesce(max(m.seq), 0) AS high
  FROM queue_core_message m WHERE m.ticket_id = t.id) m
WHERE t.id = ANY(%(ids)s::bigint[]) AND (m.n, m.low, m.high) IS DISTINCT FROM (t.seq, 1::bigint, t.seq)
"""

ROUNDS = """
SELECT j.ticket_id FROM queue_core_job j WHERE j.ticket_id = ANY(%(ids)s::bigint[])
GROUP BY j.ticket_id, j.revision HAVING min(j.round) <> 1 OR max(j.round) <> count(*)
"""

#: PostgreSQL hashes what it stored. What was erased on a stated ground is blank, and its digest a keyed one.
SEAL = """
SELECT e.id FROM queue_core_evidence e
WHERE e.id = ANY(%(ids)s::bigint[]) AND CASE
  WHEN e.erased_at IS NOT NULL THEN e.body <> '' OR e.erased_ground = ''
  ELSE e.digest <> encode(sha256(convert_to(e.body, 'UTF8')), 'hex')
       OR e.size <> octet_length(convert_to(e.body, 'UTF8')) END
"""

LOST = f"SELECT id FROM ({PLACES}) placed WHERE place = 'lost'"  # noqa: S608  (put together from constants)

RULES = (
    Rule("ticket_current", Ticket, _("its current revision has no job with evidence"), in_sql(CURRENT)),
    Rule("ticket_lane", Ticket, _("is in another lane than the job of its current revision"), in_sql(LANE)),
    Rule("ticket_sequence", Ticket, _("its messages are not numbered 1 to n"), in_sql(SEQUENCE)),
    Rule("ticket_rounds", Ticket, _("the rounds of a revision are not 1 to n"), in_sql(ROUNDS)),
    Rule("evidence_seal", Evidence, _("differs from its seal"), in_sql(SEAL)),
    Rule(
        "revision_lost",
        Evidence,
        _("its revision is neither decided, nor with people, nor gone, nor waiting for the machine"),
        in_sql(LOST),
    ),
)
