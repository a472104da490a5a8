"""The rules of the gate's first half, without a database."""

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from queue_core.gate_lines import Counts, Figure, GateVerdict, broken, judge


@dataclass(frozen=True)
class Rails:
    least_sample: int = 10
    max_error_ratio: float = 0.1
    max_timeout_ratio: float = 0.2
    max_stale_ratio: float = 0.1
    max_latency: timedelta | None = None


RAILS = Rails()


def verdicts(counts: Counts, rails: Rails = RAILS) -> dict[Figure, GateVerdict]:
    return {line.figure: line.verdict for line in judge(rails, counts)}


def test_nothing_measured_is_inconclusive_and_never_good() -> None:
    """RMP-06: no data does not count as good."""
    lines = judge(replace(RAILS, max_latency=timedelta(seconds=1)), Counts())

    assert {line.verdict for line in lines} == {GateVerdict.INCONCLUSIVE}
    assert {line.measured for line in lines} == {None}
    assert broken(lines) is None


def test_nothing_measured_is_inconclusive_even_where_no_sample_is_asked_for() -> None:
    assert set(verdicts(Counts(), replace(RAILS, least_sample=0)).values()) == {GateVerdict.INCONCLUSIVE}


@pytest.mark.parametrize(
    ("ended", "errors", "verdict"),
    [
        (9, 0, GateVerdict.INCONCLUSIVE),
        (9, 9, GateVerdict.INCONCLUSIVE),
        (10, 0, GateVerdict.GOOD),
        (10, 1, GateVerdict.GOOD),
        (10, 2, GateVerdict.BAD),
        (100, 10, GateVerdict.GOOD),
        (100, 11, GateVerdict.BAD),
    ],
)
def test_a_share_is_bad_above_its_limit_and_only_in_a_large_enough_sample(
    ended: int, errors: int, verdict: GateVerdict
) -> None:
    assert verdicts(Counts(ended=ended, errors=errors))[Figure.ERRORS] == verdict


def test_each_figure_has_its_own_limit() -> None:
    found = verdicts(Counts(ended=10, errors=2, timeouts=2, stale=2))

    assert found == {
        Figure.ERRORS: GateVerdict.BAD,
        Figure.TIMEOUTS: GateVerdict.GOOD,
        Figure.STALE: GateVerdict.BAD,
    }


def test_latency_is_judged_only_where_the_stage_has_a_limit() -> None:
    slow = Counts(ended=10, timed=10, usual=timedelta(seconds=3))

    assert Figure.LATENCY not in verdicts(slow)
    assert verdicts(slow, replace(RAILS, max_latency=timedelta(seconds=2)))[Figure.LATENCY] == GateVerdict.BAD
    assert verdicts(slow, replace(RAILS, max_latency=timedelta(seconds=3)))[Figure.LATENCY] == GateVerdict.GOOD


def test_latency_counts_only_calls_whose_length_is_known() -> None:
    rails = replace(RAILS, max_latency=timedelta(seconds=2))

    few = Counts(ended=100, timed=9, usual=timedelta(seconds=9))

    assert verdicts(few, rails)[Figure.LATENCY] == GateVerdict.INCONCLUSIVE


def test_a_share_is_never_shown_above_one() -> None:
    stale = next(line for line in judge(RAILS, Counts(ended=10, stale=12)) if line.figure == Figure.STALE)

    assert (stale.measured, stale.verdict) == (1.0, GateVerdict.BAD)
