"""A forecast is held against what then happens, and says nothing where too little was measured."""

from collections import Counter
from dataclasses import dataclass, replace

import pytest

from queue_core.forecast import rates
from queue_core.forecast.outlook import (
    HORIZON,
    Basis,
    Known,
    LineState,
    Outlook,
    Pace,
    Side,
    at_speed,
    if_nothing_starts,
    stalled,
    unknown,
)
from queue_core.forecast.rates import Rate
from queue_core.forecast.speeds import of_run, of_stage
from queue_core.forecast.terms import Calls, Cohort, Kind, Order, Step
from tests.forecast.by_ticket import World

NOBODY = Side(0)
CALLS = Calls(median=8.0, p95=14.0, time_limit=30.0, needs=0.0)
MEASURED = 15


def per_minute(times: list[float], *, since: float, until: float) -> list[int]:
    counts = Counter(int(at // 60) for at in times)
    return [counts[minute] for minute in range(int(since // 60), int(until // 60))]


def known_of(world: World) -> Known:
    """What a reader of the queue knows at this moment, and no more: what waits, and what the last minutes were."""
    alike = Counter(
        (round(one.urgency / 60), int(one.deadline // 60), one.severity, one.tries)
        for _key, _number, one in world.waiting
    )
    backlog = [
        Cohort(urgency * 60 - world.now, deadline * 60 + 30 - world.now, severity, float(number), tries)
        for (urgency, deadline, severity, tries), number in alike.items()
    ]
    arrivals = rates.measured(per_minute(world.came, since=world.now - MEASURED * 60, until=world.now), least=0)
    kinds = [Kind(severity, world.shares[severity], world.times_given[severity]) for severity in range(4)]
    calls = replace(CALLS, invalid=world.invalid)
    return Known(backlog, len(world.waiting), arrivals, kinds, calls, Order(back_off=5.0), NOBODY, NOBODY)


@pytest.mark.parametrize(
    ("backlog", "arrivals", "times_given", "is_growing"),
    [
        pytest.param(4000, 70.0, (1700.0, 1700.0, 1500.0, 1500.0), False, id="it empties, and some are lost"),
        pytest.param(1500, 70.0, (20000.0, 20000.0, 9000.0, 9000.0), False, id="it empties in time for all"),
        pytest.param(1500, 190.0, (1800.0, 1500.0, 1500.0, 900.0), True, id="it grows, and the harmless are lost"),
    ],
)
def test_what_happens_is_within_the_forecast_in_nine_of_ten_seeded_runs(
    backlog, arrivals, times_given, is_growing
) -> None:
    runs = [outcome(seed, backlog, arrivals, times_given) for seed in range(10)]

    assert sum(one.is_within for one in runs) >= 9, [one for one in runs if not one.is_within]
    assert {one.found.model.state for one in runs} == {LineState.GROWS if is_growing else LineState.EMPTIES}
    assert all(one.is_telling for one in runs), "a range so wide that it says nothing is no forecast"


@dataclass(frozen=True)
class Outcome:
    """A forecast, and what then happened: when the queue was empty, and who passed their deadline.

    `lost` are those that waited when it was made, by severity; `fresh` came after it.
    """

    found: Outlook
    emptied: float | None
    lost: dict[int, int]
    fresh: int

    @property
    def is_within(self) -> bool:
        low, high = self.found.fresh
        are_lost_right = all(low <= self.lost[s] <= high for s, (low, high) in self.found.missed.items())
        return self.is_empty_right and are_lost_right and low <= self.fresh <= high

    @property
    def is_empty_right(self) -> bool:
        empty = self.found.model.empty
        if empty is None:
            return self.emptied is None
        return self.emptied is not None and empty.low <= self.emptied <= (empty.high or HORIZON)

    @property
    def is_telling(self) -> bool:
        low, high = (sum(ends) for ends in zip(*self.found.missed.values(), self.found.fresh, strict=True))
        truth = sum(self.lost.values()) + self.fresh
        return low >= truth / 8 and high <= 3 * truth + 60


def outcome(seed: int, backlog: int, arrivals: float, times_given: tuple[float, ...]) -> Outcome:
    world = World(seed, cap=20, median=8.0, sigma=0.34, arrivals_a_minute=arrivals, times_given=times_given)
    for place in range(backlog):
        world.add(-1200.0 * place / backlog)
    world.play(MEASURED * 60)
    start, before = world.now, len(world.passed)
    known = replace(known_of(world), horizon=3600.0)
    found = at_speed(known, of_run(rates.measured(per_minute(world.calls_ended, since=0, until=start))))

    world.emptied_at = None
    while world.emptied_at is None and world.now < start + known.horizon:
        world.play(world.now + 600)

    lost = Counter(one.severity for one in world.passed[before:] if one.queued <= start)
    return Outcome(
        found,
        None if world.emptied_at is None else world.emptied_at - start,
        {severity: lost[severity] for severity in range(4)},
        sum(one.queued > start for one in world.passed[before:]),
    )


def a_known(**fields) -> Known:
    backlog = [Cohort(-60.0, 1800.0, 1, 100.0), Cohort(-30.0, 7200.0, 0, 200.0)]
    usual = {
        "backlog": backlog,
        "waiting": 300,
        "arrivals": Rate(10.0, 10.0, 15, 150),
        "kinds": [Kind(0, 1.0, 7200.0)],
        "calls": Calls(),
        "order": Order(),
        "people": NOBODY,
        "delivery": NOBODY,
    }
    return Known(**(usual | fields))


def test_more_in_than_out_is_said_to_grow_by_a_range() -> None:
    found = at_speed(a_known(arrivals=Rate(100.0, 50.0, 15, 1500)), of_run(Rate(20.0, 10.0, 15, 300)))

    assert found.model.state == LineState.GROWS
    assert found.model.empty is None
    assert found.model.grows.low < 80 < found.model.grows.high


def test_on_hold_what_passes_needs_no_pace() -> None:
    found = if_nothing_starts(a_known(arrivals=None))

    assert (found.model.state, found.model.leaving, found.model.basis) == (LineState.HELD, None, Basis.NONE)
    assert found.missed == {3: (0, 0), 2: (0, 0), 1: (100, 100), 0: (200, 200)}


def test_a_stall_goes_on_as_a_hold_does_but_is_called_a_stall() -> None:
    assert stalled(a_known()).model.state == LineState.STALLED
    assert stalled(a_known()).missed == if_nothing_starts(a_known()).missed


@pytest.mark.parametrize(
    ("counts", "least", "is_told"),
    [([9, 9], 20, False), ([6, 6, 7], 20, False), ([7, 7, 7], 20, True), ([0, 0, 0], 0, True), ([0, 0], 0, False)],
)
def test_a_small_sample_tells_no_pace(counts, least, is_told) -> None:
    assert (rates.measured(counts, least=least) is not None) == is_told


def test_without_a_pace_nothing_is_made_up() -> None:
    found = unknown(a_known(arrivals=None))

    assert (found.model.state, found.model.arriving, found.model.leaving) == (LineState.UNKNOWN, None, None)
    assert (found.model.empty, found.missed) == (None, {})
    assert at_speed(a_known(arrivals=None), of_run(Rate(20.0, 10.0, 15, 300))).model.state == LineState.UNKNOWN


def test_a_lane_that_keeps_up_is_empty_and_needs_no_time() -> None:
    found = at_speed(a_known(backlog=[], waiting=0), of_run(Rate(50.0, 25.0, 15, 750)))

    assert found.model.state == LineState.EMPTY


def test_people_get_the_models_share_and_their_line_grows_where_they_are_slower() -> None:
    side = Side(50, arriving=Rate(1.0, 1.0, 15, 15), set_up=2.0)

    found = at_speed(a_known(people=side, manual=0.5), of_run(Rate(60.0, 30.0, 15, 900)))

    assert found.people.state == LineState.GROWS
    assert found.people.basis == Basis.SET_UP
    assert found.people.arriving.low < 30 < found.people.arriving.high


def test_people_with_more_hands_than_work_empty_their_line_in_a_range() -> None:
    side = Side(120, arriving=Rate(1.0, 0.5, 60, 60), leaving=Rate(5.0, 2.5, 60, 300))

    line = unknown(a_known(people=side)).people

    assert (line.state, line.basis) == (LineState.EMPTIES, Basis.RUN)
    assert line.empty.low < 120 / 4 * 60 < line.empty.high


def test_a_higher_stage_is_told_by_its_seats_its_rate_and_the_length_of_calls() -> None:
    calls, present, higher = Calls(median=2.0, p95=4.0), Step(0, 10, 300), Step(0, 50, 1200)

    full = of_stage(higher, calls, now=Rate(290.0, 90.0, 15, 4350), present=present)
    starved = of_stage(higher, calls, now=Rate(20.0, 20.0, 15, 300), present=present)

    assert (full.bounds, full.basis) == (Pace(750.0, 1200), Basis.CALLS)
    assert starved.bounds == Pace(20.0, 1200), "a raise may bring nothing where the stage is not used up"
