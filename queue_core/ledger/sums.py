"""The sum that must hold, a bounded number of revisions at a time: the same places as `figures.account`."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from queue_core.ledger.rules import in_force
from queue_core.states import NOT_OPEN_SQL

#: Where each revision stands, by its latest round; the first that fits. OFFSET 0: each question is asked of one row,
#: and none is answered for a whole table at once, whatever the planner believes of its rows.
PLACES = f"""
SELECT e.id, CASE
  WHEN EXISTS (SELECT FROM queue_core_item i WHERE i.job_id = j.id AND i.closed_at IS NULL
               AND i.kind NOT IN {NOT_OPEN_SQL} OFFSET 0) THEN 'open_items'
  WHEN {in_force("e")} THEN 'decided'
  WHEN j.id IS NULL THEN 'lost'
  WHEN j.dead_reason IN ('superseded', 'withdrawn') OR e.erased_at IS NOT NULL
    OR EXISTS (SELECT FROM queue_core_item i WHERE i.job_id = j.id AND i.closed_as IN ('superseded', 'withdrawn')
               OFFSET 0)
    OR EXISTS (SELECT FROM queue_core_ticket t WHERE t.id = e.ticket_id
               AND (t.current_revision <> e.revision OR t.withdrawn_at IS NOT NULL) OFFSET 0)
    THEN 'gone'
  WHEN j.state IN ('WAITING', 'LEASED') THEN 'not_reviewed'
  ELSE 'lost' END AS place
FROM queue_core_evidence e
LEFT JOIN LATERAL (
  SELECT id, state, dead_reason FROM queue_core_job
  WHERE ticket_id = e.ticket_id AND revision = e.revision ORDER BY round DESC LIMIT 1) j ON TRUE
WHERE e.id = ANY(%(ids)s::bigint[])
"""  # noqa: S608  (constants of ours)

TALLY = f"SELECT place, count(*) FROM ({PLACES}) placed GROUP BY place"  # noqa: S608  (put together from constants)


@dataclass(slots=True)
class Sums:
    """Revisions by where they stand. On a live system each part is of its own moment, and balances by itself."""

    decided: int = 0
    open_items: int = 0
    gone: int = 0
    not_reviewed: int = 0
    lost: int = 0

    @property
    def added(self) -> int:
        return self.decided + self.open_items + self.gone + self.not_reviewed + self.lost

    def count(self, evidence_ids: Sequence[int]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(TALLY, {"ids": list(evidence_ids)})
            for place, number in cursor.fetchall():
                setattr(self, place, getattr(self, place) + number)
