"""Tokens that calls have used: kept with each attempt, summed for a stage run and for an outage."""

from dataclasses import dataclass, field

from django.db import connection

from queue_core.models import Outage, StageRun

#: Sums over whole numbers alone: a server may put anything into its usage.
OF_RUNS = """
SELECT a.run_id, entry.key, sum(entry.value::numeric)::bigint, count(DISTINCT a.id)
  FROM queue_core_attempt a, jsonb_each_text(a.usage) AS entry(key, value)
 WHERE a.run_id = ANY(%(runs)s) AND jsonb_typeof(a.usage) = 'object' AND entry.value ~ '^[0-9]{1,15}$'
 GROUP BY a.run_id, entry.key
"""


@dataclass(frozen=True, slots=True)
class Usage:
    """Sums by the names that servers give, and over how many calls that told any."""

    counts: dict[str, int] = field(default_factory=dict)
    calls: int = 0

    @property
    def total(self) -> int:
        """All tokens, where the server says so or tells both halves."""
        halves = self.counts.get("input_tokens", 0) + self.counts.get("output_tokens", 0)
        return self.counts.get("total_tokens", halves)


def usage_of_runs(runs: list[int]) -> dict[int, Usage]:
    """The sums of each of these stage runs; runs without any are left out."""
    found: dict[int, Usage] = {}
    with connection.cursor() as cursor:
        cursor.execute(OF_RUNS, {"runs": runs})
        for run, name, total, calls in cursor.fetchall():
            before = found.get(run, Usage())
            found[run] = Usage({**before.counts, name: total}, max(before.calls, calls))
    return found


def usage_of_outage(outage: Outage) -> Usage:
    """The sum over the runs that began on the outage's connection while it was open."""
    runs = StageRun.objects.filter(connection=outage.connection_id, started_at__gte=outage.opened_at)
    if outage.closed_at is not None:
        runs = runs.filter(started_at__lte=outage.closed_at)
    parts = usage_of_runs(list(runs.values_list("pk", flat=True))).values()
    names = sorted({name for part in parts for name in part.counts})
    return Usage(
        {name: sum(part.counts.get(name, 0) for part in parts) for name in names}, sum(part.calls for part in parts)
    )
