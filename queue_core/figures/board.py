"""The figures of the board: a few per lane, each a panel that may be kept from before."""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queue_core import at_once, sums, tally, where
from queue_core.at_once import Row, Told
from queue_core.figures.flow import FLOWS, Flow, flow_params, flows_from
from queue_core.figures.panels import Panel, keep_panel, read_panel
from queue_core.models import Lane, Outage
from queue_core.ramp_outages import is_steady, lanes_of
from queue_core.states import Exposure
from queue_core.where import LaneFacts, LayerTable

SOON = timedelta(hours=1)
#: A trend is told over at least this long, and over at most that, where ticks were missing.
TREND_OVER, TREND_OVER_AT_MOST = timedelta(minutes=5), timedelta(minutes=15)
EXPOSURE_SAMPLE = at_once.HEADS

#: What the oldest waiting do meanwhile: lane, exposure.
EXPOSED = """
SELECT 'exposed', lane_id, exposure, NULL::bigint, NULL::timestamptz FROM (
  SELECT lane_id, (SELECT exposure FROM queue_core_ticket WHERE id = ticket_id) AS exposure FROM heads) h
GROUP BY lane_id, exposure
"""
#: Results committed under each lane's run, counted no further than its soak needs. In their order, so that the index is
#: read no further either.
COMPLETED = """
SELECT 'completed', l.id, NULL::text, (
  SELECT count(*) FROM (
    SELECT 1 FROM queue_core_attempt a
    WHERE a.lane_id = l.id AND a.run_id = l.run AND a.started_at >= l.since AND a.is_committed
    ORDER BY a.started_at LIMIT l.needed) c),
  NULL::timestamptz
FROM unnest(%(ran)s::bigint[], %(runs)s::bigint[], %(begun)s::timestamptz[], %(needed)s::bigint[])
  AS l(id, run, since, needed)
"""
#: The newest sample of each lane that is old enough to tell a trend by, and not too old: its layers, when it was taken.
SAMPLED = """
SELECT 'sampled', l.id, s.layers::text, NULL::bigint, s.taken_at
FROM unnest(%(lanes)s::bigint[]) AS l(id)
CROSS JOIN LATERAL (
  SELECT layers, taken_at FROM queue_core_lanesample
  WHERE (lane_id, minute) > (l.id, %(sampled_after)s::timestamptz)
    AND (lane_id, minute) <= (l.id, %(sampled_until)s::timestamptz)
  ORDER BY lane_id DESC, minute DESC LIMIT 1) s
"""
#: The number of the open outage of each lane's connection; none where nothing is out.
OUT = """
SELECT 'out', l.id, NULL::text, o.id, NULL::timestamptz FROM queue_core_lane l
JOIN queue_core_outage o ON o.connection_id = l.connection_id AND o.closed_at IS NULL
WHERE l.id = ANY(%(lanes)s::bigint[])
"""
REST = (EXPOSED, COMPLETED, SAMPLED, OUT)


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
    open_outage: Outage | None
    """The one of the connection."""
    outage_lanes: tuple[Lane, ...]
    completions: int

    @property
    def is_exposure_of_part(self) -> bool:
        """Whether more waits than `exposure` was taken from: what the rest does meanwhile is not known."""
        table = self.layers.value
        return table is None or table.count_of(*where.FOR_THE_MODEL) > EXPOSURE_SAMPLE

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
    def is_raise_due(self) -> bool:
        """Whether a stage that is not the last has run its time: what comes next is a person's."""
        return self.is_soaked and not self.facts.is_highest

    @property
    def hours_of_work(self) -> float | None:
        """What waits for people, in hours of their work. None: not known, or nobody clears anything."""
        if self.layers.value is None or not self.lane.desk_items_per_hour:
            return None
        return self.layers.value.count_of(where.Layer.PEOPLE) / self.lane.desk_items_per_hour


def board(lanes: Sequence[Lane], *, now: datetime) -> list[LaneFigures]:
    """The figures of lanes (read with `where.lanes_to_read`), in their order, in a fixed number of queries.

    All in one statement. Where that takes too long each part is read for itself, so that the slow one alone is kept
    from before.
    """
    ids, ask = [lane.pk for lane in lanes], _Asking(lanes, now)
    facts = ask.facts(lanes)
    layers = ask.panels("layers", where.LAYERS, lambda told: where.layers_from(told, facts))
    passing = ask.panels("passing", [sums.DUE_PART], lambda told: _passing(told, ids))
    flow = ask.panels("flow", FLOWS, lambda told: flows_from(told, ids, now=now))
    exposures = ask.panels("exposure", [EXPOSED], lambda told: _exposed(told, ids))
    completed = ask.panels("completed", [COMPLETED], lambda told: _numbers(told, "completed"))
    earlier = ask.panels("sampled", [SAMPLED], lambda told: {row.lane: row for row in told.get("sampled", ())})
    outages = _open_outages(ask.panels("out", [OUT], lambda told: _numbers(told, "out")))
    affected = lanes_of({outage.pk for outage in outages.values()})
    return [
        LaneFigures(
            lane=lane,
            now=now,
            facts=facts[lane.pk],
            layers=layers[lane.pk],
            passing=passing[lane.pk],
            flow=flow[lane.pk],
            exposure=exposures[lane.pk].value,
            trends=trends(earlier[lane.pk].value, layers[lane.pk].value, now=now),
            open_outage=outages.get(lane.pk),
            outage_lanes=affected[outages[lane.pk].pk] if lane.pk in outages else (),
            completions=completed[lane.pk].value or 0,
        )
        for lane in lanes
    ]


class _Asking:
    """One reading of some lanes: all parts at once, or else each when it is asked for."""

    def __init__(self, lanes: Sequence[Lane], now: datetime) -> None:
        self._now, self._ids = now, tuple(lane.pk for lane in lanes)
        self._params = {
            **where.facts_params(lanes, now=now),
            **where.layer_params(lanes, now=now),
            **flow_params(self._ids, now=now),
            **_rest_params(lanes, now=now),
        }
        # Not kept: a reading of before would pass for one of now.
        self._told = read_panel(None, lambda: at_once.tell(EVERYTHING, self._params), now=now).value

    def facts(self, lanes: Sequence[Lane]) -> dict[int, where.LaneFacts]:
        """Those of before only for the same runs and holds: without any, nothing can be said of a lane."""
        stand = tuple((lane.pk, lane.run_id, lane.hold_id) for lane in lanes)
        panel = self._panel(("facts", stand), where.FACTS, lambda told: where.facts_from(told, lanes, now=self._now))
        return panel.value if panel.value is not None else where.facts_of(lanes, now=self._now)

    def panels[T](self, name: str, parts: Sequence[str], build: Callable[[Told], dict[int, T]]) -> dict[int, Panel[T]]:
        """One read for all lanes, given out to each. Kept by the name and the lanes that were read together."""
        panel = self._panel((name, self._ids), parts, build)
        values = panel.value or {}
        return {pk: Panel(values.get(pk), panel.as_of, panel.is_kept) for pk in self._ids}

    def _panel[T](self, key: Hashable, parts: Sequence[str], build: Callable[[Told], T]) -> Panel[T]:
        if self._told is None:
            return read_panel(key, lambda: build(at_once.tell(parts, self._params)), now=self._now)
        return keep_panel(key, Panel(build(self._told), self._now))


EVERYTHING = (*where.FACTS, *where.LAYERS, *FLOWS, sums.DUE_PART, *REST)


def _rest_params(lanes: Sequence[Lane], *, now: datetime) -> dict[str, Any]:
    """What DUE_PART and REST ask about these lanes. Of deadlines the minute that runs is one: none is missed that
    passes in it."""
    runs = [(lane.pk, run.pk, run.started_at, run.soak_completions) for lane in lanes if (run := lane.run) is not None]
    ran, ids, begun, needed = ([run[place] for run in runs] for place in range(4))
    return {
        **sums.due_params(since=now, until=now + SOON),
        "ran": ran,
        "runs": ids,
        "begun": begun,
        "needed": needed,
        "sampled_after": now - TREND_OVER_AT_MOST,
        "sampled_until": now - TREND_OVER,
    }


def _passing(told: Told, lane_ids: Iterable[int]) -> dict[int, Mapping[int, int]]:
    """Waiting tickets whose deadline passes in the next hour, by severity, the most severe first."""
    found = sums.due_from(told, lane_ids)
    return {pk: dict(sorted(severities.items(), reverse=True)) for pk, severities in found.items()}


def _numbers(told: Told, word: str) -> dict[int, int]:
    return {row.lane: row.number for row in told.get(word, ())}


def trends(before: Row | None, table: LayerTable | None, *, now: datetime) -> dict[where.Layer, float]:
    if before is None or table is None:
        return {}
    counts, minutes = json.loads(before.code), (now - before.moment) / tally.MINUTE
    return {layer: (table.count_of(layer) - counts.get(layer.value, 0)) / minutes for layer in where.Layer}


def _exposed(told: Told, lane_ids: Iterable[int]) -> dict[int, Exposure | None]:
    """The loudest that waiting content of a lane does meanwhile, over its oldest waiting tickets."""
    order = [Exposure.HIDDEN, Exposure.LIMITED, Exposure.LIVE]
    found: dict[int, Exposure | None] = dict.fromkeys(lane_ids)
    for row in told.get("exposed", ()):
        worst, exposure = found[row.lane], Exposure(row.code)
        found[row.lane] = exposure if worst is None else max(worst, exposure, key=order.index)
    return found


def _open_outages(found: Mapping[int, Panel[int]]) -> dict[int, Outage]:
    """The outages that were told, by lane, as far as they are open."""
    told = {lane: panel.value for lane, panel in found.items() if panel.value is not None}
    outages = Outage.objects.filter(closed_at__isnull=True).in_bulk(set(told.values())) if told else {}
    return {lane: outages[pk] for lane, pk in told.items() if pk in outages}
