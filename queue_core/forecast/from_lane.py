"""A lane copied into a scenario: what waits, what comes, how its calls go, its order and its plan. Reads only."""

from datetime import datetime

from queue_core import figures
from queue_core.forecast import pace
from queue_core.forecast.backlog import read_backlog
from queue_core.forecast.reading import order_of
from queue_core.forecast.scenario import Scenario
from queue_core.models import Lane, Stage
from queue_core.where import facts_of


def copy(lane: Lane, *, now: datetime) -> tuple[Scenario, str]:
    """The scenario of a lane as of `now`, without an outage before it, and its plan as text ("" where it has none)."""
    with figures.snapshot():
        order = order_of(lane)
        needs = facts_of([lane], now=now)[lane.pk].needs
        waiting = read_backlog(lane, order, now=now)
        came, kinds = pace.arrivals(lane, now=now)
        window = pace.of_the_run(lane, now=now)
        if window.calls is None:
            window = pace.of_the_last_healthy_time(lane, now=now)
        calls = pace.calls_of(lane, window.how, needs=needs)
        plan = _plan_text(lane)
    return Scenario(pace.as_arrivals(came, kinds), calls, order, waiting.cohorts), plan


def _plan_text(lane: Lane) -> str:
    """Each stage for as long as its soak asks; the last one to the end."""
    stages = list(Stage.objects.filter(lane=lane).order_by("number"))
    parts = []
    for stage in stages:
        rate = f":{stage.rate}" if stage.rate is not None else ""
        soak = max(int(stage.soak_time.total_seconds()), 60)
        parts.append(f"{stage.cap}{rate}" + ("" if stage is stages[-1] else f"@{soak}s"))
    return ",".join(parts)
