"""Claims against claims: of one job, under a cap, against a row that is held for long."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction

from queue_core import batch, contract
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidClaim
from queue_core.models import Attempt, Item, Job, Lane
from queue_core.states import AttemptOutcome, ClaimOutcome, JobState
from tests.factories import (
    T0,
    at,
    clock,
    leased_job,
    make_connection,
    make_lane,
    make_run,
    new_ticket,
    waiting_job,
)
from tests.locking import holding, started, together, wait_until_blocked

pytestmark = pytest.mark.django_db(transaction=True)


def claim(job: Job, when: float, **terms: Any) -> contract.Claim:
    return contract.claim(job.pk, clock=clock(when), worker="w", **terms)


def running(lane: Lane) -> int:
    return Attempt.objects.filter(lane=lane, ended_at__isnull=True).count()


def test_the_second_of_two_claims_of_one_job_waits_and_is_told_that_it_is_held() -> None:
    job = waiting_job(make_lane())

    with holding(lambda: claim(job, 1)) as winner:
        loser = started("second-claim", lambda: claim(job, 2))
        wait_until_blocked(loser)

    assert (winner.outcome, loser.outcome().outcome) == (ClaimOutcome.CLAIMED, ClaimOutcome.HELD)
    job.refresh_from_db()
    assert (job.fence, job.attempts, Attempt.objects.count()) == (1, 1, 1)


def test_a_claim_that_waited_for_a_row_is_given_a_whole_lease_from_then() -> None:
    """LSE-02: the clock is read after the last lock, so that no lease is born expired."""
    lane = make_lane()
    lease = timedelta(milliseconds=200)

    def by_id(job: Job) -> object:
        return contract.claim(job.pk, clock=DATABASE_CLOCK, worker="w", lease=lease)

    def together_by_id(job: Job) -> object:
        return batch.claim_rows([job.pk], clock=DATABASE_CLOCK, worker="w", lease=lease)

    def the_lane(_job: Job) -> object:
        return contract.lock_lane(lane.pk)

    def the_job(job: Job) -> object:
        return contract.lock_job(job.pk)

    for verb, held in ((by_id, the_lane), (by_id, the_job), (together_by_id, the_lane)):
        job = contract.receive(new_ticket(lane, deadline=None), clock=DATABASE_CLOCK).job
        with holding(partial(held, job)):
            waiter = started("waiting-claim", partial(verb, job))
            wait_until_blocked(waiter)
            # Longer than the lease, by the server's clock and not by a sleep.
            freed = _later_than(DATABASE_CLOCK.now() + 2 * lease)
        waiter.outcome()

        job.refresh_from_db()
        assert job.lease_until is not None
        assert job.lease_until >= freed + lease


def _later_than(moment: Any) -> Any:
    while (now := DATABASE_CLOCK.now()) <= moment:
        pass
    return now


def test_a_batch_passes_over_the_row_that_a_claim_by_id_holds_and_waits_for_nobody_but_its_lane() -> None:
    lane = make_lane()
    held, free = waiting_job(lane), waiting_job(lane)

    with holding(lambda: Job.objects.select_for_update().get(pk=held.pk)):
        given = batch.claim_next(lane.pk, 10, clock=clock(1), worker="w")

    assert [c.token.job for c in given.claims] == [free.pk]


def test_the_sixteen_who_come_too_late_for_a_cap_of_four_get_nothing() -> None:
    """PGQ-03: twenty claimers released by a barrier, five rounds."""
    lane = make_lane(cap=4, max_attempts=1000)
    jobs = [waiting_job(lane, deadline=100_000) for _ in range(20)]

    for number in range(5):
        when = 1 + 1000 * number
        outcomes = [answer.outcome for answer in together([partial(claim, job, when) for job in jobs])]

        assert outcomes.count(ClaimOutcome.CLAIMED) == 4
        assert outcomes.count(ClaimOutcome.STAGE_FULL) == 16
        assert contract.running_leases([lane.pk], now=at(when)) == 4


def test_batches_released_together_share_a_cap_and_give_each_job_once() -> None:
    """PGQ-03: the same for the workers' way."""
    lane = make_lane(cap=10)
    for _ in range(40):
        waiting_job(lane)

    given = together([lambda: batch.claim_next(lane.pk, 3, clock=clock(1), worker="w")] * 8)

    jobs = [c.token.job for one in given for c in one.claims]
    assert len(jobs) == len(set(jobs)) == running(lane) == 10


def test_a_batch_that_waited_for_its_lane_is_given_what_is_left_of_the_cap_and_of_the_jobs() -> None:
    """PGQ-03: its statement began before the leases were given that it has to count, and picks none of them."""
    lane = make_lane(cap=4)
    for _ in range(9):
        waiting_job(lane)

    with holding(lambda: batch.claim_next(lane.pk, 3, clock=clock(1), worker="w1")) as winner:
        loser = started("second-batch", lambda: batch.claim_next(lane.pk, 3, clock=clock(1), worker="w2"))
        wait_until_blocked(loser)

    given = [claim.token.job for claim in (*winner.claims, *loser.outcome().claims)]
    assert len(given) == len(set(given)) == running(lane) == 4


UNSEEING: dict[str, Callable[[Lane, Job], object]] = {
    "by id": lambda _lane, job: claim(job, 1),
    "together": lambda lane, _job: batch.claim_next(lane.pk, 2, clock=clock(1), worker="w"),
    "expired": lambda lane, _job: batch.claim_expired(lane.pk, clock=clock(1), worker="w"),
}


@pytest.mark.parametrize("verb", UNSEEING)
def test_a_claim_in_a_transaction_that_does_not_see_the_others_is_refused(verb: str) -> None:
    """PGQ-03: under REPEATABLE READ a lane's lock is given, for its row is as it was, and its leases are not seen."""
    lane = make_lane(cap=1)
    given, free = (waiting_job(lane) for _ in range(2))

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT")
        started("other", lambda: claim(given, 1)).outcome()
        with pytest.raises(InvalidClaim, match="READ COMMITTED"):
            UNSEEING[verb](lane, free)

    assert running(lane) == 1


def test_a_claim_that_waited_takes_a_job_as_it_is_now() -> None:
    """Claimed and given back while it waited: the next fence, and the second attempt."""
    lane = make_lane()
    job = waiting_job(lane)

    def claim_and_release() -> None:
        [first] = batch.claim_next(lane.pk, 1, clock=clock(1), worker="w1").claims
        contract.release(first.token, outcome=AttemptOutcome.RELEASED, clock=clock(2))

    with holding(claim_and_release):
        second = started("second-claim", lambda: batch.claim_next(lane.pk, 1, clock=clock(3), worker="w2"))
        wait_until_blocked(second)

    [given] = second.outcome().claims
    assert (given.token.job, given.token.fence) == (job.pk, 2)
    assert list(Attempt.objects.order_by("fence").values_list("fence", "worker")) == [(1, "w1"), (2, "w2")]


def test_two_lanes_of_one_connection_do_not_pass_its_total_cap_together() -> None:
    shared = make_connection(total_cap=5)
    lanes = [make_lane(cap=50, connection=shared) for _ in range(4)]
    for lane in lanes:
        for _ in range(5):
            waiting_job(lane)

    together([lambda k=lane.pk: batch.claim_next(k, 5, clock=clock(1), worker="w") for lane in lanes])

    assert Attempt.objects.filter(ended_at__isnull=True).count() == 5


def test_a_claim_that_waits_behind_a_lowered_cap_gets_nothing() -> None:
    """PGQ-03: the cap changed from 5 to 2 in the middle."""
    lane = make_lane(cap=5)
    for _ in range(2):
        leased_job(lane, claimed=1)
    waiting_job(lane)

    with holding(lambda: _lower(lane, 2)):
        late = started("late-claim", lambda: batch.claim_next(lane.pk, 5, clock=clock(2), worker="w"))
        wait_until_blocked(late)

    assert late.outcome() == batch.Batch([], ClaimOutcome.STAGE_FULL)
    assert running(lane) == 2


def _lower(lane: Lane, cap: int) -> None:
    contract.lock_lane(lane.pk)
    Lane.objects.filter(pk=lane.pk).update(cap=cap)


def test_a_claim_that_waits_behind_a_hold_gets_nothing() -> None:
    lane = make_lane()
    job = waiting_job(lane)

    with holding(lambda: _hold(lane)):
        late = started("late-claim", lambda: claim(job, 2))
        wait_until_blocked(late)

    assert late.outcome().outcome == ClaimOutcome.ON_HOLD
    job.refresh_from_db()
    assert (job.state, job.fence) == (JobState.WAITING, 0)


def _hold(lane: Lane) -> None:
    contract.lock_lane(lane.pk)
    Lane.objects.filter(pk=lane.pk).update(cap=None, run=None)


def test_a_claim_that_waits_behind_a_raise_is_granted_under_the_new_run() -> None:
    lane = make_lane(cap=1)
    job = waiting_job(lane)
    old = lane.run
    assert old is not None
    box = []

    def raise_() -> None:
        contract.lock_lane(lane.pk)
        type(old).objects.filter(pk=old.pk).update(ended_at=T0, ended_as="raised")
        box.append(make_run(lane, number=3, cap=9))
        Lane.objects.filter(pk=lane.pk).update(run=box[0], cap=9)

    with holding(raise_):
        late = started("late-claim", lambda: claim(job, 2))
        wait_until_blocked(late)

    assert late.outcome().outcome == ClaimOutcome.CLAIMED
    assert Attempt.objects.get().run == box[0]


def test_a_sweeper_that_waited_hits_nothing_that_was_taken_over_or_done_meanwhile() -> None:
    """PGQ-01: a list of expired leases that was read before a takeover."""
    lane = make_lane()
    job, _token = leased_job(lane, claimed=1)

    with holding(lambda: claim(job, 101)) as takeover:
        passed_over = contract.sweep(clock=clock(101))
    contract.sweep(clock=clock(110))
    leased = Job.objects.values("state", "fence", "attempts").get()
    contract.complete(takeover.token, contract.Ending("APPROVED"), clock=clock(111))
    contract.sweep(clock=clock(5000))

    assert passed_over == contract.Swept()
    assert leased == {"state": "LEASED", "fence": 2, "attempts": 2}
    assert Job.objects.get().state == JobState.DONE
    assert list(Attempt.objects.order_by("fence").values_list("outcome", flat=True)) == ["lease_expired", "verdict"]


def test_two_sweeps_at_once_kill_each_job_once() -> None:
    lane = make_lane()
    for _ in range(30):
        waiting_job(lane, deadline=50)

    swept = together([lambda: contract.sweep(clock=clock(100))] * 4)

    assert sum(one.died_deadline for one in swept) == 30
    assert Item.objects.count() == 30


def test_a_requeue_that_waits_behind_nothing_leaves_a_claim_one_clean_try(olga: Any) -> None:
    job = waiting_job(make_lane(), deadline=10)
    contract.sweep(clock=clock(10))

    def requeue() -> Any:
        return contract.requeue(job.pk, deadline=at(500), clock=clock(20), person=olga, reason="back")

    with holding(requeue) as done:
        late = started("late-claim", lambda: claim(job, 21))
        wait_until_blocked(late)

    assert (done, late.outcome().outcome) == ("done", ClaimOutcome.CLAIMED)
    job.refresh_from_db()
    assert (job.state, job.fence, job.attempts, job.requeues) == (JobState.LEASED, 1, 1, 1)


def test_the_second_of_two_requeues_changes_nothing(olga: Any) -> None:
    job = waiting_job(make_lane(), deadline=10)
    contract.sweep(clock=clock(10))

    def requeue(deadline: float) -> Any:
        return contract.requeue(job.pk, deadline=at(deadline), clock=clock(20), person=olga, reason="back")

    with holding(lambda: requeue(500)):
        second = started("second-requeue", lambda: requeue(900))
        wait_until_blocked(second)

    assert second.outcome() == "not_allowed_in_state"
    job.refresh_from_db()
    assert (job.deadline, job.requeues) == (at(500), 1)
