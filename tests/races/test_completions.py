"""Completions that come while somebody else has the row: who loses is in the name."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from queue_core import batch, contract
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract import Ending
from queue_core.models import Attempt, Decision, Item, Job, LateAnswer, Message, StageRun
from queue_core.states import AttemptOutcome, CompleteOutcome, JobState, LeaseToken, MessageState
from tests.factories import at, claim, clock, leased_job, make_lane, new_ticket, waiting_job
from tests.locking import holding, started, together, wait_until_blocked

pytestmark = pytest.mark.django_db(transaction=True)


def single(token: LeaseToken, when: float, result: str = "APPROVED") -> Any:
    return contract.complete(token, Ending(result), clock=clock(when))


def batched(token: LeaseToken, when: float, result: str = "APPROVED") -> Any:
    return batch.complete_many([(token, Ending(result))], clock=clock(when))[0]


@pytest.fixture(params=[single, batched], ids=["single", "batch"])
def complete(request: pytest.FixtureRequest) -> Any:
    """Both forms of the verb: each race is lost in the same way."""
    return request.param


def committed() -> int:
    return Attempt.objects.filter(is_committed=True).count()


def test_a_worker_that_waits_for_its_row_until_its_lease_is_over_commits_nothing(complete: Any) -> None:
    lane = make_lane(lease=timedelta(milliseconds=300))
    job = contract.receive(new_ticket(lane, deadline=None), clock=DATABASE_CLOCK).job
    answer = contract.claim(job.pk, clock=DATABASE_CLOCK, worker="w")
    assert answer.token is not None
    token, over = answer.token, answer.lease_until

    def in_real_time() -> Any:
        if complete is single:
            return contract.complete(token, Ending("APPROVED"), clock=DATABASE_CLOCK)
        return batch.complete_many([(token, Ending("APPROVED"))], clock=DATABASE_CLOCK)[0]

    with holding(lambda: contract.lock_job(job.pk)):
        late = started("late-worker", in_real_time)
        wait_until_blocked(late)
        while DATABASE_CLOCK.now() < over:  # type: ignore[operator]
            pass

    assert late.outcome() == CompleteOutcome.STALE
    job.refresh_from_db()
    assert (job.state, job.result, committed()) == (JobState.LEASED, None, 0)
    assert LateAnswer.objects.get().why == "lease_over"


def test_a_stale_worker_that_waits_behind_the_takeover_commits_nothing(complete: Any) -> None:
    job, old = leased_job(make_lane(), claimed=1)

    with holding(lambda: contract.claim(job.pk, clock=clock(200), worker="w2")) as takeover:
        late = started("late-worker", lambda: complete(old, 201))
        wait_until_blocked(late)

    assert late.outcome() == CompleteOutcome.STALE
    assert complete(takeover.token, 202, "MANUAL") == CompleteOutcome.COMMITTED
    job.refresh_from_db()
    assert (job.result, job.fence, committed()) == ("MANUAL", 2, 1)


def test_the_second_of_two_equal_completions_is_already_done(complete: Any) -> None:
    _job, token = leased_job(make_lane(), claimed=1)

    with holding(lambda: complete(token, 2)):
        second = started("second-completion", lambda: complete(token, 3))
        wait_until_blocked(second)

    assert second.outcome() == CompleteOutcome.ALREADY_DONE
    assert Decision.objects.count() == Message.objects.count() == 1


def test_of_twenty_completions_with_two_results_one_commits(complete: Any) -> None:
    job, token = leased_job(make_lane(), claimed=1)

    outcomes = together([lambda r=("APPROVED", "MANUAL")[n % 2]: complete(token, 2, r) for n in range(20)])

    assert outcomes.count(CompleteOutcome.COMMITTED) == 1
    assert (outcomes.count(CompleteOutcome.ALREADY_DONE), outcomes.count(CompleteOutcome.STALE)) == (9, 10)
    job.refresh_from_db()
    assert Decision.objects.count() == (job.result == "APPROVED")
    assert Item.objects.count() == (job.result == "MANUAL")


@pytest.mark.parametrize("verb", ["supersede", "withdraw", "pull", "sweep", "refuse_running"])
def test_a_worker_that_waits_behind_the_end_of_its_lease_commits_nothing(complete: Any, verb: str, olga: Any) -> None:
    lane = make_lane()
    ticket = new_ticket(lane, deadline=300)
    job = contract.receive(ticket, clock=clock(0)).job
    token = contract.claim(job.pk, clock=clock(1), worker="w").token
    assert token is not None
    verbs = {
        "supersede": lambda: contract.supersede(
            new_ticket(lane, external_id=ticket.external_id, revision="v2"), replaces="v1", clock=clock(50)
        ),
        "withdraw": lambda: contract.withdraw(source="test", external_id=ticket.external_id, clock=clock(50)),
        "pull": lambda: contract.pull(job.pk, person=olga, clock=clock(150), reason="mine"),
        "sweep": lambda: contract.sweep(clock=clock(300)),
        "refuse_running": lambda: contract.refuse_running(lane.pk, clock=clock(50)),
    }

    with holding(verbs[verb]):
        late = started("late-worker", lambda: complete(token, 60))
        wait_until_blocked(late)

    assert late.outcome() == CompleteOutcome.STALE
    job.refresh_from_db()
    assert (job.state, job.result) == (JobState.WAITING if verb == "refuse_running" else JobState.DEAD, None)
    assert not Decision.objects.exists()
    assert committed() == 0


def test_a_supersede_that_waits_behind_a_completion_leaves_its_decision_with_the_old_revision(complete: Any) -> None:
    lane = make_lane()
    ticket = new_ticket(lane)
    job = contract.receive(ticket, clock=clock(0)).job
    token = contract.claim(job.pk, clock=clock(1), worker="w").token
    newer = new_ticket(lane, external_id=ticket.external_id, revision="v2")

    with holding(lambda: complete(token, 2)):
        later = started("supersede", lambda: contract.supersede(newer, replaces="v1", clock=clock(3)))
        wait_until_blocked(later)

    assert later.outcome().outcome == "stored"
    job.refresh_from_db()
    assert (job.state, Decision.objects.get().revision) == (JobState.DONE, "v1")


def test_a_pull_that_waits_behind_a_completion_finds_the_job_done(complete: Any, olga: Any) -> None:
    job, token = leased_job(make_lane(), claimed=1)

    with holding(lambda: complete(token, 2)):
        late = started("pull", lambda: contract.pull(job.pk, person=olga, clock=clock(200), reason="mine"))
        wait_until_blocked(late)

    assert late.outcome()[0] == "not_allowed_in_state"
    assert not Item.objects.exists()


def test_a_decision_that_commits_while_its_run_is_accepted_is_not_kept_back_for_ever(complete: Any) -> None:
    lane = make_lane(run={"keeps_back": True})
    _job, token = leased_job(lane, claimed=1)

    def accept() -> None:
        StageRun.objects.filter(pk=lane.run_id).update(accepted_at=at(5))
        Message.objects.filter(decision__run=lane.run_id, state=MessageState.KEPT_BACK).update(state=MessageState.READY)

    with holding(lambda: complete(token, 2)):
        acceptance = started("acceptance", lambda: _atomically(accept))
        wait_until_blocked(acceptance)
    acceptance.outcome()

    assert Message.objects.get().state == MessageState.READY


def test_a_decision_that_waits_behind_the_acceptance_of_its_run_is_ready(complete: Any) -> None:
    lane = make_lane(run={"keeps_back": True})
    _job, token = leased_job(lane, claimed=1)

    with holding(lambda: StageRun.objects.filter(pk=lane.run_id).update(accepted_at=at(5))):
        late = started("late-completion", lambda: complete(token, 2))
        wait_until_blocked(late)

    assert late.outcome() == CompleteOutcome.COMMITTED
    assert Message.objects.get().state == MessageState.READY


def _atomically(work: Any) -> None:
    with transaction.atomic():
        work()


def test_completions_in_opposite_order_releases_and_sweeps_never_wait_for_each_other_in_a_ring() -> None:
    """PGQ-22: many hands on the same rows in different orders, five rounds."""
    lane = make_lane(cap=500, max_attempts=1000)

    for number in range(5):
        jobs = [waiting_job(lane, deadline=1_000_000) for _ in range(12)]
        together(_hands_on(lane.pk, jobs, now=1000 * number + 1))

    done = Job.objects.filter(state=JobState.DONE)
    assert Decision.objects.count() == done.count() == committed()
    assert all(job.ticket.seq == Message.objects.filter(ticket=job.ticket).count() for job in done)


def _hands_on(lane_id: int, jobs: list[Job], *, now: float) -> list[Any]:
    tokens = [claim(job, when=now) for job in jobs]
    endings = [(token, Ending("APPROVED")) for token in tokens]
    later = clock(now + 1)
    return [
        lambda: batch.complete_many(endings, clock=later),
        lambda: batch.complete_many(endings[::-1], clock=later),
        lambda: contract.refuse_running(lane_id, clock=later),
        lambda: contract.sweep(clock=later),
        lambda: batch.claim_next(lane_id, 3, clock=later, worker="w"),
        lambda: contract.give_back_attempts([token.attempt for token in tokens]),
        *[lambda t=token: contract.release(t, outcome=AttemptOutcome.TIMEOUT, clock=later) for token in tokens[::3]],
    ]


def test_a_session_that_dies_before_its_commit_leaves_a_token_that_still_commits(complete: Any) -> None:
    """PGQ-15: the worker's session is terminated after the answer; it hands the same token in again."""
    _job, token = leased_job(make_lane(), claimed=1)

    def die() -> None:
        with transaction.atomic():
            complete(token, 2)
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(Exception, match=r"terminat|closed"):
        started("dying-worker", die).outcome()

    assert complete(token, 3) == CompleteOutcome.COMMITTED
    assert Decision.objects.count() == Message.objects.count() == 1
