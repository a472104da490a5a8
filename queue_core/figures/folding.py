"""The fold: rows of changes moved into the sums, each second by the tick, by one at a time."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from queue_core.clock import Clock

#: Rows a statement; a fold goes on while it is full, at most so often.
BATCH = 5_000
MOST_BATCHES = 20
#: Held to the end of its transaction by whoever writes the sums: two at once would wait for each other's rows.
LOCK = 0x5242_4647
#: What is older than this is deleted. Five weeks and a day, so that "this hour of the week" has five of them.
KEPT = timedelta(days=36)
MOST_DELETED = 1_000

#: All in one statement, so that no reader ever sees a change in both places or in none. SKIP LOCKED: rows whose
#: transaction is not over cannot be seen anyway; it only keeps a fold from waiting for another's that was not ours.
FOLD = """
WITH taken AS (
  DELETE FROM queue_core_figurechange WHERE id IN (
    SELECT id FROM queue_core_figurechange ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
  RETURNING lane_id, minute, counts, totals, due),
minutes AS (
  INSERT INTO queue_core_laneminute AS m (lane_id, minute, counts)
  SELECT lane_id, minute, jsonb_object_agg(code, number) FROM (
    SELECT t.lane_id, t.minute, c.code, sum(c.number::bigint) AS number
    FROM taken t, jsonb_each_text(t.counts) c(code, number) GROUP BY 1, 2, 3) s
  GROUP BY lane_id, minute ORDER BY lane_id, minute
  ON CONFLICT (lane_id, minute) DO UPDATE SET counts = (
    SELECT jsonb_object_agg(code, number) FROM (
      SELECT code, sum(number::bigint) AS number FROM (
        SELECT * FROM jsonb_each_text(m.counts) UNION ALL SELECT * FROM jsonb_each_text(EXCLUDED.counts)
      ) both_of_them(code, number) GROUP BY code) s)),
totals AS (
  INSERT INTO queue_core_lanetotal AS l (lane_id, code, number)
  SELECT t.lane_id, c.code, sum(c.number::bigint)
  FROM taken t, jsonb_each_text(t.totals) c(code, number) GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (lane_id, code) DO UPDATE SET number = l.number + EXCLUDED.number),
due AS (
  INSERT INTO queue_core_waitingdue AS d (lane_id, minute, severity, number)
  SELECT t.lane_id, to_timestamp(split_part(c.at, '.', 1)::bigint * 60), split_part(c.at, '.', 2)::smallint,
         sum(c.number::bigint)
  FROM taken t, jsonb_each_text(t.due) c(at, number) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (lane_id, minute, severity) DO UPDATE SET number = d.number + EXCLUDED.number)
SELECT count(*) FROM taken
"""

#: Emptied minutes of deadlines that are over. One that is not zero stays: it is wrong, and the audit has to find it.
FORGET_DUE = """
DELETE FROM queue_core_waitingdue WHERE id IN (
  SELECT id FROM queue_core_waitingdue WHERE number = 0 AND minute < %(now)s - interval '1 hour' LIMIT %(limit)s)
"""
FORGET_MINUTES = """
DELETE FROM queue_core_laneminute WHERE id IN (
  SELECT id FROM queue_core_laneminute WHERE minute < %(before)s ORDER BY minute LIMIT %(limit)s)
"""
FORGET_SAMPLES = """
DELETE FROM queue_core_lanesample WHERE id IN (
  SELECT id FROM queue_core_lanesample WHERE minute < %(before)s ORDER BY minute LIMIT %(limit)s)
"""


def fold() -> int:
    """Move what was changed into the sums. Returns how many rows; 0 also where another fold is at it."""
    folded = 0
    for _ in range(MOST_BATCHES):
        number = _fold_some()
        folded += number
        if number < BATCH:
            break
    return folded


def forget(*, clock: Clock) -> int:
    """Delete some of what is older than figures are kept. Returns how many rows."""
    with transaction.atomic():
        return _forget(clock.now()) if may_write() else 0


def kept_for() -> timedelta:
    """How long minutes and samples are kept. Overridden by QUEUE_CORE_FIGURES_KEPT."""
    chosen: timedelta = getattr(settings, "QUEUE_CORE_FIGURES_KEPT", KEPT)
    return chosen


def may_write() -> bool:
    """Take the right to write the sums, to the end of this transaction. False: another has it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        return bool(cursor.fetchall()[0][0])


@transaction.atomic
def _fold_some() -> int:
    if not may_write():
        return 0
    with connection.cursor() as cursor:
        cursor.execute(FOLD, {"limit": BATCH})
        number: int = cursor.fetchall()[0][0]
        return number


def _forget(now: datetime) -> int:
    bounds: dict[str, Any] = {"now": now, "before": now - kept_for(), "limit": MOST_DELETED}
    deleted = 0
    with connection.cursor() as cursor:
        for statement in (FORGET_DUE, FORGET_MINUTES, FORGET_SAMPLES):
            cursor.execute(statement, bounds)
            deleted += cursor.rowcount
    return deleted
