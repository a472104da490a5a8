"""The sum that must hold at any moment: every revision that came in is in exactly one place."""

from dataclasses import dataclass

from django.db import connection

from queue_core.models import Lane
from queue_core.states import NOT_OPEN_SQL

#: By its latest round, each revision of each ticket. The first that fits counts.
ACCOUNT = f"""
WITH latest AS (
  SELECT DISTINCT ON (ticket_id, revision) id, ticket_id, revision, lane_id, evidence_id, state, dead_reason
  FROM queue_core_job ORDER BY ticket_id, revision, round DESC),
placed AS (
  SELECT CASE
    WHEN EXISTS (SELECT FROM queue_core_item i WHERE i.job_id = j.id AND i.closed_at IS NULL
                 AND i.kind NOT IN {NOT_OPEN_SQL}) THEN 'open_items'
    WHEN EXISTS (
      SELECT FROM queue_core_decision d LEFT JOIN queue_core_decision n ON n.replaces_id = d.id
      WHERE d.ticket_id = j.ticket_id AND d.revision = j.revision AND n.id IS NULL AND d.verdict IS NOT NULL)
      THEN 'decided'
    WHEN j.dead_reason IN ('superseded', 'withdrawn')
      OR EXISTS (SELECT FROM queue_core_item i WHERE i.job_id = j.id AND i.closed_as IN ('superseded', 'withdrawn'))
      OR EXISTS (SELECT FROM queue_core_evidence e WHERE e.id = j.evidence_id AND e.erased_at IS NOT NULL)
      OR EXISTS (SELECT FROM queue_core_ticket t WHERE t.id = j.ticket_id
                 AND (t.current_revision <> j.revision OR t.withdrawn_at IS NOT NULL))
      THEN 'gone'
    WHEN j.state IN ('WAITING', 'LEASED') THEN 'not_reviewed'
    ELSE 'lost' END AS place
  FROM latest j WHERE %s::bigint IS NULL OR j.lane_id = %s)
SELECT place, count(*) FROM placed GROUP BY place
"""  # noqa: S608  (constants of ours)

#: What came in is counted by its sealed evidence, not by jobs: a revision whose job was lost would show. It belongs to
#: the lane that its job is in; a later revision may have moved the ticket itself to another one.
ADDED = """
SELECT count(*) FROM queue_core_evidence e JOIN queue_core_ticket t ON t.id = e.ticket_id
WHERE %s::bigint IS NULL OR %s = coalesce((
  SELECT j.lane_id FROM queue_core_job j WHERE j.ticket_id = e.ticket_id AND j.revision = e.revision
  ORDER BY j.round DESC LIMIT 1), t.lane_id)
"""


@dataclass(frozen=True, slots=True)
class Account:
    """Revisions of tickets. `gone` are superseded, withdrawn or erased ones."""

    added: int
    decided: int
    open_items: int
    gone: int
    not_reviewed: int

    @property
    def balances(self) -> bool:
        return self.added == self.decided + self.open_items + self.gone + self.not_reviewed


def account(lane: Lane | None = None) -> Account:
    """Exact, so it reads every row: for commands and tests, never for a page."""
    key = None if lane is None else lane.pk
    with connection.cursor() as cursor:
        cursor.execute(ADDED, [key, key])
        [[added]] = cursor.fetchall()
        cursor.execute(ACCOUNT, [key, key])
        places = dict(cursor.fetchall())
    return Account(
        added=added,
        decided=places.get("decided", 0),
        open_items=places.get("open_items", 0),
        gone=places.get("gone", 0),
        not_reviewed=places.get("not_reviewed", 0),
    )
