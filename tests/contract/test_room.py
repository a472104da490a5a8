from datetime import timedelta

import pytest
from django.db import transaction

from queue_core import batch, contract
from queue_core.contract import Room
from queue_core.models import Lane
from queue_core.states import AttemptOutcome, ClaimOutcome
from tests.factories import at, claim, clock, leased_job, make_connection, make_lane, waiting_job

pytestmark = pytest.mark.django_db


def room(lane: Lane, when: float) -> Room:
    with transaction.atomic():
        return contract.measure_room(contract.lock_lane(lane.pk), now=at(when))


def test_a_lane_has_room_for_its_cap_less_its_running_leases() -> None:
    lane = make_lane(cap=3)
    leased_job(lane, claimed=1)

    assert room(lane, 2) == Room(2)


def test_a_full_stage_gives_nothing_until_a_lease_ends() -> None:
    """PGQ-02: running leases are counted from rows."""
    lane = make_lane(cap=1)
    _job, token = leased_job(lane, claimed=1)

    assert room(lane, 100.999999) == Room(0, ClaimOutcome.STAGE_FULL)
    assert room(lane, 101) == Room(1)
    contract.release(token, outcome=AttemptOutcome.RELEASED, clock=clock(50))
    assert room(lane, 51) == Room(1)


def test_a_late_holder_frees_no_second_seat() -> None:
    """PGQ-02: the answer of a holder whose lease ran out changes nothing in the count."""
    lane = make_lane(cap=1)
    _first, late = leased_job(lane, claimed=1)
    leased_job(lane, claimed=200)

    contract.complete(late, contract.Ending("APPROVED"), clock=clock(201))

    assert room(lane, 202) == Room(0, ClaimOutcome.STAGE_FULL)


def test_a_lowered_cap_gives_nothing_while_more_runs_than_it_allows() -> None:
    lane = make_lane(cap=5)
    for _ in range(4):
        leased_job(lane, claimed=1)
    lane.cap = 2
    lane.save()

    assert room(lane, 2) == Room(0, ClaimOutcome.STAGE_FULL)


def test_a_lane_on_hold_gives_nothing() -> None:
    assert room(make_lane(cap=None), 0) == Room(0, ClaimOutcome.ON_HOLD)


@pytest.mark.parametrize(("when", "expected"), [(30, Room(9)), (30.000001, Room(0, ClaimOutcome.NOT_JUDGED))])
def test_guardrails_judged_longer_ago_than_30_seconds_stop_the_flow(when: float, expected: Room) -> None:
    lane = make_lane(cap=9)
    lane.judged_at = at(0)
    lane.save()

    assert room(lane, when) == expected


def test_a_lane_that_was_never_judged_gives_nothing() -> None:
    lane = make_lane()
    lane.judged_at = None
    lane.save()

    assert room(lane, 0).refusal == ClaimOutcome.NOT_JUDGED


@pytest.mark.parametrize(("when", "expected"), [(49.999999, Room(0, ClaimOutcome.RETRY_AFTER)), (50, Room(9))])
def test_nothing_is_claimed_before_the_time_that_the_model_asked_for(when: float, expected: Room) -> None:
    lane = make_lane(cap=9)
    lane.claims_not_before = at(50)
    lane.save()

    assert room(lane, when) == expected


def test_a_rate_counts_the_claims_of_a_sliding_minute_whatever_became_of_them() -> None:
    lane = make_lane(cap=10, run={"rate": 3})
    for when in (0, 10, 20):
        _job, token = leased_job(lane, claimed=when)
        contract.release(token, outcome=AttemptOutcome.RELEASED, clock=clock(when + 1))

    assert room(lane, 59.999999) == Room(0, ClaimOutcome.RATE_SPENT)
    assert room(lane, 60) == Room(1)
    assert room(lane, 70) == Room(2)
    assert room(lane, 80) == Room(3)


def test_a_raised_fence_is_no_claim_of_the_rate() -> None:
    lane = make_lane(cap=10, run={"rate": 2})
    leased_job(lane, claimed=0)
    contract.refuse_running(lane.pk, clock=clock(1))

    assert room(lane, 2) == Room(1)


def test_a_connections_total_cap_counts_the_leases_of_all_its_lanes() -> None:
    shared = make_connection(total_cap=3)
    one, two = (make_lane(cap=10, connection=shared) for _ in range(2))
    leased_job(one, claimed=1)
    leased_job(two, claimed=1)

    assert room(one, 2) == room(two, 2) == Room(1)
    leased_job(two, claimed=2)
    assert room(one, 3) == Room(0, ClaimOutcome.STAGE_FULL)


def test_calls_of_a_lane_that_moved_to_another_connection_still_fill_the_old_one() -> None:
    old, new = make_connection(total_cap=1), make_connection(total_cap=1)
    moving, staying = make_lane(connection=old), make_lane(connection=old)
    leased_job(moving, claimed=1)
    moving.connection = new
    moving.save()

    assert room(staying, 2) == Room(0, ClaimOutcome.STAGE_FULL)
    assert room(moving, 2) == Room(1)


def test_a_batch_takes_no_more_than_the_room() -> None:
    lane = make_lane(cap=3, run={"rate": 2})
    for _ in range(5):
        waiting_job(lane)

    first = batch.claim_next(lane.pk, 5, clock=clock(1), worker="w1")
    second = batch.claim_next(lane.pk, 5, clock=clock(2), worker="w1")

    assert len(first.claims) == 2
    assert (second.claims, second.refusal) == ([], ClaimOutcome.RATE_SPENT)


def test_a_renewed_lease_fills_its_seat_as_long_as_it_runs() -> None:
    lane = make_lane(cap=1, max_hold=timedelta(hours=1))
    job = waiting_job(lane)
    token = claim(job, when=1)
    contract.renew(token, clock=clock(50), lease=timedelta(seconds=200))

    assert room(lane, 249.999999).refusal == ClaimOutcome.STAGE_FULL
    assert room(lane, 250) == Room(1)
