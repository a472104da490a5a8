"""The figures of the board: a few per lane, each a panel that may be kept from before."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from queue_core import sums, tally, where
from queue_core.figures.flow import Flow, flows
from queue_core.figures.panels import Panel, read_panel
from queue_core.models import Lane, LaneSample, Outage
from queue_core.ramp_outages import is_steady, lanes_of
from queue_core.states import Exposure
from queue_core.where import LaneFacts, LayerTable

SOON = timedelta(hours=1)
#: A trend is told over at least this long, and over at most that, where ticks were missing.
TREND_OVER, TREND_OVER_AT_MOST = timedelta(minutes=5), timedelta(minutes=15)
#: So many of the oldest waiting are asked what their content does meanwhile.
EXPOSURE_SAMPLE = 200

EXPOSED = """
SELECT DISTINCT l.id, t.exposure
FROM unnest(%s::bigint[]) AS l(id)
CROSS JOIN LATERAL (
  SELECT ticket_id FROM queue_core_job WHERE lane_id = l.id AND state = 'WAITING' ORDER BY queued_at LIMIT %s
) j
JOIN queue_core_ticket t ON t.id = j.ticket_id
"""


#: Results committed under each lane's run, counted no further than its soak needs.
COMPLETED = """
SELECT l.id, (
  SELECT count(*) FROM (
    SELECT 1 FROM queue_core_attempt a
    WHERE a.lane_id = l.id AND a.run_id = l.run AND a.started_at >= l.since AND a.is_committed LIMIT l.needed) c)
FROM unnest(%s::bigint[], %s::bigint[], %s::timestamptz[], %s::bigint[]) AS l(id, run, since, needed)
"""


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """One lane as of one moment."""

    lane: Lane
    now: datetime
    facts: LaneFacts
    layers: Panel[LayerTable]
    passing: Panel[Mapping[int, int]]
    flow: Panel[Flow]
    exposure: Exposure | None
    trends: Mapping[where.Layer, float]
    """By how many each layer has grown a minute lately (below zero: shrunk); empty where nobody looked then."""
    outage: Outage | None
    """The connection's last one, open or closed."""
    outage_lanes: tuple[Lane, ...]
    """The lanes of the outage while it is open."""
    completions: int

    @property
    def open_outage(self) -> Outage | None:
        return self.outage if self.outage is not None and self.outage.closed_at is None else None

    @property
    def outage_unsteady(self) -> tuple[Lane, ...]:
        """The lanes that the open outage still waits for. None of them: it can be closed."""
        return tuple(lane for lane in self.outage_lanes if not is_steady(lane))

    @property
    def is_soaked(self) -> bool:
        """Whether the run has had its least time and completions. The gate says whether it may be raised."""
        run = self.lane.run
        if run is None:
            return False
        return self.completions >= run.soak_completions and self.now - run.started_at >= run.soak_time

    @property
    def hours_of_work(self) -> float | None:
        """What waits for people, in hours of their work. None: not known, or nobody clears anything."""
        if self.layers.value is None or not self.lane.desk_items_per_hour:
            return None
        return self.layers.value.count_of(where.Layer.PEOPLE) / self.lane.desk_items_per_hour


def board(lanes: Sequence[Lane], *, now: datetime) -> list[LaneFigures]:
    """The figures of lanes (read with `where.lanes_to_read`), in their order, in a fixed number of queries."""
    ids = [lane.pk for lane in lanes]
    facts = where.facts_of(lanes, now=now)
    layers = _panels("layers", ids, lambda: where.layers(lanes, now=now, facts=facts), now)
    passing = _panels("passing", ids, lambda: passing_soon(ids, now=now), now)
    flow = _panels("flow", ids, lambda: flows(ids, now=now), now)
    exposures = _panels("exposure", ids, lambda: exposed(ids), now)
    earlier = samples_before(ids, now=now)
    completed = completions(lanes)
    outages = last_outages({lane.connection_id for lane in lanes})
    named = lanes_of(outage.pk for outage in outages.values() if outage.closed_at is None)
    affected = {outage.connection_id: named.get(outage.pk, ()) for outage in outages.values()}
    return [
        LaneFigures(
            lane=lane,
            now=now,
            facts=facts[lane.pk],
            layers=layers[lane.pk],
            passing=passing[lane.pk],
            flow=flow[lane.pk],
            exposure=exposures[lane.pk].value,
            trends=trends(earlier.get(lane.pk), layers[lane.pk].value, now=now),
            outage=outages.get(lane.connection_id),
            outage_lanes=affected.get(lane.connection_id, ()),
            completions=completed.get(lane.pk, 0),
        )
        for lane in lanes
    ]


def passing_soon(lane_ids: Collection[int], *, now: datetime) -> dict[int, Mapping[int, int]]:
    """Waiting tickets whose deadline passes in the next hour, by severity, the most severe first.

    By whole minutes, the present one among them, so that none is missed that passes in this very minute.
    """
    found: dict[int, Mapping[int, int]] = {}
    for lane, minutes in sums.due(lane_ids, since=tally.minute_of(now), until=tally.minute_of(now + SOON)).items():
        severities: Counter[int] = Counter()
        for _minute, severity, number in minutes:
            severities[severity] += number
        found[lane] = {severity: severities[severity] for severity in sorted(severities, reverse=True)}
    return found


def samples_before(lane_ids: Collection[int], *, now: datetime) -> dict[int, LaneSample]:
    """The newest sample of each lane that is old enough to tell a trend by, and not too old."""
    rows = LaneSample.objects.filter(
        lane_id__in=lane_ids, minute__gt=now - TREND_OVER_AT_MOST, minute__lte=now - TREND_OVER
    )
    return {one.lane_id: one for one in rows.order_by("lane_id", "-minute").distinct("lane_id")}


def trends(before: LaneSample | None, table: LayerTable | None, *, now: datetime) -> dict[where.Layer, float]:
    if before is None or table is None:
        return {}
    minutes = (now - before.taken_at) / tally.MINUTE
    return {layer: (table.count_of(layer) - before.layers.get(layer.value, 0)) / minutes for layer in where.Layer}


def exposed(lane_ids: Collection[int]) -> dict[int, Exposure | None]:
    """The loudest that waiting content of a lane does meanwhile, over its oldest waiting tickets."""
    order = [Exposure.HIDDEN, Exposure.LIMITED, Exposure.LIVE]
    found: dict[int, Exposure | None] = dict.fromkeys(lane_ids)
    with connection.cursor() as cursor:
        cursor.execute(EXPOSED, [list(lane_ids), EXPOSURE_SAMPLE])
        for lane, code in cursor.fetchall():
            worst = found[lane]
            exposure = Exposure(code)
            found[lane] = exposure if worst is None else max(worst, exposure, key=order.index)
    return found


def completions(lanes: Sequence[Lane]) -> dict[int, int]:
    """Of each running lane, how many of the completions that its soak needs."""
    runs = [(lane.pk, run.pk, run.started_at, run.soak_completions) for lane in lanes if (run := lane.run) is not None]
    if not runs:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(COMPLETED, [list(column) for column in zip(*runs, strict=True)])
        return dict(cursor.fetchall())


def last_outages(connection_ids: Collection[int]) -> dict[int, Outage]:
    rows = Outage.objects.filter(connection_id__in=connection_ids).order_by("connection_id", "-opened_at")
    return {outage.connection_id: outage for outage in rows.distinct("connection_id")}


def _panels[T](
    name: str, lane_ids: Sequence[int], read: Callable[[], dict[int, T]], now: datetime
) -> dict[int, Panel[T]]:
    """One read for all lanes, given out to each. Kept by the name and the lanes that were read together."""
    panel = read_panel((name, tuple(lane_ids)), read, now=now)
    values = panel.value or {}
    return {pk: Panel(values.get(pk), panel.as_of, panel.is_kept) for pk in lane_ids}
