"""Calls that failed in the same way are ended together: the rows are as if each had been ended by itself."""

from datetime import timedelta
from typing import Any

import pytest

from queue_core import contract, ramp
from queue_core.contract import Ending
from queue_core.errors import InvalidCompletion
from queue_core.models import Attempt, Item, Job, Lane, LateAnswer
from queue_core.ramp import BadEnd
from queue_core.states import AttemptOutcome, LeaseToken
from tests.factories import clock, leased_job, make_lane

pytestmark = pytest.mark.django_db

BAD = ["unavailable", "overloaded", "misconfigured", "invalid_answer", "timeout"]


def lane_with(calls: int, **fields: Any) -> tuple[Lane, list[LeaseToken]]:
    lane = make_lane(unavailable_limit=5, **fields)
    return lane, [leased_job(lane)[1] for _ in range(calls)]


def state_of(lane: Lane) -> dict[str, Any]:
    lane.refresh_from_db()
    return {
        "hold": lane.hold.reason if lane.hold and lane.run is None else "",
        "rests": lane.claims_not_before,
        "jobs": list(
            Job.objects.filter(lane=lane)
            .order_by("pk")
            .values_list("state", "attempts", "available_at", "backoff_steps", "dead_reason", "finished_at")
        ),
        "attempts": list(
            Attempt.objects.filter(lane=lane)
            .order_by("pk")
            .values_list("outcome", "is_charged", "detail", "latency", "ended_at")
        ),
        "items": list(Item.objects.filter(lane=lane).order_by("job").values_list("kind", "cause")),
        "late": LateAnswer.objects.filter(lane_id=lane.pk).count(),
    }


def ends_of(tokens: list[LeaseToken]) -> list[BadEnd]:
    return [BadEnd(token, "said", timedelta(seconds=1), timedelta(seconds=30)) for token in tokens]


@pytest.mark.parametrize("outcome", BAD)
@pytest.mark.parametrize(
    ("calls", "fields"),
    [
        (1, {}),
        (4, {}),
        (7, {}),
        (1, {"max_attempts": 1}),
        # The probe's.
        (3, {"number": 1}),
        (7, {"number": 1, "max_attempts": 1}),
    ],
)
def test_together_the_rows_are_as_one_by_one(outcome: str, calls: int, fields: dict[str, Any]) -> None:
    one_by_one, tokens = lane_with(calls, **fields)
    for end in ends_of(tokens):
        words = {"detail": end.detail, "latency": end.latency, "retry_after": end.retry_after}
        ramp.end_badly(end.token, outcome=AttemptOutcome(outcome), clock=clock(3), **words)  # type: ignore[arg-type]
    together, tokens = lane_with(calls, **fields)

    ramp.end_badly_together(ends_of(tokens), outcome=AttemptOutcome(outcome), clock=clock(3))

    assert state_of(together) == state_of(one_by_one)


def test_answers_that_spend_the_budget_die_together() -> None:
    lane, tokens = lane_with(3, max_attempts=1)
    # The model answers another one meanwhile: so it is the tickets.
    contract.complete(leased_job(lane)[1], Ending(result="MANUAL"), clock=clock(2))

    answers = ramp.end_badly_together(ends_of(tokens), outcome=AttemptOutcome.INVALID_ANSWER, clock=clock(3))

    assert answers == ["died"] * 3
    assert state_of(lane)["items"][:3] == [("dead", "attempts")] * 3


def test_where_nobody_is_answered_none_dies_of_it_and_the_lane_goes_on_hold() -> None:
    lane, tokens = lane_with(3, max_attempts=1)

    answers = ramp.end_badly_together(ends_of(tokens), outcome=AttemptOutcome.INVALID_ANSWER, clock=clock(3))

    assert answers == ["released"] * 3
    after = state_of(lane)
    assert (after["hold"], after["items"]) == ("auto_errors", [])
    assert {job[1] for job in after["jobs"]} == {0}


@pytest.mark.parametrize("last", ["unavailable", "timeout", "invalid_answer"])
def test_a_server_on_its_way_down_holds_the_lane_in_whatever_ways_its_calls_end(last: str) -> None:
    lane, tokens = lane_with(5)
    for number, outcome in enumerate(["invalid_answer", "timeout", "unavailable", "invalid_answer", last]):
        ramp.end_badly(tokens[number], outcome=AttemptOutcome(outcome), clock=clock(3 + number))

    after = state_of(lane)
    assert after["hold"] == {"unavailable": "auto_unavailable", "timeout": "auto_timeouts"}.get(last, "auto_errors")
    assert {job[1] for job in after["jobs"]} == {0}, "what the streak had cost is given back"


def test_a_silence_of_several_tickets_at_once_spends_nobodys_last_attempt() -> None:
    """BRK-08: one by one the first would die before a second timeout showed that it was the model."""
    lane, tokens = lane_with(3, max_attempts=1)

    answers = ramp.end_badly_together(ends_of(tokens), outcome=AttemptOutcome.TIMEOUT, clock=clock(3))

    assert answers == ["released"] * 3
    assert (state_of(lane)["hold"], state_of(lane)["items"]) == ("auto_timeouts", [])


def test_one_that_is_stale_is_kept_as_late_and_takes_nothing_from_the_others() -> None:
    lane, tokens = lane_with(3)
    ramp.end_badly(tokens[1], outcome=AttemptOutcome.UNAVAILABLE, clock=clock(2))

    answers = ramp.end_badly_together(
        ends_of([*tokens, tokens[0]]), outcome=AttemptOutcome.INVALID_ANSWER, clock=clock(3)
    )

    assert answers == ["released", "stale", "released", "stale"]
    assert state_of(lane)["late"] == 2


def test_ends_of_two_lanes_are_a_callers_mistake() -> None:
    (_a, first), (_b, second) = lane_with(1), lane_with(1)

    with pytest.raises(InvalidCompletion):
        ramp.end_badly_together(ends_of([*first, *second]), outcome=AttemptOutcome.TIMEOUT, clock=clock(3))


def test_many_ends_take_no_more_statements_than_a_few(django_assert_max_num_queries: Any) -> None:
    _lane, tokens = lane_with(30)

    with django_assert_max_num_queries(32):
        ramp.end_badly_together(ends_of(tokens), outcome=AttemptOutcome.UNAVAILABLE, clock=clock(3))
