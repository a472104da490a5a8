"""The gate's lines, and its first half, does the model answer: figures against limits. Pure: no database, no clock."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol


class Figure(StrEnum):
    ERRORS = "errors"
    TIMEOUTS = "timeouts"
    STALE = "stale"
    LATENCY = "latency"
    # Does it answer rightly?
    APPROVED = "approved"
    REJECTED = "rejected"
    MANUAL = "manual"
    WRONG = "wrong"
    DISAGREEMENT = "disagreement"


#: The gate's second half.
RIGHTLY = frozenset({Figure.APPROVED, Figure.REJECTED, Figure.MANUAL, Figure.WRONG, Figure.DISAGREEMENT})


class GateVerdict(StrEnum):
    GOOD = "good"
    INCONCLUSIVE = "inconclusive"
    BAD = "bad"


#: From best to worst. What is not known is worse than good.
RANK = {GateVerdict.GOOD: 0, GateVerdict.INCONCLUSIVE: 1, GateVerdict.BAD: 2}


class Limits(Protocol):
    """The guardrails of a stage run."""

    least_sample: int
    max_error_ratio: float
    max_timeout_ratio: float
    max_stale_ratio: float
    max_latency: timedelta | None


@dataclass(frozen=True, slots=True)
class Counts:
    """Calls of one run that ended in a window. `timed` of them have a known length, whose p95 is `usual`."""

    ended: int = 0
    errors: int = 0
    timeouts: int = 0
    stale: int = 0
    timed: int = 0
    usual: timedelta | None = None

    def with_timeouts_more(self, more: int) -> "Counts":
        return Counts(self.ended + more, self.errors, self.timeouts + more, self.stale, self.timed, self.usual)


@dataclass(frozen=True, slots=True)
class GateLine:
    """One figure against its limit: shares from 0 to 1, or seconds for latency. None: nothing was measured.

    For the share of a result `usual` is the lane's own, and the limit is the most shift away from it.
    """

    figure: Figure
    measured: float | None
    limit: float
    sample: int
    least_sample: int
    verdict: GateVerdict
    usual: float | None = None
    basis: str = ""
    """Where `usual` comes from; empty where there is none."""

    @property
    def is_rightly(self) -> bool:
        return self.figure in RIGHTLY

    def frozen(self) -> dict[str, Any]:
        return {
            "figure": self.figure.value,
            "measured": self.measured,
            "limit": self.limit,
            "sample": self.sample,
            "least_sample": self.least_sample,
            "verdict": self.verdict.value,
            **({"usual": self.usual, "basis": self.basis} if self.is_rightly else {}),
        }


def judge(limits: Limits, counts: Counts) -> list[GateLine]:
    """Each guardrail's line. Latency has one only where the stage has a limit for it."""
    lines = [
        _share(Figure.ERRORS, counts.errors, limits.max_error_ratio, limits, counts),
        _share(Figure.TIMEOUTS, counts.timeouts, limits.max_timeout_ratio, limits, counts),
        _share(Figure.STALE, counts.stale, limits.max_stale_ratio, limits, counts),
    ]
    if limits.max_latency is not None:
        measured = counts.usual.total_seconds() if counts.usual is not None else None
        lines.append(_line(Figure.LATENCY, measured, limits.max_latency.total_seconds(), counts.timed, limits))
    return lines


def broken(lines: list[GateLine]) -> GateLine | None:
    """The first guardrail that is broken. Inconclusive is not broken, as it is not good."""
    return next((line for line in lines if line.verdict == GateVerdict.BAD), None)


def _share(figure: Figure, count: int, limit: float, limits: Limits, counts: Counts) -> GateLine:
    measured = min(count / counts.ended, 1.0) if counts.ended else None
    return _line(figure, measured, limit, counts.ended, limits)


def _line(figure: Figure, measured: float | None, limit: float, sample: int, limits: Limits) -> GateLine:
    return GateLine(figure, measured, limit, sample, limits.least_sample, _verdict(measured, limit, sample, limits))


def _verdict(measured: float | None, limit: float, sample: int, limits: Limits) -> GateVerdict:
    if measured is None or sample < limits.least_sample:
        return GateVerdict.INCONCLUSIVE
    return GateVerdict.BAD if measured > limit else GateVerdict.GOOD
