from datetime import timedelta

import pytest

from queue_core import contract
from queue_core.errors import InvalidClaim
from queue_core.models import Attempt, Job
from queue_core.states import LeaseOutcome
from tests.factories import at, claim, clock, leased_job, make_connection, make_lane

pytestmark = pytest.mark.django_db


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def ends(job: Job) -> set[object]:
    """The end of a lease as job and attempt say it: one instant, since both move together."""
    job.refresh_from_db()
    return {job.lease_until, Attempt.objects.filter(job=job).latest("fence").lease_until}


def test_renew_moves_the_end_of_job_and_attempt() -> None:
    job, token = leased_job(make_lane(max_hold=seconds(10_000)), claimed=1)

    assert contract.renew(token, clock=clock(50), lease=seconds(200)) == LeaseOutcome.RENEWED

    assert ends(job) == {at(250)}
    assert (job.attempts, job.fence) == (1, 1)


def test_renew_without_a_lease_takes_the_lanes() -> None:
    job, token = leased_job(make_lane(lease=seconds(100), max_hold=seconds(10_000)), claimed=1)

    contract.renew(token, clock=clock(50))

    assert ends(job) == {at(150)}


def test_renew_never_goes_past_the_deadline() -> None:
    job, token = leased_job(make_lane(max_hold=seconds(10_000)), claimed=1, deadline=300)

    contract.renew(token, clock=clock(100), lease=seconds(5000))

    assert ends(job) == {at(300)}


def test_renew_never_goes_past_the_longest_hold_since_the_claim() -> None:
    job, token = leased_job(make_lane(lease=seconds(10), max_hold=seconds(25)), claimed=100)

    for when in (105, 114, 120):
        contract.renew(token, clock=clock(when), lease=seconds(10))

    assert ends(job) == {at(125)}


def test_the_longest_hold_is_three_calls_where_the_lane_says_none() -> None:
    connection = make_connection(call_time_limit=seconds(20))
    job, token = leased_job(make_lane(lease=seconds(10), connection=connection), claimed=0)

    contract.renew(token, clock=clock(5), lease=seconds(500))

    assert ends(job) == {at(60)}


def test_renew_never_shortens() -> None:
    job, token = leased_job(make_lane(lease=seconds(100)), claimed=1)

    assert contract.renew(token, clock=clock(2), lease=seconds(1)) == LeaseOutcome.RENEWED

    assert ends(job) == {at(101)}


@pytest.mark.parametrize(("when", "outcome"), [(100.999999, LeaseOutcome.RENEWED), (101, LeaseOutcome.STALE)])
def test_renew_counts_until_the_instant_before_the_lease_ends(when: float, outcome: LeaseOutcome) -> None:
    job, token = leased_job(make_lane(max_hold=seconds(10_000)), claimed=1)

    assert contract.renew(token, clock=clock(when)) == outcome

    assert (ends(job) == {at(101)}) == (outcome == LeaseOutcome.STALE)


def test_an_old_token_does_not_renew_the_lease_of_a_takeover() -> None:
    job, old = leased_job(make_lane(max_hold=seconds(10_000)), claimed=1)
    claim(job, when=200)

    assert contract.renew(old, clock=clock(250)) == LeaseOutcome.STALE

    assert ends(job) == {at(300)}


@pytest.mark.parametrize("lease", [seconds(0), seconds(-5)])
def test_a_lease_that_is_none_is_refused(lease: timedelta) -> None:
    job, token = leased_job(make_lane(), claimed=1)

    with pytest.raises(InvalidClaim):
        contract.renew(token, clock=clock(2), lease=lease)

    assert ends(job) == {at(101)}


def test_a_renewed_lease_keeps_its_seat_and_its_answer_commits() -> None:
    lane = make_lane(cap=1, max_hold=seconds(10_000))
    _job, token = leased_job(lane, claimed=1)
    contract.renew(token, clock=clock(100), lease=seconds(100))

    assert contract.running_leases([lane.pk], now=at(150)) == 1
    assert contract.complete(token, contract.Ending("APPROVED"), clock=clock(150)) == "committed"
