"""The model of a drain keeps to the rules of the contract, and to itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_core.forecast.drain import drain, even, widening
from queue_core.forecast.draws import Chance, Mean
from queue_core.forecast.terms import Arrivals, Calls, Cohort, Kind, Order, Plan, Step

QUICK = Calls(median=1.0, p95=1.0, time_limit=10.0, needs=1.5)
NONE = Arrivals(0.0)


def played(backlog, *, cap=10, rate=None, calls=QUICK, arrivals=NONE, order=None, draw=None, moments=None, **step):
    plan = Plan([Step(0.0, cap, rate, **step)])
    return drain(
        backlog,
        plan,
        arrivals=arrivals,
        calls=calls,
        order=order or Order(),
        draw=draw or Mean(),
        moments=moments or even(3600, 10),
    )


def waiting(count: float, *, urgency: float = 0.0, deadline: float = 1e9, severity: int = 0, **fields) -> Cohort:
    return Cohort(urgency, deadline, severity, count, **fields)


def test_a_backlog_empties_at_the_pace_of_its_seats() -> None:
    course = played([waiting(6000)])

    assert course.emptied_at == pytest.approx(600, abs=10)
    assert course.done == pytest.approx(6000)


def test_the_rate_bounds_what_the_seats_would_allow() -> None:
    assert played([waiting(6000)], rate=300).emptied_at == pytest.approx(1200, abs=10)


def test_the_most_urgent_go_first_and_the_rest_pass_their_deadline() -> None:
    first, second = waiting(3000, urgency=1, deadline=400, severity=1), waiting(3000, urgency=2, deadline=400)

    course = played([second, first])

    assert course.missed[1] == 0
    assert course.missed[0] == pytest.approx(2000, rel=0.05)


def test_less_time_left_than_a_call_needs_is_passed_over_and_wastes_no_call() -> None:
    course = played([waiting(5, deadline=1.4)])

    assert (course.calls, course.missed[0]) == (0, 5)


def test_a_call_that_the_deadline_overtakes_is_wasted_and_the_ticket_is_lost_in_it() -> None:
    slow = Calls(median=5.0, p95=5.0, time_limit=10.0, needs=1.5)

    course = played([waiting(4, deadline=3)], calls=slow)

    assert (course.wasted, course.in_call[0], course.passed[0]) == (4, 4, 0)


def test_failures_spend_the_budget_but_what_was_surely_not_executed_does_not() -> None:
    spent = played([waiting(9, tries=1)], calls=Calls(1.0, 1.0, 10.0, 1.5, invalid=1.0))
    kept = played([waiting(9, tries=1)], calls=Calls(1.0, 1.0, 10.0, 1.5, unavailable=1.0))

    assert (sum(spent.spent.values()), spent.left) == (9, 0)
    assert (sum(kept.spent.values()), kept.left) == (0, 9)


def test_a_failure_rests_twice_as_long_each_time() -> None:
    order = Order(back_off=60.0, longest_back_off=300.0)

    assert [order.rest(n) for n in range(5)] == [60, 120, 240, 300, 300]


def test_the_probe_draws_the_harmless_with_the_most_time_left() -> None:
    near, far, severe = waiting(50, deadline=45), waiting(50, deadline=5000), waiting(50, deadline=9000, severity=2)

    course = played([near, far, severe], cap=1, moments=even(40, 10), is_probe=True)

    assert course.done == 40
    assert course.missed[0] == 0
    assert played([near, far, severe], cap=1, moments=even(200, 10), is_probe=True).missed == {0: 50, 1: 0, 2: 0, 3: 0}


def test_oldest_first_loses_most_after_an_outage_and_deadline_first_least() -> None:
    kinds = [Kind(0, 0.3, 2.5 * 3600.0), Kind(0, 0.3, 6 * 3600.0), Kind(0, 0.4, 24 * 3600.0)]
    plan = Plan([Step(3 * 3600.0, 40, None)])
    lost = {}
    for weight in (0.0, 0.5, 1.0):
        course = drain(
            [],
            plan,
            arrivals=Arrivals(222, kinds),
            calls=Calls(8.0, 12.0, 30.0, 12.5),
            order=Order(weight=weight),
            draw=Mean(),
            moments=even(16 * 3600, 120),
        )
        lost[weight] = sum(course.missed.values())

    assert lost[0.0] > 1.5 * lost[0.5]
    assert lost[0.5] >= lost[1.0]


cohorts = st.builds(
    Cohort,
    urgency=st.floats(-1e4, 1e4),
    deadline=st.floats(1, 1e4),
    severity=st.integers(0, 3),
    count=st.integers(0, 500).map(float),
    tries=st.integers(1, 3),
)


@settings(max_examples=40)
@given(
    backlog=st.lists(cohorts, max_size=8),
    cap=st.integers(0, 30),
    ratio=st.floats(0, 0.5),
    arriving=st.floats(0, 200),
    seed=st.one_of(st.none(), st.integers(0, 99)),
)
def test_every_ticket_is_in_exactly_one_place_at_the_end(backlog, cap, ratio, arriving, seed) -> None:
    calls = Calls(2.0, 4.0, 10.0, 4.5, unavailable=ratio / 3, invalid=ratio / 2, timeouts=ratio / 5)
    arrivals = Arrivals(arriving, [Kind(0, 0.7, 900.0), Kind(3, 0.3, 300.0)])

    course = played(
        backlog,
        cap=cap,
        calls=calls,
        arrivals=arrivals,
        draw=Mean() if seed is None else Chance(seed),
        moments=widening(1800, 25),
    )

    added = sum(cohort.count for cohort in backlog) + course.arrived
    assert added == pytest.approx(course.done + course.dead + course.left, rel=1e-4, abs=1e-2)
    assert course.left >= 0


def test_the_same_seed_gives_the_same_course_and_another_seed_another() -> None:
    def once(seed: int):
        return played([waiting(900)], calls=Calls(2.0, 5.0, 10.0, 5.5, invalid=0.1), draw=Chance(seed))

    assert once(1) == once(1)
    assert once(1).calls != once(2).calls


def test_chance_agrees_with_expectation_in_the_long_run() -> None:
    calls = Calls(2.0, 5.0, 10.0, 5.5, invalid=0.1, timeouts=0.02)
    arrivals = Arrivals(100, [Kind(1, 1.0, 1200.0)])

    expected = played([waiting(5000, deadline=900)], calls=calls, arrivals=arrivals)
    drawn = [played([waiting(5000, deadline=900)], calls=calls, arrivals=arrivals, draw=Chance(n)) for n in range(8)]

    assert sum(one.done for one in drawn) / 8 == pytest.approx(expected.done, rel=0.02)


def test_chance_deals_out_whole_tickets_and_loses_none() -> None:
    draw = Chance(3)

    parts = draw.split(1000, [0.2, 0.3, 0.5])

    assert sum(parts) == 1000
    assert all(part == int(part) for part in parts)
    assert [draw.count(0.0), draw.split(0, [0.5, 0.5])] == [0.0, [0.0, 0.0]]
    assert sum(draw.count(4.0) for _ in range(2000)) / 2000 == pytest.approx(4.0, rel=0.05)
    assert draw.count(1e6) == pytest.approx(1e6, rel=0.01)
