"""What holds of lanes: the run or hold each stands on, and that its layers add up."""

from collections.abc import Sequence

from django.db import connection
from django.utils.translation import gettext_lazy as _

from queue_core import where
from queue_core.clock import DATABASE_CLOCK
from queue_core.ledger.rules import Rule, in_sql
from queue_core.models import Lane
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


RULES = (
    Rule(
        "lane_standing",
        Lane,
        _("does not stand on its one open stage run or hold, or its cap is above what was approved"),
        in_sql(STANDING),
    ),
    Rule("lane_layers", Lane, _("its layers do not add up to its open tickets"), layers_apart),
)
