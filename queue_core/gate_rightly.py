"""The second half of the gate, does the model answer rightly: shares, known answers, people's blind checks. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import sqrt
from typing import Protocol

from queue_core.gate_lines import Figure, GateLine, GateVerdict
from queue_core.states import Result

#: How sure a shift has to be: one-sided 95 % of the normal distribution.
SURE = 1.645

SHARES = {
    Figure.APPROVED: Result.APPROVED,
    Figure.REJECTED: Result.REJECTED,
    Figure.MANUAL: Result.MANUAL,
}


class Basis(StrEnum):
    """What the usual shares rest on."""

    SAME_HOURS = "same_hours"
    HEALTHY_DAYS = "healthy_days"


class RightlyLimits(Protocol):
    """What a stage asks of the answers. None: not judged."""

    least_sample: int
    max_share_shift: float | None
    max_wrong_ratio: float | None
    least_blind: int
    max_disagreement: float | None


@dataclass(frozen=True, slots=True)
class Usual:
    """The lane's results while it ran steadily, by which the shares of a run are judged."""

    results: Mapping[Result, int]
    basis: Basis

    @property
    def total(self) -> int:
        return sum(self.results.values())


@dataclass(frozen=True, slots=True)
class Checked:
    """So many were looked at, `bad` of them were not right, and at least `needed` say something."""

    looked_at: int = 0
    bad: int = 0
    needed: int = 1


@dataclass(frozen=True, slots=True)
class Answers:
    """What is known of a run's answers."""

    results: Mapping[Result, int] = field(default_factory=dict)
    usual: Usual | None = None
    known: Checked = Checked()
    blind: Checked = Checked()


def judge_rightly(limits: RightlyLimits, answers: Answers) -> list[GateLine]:
    """The lines of the second half, for what the stage has limits for."""
    lines = []
    if limits.max_share_shift is not None:
        lines += [_share(figure, limits.max_share_shift, limits.least_sample, answers) for figure in SHARES]
    if limits.max_wrong_ratio is not None:
        lines.append(_ratio(Figure.WRONG, answers.known, limits.max_wrong_ratio))
    if limits.max_disagreement is not None:
        lines.append(_ratio(Figure.DISAGREEMENT, answers.blind, limits.max_disagreement))
    return lines


def _ratio(figure: Figure, checked: Checked, limit: float) -> GateLine:
    measured = checked.bad / checked.looked_at if checked.looked_at else None
    verdict = GateVerdict.INCONCLUSIVE
    if measured is not None and checked.looked_at >= checked.needed:
        verdict = GateVerdict.BAD if measured > limit else GateVerdict.GOOD
    return GateLine(figure, measured, limit, checked.looked_at, checked.needed, verdict)


def _share(figure: Figure, limit: float, least: int, answers: Answers) -> GateLine:
    count, sample = answers.results.get(SHARES[figure], 0), sum(answers.results.values())
    usual = answers.usual
    measured = count / sample if sample else None
    if usual is None or not usual.total:
        return GateLine(figure, measured, limit, sample, least, GateVerdict.INCONCLUSIVE)
    before = usual.results.get(SHARES[figure], 0)
    verdict = GateVerdict.INCONCLUSIVE
    if measured is not None and sample >= least:
        verdict = _shift_verdict(count, sample, before, usual.total, limit)
    return GateLine(figure, measured, limit, sample, least, verdict, before / usual.total, usual.basis.value)


def _shift_verdict(count: int, sample: int, before: int, total: int, limit: float) -> GateVerdict:
    """Bad only where the shift is surely beyond the limit; good only where it is within, by a sample that can tell.

    A sample whose own uncertainty is wider than the limit says nothing either way, however near it happens to lie.
    """
    shift, doubt = abs(count / sample - before / total), _doubt(count, sample, before, total)
    if shift > limit + doubt:
        return GateVerdict.BAD
    return GateVerdict.GOOD if shift <= limit and doubt <= limit else GateVerdict.INCONCLUSIVE


def _doubt(count: int, sample: int, before: int, total: int) -> float:
    """Half the width of the interval around the difference of two shares (Agresti and Caffo: one more of each kind).

    Without the one more, ten answers of ten alike would have no uncertainty at all.
    """
    variance = 0.0
    for part, whole in ((count, sample), (before, total)):
        share = (part + 1) / (whole + 2)
        variance += share * (1 - share) / (whole + 2)
    return SURE * sqrt(variance)
