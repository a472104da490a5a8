"""What holds of lanes: the run or hold each stands on, and that its layers add up."""

from collections.abc import Sequence

from django.db import connection
from django.utils.translation import gettext_lazy as _

from queue_core import where
from queue_core.clock import DATABASE_CLOCK
from queue_core.ledger.rules import Rule, in_sql
from queue_core.memberships import ON_A_LANE
from queue_core.models import Hold, Lane, LaneRole, Outage, StageRun
from queue_core.states import NOT_OPEN_SQL
from queue_core.where import Layer

STANDING = """
SELECT l.id FROM queue_core_lane l
LEFT JOIN queue_core_stagerun r ON r.id = l.run_id
LEFT JOIN queue_core_hold h ON h.id = l.hold_id
WHERE l.id = ANY(%(ids)s::bigint[]) AND (
  r.lane_id <> l.id OR r.ended_at IS NOT NULL OR l.cap > r.cap
  OR h.lane_id <> l.id OR h.ended_at IS NOT NULL
  OR EXISTS (SELECT FROM queue_core_stagerun o
             WHERE o.lane_id = l.id AND o.ended_at IS NULL AND o.id IS DISTINCT FROM l.run_id)
  OR EXISTS (SELECT FROM queue_core_hold o
             WHERE o.lane_id = l.id AND o.ended_at IS NULL AND o.id IS DISTINCT FROM l.hold_id))
"""

#: What is open but for what only waits for delivery: work of the machine, and work of people on jobs that ended.
OPEN = f"""
SELECT j.lane_id, count(*) FROM queue_core_job j
WHERE j.lane_id = ANY(%s::bigint[]) AND (
  j.state IN ('WAITING', 'LEASED')
  OR j.id IN (SELECT i.job_id FROM queue_core_item i WHERE i.closed_at IS NULL AND i.kind NOT IN {NOT_OPEN_SQL}))
GROUP BY j.lane_id
"""  # noqa: S608  (constants of ours)


def layers_apart(ids: Sequence[int]) -> set[int]:
    """Lanes whose layers do not add up to what is open. A capped count says only "at least", and is not compared.

    The caller's transaction sees one moment, so that both counts are of the same rows.
    """
    lanes = list(where.lanes_to_read(Lane.objects.filter(pk__in=ids)))
    tables = where.layers(lanes, now=DATABASE_CLOCK.now())
    exact = [pk for pk, table in tables.items() if all(n.count < where.COUNT_CAP for n in table.counts.values())]
    with connection.cursor() as cursor:
        cursor.execute(OPEN, [exact])
        opened = dict(cursor.fetchall())
    return {pk for pk in exact if tables[pk].total - tables[pk].count_of(Layer.DELIVERY) != opened.get(pk, 0)}


RUN = """
SELECT r.id FROM queue_core_stagerun r JOIN queue_core_policy p ON p.id = r.policy_id
LEFT JOIN queue_core_stagerun before ON before.id = r.resumes_id
WHERE r.id = ANY(%(ids)s::bigint[]) AND (
  p.lane_id <> r.lane_id OR r.ended_at < r.started_at OR r.accepted_at < r.started_at
  OR before.lane_id <> r.lane_id OR before.ended_at IS NULL AND before.id IS NOT NULL)
"""

HOLD = """
SELECT h.id FROM queue_core_hold h LEFT JOIN queue_core_stagerun r ON r.id = h.run_id
WHERE h.id = ANY(%(ids)s::bigint[]) AND (
  h.ended_at < h.started_at OR r.lane_id <> h.lane_id OR r.id IS NOT NULL AND r.ended_at IS NULL)
"""

OUTAGE = "SELECT o.id FROM queue_core_outage o WHERE o.id = ANY(%(ids)s::bigint[]) AND o.closed_at < o.opened_at"

#: An administrator looks after all lanes, and so do groups that are no roles of ours.
ROLE = """
SELECT l.id FROM queue_core_lanerole l JOIN auth_group g ON g.id = l.role_id
WHERE l.id = ANY(%(ids)s::bigint[]) AND g.name <> ALL(%(roles)s)
"""

RULES = (
    Rule("stagerun_place", StageRun, _("is of another lane than its policy, or ended out of turn"), in_sql(RUN)),
    Rule("hold_place", Hold, _("is of another lane than the run that it ended, or ended out of turn"), in_sql(HOLD)),
    Rule("outage_times", Outage, _("was closed before it was opened"), in_sql(OUTAGE)),
    Rule(
        "lanerole_role",
        LaneRole,
        _("is a role that nobody has on one lane alone"),
        in_sql(ROLE, roles=list(ON_A_LANE)),
    ),
    Rule(
        "lane_standing",
        Lane,
        _("does not stand on its one open stage run or hold, or its cap is above what was approved"),
        in_sql(STANDING),
    ),
    Rule("lane_layers", Lane, _("its layers do not add up to its open tickets"), layers_apart),
)
