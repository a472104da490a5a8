"""What holds of the kept figures: they say what the rows say that they were made of. `rebuild_figures` makes them anew.

The auditor's transaction sees one moment, so that sums, what is not folded into them, and the ledger are of the same.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils.translation import gettext_lazy as _

from queue_core import sums, tally
from queue_core.clock import EPOCH, LATEST
from queue_core.figures import recount
from queue_core.ledger.rules import Rule, in_sql
from queue_core.models import Attempt, Lane, LaneMinute

#: Minutes that are looked up together: what happened in them is read at once.
WINDOW = timedelta(minutes=10)
DONE = (
    "SELECT lane_id, 'DONE', count(*) FROM queue_core_job WHERE lane_id = ANY(%(lanes)s) AND state = 'DONE' GROUP BY 1"
)

UNFOLDED = """
SELECT f.lane_id, f.minute, c.code, c.number::bigint
FROM queue_core_figurechange f, jsonb_each_text(f.counts) c(code, number)
WHERE f.lane_id = ANY(%(lanes)s::bigint[]) AND f.minute >= %(since)s AND f.minute < %(until)s
"""

#: Of the time that figures are kept for. The oldest minute that is there says how far back that is.
WITHOUT_MINUTE = """
SELECT a.id FROM queue_core_attempt a
WHERE a.id = ANY(%(ids)s::bigint[]) AND a.lease_until > a.started_at
  AND a.started_at >= (SELECT coalesce(min(minute), now() - interval '36 days') FROM queue_core_laneminute)
  AND NOT EXISTS (SELECT FROM queue_core_laneminute m
                  WHERE m.lane_id = a.lane_id AND m.minute = date_trunc('minute', a.started_at, 'UTC'))
  AND NOT EXISTS (SELECT FROM queue_core_figurechange f
                  WHERE f.lane_id = a.lane_id AND f.minute = date_trunc('minute', a.started_at, 'UTC'))
"""


def totals_apart(ids: Sequence[int]) -> set[int]:
    """Lanes that hold something else than their totals say."""
    found = {pk: Counter(held) for pk, held in sums.totals(ids).items()}
    for lane, code, number in [*recount.totals(ids), *recount.rows(DONE, lanes=list(ids))]:
        found[lane][code] -= number
    return {pk for pk, rest in found.items() if any(rest.values())}


def due_apart(ids: Sequence[int]) -> set[int]:
    """Lanes whose waiting jobs have other deadlines or severities than was kept."""
    apart = Counter(
        {
            (lane, minute, severity): number
            for lane, rows in sums.due(ids, since=EPOCH, until=LATEST).items()
            for minute, severity, number in rows
        }
    )
    for lane, minute, severity, number in recount.due(ids):
        apart[lane, minute, severity] -= number
    return {lane for (lane, _minute, _severity), rest in apart.items() if rest}


def minutes_apart(ids: Sequence[int]) -> set[int]:
    """Minutes in which something else happened than was kept, as far as the ledger finds it by time."""
    rows = {(one.lane_id, one.minute): one for one in LaneMinute.objects.filter(pk__in=ids)}
    wrong = set()
    for since in sorted({_window(minute) for _lane, minute in rows}):
        lanes = {lane for lane, minute in rows if _window(minute) == since}
        apart = Counter(
            {
                (lane, minute, code): number
                for (lane, minute), one in rows.items()
                if _window(minute) == since
                for code, number in one.counts.items()
            }
        )
        bounds = {"lanes": list(lanes), "since": since, "until": since + WINDOW}
        for lane, minute, code, number in recount.rows(UNFOLDED, **bounds):
            apart[lane, minute, code] += number
        for lane, minute, code, number in recount.events(lanes, since=since, until=since + WINDOW):
            apart[lane, minute, code] -= number
        wrong |= {(lane, minute) for (lane, minute, code), rest in apart.items() if rest and _is_found_by_time(code)}
    return {rows[place].pk for place in wrong if place in rows}


def _window(minute: datetime) -> datetime:
    return EPOCH + (minute - EPOCH) // WINDOW * WINDOW


def _is_found_by_time(code: str) -> bool:
    word = code.partition(".")[0]
    return word in {
        tally.CLAIMED,
        tally.ENDED,
        tally.LATENCY,
        tally.RESULT,
        tally.STALE,
        tally.DECIDED,
        tally.ITEM_CLOSED,
    }


RULES = (
    Rule("lane_totals", Lane, _("its kept totals are not what it holds"), totals_apart),
    Rule("lane_due", Lane, _("its kept deadlines are not those of what waits"), due_apart),
    Rule("laneminute_counts", LaneMinute, _("is kept otherwise than what happened in it"), minutes_apart),
    Rule("attempt_minute", Attempt, _("the minute of its claim has no figures"), in_sql(WITHOUT_MINUTE)),
)
