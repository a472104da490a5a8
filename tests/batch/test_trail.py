"""A worker that goes on where its last claim left off."""

import pytest

from queue_core import batch, contract
from queue_core.batch import Batch, Trail
from queue_core.models import Lane
from queue_core.states import AttemptOutcome
from tests.factories import clock, make_lane, waiting_job

pytestmark = pytest.mark.django_db


def claim_next(lane: Lane, trail: Trail, limit: int = 1, *, when: float = 1) -> Batch:
    return batch.claim_next(lane.pk, limit, clock=clock(when), worker="w1", trail=trail)


def jobs_of(given: Batch) -> list[int]:
    return [claimed.token.job for claimed in given.claims]


def test_what_came_before_the_trail_waits_until_it_goes_back_to_the_head() -> None:
    lane, trail = make_lane(), Trail()
    first, second, third = (waiting_job(lane, submitted=-100 + place) for place in range(3))

    assert jobs_of(claim_next(lane, trail)) == [first.pk]
    newer_and_more_urgent = waiting_job(lane, submitted=-500)
    assert jobs_of(claim_next(lane, trail)) == [second.pk]

    trail.head_at -= batch.BACK_TO_THE_HEAD
    assert jobs_of(claim_next(lane, trail, 2)) == [newer_and_more_urgent.pk, third.pk]


def test_where_nothing_is_left_on_the_trail_the_head_is_looked_at() -> None:
    lane, trail = make_lane(), Trail()
    waiting_job(lane)
    claim_next(lane, trail)
    urgent = waiting_job(lane, submitted=-500)

    assert jobs_of(claim_next(lane, trail)) == [urgent.pk]


def test_the_cap_counts_all_that_runs_however_far_the_trail_went() -> None:
    lane, trail, other = make_lane(cap=4), Trail(), Trail()
    for _ in range(12):
        waiting_job(lane)

    given = [claim_next(lane, trail, 2), claim_next(lane, other, 1), claim_next(lane, trail, 5)]
    assert [len(one.claims) for one in given] == [2, 1, 1]
    assert claim_next(lane, trail, 5).refusal == "stage_full"

    for ended in (given[0].claims[0], given[2].claims[0]):
        contract.release(ended.token, outcome=AttemptOutcome.RELEASED, clock=clock(2))
    assert [len(claim_next(lane, one, 5, when=3).claims) for one in (trail, other)] == [2, 0]
    contract.release(given[0].claims[1].token, outcome=AttemptOutcome.RELEASED, clock=clock(4))
    assert [len(claim_next(lane, one, 5, when=5).claims) for one in (other, trail)] == [1, 0]
