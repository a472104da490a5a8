"""The batch forms and the single verbs tell the same story of the same job."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queue_core import contract
from queue_core.contract import Ending
from queue_core.models import Attempt, Decision, Item, Job, Lane, LateAnswer, Message
from queue_core.states import AttemptOutcome, LeaseToken
from queue_core.traces import BatchCore, Core, SingleCore
from tests.factories import clock, make_lane, waiting_job

pytestmark = pytest.mark.django_db

steps = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), st.integers(0, 40), st.integers(1, 30)),
        st.tuples(st.just("complete"), st.integers(0, 20), st.sampled_from(["APPROVED", "MANUAL"])),
        st.tuples(st.just("release"), st.integers(0, 20), st.sampled_from(["timeout", "unavailable"])),
        st.tuples(st.just("sweep"), st.integers(0, 40), st.none()),
        st.tuples(st.just("refuse"), st.integers(0, 20), st.none()),
    ),
    max_size=9,
)


def timed(steps: list[tuple[str, int, Any]]) -> Iterator[tuple[str, int, Any]]:
    now = 0
    for verb, later, what in steps:
        now += later
        yield verb, now, what


class Story:
    """One job's life through one form of the verbs. Every token ever given stays in hand."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.lane: Lane = make_lane(max_attempts=3)
        self.job = waiting_job(self.lane, deadline=150)
        self.tokens: list[LeaseToken] = []

    def play(self, steps: list[tuple[str, int, Any]]) -> None:
        for verb, now, what in timed(steps):
            self.do(verb, now, what)

    def do(self, verb: str, now: int, what: Any) -> Any:
        return getattr(self, verb)(now, what)

    def claim(self, now: int, lease: int) -> int | None:
        token = self.core.claim(self.job.pk, clock(now), timedelta(seconds=lease), None)
        self.tokens += [token] if token else []
        return token.fence if token else None

    def complete(self, now: int, result: str) -> list[str]:
        return [self.core.complete(token, Ending(result), clock(now)) for token in self.tokens]

    def release(self, now: int, outcome: str) -> list[str]:
        return [contract.release(token, outcome=AttemptOutcome(outcome), clock=clock(now)) for token in self.tokens]

    def sweep(self, now: int, _: None) -> None:
        contract.sweep(clock=clock(now))

    def refuse(self, now: int, _: None) -> int:
        return contract.refuse_running(self.lane.pk, clock=clock(now))

    def rows(self) -> list[Any]:
        job = Job.objects.values(
            "state", "attempts", "fence", "lease_until", "result", "dead_reason", "finished_at", "available_at",
            "backoff_steps",
        ).get(pk=self.job.pk)  # fmt: skip
        attempts = Attempt.objects.filter(job=self.job).order_by("fence")
        return [
            job,
            list(attempts.values_list("fence", "number", "started_at", "lease_until", "ended_at", "outcome",
                                      "is_charged", "is_committed", "run__number")),
            list(Decision.objects.filter(job=self.job).values_list("verdict", "why", "decided_at")),
            list(Item.objects.filter(job=self.job).values_list("kind", "cause", "opened_at")),
            list(Message.objects.filter(ticket=self.job.ticket).order_by("seq").values_list("kind", "seq")),
            list(LateAnswer.objects.filter(job=self.job).order_by("pk").values_list("fence", "why", "result")),
        ]  # fmt: skip


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_both_forms_answer_alike_and_leave_the_same_rows(steps: list[tuple[str, int, Any]]) -> None:
    single, batch = Story(SingleCore()), Story(BatchCore())

    # Step by step, since a sweep is of all lanes: told to its end, one story would sweep the other before it begins.
    for verb, now, what in timed(steps):
        assert single.do(verb, now, what) == batch.do(verb, now, what)

    assert single.rows() == batch.rows()


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_no_story_commits_twice_or_loses_the_job(steps: list[tuple[str, int, Any]]) -> None:
    story = Story(BatchCore())

    story.play(steps)

    job = Job.objects.get(pk=story.job.pk)
    attempts = Attempt.objects.filter(job=job)
    assert attempts.filter(is_committed=True).count() == (job.state == "DONE")
    assert Decision.objects.filter(job=job).count() == (job.result == "APPROVED")
    assert Item.objects.filter(job=job).count() == (job.state == "DEAD" or job.result == "MANUAL")
    assert attempts.count() == job.fence
    assert attempts.filter(is_charged=True).count() == job.attempts <= job.max_attempts
    assert attempts.filter(ended_at=None).count() <= (job.state == "LEASED")
