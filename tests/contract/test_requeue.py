from datetime import timedelta
from typing import Any

import pytest

from queue_core import contract
from queue_core.errors import InvalidRequest
from queue_core.models import Attempt, AuditEntry, Evidence, Item, Job
from queue_core.states import ActOutcome, AttemptOutcome, JobState
from tests.factories import at, claim, clock, dead_job, done_job, leased_job, make_lane, waiting_job

pytestmark = pytest.mark.django_db


def requeue(job: Job | int, person: Any, *, when: float, deadline: float, **terms: Any) -> ActOutcome:
    job_id = job if isinstance(job, int) else job.pk
    return contract.requeue(
        job_id, deadline=at(deadline), clock=clock(when), person=person, reason="the model is back", **terms
    )


def test_requeue_gives_a_dead_job_a_new_deadline_and_a_new_budget(olga: Any) -> None:
    lane = make_lane(max_attempts=1, urgency_weight=0.5, severity_bonus=timedelta(0))
    job, token = leased_job(lane, claimed=1)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(2))

    assert requeue(job, olga, when=100, deadline=300, max_attempts=4) == ActOutcome.DONE

    job.refresh_from_db()
    assert (job.state, job.dead_reason, job.finished_at, job.available_at) == (JobState.WAITING, None, None, None)
    assert (job.attempts, job.max_attempts, job.fence, job.backoff_steps, job.requeues) == (0, 4, 1, 0, 1)
    assert (job.queued_at, job.added_at, job.deadline, job.urgency) == (at(100), at(0), at(300), at(200))
    assert Item.objects.get().closed_as == "requeued"
    assert Attempt.objects.count() == Evidence.objects.count() == 1


def test_requeue_is_one_audited_act(olga: Any) -> None:
    job = dead_job(make_lane())

    requeue(job, olga, when=100, deadline=300)

    entry = AuditEntry.objects.get()
    assert (entry.act, entry.actor, entry.subject_id, entry.reason) == (
        "job.requeued",
        olga,
        str(job.pk),
        "the model is back",
    )


def test_the_fence_grows_on_after_a_requeue_and_old_tokens_stay_stale(olga: Any) -> None:
    """RET-03: the fence never starts again at 1."""
    job, old = leased_job(make_lane(max_attempts=1), claimed=1, deadline=5000)
    contract.sweep(clock=clock(500))
    requeue(job, olga, when=600, deadline=900)

    new = claim(job, when=601)

    assert new.fence == 2
    assert contract.complete(old, contract.Ending("APPROVED"), clock=clock(602)) == "stale"
    assert contract.complete(new, contract.Ending("APPROVED"), clock=clock(602)) == "committed"


@pytest.mark.parametrize("deadline", [99, 100])
def test_requeue_with_a_deadline_that_is_not_after_now_is_refused(olga: Any, deadline: float) -> None:
    """RET-03: never with an expiry in the past."""
    job = dead_job(make_lane())

    with pytest.raises(InvalidRequest):
        requeue(job, olga, when=100, deadline=deadline)

    job.refresh_from_db()
    assert job.state == JobState.DEAD
    assert Item.objects.get().closed_at is None


@pytest.mark.parametrize("budget", [0, -1, 1001, 1.5, True])
def test_requeue_with_a_budget_that_is_none_is_refused(olga: Any, budget: Any) -> None:
    job = dead_job(make_lane())

    with pytest.raises(InvalidRequest):
        requeue(job, olga, when=100, deadline=300, max_attempts=budget)


def test_five_requeues_by_hand_are_five_acts_and_each_budget_ends(olga: Any) -> None:
    """RET-02: nothing requeues by itself, and poison is DEAD again after each."""
    job, token = leased_job(make_lane(max_attempts=1), claimed=1, deadline=100_000)
    contract.release(token, outcome=AttemptOutcome.INVALID_ANSWER, clock=clock(2))
    for n in range(1, 6):
        requeue(job, olga, when=100 * n, deadline=100_000)
        contract.release(claim(job, when=100 * n + 1), outcome=AttemptOutcome.INVALID_ANSWER, clock=clock(100 * n + 2))
        job.refresh_from_db()
        assert (job.state, job.dead_reason) == (JobState.DEAD, "attempts")

    assert (job.requeues, job.fence) == (5, 6)
    assert AuditEntry.objects.count() == 5
    assert Item.objects.filter(closed_at__isnull=True).count() == 1


@pytest.mark.parametrize("make", [waiting_job, done_job, lambda lane: leased_job(lane)[0]])
def test_only_a_dead_job_is_requeued(olga: Any, make: Any) -> None:
    job = make(make_lane())
    before = Job.objects.filter(pk=job.pk).values().get()

    assert requeue(job, olga, when=50, deadline=300) == ActOutcome.NOT_ALLOWED_IN_STATE

    assert Job.objects.filter(pk=job.pk).values().get() == before
    assert not AuditEntry.objects.exists()


def test_no_way_leads_back_from_withdrawn(olga: Any) -> None:
    job = waiting_job(make_lane())
    contract.withdraw(source="test", external_id=job.ticket.external_id, clock=clock(1))

    assert requeue(job, olga, when=50, deadline=300) == ActOutcome.NOT_ALLOWED_IN_STATE


def test_no_way_leads_back_from_pulled(olga: Any) -> None:
    job = waiting_job(make_lane())
    contract.pull(job.pk, person=olga, clock=clock(1), reason="mine")

    assert requeue(job, olga, when=50, deadline=300) == ActOutcome.NOT_ALLOWED_IN_STATE


def test_a_death_of_a_ticket_that_was_withdrawn_later_stays(olga: Any) -> None:
    job = dead_job(make_lane())
    contract.withdraw(source="test", external_id=job.ticket.external_id, clock=clock(20))

    assert requeue(job, olga, when=50, deadline=300) == ActOutcome.NOT_ALLOWED_IN_STATE


def test_a_job_that_is_not_there_is_missing(olga: Any) -> None:
    assert requeue(10**9, olga, when=0, deadline=10) == ActOutcome.MISSING
