"""What holds of uploaded files: as many refused lines as were counted, and the file is whole or gone."""

from django.utils.translation import gettext_lazy as _

from queue_core.imports.working import LEFT_OUT, MOST_REFUSALS
from queue_core.ledger.rules import Rule, in_sql
from queue_core.models import ImportRun

COUNTS = """
SELECT r.id FROM queue_core_importrun r
CROSS JOIN LATERAL (
  SELECT coalesce(sum(c.number::bigint) FILTER (WHERE c.name = ANY(%(left_out)s)), 0) AS refused
  FROM jsonb_each_text(r.counts) c(name, number)) c
CROSS JOIN LATERAL (SELECT count(*) AS n FROM queue_core_importrefusal f WHERE f.run_id = r.id) f
WHERE r.id = ANY(%(ids)s::bigint[])
  AND f.n <> CASE WHEN r.is_emptied THEN 0 ELSE least(c.refused, %(most)s) END
"""

#: The file stays until the run has ended, and not a moment longer; its parts are numbered from 0.
FILE = """
SELECT r.id FROM queue_core_importrun r
CROSS JOIN LATERAL (
  SELECT count(*) AS n, coalesce(max(p.number), -1) AS last, coalesce(sum(octet_length(p.content)), 0) AS size
  FROM queue_core_importpart p WHERE p.run_id = r.id) p
WHERE r.id = ANY(%(ids)s::bigint[]) AND CASE
  WHEN r.ended_at IS NULL THEN (p.last, p.size) IS DISTINCT FROM (p.n - 1, r.size::numeric)
  ELSE p.n > 0 OR EXISTS (SELECT FROM queue_core_importforeseen s WHERE s.run_id = r.id) END
"""

RECORD = """
SELECT r.id FROM queue_core_importrun r
WHERE r.id = ANY(%(ids)s::bigint[]) AND r.ended_at IS NOT NULL AND NOT EXISTS (
  SELECT FROM queue_core_auditentry u
  WHERE u.subject_type = 'importrun' AND u.subject_id = r.id::text AND u.act = 'import.ended'
    AND u.at = r.ended_at AND u.after->>'state' = r.state AND u.after @> r.counts)
"""

RULES = (
    Rule(
        "importrun_counts",
        ImportRun,
        _("its refused lines are not as many as were counted"),
        in_sql(COUNTS, left_out=list(LEFT_OUT), most=MOST_REFUSALS),
    ),
    Rule("importrun_file", ImportRun, _("its file is not whole while it is open and gone at its end"), in_sql(FILE)),
    Rule("importrun_record", ImportRun, _("ended otherwise than its record says"), in_sql(RECORD)),
)
