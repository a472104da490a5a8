"""The lanes' figures for Prometheus: read anew at each scrape from the kept figures, so that no process keeps its own.

Labels are lanes and words of ours, never an address, a ticket or a worker: the number of series is that of the lanes.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from queue_core import figures, where
from queue_core.figures import LaneFigures
from queue_core.figures.board import board
from queue_core.states import JobState
from queue_core.where import Layer

PREFIX = "reviewboard"

type _Values = list[tuple[list[str], float]]
type _Reader = Callable[[LaneFigures], _Values]


def exposition() -> bytes:
    """All of it in Prometheus' text format, as of one moment."""
    registry = CollectorRegistry(auto_describe=False)
    with figures.snapshot() as now:
        lanes = board(list(where.lanes_to_read()), now=now)
        totals = figures.totals([one.lane.pk for one in lanes])
    registry.register(_Read(lanes, totals, now))
    return generate_latest(registry)


class _Read(Collector):
    """What one scrape read."""

    def __init__(self, lanes: Sequence[LaneFigures], totals: dict[int, dict[str, int]], now: datetime) -> None:
        self._lanes = lanes
        self._totals = totals
        self._now = now

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield self._gauge("jobs", "Jobs by state.", ["state"], self._jobs)
        yield self._gauge("dead_jobs", "DEAD jobs by reason, handled ones among them.", ["reason"], self._dead)
        yield self._gauge("open_items", "Open items of people's work by kind.", ["kind"], self._items)
        yield self._gauge("open_tickets", "Open tickets by the layer they wait in.", ["layer"], self._layers)
        yield self._gauge("leases", "Leases that run, and that are over and not yet taken over.", ["is"], self._leases)
        yield self._gauge("oldest_wait_seconds", "The longest wait, ready and held.", ["is"], self._oldest)
        yield self._gauge("flow_per_minute", "Over the last five minutes.", ["what"], self._flow)
        yield self._gauge("drainers", "Worker tasks that drain the lane now.", [], self._drainers)
        yield self._gauge("last_judged_timestamp_seconds", "When its guardrails were judged last.", [], self._judged)
        yield self._gauge("on_hold", "1 while the lane is on hold.", [], self._on_hold)
        yield self._gauge("stage", "The stage that runs; 0 on hold.", [], self._stage)
        yield from self._site()

    def _gauge(self, name: str, says: str, labels: list[str], read: _Reader) -> GaugeMetricFamily:
        family = GaugeMetricFamily(f"{PREFIX}_{name}", says, labels=["lane", *labels])
        for one in self._lanes:
            for words, value in read(one):
                family.add_metric([one.lane.name, *words], value)
        return family

    def _site(self) -> Iterator[GaugeMetricFamily]:
        facts = self._lanes[0].facts if self._lanes else None
        values = {
            "workers_seen": ("Workers seen in the last half minute.", facts.workers if facts else 0),
            "scheduler_seen": ("1 if a tick came in the last half minute.", int(facts.scheduler_seen) if facts else 0),
            "read_timestamp_seconds": ("When these figures were read.", self._now.timestamp()),
        }
        for name, (says, value) in values.items():
            yield GaugeMetricFamily(f"{PREFIX}_{name}", says, value=value)

    def _held(self, one: LaneFigures) -> dict[str, int]:
        return self._totals[one.lane.pk]

    def _jobs(self, one: LaneFigures) -> _Values:
        held = self._held(one)
        dead = sum(number for code, number in held.items() if code.startswith("DEAD."))
        return [([state.value], dead if state == JobState.DEAD else held.get(state.value, 0)) for state in JobState]

    def _dead(self, one: LaneFigures) -> _Values:
        return self._below(one, "DEAD.")

    def _items(self, one: LaneFigures) -> _Values:
        return self._below(one, "item.")

    def _below(self, one: LaneFigures, start: str) -> _Values:
        held = self._held(one)
        return [([code.removeprefix(start)], number) for code, number in sorted(held.items()) if code.startswith(start)]

    def _layers(self, one: LaneFigures) -> _Values:
        table = one.layers.value
        return [([layer.value], table.count_of(layer)) for layer in Layer] if table is not None else []

    def _leases(self, one: LaneFigures) -> _Values:
        if one.layers.value is None:
            return []
        live = one.layers.value.count_of(Layer.RUNNING)
        return [(["live"], live), (["expired"], self._held(one).get(JobState.LEASED.value, 0) - live)]

    def _oldest(self, one: LaneFigures) -> _Values:
        table = one.layers.value
        waits = {"ready": table.oldest_ready, "held": table.oldest_held} if table is not None else {}
        return [([name], wait.total_seconds() if wait is not None else 0) for name, wait in waits.items()]

    def _flow(self, one: LaneFigures) -> _Values:
        flow = one.flow.value
        if flow is None:
            return []
        told = {"decided": flow.decided, "arriving": flow.arriving, "reviewed": flow.reviewed, "errors": flow.errors}
        return [([name], rate) for name, rate in told.items()]

    def _drainers(self, one: LaneFigures) -> _Values:
        return [([], one.facts.drainers)]

    def _judged(self, one: LaneFigures) -> _Values:
        return [([], one.lane.judged_at.timestamp())] if one.lane.judged_at is not None else []

    def _on_hold(self, one: LaneFigures) -> _Values:
        return [([], int(one.lane.is_on_hold))]

    def _stage(self, one: LaneFigures) -> _Values:
        return [([], one.facts.stage or 0)]
