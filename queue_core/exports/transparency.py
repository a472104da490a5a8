"""The counts of a transparency report for a period: what was decided on what, how fast, and how often wrongly."""

from collections.abc import Collection
from typing import Any

from django.db import connection

from queue_core.exports.periods import Period
from queue_core.models import Lane

#: What its maker took back before anybody was told was no decision, nor is the link that says so.
WENT_OUT = """d.why <> 'taken_back'
  AND NOT EXISTS (SELECT FROM queue_core_decision n WHERE n.replaces_id = d.id AND n.why = 'taken_back')"""

#: Decisions by what a report asks for. A recall is no decision; it stands in the decisions that it took out of force.
DECISIONS = f"""
SELECT d.source_kind, t.category, d.automation, d.verdict, count(*),
  extract(epoch FROM percentile_cont(0.5) WITHIN GROUP (ORDER BY d.decided_at - t.first_seen_at))
FROM queue_core_decision d JOIN queue_core_ticket t ON t.id = d.ticket_id
WHERE d.lane_id = ANY(%s) AND d.decided_at >= %s AND d.decided_at < %s AND d.verdict IS NOT NULL
  AND {WENT_OUT}
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""  # noqa: S608  (constants of ours)

MEDIAN = f"""
SELECT count(*), extract(epoch FROM percentile_cont(0.5) WITHIN GROUP (ORDER BY d.decided_at - t.first_seen_at))
FROM queue_core_decision d JOIN queue_core_ticket t ON t.id = d.ticket_id
WHERE d.lane_id = ANY(%s) AND d.decided_at >= %s AND d.decided_at < %s AND d.verdict IS NOT NULL AND d.why = 'first'
  AND {WENT_OUT}
"""  # noqa: S608  (constants of ours)

#: What came of an appeal is told by the decision that it replaced.
APPEALS = f"""
SELECT d.verdict = b.verdict, count(*),
  extract(epoch FROM percentile_cont(0.5) WITHIN GROUP (ORDER BY d.decided_at - b.decided_at))
FROM queue_core_decision d JOIN queue_core_decision b ON b.id = d.replaces_id
WHERE d.lane_id = ANY(%s) AND d.decided_at >= %s AND d.decided_at < %s AND d.why = 'appeal' AND b.verdict IS NOT NULL
  AND {WENT_OUT}
GROUP BY 1
"""  # noqa: S608  (constants of ours)

RECALLS = """
SELECT count(*) FROM queue_core_decision
WHERE lane_id = ANY(%s) AND decided_at >= %s AND decided_at < %s AND why = 'recall'
"""

#: Blind samples: a person decided without seeing what the model had decided.
SAMPLES = """
SELECT count(*), count(*) FILTER (WHERE NOT agrees) FROM queue_core_blindcheck
WHERE lane_id = ANY(%s) AND checked_at >= %s AND checked_at < %s
"""


def report(period: Period, *, lanes: Collection[Lane]) -> dict[str, Any]:
    """The report as plain JSON. Times in seconds; a median or rate without a sample is null, never 0."""
    where = [[lane.pk for lane in lanes], period.since, period.until]
    first, median = _one(MEDIAN, where)
    checked, wrong = _one(SAMPLES, where)
    return {
        "since": period.since.isoformat(),
        "until": period.until.isoformat(),
        "lanes": sorted(lane.name for lane in lanes),
        "decisions": [
            {
                "source_kind": source_kind,
                "category": category or None,
                "automation": automation,
                "verdict": verdict,
                "count": count,
                "median_seconds": _seconds(length),
            }
            for source_kind, category, automation, verdict, count, length in _all(DECISIONS, where)
        ],
        "first_decisions": {"count": first, "median_seconds": _seconds(median)},
        "appeals": _appeals(where),
        "recalled": _one(RECALLS, where)[0],
        "samples": {"checked": checked, "wrong": wrong, "error_rate": round(wrong / checked, 4) if checked else None},
    }


def _appeals(where: list[Any]) -> dict[str, Any]:
    found = {is_upheld: (count, length) for is_upheld, count, length in _all(APPEALS, where)}
    upheld, reversed_ = found.get(True, (0, None)), found.get(False, (0, None))
    return {
        "upheld": {"count": upheld[0], "median_seconds": _seconds(upheld[1])},
        "reversed": {"count": reversed_[0], "median_seconds": _seconds(reversed_[1])},
    }


def _seconds(length: Any) -> float | None:
    return None if length is None else round(float(length), 3)


def _one(statement: str, params: list[Any]) -> Any:
    return _all(statement, params)[0]


def _all(statement: str, params: list[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[Any] = cursor.fetchall()
        return rows
