"""How fast a stage goes: the one that runs by what was measured in it, one that has not run by the length of calls."""

from queue_core.forecast.outlook import Basis, Pace, Speed
from queue_core.forecast.rates import Rate
from queue_core.forecast.terms import Calls, Step

#: A stage is taken for used up if its calls came to at least this share of what it allows.
USED = 0.5


def of_run(measured: Rate, *, is_probe: bool = False, basis: Basis = Basis.RUN) -> Speed:
    """What was measured goes on."""
    return Speed(basis, measured, is_probe=is_probe)


def of_stage(step: Step, calls: Calls, *, now: Rate | None = None, present: Step | None = None) -> Speed:
    """A stage that has not run: at most what its cap gives at calls of the usual length, and its rate.

    The least is that every call takes as long as the slow ones do, or, where the present stage is not used up, that
    nothing is gained: then workers bound it, or too little waits.
    """
    least, most = _bounds(step, calls)
    if now is not None and present is not None and now.mean < USED * _bounds(present, calls)[1]:
        least = min(least, now.mean)
    return Speed(Basis.CALLS, bounds=Pace(least, most), is_probe=step.is_probe)


def _bounds(step: Step, calls: Calls) -> tuple[float, float]:
    """Calls a minute at least and at most."""
    by_p95, by_median = step.cap / max(calls.p95, calls.median) * 60, step.cap / calls.median * 60
    rate = step.rate if step.rate is not None else float("inf")
    return min(by_p95, rate), min(by_median, rate)
