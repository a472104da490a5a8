"""Renewals and releases against takeovers and the cap: a lease that is over gives nothing back and frees nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from queue_core import batch, contract
from queue_core.contract import Ending
from queue_core.models import Attempt, Job, Lane
from queue_core.states import AttemptOutcome, ClaimOutcome, CompleteOutcome, LeaseOutcome
from tests.factories import at, claim, clock, leased_job, make_connection, make_lane, waiting_job
from tests.locking import holding, started, together, wait_until_blocked

pytestmark = pytest.mark.django_db(transaction=True)

LONG = timedelta(seconds=500)


def takeover(job: Job, when: float) -> Any:
    return contract.claim(job.pk, clock=clock(when), worker="w2")


@pytest.mark.parametrize("verb", ["renew", "release"])
def test_a_holder_that_waits_behind_the_takeover_of_its_job_changes_nothing(verb: str) -> None:
    job, old = leased_job(make_lane(max_hold=LONG), claimed=1)
    verbs: dict[str, Callable[[], Any]] = {
        "renew": lambda: contract.renew(old, clock=clock(100), lease=LONG),
        "release": lambda: contract.release(old, outcome=AttemptOutcome.UNAVAILABLE, clock=clock(100)),
    }

    with holding(lambda: takeover(job, 102)) as second:
        late = started("old-holder", verbs[verb])
        wait_until_blocked(late)

    assert (second.outcome, late.outcome()) == (ClaimOutcome.CLAIMED, LeaseOutcome.STALE)
    job.refresh_from_db()
    assert (job.state, job.fence, job.attempts, job.lease_until) == ("LEASED", 2, 2, at(202))
    assert contract.complete(second.token, Ending("APPROVED"), clock=clock(103)) == CompleteOutcome.COMMITTED


def test_a_takeover_that_waits_behind_a_renewal_finds_the_job_held() -> None:
    job, token = leased_job(make_lane(max_hold=LONG), claimed=1)

    with holding(lambda: contract.renew(token, clock=clock(100), lease=LONG)) as renewed:
        late = started("takeover", lambda: takeover(job, 102))
        wait_until_blocked(late)

    assert (renewed, late.outcome().outcome) == (LeaseOutcome.RENEWED, ClaimOutcome.HELD)
    assert Attempt.objects.count() == 1


def next_in_lane(lane: Lane) -> Callable[[], Any]:
    return lambda: batch.claim_next(lane.pk, 5, clock=clock(102), worker="w2")


def test_a_claim_that_comes_while_a_renewal_commits_finds_the_stage_full() -> None:
    """PGQ-02: the old end is over, the new one not committed. Counted without waiting, the cap would be passed."""
    lane = make_lane(cap=1, max_hold=LONG)
    _job, token = leased_job(lane, claimed=1)
    waiting_job(lane)

    with holding(lambda: contract.renew(token, clock=clock(100), lease=LONG)):
        late = started("late-claim", next_in_lane(lane))
        wait_until_blocked(late)

    assert late.outcome() == batch.Batch([], ClaimOutcome.STAGE_FULL)
    assert contract.running_leases([lane.pk], now=at(102)) == 1


def test_a_claim_of_another_lane_that_comes_while_a_renewal_commits_finds_the_connection_full() -> None:
    shared = make_connection(total_cap=1)
    lane, other = make_lane(connection=shared, max_hold=LONG), make_lane(connection=shared)
    _job, token = leased_job(lane, claimed=1)
    waiting_job(other)

    with holding(lambda: contract.renew(token, clock=clock(100), lease=LONG)):
        late = started("late-claim", next_in_lane(other))
        wait_until_blocked(late)

    assert late.outcome() == batch.Batch([], ClaimOutcome.STAGE_FULL)


def test_a_renewal_that_waits_behind_the_claim_that_has_its_seat_is_stale() -> None:
    """The other way round: the seat was given on, since the lease was over; its holder cannot have it back."""
    lane = make_lane(cap=1, max_hold=LONG)
    _job, token = leased_job(lane, claimed=1)
    waiting_job(lane)

    with holding(next_in_lane(lane)) as given:
        late = started("late-renewal", lambda: contract.renew(token, clock=clock(103), lease=LONG))
        wait_until_blocked(late)

    assert (len(given.claims), late.outcome()) == (1, LeaseOutcome.STALE)
    assert contract.running_leases([lane.pk], now=at(103)) == 1


def test_a_strangers_fence_frees_no_seat_however_it_reports() -> None:
    """PGQ-02: its seat went at its lease's end, and stands under another fence; released again it would be two."""
    lane = make_lane(cap=1)
    job, stranger = leased_job(lane, claimed=1)
    waiting_job(lane)
    held = claim(job, when=102, worker="w2")

    reports = [
        lambda: contract.release(stranger, outcome=AttemptOutcome.UNAVAILABLE, clock=clock(103)),
        lambda: contract.complete(stranger, Ending("MANUAL"), clock=clock(103)),
        lambda: batch.complete_many([(stranger, Ending("APPROVED"))], clock=clock(103))[0],
        lambda: contract.renew(stranger, clock=clock(103)),
    ]
    outcomes = together([*reports, lambda: batch.claim_next(lane.pk, 5, clock=clock(103), worker="w3").refusal])

    assert [str(outcome) for outcome in outcomes] == ["stale", "stale", "stale", "stale", "stage_full"]
    assert contract.running_leases([lane.pk], now=at(103)) == 1
    assert contract.complete(held, Ending("APPROVED"), clock=clock(104)) == CompleteOutcome.COMMITTED


def test_of_ten_takeovers_at_once_each_expired_lease_is_given_once() -> None:
    lane = make_lane(cap=50)
    jobs = [leased_job(lane, claimed=1)[0] for _ in range(4)]

    given = together([lambda: batch.claim_expired(lane.pk, clock=clock(102), worker="w")] * 10)

    taken = [one.token.job for batch_ in given for one in batch_.claims]
    assert len(taken) == len(set(taken)) == 4
    assert set(taken) == {job.pk for job in jobs}
    assert set(Job.objects.values_list("fence", flat=True)) == {2}
