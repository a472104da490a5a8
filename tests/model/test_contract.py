"""Hypothesis plays the verbs and the plain model of the contract side by side, and time jumps to every edge.

Each step draws the form of the verb (single or batch), and after each step every job and attempt row is compared. A
longer run: REVIEWBOARD_MODEL_STEPS=50000 uv run pytest tests/model.
"""

import os
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from queue_core import batch, contract
from queue_core.clock import FixedClock
from queue_core.contract import Ending, NewTicket
from queue_core.contract.rules import CALL_MARGIN
from queue_core.ledger import audit
from queue_core.models import Attempt, Decision, Item, Job, LateAnswer, Message
from queue_core.states import AttemptOutcome, LeaseToken
from tests.factories import T0, make_ground, make_lane
from tests.model.model import RELEASES, ModelLane

pytestmark = pytest.mark.django_db

STEPS_A_STORY = 50
STEPS = int(os.environ.get("REVIEWBOARD_MODEL_STEPS", "750"))
MOST_JOBS = 12
MILLISECOND = timedelta(milliseconds=1)

number = st.integers(0, 1000)
form = st.sampled_from(["single", "batch"])
result = st.sampled_from(["APPROVED", "REJECTED", "MANUAL"])
#: A little later, or just before, at, or just after the next instants at which anything ends.
when = st.one_of(
    st.integers(0, 15_000).map(lambda ms: ("later", ms * MILLISECOND)),
    st.tuples(st.integers(0, 5), st.sampled_from([-1, 0, 0, 1])).map(lambda at: ("edge", at)),
)
lease = st.one_of(st.none(), st.integers(1, 40_000).map(lambda ms: ms * MILLISECOND))
budget = st.one_of(st.none(), st.none(), st.integers(1, 4))
left = st.integers(1, 60_000).map(lambda ms: ms * MILLISECOND)


class Contract(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.story = transaction.atomic()
        self.story.__enter__()
        self.now: datetime = T0
        self.pks: list[int] = []
        self.tokens: list[tuple[int, LeaseToken]] = []
        self.person: Any = get_user_model().objects.create(username="olga")
        make_ground()

    def teardown(self) -> None:
        try:
            if hasattr(self, "lane"):
                self.compare_what_followed()
        finally:
            transaction.set_rollback(True)
            self.story.__exit__(None, None, None)

    @initialize(
        cap=st.sampled_from([1, 3, 50]),
        rate=st.sampled_from([None, None, 4]),
        weight=st.sampled_from([0.0, 0.5, 1.0]),
        tries=st.integers(1, 3),
    )
    def a_lane(self, cap: int, rate: int | None, weight: float, tries: int) -> None:
        lengths = {"lease": timedelta(seconds=10), "max_hold": timedelta(seconds=25)}
        rests = {"backoff_base": timedelta(seconds=5), "backoff_cap": timedelta(seconds=12)}
        bonus = timedelta(seconds=7)
        self.lane = make_lane(
            cap=cap, run={"rate": rate}, urgency_weight=weight, severity_bonus=bonus, max_attempts=tries,
            **lengths, **rests,
        )  # fmt: skip
        self.model = ModelLane(
            cap, rate, lengths["lease"], lengths["max_hold"], CALL_MARGIN, weight, bonus, rests["backoff_base"],
            rests["backoff_cap"], tries,
        )  # fmt: skip

    # --- the story's means ------------------------------------------------------------------------------------------

    def pass_time(self, when: tuple[str, Any]) -> FixedClock:
        kind, what = when
        if kind == "later":
            self.now += what
        else:
            place, side = what
            ahead = sorted(e for job in self.model.jobs.values() for e in job.edges() if e >= self.now)
            if ahead:
                self.now = max(self.now, ahead[min(place, len(ahead) - 1)] + side * MILLISECOND)
        return FixedClock(self.now)

    def a_job(self, drawn: int) -> int:
        return drawn % len(self.pks)

    def a_token(self, drawn: int) -> tuple[int, LeaseToken]:
        """Any that was ever given out, the latest ones rather."""
        return self.tokens[-1 - drawn % min(len(self.tokens), 6)]

    def keep(self, tokens: list[LeaseToken]) -> list[int]:
        numbers = [self.pks.index(token.job) for token in tokens]
        self.tokens += zip(numbers, tokens, strict=True)
        return numbers

    def take_in(self, clock: FixedClock, ticket: NewTicket, replaces: str | None) -> None:
        if replaces is None:
            job = contract.receive(ticket, clock=clock).job
        else:
            job = contract.supersede(ticket, replaces=replaces, clock=clock).job
            self.model.end_ticket(ticket.external_id, "superseded")
        self.pks.append(job.pk)
        assert ticket.deadline is not None
        self.model.receive(
            len(self.pks) - 1, ticket.external_id, ticket.revision, ticket.severity or 0, self.now,
            ticket.deadline - self.now,
        )  # fmt: skip

    def new_ticket(self, name: str, revision: str, left: timedelta, severity: int) -> NewTicket:
        return NewTicket(
            source="m", external_id=name, revision=revision, lane=self.lane, evidence={"text": name},
            deadline=self.now + left, severity=severity,
        )  # fmt: skip

    # --- what may happen --------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.pks) < MOST_JOBS)
    @rule(when=when, left=left, severity=st.integers(0, 2))
    def receive(self, when: Any, left: timedelta, severity: int) -> None:
        clock = self.pass_time(when)
        self.take_in(clock, self.new_ticket(f"t{len(self.pks)}", "v0", left, severity), None)
        self.compare()

    @precondition(lambda self: 0 < len(self.pks) < MOST_JOBS)
    @rule(when=when, drawn=number, left=left)
    def supersede(self, when: Any, drawn: int, left: timedelta) -> None:
        clock = self.pass_time(when)
        old = self.model.jobs[self.a_job(drawn)]
        current = self.model.current[old.ticket]
        ticket = self.new_ticket(old.ticket, f"{current}+", left, old.severity)
        self.take_in(clock, ticket, current)
        self.compare()

    @precondition(lambda self: self.pks)
    @rule(when=when, drawn=number, form=form, lease=lease, budget=budget)
    def claim(self, when: Any, drawn: int, form: str, lease: timedelta | None, budget: int | None) -> None:
        clock, job = self.pass_time(when), self.a_job(drawn)
        terms: dict[str, Any] = {"clock": clock, "worker": "w", "lease": lease, "max_attempts": budget}
        expected = self.model.claim(job, self.now, lease, budget)
        if form == "single":
            answer = contract.claim(self.pks[job], **terms)
            assert answer.outcome == expected
            tokens = [answer.token] if answer.token else []
        else:
            tokens = list(batch.claim_rows([self.pks[job]], **terms).values())
            assert bool(tokens) == (expected == "claimed")
        self.keep(tokens)
        self.compare()

    @rule(when=when, limit=st.integers(1, 5))
    def claim_next(self, when: Any, limit: int) -> None:
        clock = self.pass_time(when)
        picked, refusal = self.model.claim_next(limit, self.now)
        given = batch.claim_next(self.lane.pk, limit, clock=clock, worker="w")
        assert (self.keep([c.token for c in given.claims]), given.refusal) == (picked, refusal)
        self.compare()

    @precondition(lambda self: any(job.state == "LEASED" for job in self.model.jobs.values()))
    @rule(when=when)
    def claim_expired(self, when: Any) -> None:
        clock = self.pass_time(when)
        may_be, refusal = self.model.claim_expired(self.now)
        given = batch.claim_expired(self.lane.pk, clock=clock, worker="w")
        taken = self.keep([c.token for c in given.claims])
        assert (len(taken), given.refusal) == (min(len(may_be), 1), refusal)
        assert set(taken) <= may_be
        for job in taken:
            self.model.grant(self.model.jobs[job], self.now, self.model.lease)
        self.compare()

    @precondition(lambda self: self.tokens)
    @rule(when=when, drawn=number, form=form, result=result)
    def complete(self, when: Any, drawn: int, form: str, result: str) -> None:
        clock, (job, token) = self.pass_time(when), self.a_token(drawn)
        expected = self.model.complete(job, token.fence, result, self.now)
        if form == "single":
            assert contract.complete(token, ending(result), clock=clock) == expected
        else:
            assert batch.complete_together([(token, ending(result))], clock=clock) == [expected]
        self.compare()

    @precondition(lambda self: self.tokens)
    @rule(when=when, drawn=st.lists(st.tuples(number, result), min_size=2, max_size=5))
    def complete_many(self, when: Any, drawn: list[tuple[int, str]]) -> None:
        clock = self.pass_time(when)
        chosen = [(*self.a_token(one), result) for one, result in drawn]
        expected = [self.model.complete(job, token.fence, result, self.now) for job, token, result in chosen]
        endings = [(token, ending(result)) for _job, token, result in chosen]
        assert batch.complete_many(endings, clock=clock) == expected
        self.compare()

    @precondition(lambda self: self.tokens)
    @rule(when=when, drawn=number, outcome=st.sampled_from(sorted(RELEASES)))
    def release(self, when: Any, drawn: int, outcome: str) -> None:
        clock, (job, token) = self.pass_time(when), self.a_token(drawn)
        expected = self.model.release(job, token.fence, outcome, self.now)
        assert contract.release(token, outcome=AttemptOutcome(outcome), clock=clock) == expected
        self.compare()

    @precondition(lambda self: self.tokens)
    @rule(when=when, drawn=number, lease=lease)
    def renew(self, when: Any, drawn: int, lease: timedelta | None) -> None:
        clock, (job, token) = self.pass_time(when), self.a_token(drawn)
        expected = self.model.renew(job, token.fence, lease, self.now)
        assert contract.renew(token, clock=clock, lease=lease) == expected
        self.compare()

    @rule(when=when)
    def sweep(self, when: Any) -> None:
        clock = self.pass_time(when)
        contract.sweep(clock=clock)
        contract.wake_due(clock=clock)
        self.model.sweep(self.now)
        self.model.wake_due(self.now)
        self.compare()

    @precondition(lambda self: any(job.state == "DEAD" for job in self.model.jobs.values()))
    @rule(when=when, drawn=number, left=left)
    def requeue(self, when: Any, drawn: int, left: timedelta) -> None:
        clock, job = self.pass_time(when), self.a_job(drawn)
        expected = self.model.requeue(job, self.now + left, self.now)
        told = contract.requeue(
            self.pks[job], deadline=self.now + left, clock=clock, person=self.person, reason="again"
        )
        assert told == expected
        self.compare()

    @precondition(lambda self: self.pks)
    @rule(when=when, drawn=number, left=left)
    def move_deadline(self, when: Any, drawn: int, left: timedelta) -> None:
        clock, job = self.pass_time(when), self.a_job(drawn)
        expected = self.model.move_deadline(job, self.now + left, self.now)
        told = contract.move_deadline(
            self.pks[job], deadline=self.now + left, clock=clock, person=self.person, reason="later"
        )
        assert told == expected
        self.compare()

    @precondition(lambda self: len(self.pks) > 3)
    @rule(when=when, drawn=number)
    def pull(self, when: Any, drawn: int) -> None:
        clock, job = self.pass_time(when), self.a_job(drawn)
        expected = self.model.pull(job, self.now)
        told, token = contract.pull(self.pks[job], clock=clock, person=self.person, reason="mine")
        assert (told, token is not None) == (expected, expected == "done")
        self.compare()

    @precondition(lambda self: len(self.pks) > 3)
    @rule(when=when, drawn=number)
    def withdraw(self, when: Any, drawn: int) -> None:
        clock, job = self.pass_time(when), self.model.jobs[self.a_job(drawn)]
        self.model.withdraw(job.ticket)
        assert contract.withdraw(source="m", external_id=job.ticket, clock=clock) == "done"
        self.compare()

    @precondition(lambda self: any(job.state == "LEASED" for job in self.model.jobs.values()))
    @rule(when=when)
    def refuse_running(self, when: Any) -> None:
        clock = self.pass_time(when)
        assert contract.refuse_running(self.lane.pk, clock=clock) == self.model.refuse_running(self.now)
        self.compare()

    # --- what must be the same --------------------------------------------------------------------------------------

    def compare(self) -> None:
        """After each step: every job's fields, and every attempt's."""
        rows = Job.objects.filter(lane=self.lane).order_by("pk").values_list(
            "state", "result", "dead_reason", "attempts", "max_attempts", "fence", "lease_until", "deadline", "urgency",
            "available_at", "backoff_steps", "requeues",
        )  # fmt: skip
        assert list(rows) == [
            (j.state, j.result, j.reason, j.attempts, j.budget, j.fence, j.until, j.deadline, j.urgency, j.available,
             j.steps, j.requeues)
            for j in self.model.jobs.values()
        ]  # fmt: skip
        attempts = Attempt.objects.filter(lane=self.lane).order_by("job", "fence").values_list(
            "fence", "started_at", "lease_until", "ended_at", "outcome", "is_charged", "is_committed"
        )  # fmt: skip
        assert list(attempts) == [
            (a.fence, a.started, a.until, a.ended, a.outcome, a.charged, a.committed)
            for j in self.model.jobs.values()
            for a in j.rows
        ]

    def compare_what_followed(self) -> None:
        """At the end: decisions, open items, late answers, messages; and the ledger's own rules."""
        jobs = dict(zip(self.pks, self.model.jobs.values(), strict=True))
        assert dict(Decision.objects.values_list("job", "verdict")) == {
            pk: job.decision for pk, job in jobs.items() if job.decision
        }
        items = Item.objects.filter(closed_at=None).values_list("job", "kind", "cause")
        assert {pk: f"{kind}:{cause}" for pk, kind, cause in items} == {
            pk: job.item for pk, job in jobs.items() if job.item
        }
        late = LateAnswer.objects.order_by("job", "pk").values_list("job", "fence", "why", "result")
        assert list(late) == [(pk, *one) for pk, job in jobs.items() for one in job.late]
        assert Message.objects.filter(kind="decision").count() == Decision.objects.count()
        report = audit()
        assert report.is_clean, report.findings


def ending(result: str) -> Ending:
    return Ending(result, reason_code="insult" if result == "REJECTED" else None, cause="grey_zone")


def test_the_verbs_do_what_the_model_of_the_contract_says() -> None:
    """PGQ-16, PGQ-17, LSE-07, LSE-08, LSE-09: no path by which time or budget is not looked at."""
    run_state_machine_as_test(
        Contract,
        settings=settings(
            max_examples=max(STEPS // STEPS_A_STORY, 1),
            stateful_step_count=STEPS_A_STORY,
            suppress_health_check=list(HealthCheck),
        ),
    )
