"""The figures as the ledger tells them: for the rebuild and for the audit. Never on a page."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from django.db import connection

from queue_core import tally
from queue_core.clock import EPOCH
from queue_core.states import UNEXECUTED_OUTCOMES

type Event = tuple[int, datetime, str, int]

#: A claim's lease is longer than nothing; a row that a raised fence left behind has none, and was no claim.
EVENTS = """
SELECT lane_id, date_trunc('minute', at, 'UTC'), code, count(*) FROM (
  SELECT lane_id, started_at AS at, 'claimed' AS code FROM queue_core_attempt
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND started_at >= %(since)s AND started_at < %(until)s
    AND lease_until > started_at
  UNION ALL
  SELECT lane_id, ended_at, 'ended.' || outcome FROM queue_core_attempt
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND ended_at >= %(since)s AND ended_at < %(until)s
    AND lease_until > started_at
  UNION ALL
  SELECT lane_id, ended_at, 'latency.' || width_bucket(latency, %(latency_ends)s::interval[]) FROM queue_core_attempt
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND ended_at >= %(since)s AND ended_at < %(until)s
    AND latency IS NOT NULL AND outcome <> ALL(%(untimed)s::text[])
  UNION ALL
  SELECT a.lane_id, a.ended_at, 'result.' || COALESCE(j.result, '')
  FROM queue_core_attempt a JOIN queue_core_job j ON j.id = a.job_id
  WHERE a.lane_id = ANY(%(lanes)s::bigint[]) AND a.ended_at >= %(since)s AND a.ended_at < %(until)s AND a.is_committed
  UNION ALL
  SELECT lane_id, received_at, 'stale' FROM queue_core_lateanswer
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND received_at >= %(since)s AND received_at < %(until)s
  UNION ALL
  SELECT lane_id, decided_at, 'decided.' || verdict FROM queue_core_decision
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND decided_at >= %(since)s AND decided_at < %(until)s
    AND assignment_id IS NOT NULL AND verdict IS NOT NULL
  UNION ALL
  SELECT lane_id, closed_at, 'item_closed' FROM queue_core_item
  WHERE lane_id = ANY(%(lanes)s::bigint[]) AND closed_at >= %(since)s AND closed_at < %(until)s
) event GROUP BY 1, 2, 3
"""

#: How long jobs had waited when they were claimed. A requeue moves `queued_at`: of the claims before it only the time
#: since the job was added is known, so that these buckets are rebuilt and not audited.
WAITS = """
SELECT a.lane_id, date_trunc('minute', a.started_at, 'UTC'), 'wait.' || width_bucket(
  a.started_at - CASE WHEN a.started_at >= j.queued_at THEN j.queued_at ELSE j.added_at END, %(wait_ends)s::interval[]),
  count(*)
FROM queue_core_attempt a JOIN queue_core_job j ON j.id = a.job_id
WHERE a.lane_id = ANY(%(lanes)s::bigint[]) AND a.started_at >= %(since)s AND a.started_at < %(until)s
  AND a.lease_until > a.started_at
GROUP BY 1, 2, 3
"""

#: What has no index by time is walked by key. A death that people look after has an item of its own, also where a
#: requeue made the job forget it; each requeue is in the audit.
WALKED = {
    "queue_core_job": """
SELECT lane_id, date_trunc('minute', at, 'UTC'), code, count(*) FROM (
  SELECT lane_id, added_at AS at, 'added' AS code FROM queue_core_job WHERE id > %(after)s AND id <= %(last)s
  UNION ALL
  SELECT lane_id, finished_at, 'died.' || dead_reason FROM queue_core_job
  WHERE id > %(after)s AND id <= %(last)s AND state = 'DEAD' AND dead_reason NOT IN ('deadline', 'attempts')
) event WHERE at >= %(since)s AND at < %(until)s GROUP BY 1, 2, 3
""",
    "queue_core_item": """
SELECT lane_id, date_trunc('minute', opened_at, 'UTC'), code, count(*) FROM (
  SELECT lane_id, opened_at, 'item_opened' AS code FROM queue_core_item WHERE id > %(after)s AND id <= %(last)s
  UNION ALL
  SELECT lane_id, opened_at, 'died.' || cause FROM queue_core_item
  WHERE id > %(after)s AND id <= %(last)s AND kind = 'dead'
) event WHERE opened_at >= %(since)s AND opened_at < %(until)s GROUP BY 1, 2, 3
""",
    "queue_core_auditentry": """
SELECT lane_id, date_trunc('minute', at, 'UTC'), 'requeued', count(*) FROM queue_core_auditentry
WHERE id > %(after)s AND id <= %(last)s AND act = 'job.requeued' AND at >= %(since)s AND at < %(until)s GROUP BY 1, 2
""",
}

#: What has not ended stands in partial indexes; of what is DONE only the number counts.
TOTALS = """
SELECT lane_id, code, count(*) FROM (
  SELECT lane_id, state AS code FROM queue_core_job WHERE state IN ('WAITING', 'LEASED')
  UNION ALL
  SELECT lane_id, 'DEAD.' || dead_reason FROM queue_core_job WHERE state = 'DEAD'
  UNION ALL
  SELECT lane_id, 'resting' FROM queue_core_job WHERE state = 'WAITING' AND available_at IS NOT NULL
  UNION ALL
  SELECT lane_id, 'left.' || least(max_attempts - attempts, %(most_left)s) FROM queue_core_job WHERE state = 'WAITING'
  UNION ALL
  SELECT lane_id, 'item.' || kind FROM queue_core_item WHERE closed_at IS NULL
) held WHERE lane_id = ANY(%(lanes)s::bigint[]) GROUP BY 1, 2
"""
DONE = """
SELECT lane_id, 'DONE', count(*) FROM queue_core_job
WHERE state = 'DONE' AND id > %(after)s AND id <= %(last)s AND finished_at < %(until)s GROUP BY 1
"""
#: A DONE job ended when its committed attempt did.
DONE_SINCE = """
SELECT lane_id, 'DONE', count(*) FROM queue_core_attempt
WHERE lane_id = ANY(%(lanes)s::bigint[]) AND ended_at >= %(since)s AND is_committed GROUP BY 1
"""
DUE = """
SELECT lane_id, date_trunc('minute', deadline, 'UTC'), severity, count(*) FROM queue_core_job
WHERE state = 'WAITING' AND lane_id = ANY(%(lanes)s::bigint[]) GROUP BY 1, 2, 3
"""


#: By probes of indexes that begin with the lane.
FIRST = """
SELECT min(least(
  (SELECT min(started_at) FROM queue_core_attempt WHERE lane_id = l.id),
  (SELECT min(decided_at) FROM queue_core_decision WHERE lane_id = l.id),
  (SELECT min(received_at) FROM queue_core_lateanswer WHERE lane_id = l.id),
  (SELECT min(closed_at) FROM queue_core_item WHERE lane_id = l.id AND closed_at IS NOT NULL)))
FROM unnest(%(lanes)s::bigint[]) l(id)
"""


def events(lane_ids: Collection[int], *, since: datetime, until: datetime) -> list[Event]:
    """What happened in lanes, minute by minute, as far as it can be found by time: exact."""
    bounds = {
        "lanes": list(lane_ids),
        "since": since,
        "until": until,
        "latency_ends": list(tally.LATENCY_ENDS),
        "untimed": [outcome.value for outcome in UNEXECUTED_OUTCOMES],
    }
    return rows(EVENTS, **bounds)


def waits(lane_ids: Collection[int], *, since: datetime, until: datetime) -> list[Event]:
    return rows(WAITS, lanes=list(lane_ids), since=since, until=until, wait_ends=list(tally.WAIT_ENDS))


def walked(table: str, *, after: int, last: int, since: datetime, until: datetime) -> list[Event]:
    """What happened by rows of one of WALKED with keys above `after`, up to `last`."""
    return rows(WALKED[table], after=after, last=last, since=since, until=until)


#: The column by which a walked table's rows are told young from old.
YOUNGEST = {
    "queue_core_job": "added_at",
    "queue_core_item": "opened_at",
    "queue_core_auditentry": "at",
}


def youngest(table: str, *, after: int, last: int) -> datetime:
    """When the youngest row of a range of keys came to be."""
    column = connection.ops.quote_name(YOUNGEST[table])
    [[found]] = rows(
        f"SELECT max({column}) FROM {_quoted(table)} WHERE id > %(after)s AND id <= %(last)s",  # noqa: S608
        after=after,
        last=last,
    )
    return found or EPOCH


def first_event(lane_ids: Collection[int]) -> datetime | None:
    """The first minute from which `events` could find anything."""
    [[found]] = rows(FIRST, lanes=list(lane_ids))
    return tally.minute_of(found) if found is not None else None


def totals(lane_ids: Collection[int]) -> list[tuple[int, str, int]]:
    """What lanes hold now, but for what is DONE."""
    return rows(TOTALS, lanes=list(lane_ids), most_left=tally.MOST_LEFT)


def due(lane_ids: Collection[int]) -> list[tuple[int, datetime, int, int]]:
    return rows(DUE, lanes=list(lane_ids))


def rows(statement: str, **params: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        found: list[Any] = cursor.fetchall()
        return found


def chunks(table: str, size: int, *, after: int = 0) -> Iterator[tuple[int, int]]:
    """Ranges of keys (after, last] that hold at most `size` rows each, from `after` to the table's present end."""
    [[end]] = rows(f"SELECT coalesce(max(id), 0) FROM {_quoted(table)}")  # noqa: S608  (a name of WALKED)
    while after < end:
        found = rows(
            f"SELECT max(id) FROM (SELECT id FROM {_quoted(table)} WHERE id > %(after)s ORDER BY id LIMIT %(size)s) s",  # noqa: S608
            after=after,
            size=size,
        )
        last = found[0][0] or end
        yield after, last
        after = last


def _quoted(table: str) -> str:
    if table not in WALKED:
        raise ValueError(f"{table} is not walked")
    return connection.ops.quote_name(table)
