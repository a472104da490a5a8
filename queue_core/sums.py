"""The kept figures read: the sums, and what is not folded into them yet. Exact as of the reader's snapshot.

What is read costs a few rows a lane and minute, whatever the size of the backlog.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from queue_core import at_once, tally
from queue_core.at_once import Told
from queue_core.states import Result, Verdict

#: Whole minutes from `since` to before `until`, added up in steps of so many seconds from `since`.
SERIES = """
SELECT r.lane_id, floor(extract(epoch FROM r.minute - %(since)s) / %(step)s)::int, c.code, sum(c.number::bigint)
FROM (
  SELECT lane_id, minute, counts FROM queue_core_laneminute
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND minute >= %(since)s AND minute < %(until)s
  UNION ALL
  SELECT lane_id, minute, counts FROM queue_core_figurechange
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND minute >= %(since)s AND minute < %(until)s
) r, jsonb_each_text(r.counts) c(code, number)
GROUP BY 1, 2, 3
"""

#: Cut at some moments: 1 from the first one on, 2 from the second on, ...
CUTS = """
SELECT r.lane_id, width_bucket(r.minute, %(starts)s::timestamptz[]), c.code, sum(c.number::bigint)
FROM (
  SELECT lane_id, minute, counts FROM queue_core_laneminute
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND minute >= %(since)s AND minute < %(until)s
  UNION ALL
  SELECT lane_id, minute, counts FROM queue_core_figurechange
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND minute >= %(since)s AND minute < %(until)s
) r, jsonb_each_text(r.counts) c(code, number)
GROUP BY 1, 2, 3
"""

#: A part of `at_once`: lane, code, how many. Of many changes that say the same, as batches of one size do, one is taken
#: apart.
TOTAL_PART = """
SELECT 'total', lane_id, code, sum(number)::bigint, NULL::timestamptz FROM (
  SELECT lane_id, code, number FROM queue_core_lanetotal WHERE lane_id = ANY(%(lanes)s::bigint[])
  UNION ALL
  SELECT f.lane_id, c.code, c.number::bigint * f.times
  FROM (SELECT lane_id, totals, count(*) AS times FROM fresh GROUP BY lane_id, totals) f,
       jsonb_each_text(f.totals) c(code, number)
) s GROUP BY lane_id, code
"""
#: Another: what happened in each lane in the minutes from `count_since` to before `count_until`.
COUNT_PART = """
SELECT 'count', r.lane_id, c.code, sum(c.number::bigint * r.times)::bigint, NULL::timestamptz
FROM (
  SELECT lane_id, counts, 1::bigint AS times FROM queue_core_laneminute
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND minute >= %(count_since)s::timestamptz
    AND minute < %(count_until)s::timestamptz
  UNION ALL
  SELECT lane_id, counts, count(*) FROM fresh
  WHERE minute >= %(count_since)s::timestamptz AND minute < %(count_until)s::timestamptz GROUP BY lane_id, counts
) r, jsonb_each_text(r.counts) c(code, number)
GROUP BY r.lane_id, c.code
"""
#: And WAITING jobs whose deadline lies in the minutes from `due_since` to before `due_until`: lane, severity, how many.
#: The minutes are numbers too, as changes have them (`tally.minute_number`).
DUE_PART = """
SELECT 'due', lane_id, severity::text, sum(number)::bigint, NULL::timestamptz FROM (
  SELECT lane_id, severity, number FROM queue_core_waitingdue
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND minute >= %(due_since)s::timestamptz
    AND minute < %(due_until)s::timestamptz
  UNION ALL
  SELECT f.lane_id, split_part(c.at, '.', 2)::smallint, c.number::bigint
  FROM fresh f, jsonb_each_text(f.due) c(at, number)
  WHERE f.due <> '{}' AND split_part(c.at, '.', 1)::bigint >= %(due_first)s::bigint
    AND split_part(c.at, '.', 1)::bigint < %(due_end)s::bigint
) s GROUP BY lane_id, severity HAVING sum(number) <> 0
"""

DUE = """
SELECT lane_id, minute, severity, sum(number) FROM (
  SELECT lane_id, minute, severity, number FROM queue_core_waitingdue
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND minute >= %(since)s AND minute < %(until)s
  UNION ALL
  SELECT f.lane_id, to_timestamp(split_part(c.at, '.', 1)::bigint * 60), split_part(c.at, '.', 2)::smallint,
         c.number::bigint
  FROM queue_core_figurechange f, jsonb_each_text(f.due) c(at, number) WHERE f.lane_id = ANY(%(lanes)s::bigint[])
) s WHERE minute >= %(since)s AND minute < %(until)s
GROUP BY 1, 2, 3 HAVING sum(number) <> 0 ORDER BY 1, 2, 3
"""


#: As DUE, added up over the times between some moments.
DUE_UNTIL = """
SELECT width_bucket(minute, %(ends)s::timestamptz[]), severity, sum(number) FROM (
  SELECT minute, severity, number FROM queue_core_waitingdue WHERE lane_id = %(lane)s AND number <> 0
  UNION ALL
  SELECT to_timestamp(split_part(c.at, '.', 1)::bigint * 60), split_part(c.at, '.', 2)::smallint, c.number::bigint
  FROM queue_core_figurechange f, jsonb_each_text(f.due) c(at, number) WHERE f.lane_id = %(lane)s
) s GROUP BY 1, 2 HAVING sum(number) <> 0 ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """What happened in a lane in some time, by the codes of `queue_core.tally`."""

    by_code: Mapping[str, int] = field(default_factory=dict)

    def of(self, *codes: str) -> int:
        return sum(self.by_code.get(code, 0) for code in codes)

    def under(self, prefix: str) -> dict[str, int]:
        """The numbers below one code, by the word that follows it: `under("result")` gives {"APPROVED": 7}."""
        start = f"{prefix}."
        return {code.removeprefix(start): n for code, n in self.by_code.items() if code.startswith(start)}

    @property
    def added(self) -> int:
        return self.of(tally.ADDED)

    @property
    def claimed(self) -> int:
        return self.of(tally.CLAIMED)

    @property
    def results(self) -> dict[Result, int]:
        """What the model's jobs ended with."""
        return {result: self.of(f"{tally.RESULT}.{result.value}") for result in Result}

    @property
    def completed(self) -> int:
        """Jobs that the model ended, also those that went on to people."""
        return sum(self.results.values())

    @property
    def decided(self) -> int:
        """Decisions, by the model or by people."""
        by_people = self.of(*(f"{tally.DECIDED}.{verdict.value}" for verdict in Verdict))
        return self.completed - self.of(f"{tally.RESULT}.{Result.MANUAL.value}") + by_people

    def ended(self, *outcomes: str) -> int:
        return self.of(*(f"{tally.ENDED}.{outcome}" for outcome in outcomes))

    def histogram(self, prefix: str) -> list[int]:
        """`tally.WAIT` or `tally.LATENCY`, bucket by bucket."""
        ends = tally.WAIT_ENDS if prefix == tally.WAIT else tally.LATENCY_ENDS
        return [self.of(f"{prefix}.{i}") for i in range(len(ends) + 1)]


def counts(lane_ids: Collection[int], *, since: datetime, until: datetime) -> dict[int, Counts]:
    """What happened in each lane in the minutes that begin at or after `since` and before `until`."""
    found = series(lane_ids, since=since, until=until, step=max(until - since, tally.MINUTE))
    return {lane_id: steps[0] if steps else Counts() for lane_id, steps in found.items()}


def series(
    lane_ids: Collection[int], *, since: datetime, until: datetime, step: timedelta = tally.MINUTE
) -> dict[int, Sequence[Counts]]:
    """The same in equal steps of whole minutes, the first from `since` on; empty ones stand there as empty."""
    since, until = tally.minute_of(since), _minute_after(until)
    number = max(-((since - until) // step), 0)
    found: dict[int, list[Counter[str]]] = {pk: [Counter() for _ in range(number)] for pk in lane_ids}
    rows = _rows(SERIES, lanes=list(lane_ids), since=since, until=until, step=step.total_seconds())
    for lane_id, place, code, amount in rows:
        found[lane_id][place][code] = int(amount)
    return {pk: [Counts(dict(one)) for one in steps] for pk, steps in found.items()}


def cuts(lane_ids: Collection[int], *, starts: Sequence[datetime], until: datetime) -> dict[int, Sequence[Counts]]:
    """The same for each time that begins at one of `starts`, whole minutes in order, and ends where the next begins.

    Who asks says where a day begins: PostgreSQL and Python do not take the same one of two midnights, where a zone's
    clocks are set back over it, and need not know the same zones.
    """
    found: dict[int, list[dict[str, int]]] = {pk: [{} for _start in starts] for pk in lane_ids}
    bounds = {"since": starts[0], "until": _minute_after(until), "starts": list(starts)}
    for lane_id, place, code, number in _rows(CUTS, lanes=list(lane_ids), **bounds):
        found[lane_id][place - 1][code] = int(number)
    return {pk: [Counts(one) for one in times] for pk, times in found.items()}


def due_params(*, since: datetime, until: datetime) -> dict[str, Any]:
    """What DUE_PART asks, beside the lanes: the minutes from that of `since` to before that of `until`."""
    first, end = tally.minute_of(since), tally.minute_of(until)
    numbers = {"due_first": tally.minute_number(first), "due_end": tally.minute_number(end)}
    return {"due_since": first, "due_until": end, **numbers}


def totals(lane_ids: Collection[int]) -> dict[int, dict[str, int]]:
    """How many of each kind every lane holds now, by the codes of `queue_core.tally`."""
    return totals_from(at_once.tell([TOTAL_PART], {"lanes": list(lane_ids)}), lane_ids)


def totals_from(told: Told, lane_ids: Iterable[int]) -> dict[int, dict[str, int]]:
    """The same from rows of TOTAL_PART that were told."""
    return _by_lane(told, "total", lane_ids)


def counts_from(told: Told, lane_ids: Iterable[int]) -> dict[int, Counts]:
    """What happened in each lane, from rows of COUNT_PART that were told."""
    return {pk: Counts(by_code) for pk, by_code in _by_lane(told, "count", lane_ids).items()}


def due_from(told: Told, lane_ids: Iterable[int]) -> dict[int, dict[int, int]]:
    """WAITING jobs of each lane by severity, from rows of DUE_PART that were told."""
    found = _by_lane(told, "due", lane_ids)
    return {pk: {int(code): number for code, number in by_code.items()} for pk, by_code in found.items()}


def _by_lane(told: Told, word: str, lane_ids: Iterable[int]) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {pk: {} for pk in lane_ids}
    for row in told.get(word, ()):
        found[row.lane][row.code] = row.number
    return found


def due(lane_ids: Collection[int], *, since: datetime, until: datetime) -> dict[int, list[tuple[datetime, int, int]]]:
    """WAITING jobs by the minute of their deadline and severity, for minutes from `since` to before `until`.

    Rows of each lane are (minute, severity, number), in order of time; minutes without any are left out.
    """
    found: dict[int, list[tuple[datetime, int, int]]] = {pk: [] for pk in lane_ids}
    for lane_id, minute, severity, number in _rows(DUE, lanes=list(lane_ids), since=since, until=until):
        found[lane_id].append((minute, severity, int(number)))
    return found


def due_until(lane_id: int, *, ends: Sequence[datetime]) -> list[tuple[int, int, int]]:
    """WAITING jobs of a lane by severity and by which of these times, in order, their deadline's minute comes before.

    Rows are (place in `ends`, severity, number); the place after the last holds what is due later than all.
    """
    return [(place, severity, int(n)) for place, severity, n in _rows(DUE_UNTIL, lane=lane_id, ends=list(ends))]


def _minute_after(until: datetime) -> datetime:
    """The end of the minutes that begin before `until`."""
    minute = tally.minute_of(until)
    return minute if minute == until else minute + tally.MINUTE


def _rows(statement: str, **params: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
