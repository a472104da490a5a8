"""The one end of a job with a result, and of an attempt with an answer."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from queue_core import outbox, signals, tally
from queue_core.clock import Clock
from queue_core.connections.answers import MAX_NAME, bounded
from queue_core.contract.items import Need, open_items
from queue_core.contract.locks import lock_job, read_clock
from queue_core.contract.rules import Judgement, is_result, judge_completion
from queue_core.errors import InvalidCompletion, UnknownResult
from queue_core.models import Attempt, Decision, Job, LateAnswer, ReasonCode, Ticket
from queue_core.models.jobs import MAX_DETAIL
from queue_core.states import (
    ENDING_OUTCOMES,
    AttemptOutcome,
    Automation,
    CompleteOutcome,
    DeadReason,
    DecisionWhy,
    ItemKind,
    JobState,
    LeaseToken,
    MessageKind,
    MessageState,
    Result,
)


@dataclass(frozen=True, slots=True)
class Ending:
    """What an attempt ended with. `result` is what the policy made of the answer; the rest is kept with the attempt.

    A REJECTED names its ground in `reason_code`; `cause` says why a MANUAL needs a person, and `params` (plain JSON,
    nothing of the content) fill its sentence.
    """

    result: str
    reason_code: str | None = None
    cause: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    outcome: AttemptOutcome = AttemptOutcome.VERDICT
    scores: dict[str, Any] | None = None
    model: str = ""
    request_id: str = ""
    usage: dict[str, Any] | None = None
    latency: timedelta | None = None
    detail: str = ""


@transaction.atomic
@tally.kept()
def complete(token: LeaseToken, ending: Ending, *, clock: Clock, worker: str = "") -> CompleteOutcome:
    """Hand in a result with a token.

    COMMITTED: job, attempt, and decision with its message (or item with its message) were written now, together.
    ALREADY_DONE: the same fence and result were committed before; nothing was written. STALE: the token no longer
    holds; nothing was written on the job, and the answer is kept as a late answer.

    Raises InvalidCompletion for a clock that is none, and, only where the token holds, UnknownResult or (a REJECTED
    without a ground) InvalidCompletion.
    """
    kept_back = hold_back([token.attempt])
    locked = lock_job(token.job)
    now = read_clock(clock, InvalidCompletion)
    if locked is None:
        return CompleteOutcome.STALE
    ticket, job = locked
    attempt = present_attempt(job)
    judgement = judge_completion(job, identity_of(attempt), token, ending.result, now=now)
    if judgement.outcome == CompleteOutcome.STALE:
        keep_late_answer(job, token, ending, judgement, worker=worker, now=now)
    if judgement.outcome != CompleteOutcome.COMMITTED or attempt is None:
        return judgement.outcome
    check_ending(ending)
    # The attempt first: the database refuses a result that no attempt of its fence has committed.
    close_attempt(attempt, ending, now=now)
    attempt.save(update_fields=CLOSING_FIELDS)
    end_done(job, ending.result, now=now)
    job.save(update_fields=["state", "result", "finished_at"])
    write_consequences([Completion(ticket, job, attempt, ending, attempt.run_id in kept_back)], now=now)
    return CompleteOutcome.COMMITTED


def hold_back(attempt_ids: Iterable[int]) -> set[int]:
    """The runs of these attempts whose decisions are kept back, under a share lock until the transaction ends.

    Acceptance of a run writes its row and then sends what was kept back: without the lock, a decision that commits
    in between would be kept back for ever. Runs are locked before tickets.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM queue_core_stagerun WHERE keeps_back AND accepted_at IS NULL"
            " AND id IN (SELECT run_id FROM queue_core_attempt WHERE id = ANY(%s::bigint[])) ORDER BY id FOR SHARE",
            [list(attempt_ids)],
        )
        return {row[0] for row in cursor.fetchall()}


def present_attempt(job: Job) -> Attempt | None:
    """The attempt of a locked job's present fence."""
    return Attempt.objects.filter(job=job, fence=job.fence).first()


CLOSING_FIELDS = [
    "ended_at", "outcome", "is_committed", "latency", "scores", "cause", "detail", "model", "request_id", "usage",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion that was judged good, with its rows locked."""

    ticket: Ticket
    job: Job
    attempt: Attempt
    ending: Ending
    is_kept_back: bool = False


def check_ending(ending: Ending) -> None:
    if not is_result(ending.result):
        raise UnknownResult("A result is APPROVED, REJECTED or MANUAL.", field="result")
    if ending.outcome not in ENDING_OUTCOMES:
        raise InvalidCompletion("This outcome gives a job back; release it.", field="outcome")
    if ending.result == Result.REJECTED and not ending.reason_code:
        raise InvalidCompletion("A REJECTED names its reason code.", field="reason_code")


def end_done(job: Job, result: str, *, now: datetime) -> None:
    """Set, not save, what DONE means on a locked row."""
    tally.leaves(job, now=now)
    job.state = JobState.DONE
    job.result = result
    job.finished_at = now
    tally.enters(job, now=now)
    tally.count(job.lane_id, f"{tally.RESULT}.{result}", now=now)


def close_attempt(attempt: Attempt, ending: Ending, *, now: datetime) -> None:
    """Set, not save, the end of an attempt whose answer is committed."""
    attempt.ended_at = now
    attempt.outcome = ending.outcome
    attempt.is_committed = True
    attempt.latency = ending.latency
    attempt.scores = ending.scores
    attempt.cause = bounded(ending.cause, 40)
    attempt.detail = bounded(ending.detail, MAX_DETAIL)
    attempt.model = bounded(ending.model, MAX_NAME)
    attempt.request_id = bounded(ending.request_id, MAX_NAME)
    attempt.usage = ending.usage
    tally.ended(attempt.lane_id, ending.outcome, now=now, latency=ending.latency)


def write_consequences(completions: list[Completion], *, now: datetime) -> None:
    """The decision and its message of each verdict, the item and its message of each MANUAL; then the signals."""
    needs = [
        Need(c.ticket, c.job, ItemKind.MANUAL, c.ending.cause or "unexplained", c.ending.params)
        for c in completions
        if c.ending.result == Result.MANUAL
    ]
    verdicts = [c for c in completions if c.ending.result != Result.MANUAL]
    decisions = Decision.objects.bulk_create(_decisions(verdicts, now))
    facts = [_fact(c, decision) for c, decision in zip(verdicts, decisions, strict=True)]
    outbox.record_many(facts, now=now)
    open_items(needs, now=now)
    _tell_receivers(completions, decisions)


def _tell_receivers(completions: list[Completion], decisions: list[Decision]) -> None:
    """Last, so that a receiver reads all that the completion wrote. One that raises takes it back."""
    if signals.job_completed.has_listeners(Job):
        of_job = {decision.job_id: decision for decision in decisions}
        for c in completions:
            signals.job_completed.send(
                Job,
                job=c.job,
                ticket=c.ticket,
                attempt=c.attempt,
                result=c.ending.result,
                decision=of_job.get(c.job.pk),
            )
    for decision in decisions if signals.ticket_decided.has_listeners(Decision) else ():
        signals.ticket_decided.send(Decision, decision=decision, ticket=decision.ticket)


def _decisions(verdicts: list[Completion], now: datetime) -> list[Decision]:
    codes = {c.ending.reason_code for c in verdicts if c.ending.reason_code}
    grounds = {ground.code: ground for ground in ReasonCode.objects.filter(code__in=codes)} if codes else {}
    missing = codes - set(grounds)
    if missing:
        raise InvalidCompletion(f"There is no reason code {min(missing)!r}.", field="reason_code")
    return [_decision(c, grounds.get(c.ending.reason_code or ""), now) for c in verdicts]


def _decision(c: Completion, ground: ReasonCode | None, now: datetime) -> Decision:
    # Round 1 cannot have an earlier decision: people decide only what the machine has ended, and a job that a person
    # decided is never requeued. A later round follows a recall, which is the head of the chain.
    head = None
    if c.job.round > 1:
        head = Decision.objects.filter(ticket=c.ticket, revision=c.job.revision, replaced_by__isnull=True).first()
    return Decision(
        ticket=c.ticket,
        revision=c.job.revision,
        job=c.job,
        lane_id=c.job.lane_id,
        verdict=c.ending.result,
        why=DecisionWhy.FIRST if head is None else DecisionWhy.CORRECTION,
        replaces=head,
        attempt=c.attempt,
        reason_code=ground,
        source_kind=c.ticket.source_kind,
        automation=Automation.WHOLLY,
        policy_id=c.attempt.policy_id,
        run_id=c.attempt.run_id,
        decided_at=now,
    )


def _fact(c: Completion, decision: Decision) -> outbox.Fact:
    return outbox.Fact(
        kind=MessageKind.DECISION,
        ticket=c.ticket,
        lane=c.job.lane_id,
        decision=decision,
        state=MessageState.KEPT_BACK if c.is_kept_back else MessageState.READY,
        body={
            "source": c.ticket.source,
            "ticket": c.ticket.external_id,
            "revision": c.job.revision,
            "verdict": c.ending.result,
            "reason_code": c.ending.reason_code,
            "automation": Automation.WHOLLY.value,
            "decision": decision.pk,
            "decided_at": decision.decided_at.isoformat(),
        },
    )


#: How an attempt ends whose holder reports after its job died under it.
UNDER_A_DEATH = {
    DeadReason.SUPERSEDED: AttemptOutcome.SUPERSEDED,
    DeadReason.WITHDRAWN: AttemptOutcome.WITHDRAWN,
}


def keep_late_answer(
    job: Job, token: LeaseToken, ending: Ending, judgement: Judgement, *, worker: str, now: datetime
) -> None:
    """Keep an answer that came too late, bounded in size, and free the seat of work that was superseded."""
    attempt = Attempt.objects.filter(pk=token.attempt, job=job, key=token.key).first()
    _free_seat(job, attempt, now)
    if ending.outcome == AttemptOutcome.RELEASED:
        # Given back uncalled: the model said nothing that could be late.
        return
    tally.count(job.lane_id, tally.STALE, now=now)
    LateAnswer.objects.create(
        job=job,
        lane_id=job.lane_id,
        run_id=attempt.run_id if attempt else None,
        fence=min(max(token.fence, 0), 2**63 - 1),
        revision=bounded(token.revision, MAX_NAME),
        result=bounded(str(ending.result), 32),
        why=judgement.why,
        worker=worker[:200],
        scores=ending.scores,
        received_at=now,
    )


def _free_seat(job: Job, attempt: Attempt | None, now: datetime) -> None:
    outcome = UNDER_A_DEATH.get(DeadReason(job.dead_reason)) if job.dead_reason else None
    if attempt is not None and attempt.ended_at is None and outcome is not None:
        attempt.ended_at, attempt.outcome = now, outcome
        tally.ended(attempt.lane_id, outcome, now=now)
        attempt.save(update_fields=["ended_at", "outcome"])


def identity_of(attempt: Attempt | None) -> tuple[int, UUID] | None:
    return (attempt.pk, attempt.key) if attempt else None
