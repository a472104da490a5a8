"""One state a lane: the headline that its figures add up to."""

from dataclasses import replace
from datetime import timedelta

import pytest

from queue_core import figures, where
from queue_core.figures import Flow, LaneFigures, LaneState, Panel, panels
from queue_core.models import Lane, Presence, Stage
from tests.factories import at, done_job, make_lane, waiting_job

pytestmark = pytest.mark.django_db

NOW = 400.0


@pytest.fixture(autouse=True)
def _nothing_kept():
    panels.forget()
    yield
    panels.forget()


@pytest.fixture
def lane() -> Lane:
    Presence.objects.create(kind="worker", name="w1", started_at=at(0), seen_at=at(NOW))
    return make_lane(number=4, run={"is_last": True})


def read(now: float = NOW) -> LaneFigures:
    [found] = figures.board(list(where.lanes_to_read()), now=at(now))
    return found


def with_flow(found: LaneFigures, **flow: object) -> LaneFigures:
    values = {"decided": 0.0, "arriving": 0.0, "reviewed": 0.0, "last_completed_at": None} | flow
    return replace(found, flow=Panel(Flow(**values), found.now))


def test_an_empty_lane_in_its_last_stage_is_steady(lane) -> None:
    assert figures.state_of(read()) == LaneState.STEADY


def test_work_that_waits_while_nothing_is_completed_for_two_minutes_is_no_progress(lane) -> None:
    waiting_job(lane, added=NOW - 200)

    assert figures.state_of(with_flow(read(), last_completed_at=at(NOW - 120))) == LaneState.STEADY
    assert figures.state_of(with_flow(read(), last_completed_at=at(NOW - 121))) == LaneState.NO_PROGRESS


def test_work_that_came_just_now_is_no_stall_however_long_nothing_was_completed(lane) -> None:
    waiting_job(lane, added=NOW - 10)

    assert figures.state_of(with_flow(read())) == LaneState.STEADY


def test_a_lane_with_slow_calls_is_given_three_of_them(lane) -> None:
    lane.connection.call_time_limit = timedelta(seconds=60)
    lane.connection.save()
    waiting_job(lane, added=NOW - 300)

    assert figures.state_of(with_flow(read(), last_completed_at=at(NOW - 180))) == LaneState.STEADY
    assert figures.state_of(with_flow(read(), last_completed_at=at(NOW - 181))) == LaneState.NO_PROGRESS


def test_a_probe_that_has_shown_what_it_can_is_not_stuck() -> None:
    Presence.objects.create(kind="worker", name="w1", started_at=at(0), seen_at=at(NOW))
    probe = make_lane(number=1)
    Stage.objects.create(lane=probe, number=2, name="trickle", cap=10)
    waiting_job(probe, added=0)

    assert read().is_soaked
    assert figures.state_of(with_flow(read())) == LaneState.RAMPING


@pytest.mark.parametrize(
    ("arriving", "reviewed", "state"),
    [
        (10, 9.5, LaneState.STEADY),
        (10, 8.9, LaneState.GROWING),
        (0.9, 0, LaneState.STEADY),
        (5, 60, LaneState.STEADY),
    ],
)
def test_growth_is_more_than_noise(lane, arriving, reviewed, state) -> None:
    assert figures.state_of(with_flow(read(), arriving=arriving, reviewed=reviewed)) == state


def test_a_wait_over_the_target_is_late(lane) -> None:
    Lane.objects.update(wait_target=timedelta(seconds=60))
    waiting_job(lane, added=NOW - 61)

    assert figures.state_of(with_flow(read(), last_completed_at=at(NOW))) == LaneState.LATE


def test_a_pause_that_the_model_asked_for_is_said(lane) -> None:
    Lane.objects.update(claims_not_before=at(NOW + 60))
    waiting_job(lane, added=NOW - 200)

    assert figures.state_of(read()) == LaneState.PAUSED


def test_a_lane_whose_figures_could_never_be_read_is_not_called_healthy(lane) -> None:
    waiting_job(lane, added=NOW - 300)
    unread = replace(read(), flow=Panel(None, at(NOW), is_kept=True), layers=Panel(None, at(NOW), is_kept=True))

    assert figures.state_of(unread) == LaneState.UNREAD
    assert figures.state_of(unread).needs_somebody


def test_soak_counts_the_runs_own_completions_no_further_than_needed() -> None:
    lane = make_lane(number=4, run={"soak_completions": 2, "soak_time": timedelta(seconds=300)})
    for number in range(3):
        done_job(lane, added=10 + number, claimed=20 + number, completed=30 + number)

    assert read().completions == 2
    assert not read(299.9).is_soaked
    assert read(300).is_soaked
