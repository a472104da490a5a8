"""Tokens that calls have used: kept with each attempt, summed for the stage runs that they were claimed under."""

from dataclasses import dataclass, field
from datetime import timedelta

from django.db import OperationalError, connection, transaction

#: Longer than this a page does not wait for sums; a run of millions of calls is summed elsewhere.
PATIENCE = timedelta(seconds=1)

#: By the index on (lane, started_at). Sums over whole numbers alone: a server may put anything into its usage.
OF_RUNS = """
SELECT a.run_id, entry.key, sum(entry.value::numeric)::bigint, count(*)
  FROM queue_core_stagerun r
  JOIN queue_core_attempt a
    ON a.lane_id = r.lane_id AND a.run_id = r.id
   AND a.started_at >= r.started_at AND a.started_at <= coalesce(r.ended_at, 'infinity'),
       jsonb_each_text(a.usage) AS entry(key, value)
 WHERE r.id = ANY(%(runs)s) AND jsonb_typeof(a.usage) = 'object' AND a.usage <> '{}' AND entry.value ~ '^[0-9]{1,15}$'
 GROUP BY a.run_id, entry.key
"""

LIMIT = "SELECT set_config('statement_timeout', %s, true)"


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


def usage_of_runs(runs: list[int], *, patience: timedelta = PATIENCE) -> dict[int, Usage] | None:
    """The sums of each of these stage runs, those without any left out; None where they cannot be read in time."""
    found: dict[int, Usage] = {}
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # Kept for what the caller's transaction still reads; a timeout rolls the change back by itself.
            cursor.execute("SELECT current_setting('statement_timeout')")
            [[before_this]] = cursor.fetchall()
            cursor.execute(LIMIT, [_milliseconds(patience)])
            cursor.execute(OF_RUNS, {"runs": runs})
            for run, name, total, calls in cursor.fetchall():
                before = found.get(run, Usage())
                found[run] = Usage({**before.counts, name: total}, max(before.calls, calls))
            cursor.execute(LIMIT, [before_this])
    except OperationalError:
        return None
    return found


def _milliseconds(length: timedelta) -> str:
    return str(int(length / timedelta(milliseconds=1)))
