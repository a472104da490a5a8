from dataclasses import replace
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_core import contract
from queue_core.clock import FixedClock
from queue_core.contract import Ending
from queue_core.errors import InvalidCompletion, UnknownResult
from queue_core.models import Attempt, Decision, Item, Job, LateAnswer, Message
from queue_core.states import AttemptOutcome, CompleteOutcome, JobState, LeaseToken, MessageState
from tests.factories import at, claim, clock, leased_job, make_ground, make_lane

pytestmark = pytest.mark.django_db

REJECTED = Ending("REJECTED", reason_code="insult")


def state_of(job: Job) -> tuple[Any, ...]:
    """Everything that a refused completion must not touch."""
    return (
        Job.objects.filter(pk=job.pk).values().get(),
        list(Attempt.objects.filter(job=job).order_by("pk").values()),
        Decision.objects.count(),
        Item.objects.count(),
        Message.objects.count(),
    )


def complete(token: LeaseToken, ending: Ending | str, when: float) -> CompleteOutcome:
    return contract.complete(token, Ending(ending) if isinstance(ending, str) else ending, clock=clock(when))


def test_complete_writes_job_attempt_decision_and_message_together() -> None:
    make_ground("insult")
    lane = make_lane()
    job, token = leased_job(lane, claimed=1)
    ending = replace(
        REJECTED,
        scores={"offensive": 0.9},
        model="m",
        request_id="r",
        usage={"tokens": 3},
        latency=timedelta(seconds=2),
    )

    assert complete(token, ending, 5) == CompleteOutcome.COMMITTED

    job.refresh_from_db()
    attempt, decision, message = Attempt.objects.get(), Decision.objects.get(), Message.objects.get()
    assert (job.state, job.result, job.finished_at, job.lease_until) == (JobState.DONE, "REJECTED", at(5), at(101))
    assert (attempt.ended_at, attempt.outcome, attempt.is_committed) == (at(5), AttemptOutcome.VERDICT, True)
    assert (attempt.scores, attempt.model, attempt.usage, attempt.latency) == (
        {"offensive": 0.9},
        "m",
        {"tokens": 3},
        timedelta(seconds=2),
    )
    assert (decision.verdict, decision.attempt, decision.why, decision.decided_at) == (
        "REJECTED",
        attempt,
        "first",
        at(5),
    )
    assert (decision.policy, decision.run) == (lane.policy, lane.run)
    assert decision.reason_code is not None
    assert decision.reason_code.code == "insult"
    assert (message.kind, message.seq, message.decision, message.state) == ("decision", 1, decision, MessageState.READY)


def test_complete_with_manual_writes_no_decision_but_an_item_with_its_message() -> None:
    job, token = leased_job(make_lane())

    complete(token, Ending("MANUAL", cause="grey_zone", params={"score": 0.5}), 5)

    item, message = Item.objects.get(), Message.objects.get()
    assert (item.job, item.kind, item.cause, item.params) == (job, "manual", "grey_zone", {"score": 0.5})
    assert (message.kind, message.body["item"]) == ("item.opened", item.pk)
    assert not Decision.objects.exists()


@pytest.mark.parametrize(("when", "outcome"), [(100.999999, "committed"), (101, "stale"), (101.000001, "stale")])
def test_complete_counts_until_the_instant_before_the_lease_ends(when: float, outcome: str) -> None:
    """LSE-07: the edges of a lease, to the microsecond."""
    job, token = leased_job(make_lane(), claimed=1)
    before = state_of(job)

    assert complete(token, "APPROVED", when) == outcome

    assert (state_of(job) == before) == (outcome == "stale")


@pytest.mark.parametrize(("when", "outcome"), [(999.999, "committed"), (1000, "stale")])
def test_complete_at_the_deadline_is_stale(when: float, outcome: str) -> None:
    """LSE-08: a lease is cut at the deadline, and the answer with it."""
    _job, token = leased_job(make_lane(lease=timedelta(seconds=500)), claimed=990, deadline=1000)

    assert complete(token, "APPROVED", when) == outcome


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"fence": 2}, "fence"),
        ({"fence": 0}, "fence"),
        ({"fence": 2**80}, "fence"),
        ({"fence": -(2**80)}, "fence"),
        ({"revision": "v2"}, "revision"),
        ({"revision": "v\0" * 300}, "revision"),
        ({"key": uuid4()}, "attempt"),
        ({"attempt": 0}, "attempt"),
    ],
    ids=["later", "earlier", "huge", "negative", "revision", "unstorable revision", "key", "attempt"],
)
def test_a_token_that_is_not_the_one_given_is_stale_and_kept_as_a_late_answer(change: dict[str, Any], why: str) -> None:
    job, token = leased_job(make_lane())
    before = state_of(job)

    assert complete(replace(token, **change), "APPROVED", 5) == CompleteOutcome.STALE

    late = LateAnswer.objects.get()
    assert state_of(job) == before
    assert (late.job, late.why, late.result, late.received_at) == (job, why, "APPROVED", at(5))


def test_a_completion_behind_a_takeover_is_stale_and_the_takeover_commits() -> None:
    job, old = leased_job(make_lane(), claimed=1)
    new = claim(job, when=200)

    outcomes = [complete(old, "APPROVED", 201), complete(new, "MANUAL", 202)]

    job.refresh_from_db()
    assert outcomes == ["stale", "committed"]
    assert (job.result, job.fence, job.attempts) == ("MANUAL", 2, 2)
    assert LateAnswer.objects.get().fence == 1


def test_a_repeat_with_the_same_fence_and_result_is_already_done_and_writes_nothing() -> None:
    job, token = leased_job(make_lane())
    complete(token, "APPROVED", 5)
    before = state_of(job)

    assert complete(token, "APPROVED", 5000) == CompleteOutcome.ALREADY_DONE

    assert state_of(job) == before
    assert not LateAnswer.objects.exists()


def test_on_a_done_job_only_fence_and_result_are_compared() -> None:
    _job, token = leased_job(make_lane())
    complete(token, "APPROVED", 5)

    assert complete(replace(token, revision="v9", key=uuid4()), "APPROVED", 6) == CompleteOutcome.ALREADY_DONE


@pytest.mark.parametrize(("fence", "result"), [(1, "MANUAL"), (2, "APPROVED"), (1, "nonsense")])
def test_another_fence_or_result_on_a_done_job_is_stale(fence: int, result: str) -> None:
    job, token = leased_job(make_lane())
    complete(token, "APPROVED", 5)
    before = state_of(job)

    assert complete(replace(token, fence=fence), result, 6) == CompleteOutcome.STALE

    assert state_of(job) == before
    assert LateAnswer.objects.get().why == "done"


def test_an_unknown_result_is_the_callers_mistake_only_where_the_token_holds() -> None:
    job, token = leased_job(make_lane())
    before = state_of(job)

    assert complete(replace(token, fence=9), "MAYBE", 5) == CompleteOutcome.STALE
    with pytest.raises(UnknownResult):
        complete(token, "MAYBE", 5)

    assert state_of(job) == before


@pytest.mark.parametrize(
    "ending",
    [Ending("REJECTED"), Ending("REJECTED", reason_code="none such"), Ending("MANUAL", outcome=AttemptOutcome.TIMEOUT)],
    ids=["no ground", "unknown ground", "outcome that gives back"],
)
def test_an_ending_that_cannot_be_is_refused_and_the_lease_goes_on(ending: Ending) -> None:
    job, token = leased_job(make_lane())
    before = state_of(job)

    with pytest.raises(InvalidCompletion):
        complete(token, ending, 5)

    assert state_of(job) == before
    assert complete(token, "APPROVED", 6) == CompleteOutcome.COMMITTED


@pytest.mark.parametrize("now", ["NaN", None, -1])
def test_a_clock_that_is_none_is_refused(now: object) -> None:
    job, token = leased_job(make_lane())
    before = state_of(job)

    with pytest.raises(InvalidCompletion):
        contract.complete(token, Ending("APPROVED"), clock=FixedClock(cast("Any", now)))

    assert state_of(job) == before


def test_a_token_for_no_job_is_stale() -> None:
    assert complete(LeaseToken(2**70, 1, "v1", 0, uuid4()), "APPROVED", 0) == CompleteOutcome.STALE


def test_a_lease_that_was_swept_is_stale_even_with_its_own_token() -> None:
    job, token = leased_job(make_lane(), claimed=1)
    contract.sweep(clock=clock(101))
    before = state_of(job)

    assert complete(token, "APPROVED", 102) == CompleteOutcome.STALE

    assert state_of(job) == before


def test_what_a_model_says_is_made_small_and_storable() -> None:
    _job, token = leased_job(make_lane())
    hostile = "\0\ud800" * 400

    complete(token, Ending("APPROVED", detail=hostile, model=hostile, request_id=hostile, cause=hostile), 5)

    attempt = Attempt.objects.get()
    assert (len(attempt.detail), len(attempt.model), len(attempt.request_id), len(attempt.cause)) == (512, 200, 200, 40)


def test_a_decision_of_a_run_that_keeps_back_waits_for_its_acceptance() -> None:
    lane = make_lane(run={"keeps_back": True})
    _job, token = leased_job(lane)
    assert lane.run is not None

    complete(token, "APPROVED", 5)
    lane.run.accepted_at = at(6)
    lane.run.save()
    _job, later = leased_job(lane, claimed=7)
    complete(later, "APPROVED", 8)

    assert list(Message.objects.order_by("id").values_list("state", flat=True)) == ["kept_back", "ready"]


def test_a_completion_takes_few_statements() -> None:
    _job, token = leased_job(make_lane())

    with CaptureQueriesContext(connection) as statements:
        complete(token, "APPROVED", 5)

    # Savepoint and its release; kept-back runs; ticket; job; attempt; job and attempt written; decision; seq; message;
    # figures.
    assert len(statements) <= 12, [s["sql"] for s in statements]
