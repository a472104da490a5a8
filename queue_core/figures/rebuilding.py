"""The kept figures made anew from the ledger, a bounded number of rows at a time, beside verbs at work.

Minutes that have been over for a while no longer change: they are recounted in short steps into a table of this
session, and put in place day by day. What still moves is recounted in one snapshot in which no fold can run: the sums
become what the ledger says in it, less the changes seen in it, which the next folds will add.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from queue_core import tally
from queue_core.clock import LATEST, Clock
from queue_core.figures import recount
from queue_core.figures.folding import LOCK, fold, kept_for
from queue_core.models import Lane, LaneTotal, WaitingDue

#: Younger minutes may still get a row: no transaction of a verb lasts nearly so long.
SETTLED_AFTER = timedelta(minutes=10)
WINDOW = timedelta(minutes=10)
DAY = timedelta(days=1)
CHUNK = 20_000

MAKE_SCRATCH = """
CREATE TEMPORARY TABLE queue_core_recount (lane_id bigint, minute timestamptz, code text, number bigint)
"""
DROP_SCRATCH = "DROP TABLE IF EXISTS queue_core_recount"
EMPTY_SCRATCH = "TRUNCATE queue_core_recount"
FILL_SCRATCH = """
INSERT INTO queue_core_recount SELECT * FROM unnest(%s::bigint[], %s::timestamptz[], %s::text[], %s::bigint[])
"""

CLEAR_MINUTES = """
DELETE FROM queue_core_laneminute
WHERE lane_id = ANY(%(lanes)s::bigint[]) AND minute >= %(since)s AND minute < %(until)s
"""
PUT_MINUTES = """
INSERT INTO queue_core_laneminute (lane_id, minute, counts)
SELECT lane_id, minute, jsonb_object_agg(code, number) FROM (
  SELECT lane_id, minute, code, sum(number) AS number FROM (
    SELECT lane_id, minute, code, number FROM queue_core_recount
    UNION ALL
    SELECT f.lane_id, f.minute, c.code, -c.number::bigint
    FROM queue_core_figurechange f, jsonb_each_text(f.counts) c(code, number)
  ) both_of_them
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND minute >= %(since)s AND minute < %(until)s
  GROUP BY 1, 2, 3 HAVING sum(number) <> 0) s
GROUP BY lane_id, minute
"""
UNFOLDED_TOTALS = """
SELECT f.lane_id, c.code, sum(c.number::bigint)
FROM queue_core_figurechange f, jsonb_each_text(f.totals) c(code, number) GROUP BY 1, 2
"""
UNFOLDED_DUE = """
SELECT f.lane_id, to_timestamp(split_part(c.at, '.', 1)::bigint * 60), split_part(c.at, '.', 2)::smallint,
       sum(c.number::bigint)
FROM queue_core_figurechange f, jsonb_each_text(f.due) c(at, number) GROUP BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class Step:
    """How far a rebuild is: rows of a table recounted so far, minutes recounted ("minutes"), or lanes put in place."""

    what: str
    number: int


@dataclass(slots=True)
class _Walked:
    """What the walk by keys left: where it ended in each table, and how many were DONE before the horizon."""

    ends: dict[str, int]
    done: Counter[int]


def rebuild(*, clock: Clock, chunk: int = CHUNK, on_step: Callable[[Step], None] = lambda _step: None) -> int:
    """Make all kept figures anew, but for samples: nobody can look at a time that is over. Returns how many lanes.

    Verbs go on meanwhile and are never waited for. Readers see each day of minutes, and then the totals of all lanes,
    change from the old to the new at one moment.
    """
    lanes = list(Lane.objects.order_by("pk").values_list("pk", flat=True))
    now = clock.now()
    since, horizon = tally.minute_of(now - kept_for()), tally.minute_of(now - SETTLED_AFTER)
    with _scratch():
        walked = _walk(since, horizon, chunk, on_step)
        _recount_windows(lanes, since, horizon, on_step)
        fold()
        for start in _steps(since, horizon, DAY):
            with _without_folds():
                _put_minutes(lanes, start, min(start + DAY, horizon))
        with _without_folds():
            _settle(lanes, horizon, walked)
    on_step(Step("lanes", len(lanes)))
    return len(lanes)


def _walk(since: datetime, horizon: datetime, chunk: int, tell: Callable[[Step], None]) -> _Walked:
    """What has no index by time, by key. Rows that are younger than the horizon are left to the settling."""
    walked = _Walked(dict.fromkeys(recount.WALKED, 0), Counter())
    for table in recount.WALKED:
        rows, is_old = 0, True
        for after, last in recount.chunks(table, chunk):
            with transaction.atomic():
                _fill(recount.walked(table, after=after, last=last, since=since, until=horizon))
                if table == "queue_core_job":
                    done = recount.rows(recount.DONE, after=after, last=last, until=horizon)
                    walked.done.update({lane: number for lane, _code, number in done})
            is_old = is_old and recount.youngest(table, after=after, last=last) < horizon
            if is_old:
                walked.ends[table] = last
            rows += chunk
            tell(Step(table, min(rows, last)))
    return walked


def _recount_windows(lanes: Sequence[int], since: datetime, horizon: datetime, tell: Callable[[Step], None]) -> None:
    for start in _steps(max(since, recount.first_event(lanes) or horizon), horizon, WINDOW):
        until = min(start + WINDOW, horizon)
        with transaction.atomic():
            _fill(recount.events(lanes, since=start, until=until))
            _fill(recount.waits(lanes, since=start, until=until))
        tell(Step("minutes", (until - start) // tally.MINUTE))


def _settle(lanes: Sequence[int], horizon: datetime, walked: _Walked) -> None:
    """Minutes since the horizon, and all that lanes hold now. Inside the snapshot, with no fold at work."""
    with connection.cursor() as cursor:
        cursor.execute(EMPTY_SCRATCH)
    _fill(recount.events(lanes, since=horizon, until=LATEST))
    _fill(recount.waits(lanes, since=horizon, until=LATEST))
    for table, end in walked.ends.items():
        _fill(recount.walked(table, after=end, last=2**62, since=horizon, until=LATEST))
    _put_minutes(lanes, horizon, LATEST)
    totals = Counter({(lane, "DONE"): number for lane, number in walked.done.items()})
    done_since = recount.rows(recount.DONE_SINCE, lanes=list(lanes), since=horizon)
    for lane, code, number in [*recount.totals(lanes), *done_since]:
        totals[lane, code] += number
    totals.subtract({(lane, code): int(number) for lane, code, number in recount.rows(UNFOLDED_TOTALS)})
    LaneTotal.objects.all().delete()
    LaneTotal.objects.bulk_create(
        [LaneTotal(lane_id=lane, code=code, number=number) for (lane, code), number in totals.items() if number]
    )
    due = Counter({(lane, minute, severity): number for lane, minute, severity, number in recount.due(lanes)})
    due.subtract({(lane, minute, severity): int(n) for lane, minute, severity, n in recount.rows(UNFOLDED_DUE)})
    WaitingDue.objects.all().delete()
    WaitingDue.objects.bulk_create(
        [
            WaitingDue(lane_id=lane, minute=minute, severity=severity, number=number)
            for (lane, minute, severity), number in due.items()
            if number
        ],
        batch_size=CHUNK,
    )


def _put_minutes(lanes: Sequence[int], since: datetime, until: datetime) -> None:
    bounds: dict[str, Any] = {"lanes": list(lanes), "since": since, "until": until}
    with connection.cursor() as cursor:
        cursor.execute(CLEAR_MINUTES, bounds)
        cursor.execute(PUT_MINUTES, bounds)


def _fill(events: Sequence[recount.Event]) -> None:
    if events:
        with connection.cursor() as cursor:
            cursor.execute(FILL_SCRATCH, [list(column) for column in zip(*events, strict=True)])


def _steps(since: datetime, until: datetime, step: timedelta) -> Iterator[datetime]:
    while since < until:
        yield since
        since += step


@contextmanager
def _scratch() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(DROP_SCRATCH)
        cursor.execute(MAKE_SCRATCH)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(DROP_SCRATCH)


@contextmanager
def _without_folds() -> Iterator[None]:
    """One snapshot, begun when no fold is at work and over before the next one.

    The lock is the session's, taken before the transaction begins: a transaction that waits for it inside would look
    at the sums as they were before the fold that it waited for.
    """
    is_outermost = not connection.in_atomic_block
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            if is_outermost:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
