"""The plan of a lane that was made without one."""

import pytest

from queue_core.lanes import DEFAULT_STAGES

*RISING, STEADY = DEFAULT_STAGES
SECONDS_PER_CALL = 2


@pytest.mark.parametrize("stage", RISING, ids=lambda stage: stage.name)
def test_a_rising_stage_bounds_also_a_model_that_answers_in_milliseconds(stage):
    assert stage.rate == stage.cap * 60 // SECONDS_PER_CALL


@pytest.mark.parametrize("stage", RISING, ids=lambda stage: stage.name)
def test_a_stage_lets_through_what_its_soak_and_its_least_sample_need(stage):
    most = stage.rate * stage.soak_time.total_seconds() / 60

    assert stage.least_sample <= stage.soak_completions <= most


def test_the_last_stage_has_no_rate_and_no_soak():
    assert (STEADY.rate, STEADY.soak_completions, STEADY.soak_time.total_seconds()) == (None, 0, 0)
