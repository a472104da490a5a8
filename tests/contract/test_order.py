from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_core.contract.order import back_off, urgency
from queue_core.models import Lane
from tests.factories import at


def lane(weight: float = 0.5, bonus: float = 0, **fields: timedelta) -> Lane:
    return Lane(urgency_weight=weight, severity_bonus=timedelta(seconds=bonus), **fields)


@pytest.mark.parametrize(("weight", "expected"), [(0, 100), (0.5, 150), (1, 200)])
def test_urgency_lies_between_the_wait_and_the_deadline_by_the_lanes_weight(weight: float, expected: float) -> None:
    assert urgency(lane(weight), queued_at=at(100), deadline=at(200), severity=0) == at(expected)


def test_each_step_of_severity_counts_as_the_lanes_bonus() -> None:
    assert urgency(lane(0.5, bonus=10), queued_at=at(100), deadline=at(200), severity=2) == at(130)


@given(
    steps=st.one_of(st.integers(0, 2000), st.just(2**31 - 1)),
    base=st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(hours=1)),
)
def test_back_off_is_finite_and_between_its_first_and_its_cap_for_any_number_of_failures(
    steps: int, base: timedelta
) -> None:
    """RET-01: the power is bounded before it is taken."""
    cap = max(base, timedelta(minutes=5))

    rest = back_off(lane(backoff_base=base, backoff_cap=cap), steps)

    assert min(base, cap) <= rest <= cap


def test_back_off_doubles_up_to_its_cap() -> None:
    limits = lane(backoff_base=timedelta(seconds=5), backoff_cap=timedelta(seconds=60))

    assert [back_off(limits, steps).total_seconds() for steps in range(6)] == [5, 10, 20, 40, 60, 60]
