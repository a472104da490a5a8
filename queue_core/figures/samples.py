"""A look at each lane once a minute: how long its oldest waited, and how many stood in which layer."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef

from queue_core import tally, where
from queue_core.clock import Clock
from queue_core.figures.snapshot import snapshot
from queue_core.models import Lane, LaneSample


def sample(*, clock: Clock) -> int:
    """Take the samples of this minute that are missing. Returns how many; two at once take each only once."""
    minute = tally.minute_of(clock.now())
    taken = LaneSample.objects.filter(lane=OuterRef("pk"), minute=minute)
    lanes = list(where.lanes_to_read(Lane.objects.filter(~Exists(taken))))
    if not lanes:
        return 0
    with snapshot():
        now = clock.now()
        tables = where.layers(lanes, now=now)
    rows = [_sample(lane, tables[lane.pk], minute, now) for lane in lanes]
    return len(LaneSample.objects.bulk_create(rows, ignore_conflicts=True))


def samples(lane_ids: Collection[int], *, since: datetime, until: datetime) -> dict[int, list[LaneSample]]:
    """Of each lane, the samples of the minutes from `since` to before `until`, in order of time."""
    found: dict[int, list[LaneSample]] = {pk: [] for pk in lane_ids}
    for one in LaneSample.objects.filter(lane_id__in=lane_ids, minute__gte=since, minute__lt=until).order_by("minute"):
        found[one.lane_id].append(one)
    return found


#: The longest that anything waited in each time between some moments: 1 from the first one on, 2 from the second, ...
LONGEST = """
SELECT width_bucket(minute, %(starts)s::timestamptz[]), max(oldest_ready), max(oldest_held) FROM queue_core_lanesample
WHERE lane_id = %(lane)s AND minute >= %(since)s AND minute < %(until)s GROUP BY 1
"""


def longest_waits(
    lane_id: int, *, starts: Sequence[datetime], until: datetime
) -> list[tuple[timedelta | None, timedelta | None] | None]:
    """The longest ready and held waits of each time that begins at one of `starts`, whole minutes in order.

    None where nobody looked; within a pair: nothing waited so whenever somebody looked.
    """
    found: list[tuple[timedelta | None, timedelta | None] | None] = [None for _start in starts]
    bounds: dict[str, Any] = {"lane": lane_id, "since": starts[0], "until": until, "starts": list(starts)}
    with connection.cursor() as cursor:
        cursor.execute(LONGEST, bounds)
        for place, ready, held in cursor.fetchall():
            found[place - 1] = (ready, held)
    return found


def _sample(lane: Lane, table: where.LayerTable, minute: datetime, now: datetime) -> LaneSample:
    return LaneSample(
        lane=lane,
        minute=minute,
        taken_at=now,
        oldest_ready=table.oldest_ready,
        oldest_held=table.oldest_held,
        layers={layer.value: count.count for layer, count in table.counts.items()},
    )
