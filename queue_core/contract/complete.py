"""The one end of a job with a result, and of an attempt with an answer."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from queue_core import prepared, signals, tally, wakeups
from queue_core.clock import Clock
from queue_core.connections.answers import MAX_NAME, bounded
from queue_core.contract import complete_sql
from queue_core.contract.items import Need, open_items
from queue_core.contract.locks import LARGEST_ID, own_instant
from queue_core.contract.plain import closing_values, complete_plainly
from queue_core.contract.rules import Judgement, is_result, judge_completion
from queue_core.errors import InvalidCompletion, UnknownResult
from queue_core.models import Attempt, Decision, Evidence, Job, LateAnswer
from queue_core.states import (
    ENDING_OUTCOMES,
    AttemptOutcome,
    Automation,
    CompleteOutcome,
    DeadReason,
    ItemKind,
    JobState,
    LeaseToken,
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


def complete(token: LeaseToken, ending: Ending, *, clock: Clock, worker: str = "") -> CompleteOutcome:
    """Hand in a result with a token.

    COMMITTED: job, attempt, and decision with its message (or item with its message) were written now, together.
    ALREADY_DONE: the same fence and result were committed before; nothing was written. STALE: the token no longer
    holds; nothing was written on the job, and the answer is kept as a late answer.

    Raises InvalidCompletion for a clock that is none, and, only where the token holds, UnknownResult or (a REJECTED
    without a ground) InvalidCompletion.
    """
    return complete_together([(token, ending)], clock=clock, worker=worker)[0]


def complete_together(
    endings: Sequence[tuple[LeaseToken, Ending]], *, clock: Clock, worker: str = ""
) -> list[CompleteOutcome]:
    """Hand in results in one transaction: an outcome for each token, in order, or an exception and nothing written.

    The one place where a completion's rows are locked and its token is judged, for one token as for fifty. Nearly all
    are plain, and end in a statement that holds the same against the rows it locks (`plain`); it writes nothing, and
    leaves the judging to this place, as soon as one of them is anything else.
    """
    if not endings:
        return []
    if complete_plainly(endings, clock=clock):
        return [CompleteOutcome.COMMITTED] * len(endings)
    with transaction.atomic(), tally.kept():
        now, locked = _lock(endings, clock)
        outcomes, good = [], []
        for token, ending in endings:
            job = locked.get(token.job)
            if job is None:
                outcomes.append(CompleteOutcome.STALE)
                continue
            judgement = judge_completion(job, job.attempt, token, ending.result, now=now)
            outcomes.append(judgement.outcome)
            if judgement.outcome == CompleteOutcome.STALE:
                keep_late_answer(job, token, ending, judgement, worker=worker, now=now)
            elif judgement.outcome == CompleteOutcome.COMMITTED:
                check_ending(ending)
                # Set on the row at once: a token handed in twice in one batch is judged against the first.
                _end_done(job, ending, now=now)
                good.append((job, ending))
        if good:
            _write(good, now)
    return outcomes


@dataclass(slots=True)
class LockedJob:
    """A job with its ticket under their locks, and the identity of its present attempt."""

    pk: int
    ticket_id: int
    lane_id: int
    revision: str
    round: int
    state: str
    dead_reason: str | None
    severity: int
    available_at: datetime | None
    fence: int
    attempts: int
    max_attempts: int
    deadline: datetime
    lease_until: datetime | None
    result: str | None
    seq: int
    source: str
    external_id: str
    source_kind: str
    attempt_id: int | None
    attempt_key: UUID | None
    run_id: int | None
    policy_id: int | None
    is_kept_back: bool | None

    @property
    def attempt(self) -> tuple[int, UUID] | None:
        return (self.attempt_id, self.attempt_key) if self.attempt_id and self.attempt_key else None


def _lock(endings: Sequence[tuple[LeaseToken, Ending]], clock: Clock) -> tuple[datetime, dict[int, LockedJob]]:
    jobs = [token.job for token, _ in endings if abs(token.job) <= LARGEST_ID]
    attempts = [token.attempt for token, _ in endings if abs(token.attempt) <= LARGEST_ID]
    values = {"jobs": jobs, "attempts": attempts, "now": own_instant(clock, InvalidCompletion)}
    rows = prepared.run(complete_sql.LOCK, values).fetchall()
    return rows[0][0], {row[1]: LockedJob(*row[1:]) for row in rows if row[1] is not None}


def present_attempt(job: Job) -> Attempt | None:
    """The attempt of a locked job's present fence."""
    return Attempt.objects.filter(job=job, fence=job.fence).first()


def check_ending(ending: Ending) -> None:
    if not is_result(ending.result):
        raise UnknownResult("A result is APPROVED, REJECTED or MANUAL.", field="result")
    if ending.outcome not in ENDING_OUTCOMES:
        raise InvalidCompletion("This outcome gives a job back; release it.", field="outcome")
    if ending.result == Result.REJECTED and not ending.reason_code:
        raise InvalidCompletion("A REJECTED names its reason code.", field="reason_code")


def _end_done(job: LockedJob, ending: Ending, *, now: datetime) -> None:
    """Set, not save, what DONE means on a locked row."""
    tally.leaves(job, now=now)
    job.state = JobState.DONE
    job.result = ending.result
    tally.enters(job, now=now)
    tally.count(job.lane_id, f"{tally.RESULT}.{ending.result}", now=now)
    tally.ended(job.lane_id, ending.outcome, now=now, latency=ending.latency)


def _write(good: Sequence[tuple[LockedJob, Ending]], now: datetime) -> None:
    """Ends of jobs and attempts; the decision and message of each verdict, the item and message of each MANUAL."""
    grounds = _grounds({ending.reason_code for _, ending in good if ending.result == Result.REJECTED})
    seqs: Counter[int] = Counter()
    values = {
        "rows": json.dumps([_row(job, ending, grounds, seqs) for job, ending in good]),
        "figures": tally.taken(),
        "now": now,
        "decided_at": now.isoformat(),
        "automation": Automation.WHOLLY.value,
    }
    prepared.run(complete_sql.WRITE, values)
    if seqs:
        wakeups.wake_relay()
    _open_items([(job, ending) for job, ending in good if ending.result == Result.MANUAL], now)
    _tell_receivers(good)


def _grounds(codes: set[str | None]) -> dict[str | None, int]:
    if not codes:
        return {}
    grounds: dict[str | None, int] = dict(
        prepared.run(complete_sql.GROUNDS, {"codes": list(codes - {None})}).fetchall()
    )
    missing = codes - set(grounds)
    if missing:
        raise InvalidCompletion(f"There is no reason code {min(map(str, missing))!r}.", field="reason_code")
    return grounds


def _row(job: LockedJob, ending: Ending, grounds: Mapping[str | None, int], seqs: Counter[int]) -> dict[str, Any]:
    """One completion as the statement reads it. `seq` only where there is a verdict, which has a decision."""
    row = closing_values(ending) | {"job": job.pk, "attempt": job.attempt_id}
    if ending.result == Result.MANUAL:
        return row
    seqs[job.ticket_id] += 1
    return row | {
        "ticket": job.ticket_id,
        "revision": job.revision,
        "lane": job.lane_id,
        "policy": job.policy_id,
        "run": job.run_id,
        "source": job.source,
        "external_id": job.external_id,
        "source_kind": job.source_kind,
        "ground": grounds[ending.reason_code] if ending.result == Result.REJECTED else None,
        "ground_code": ending.reason_code,
        "replaces": _head(job),
        "seq": job.seq + seqs[job.ticket_id],
        "state": MessageState.KEPT_BACK if job.is_kept_back else MessageState.READY,
    }


def _head(job: LockedJob) -> int | None:
    """The decision that this one replaces.

    Round 1 cannot have an earlier one: people decide only what the machine has ended, and a job that a person decided
    is never requeued. A later round follows a recall, which is the head of the chain.
    """
    if job.round == 1:
        return None
    chain = Decision.objects.filter(ticket=job.ticket_id, revision=job.revision, replaced_by__isnull=True)
    return chain.values_list("pk", flat=True).first()


def _open_items(manual: Sequence[tuple[LockedJob, Ending]], now: datetime) -> None:
    if not manual:
        return
    jobs = Job.objects.select_related("ticket").in_bulk([job.pk for job, _ in manual])
    needs = [
        Need(jobs[job.pk].ticket, jobs[job.pk], ItemKind.MANUAL, ending.cause or "unexplained", ending.params)
        for job, ending in manual
    ]
    open_items(needs, now=now)


def _tell_receivers(good: Sequence[tuple[LockedJob, Ending]]) -> None:
    """Last, so that a receiver reads all that the completion wrote. One that raises takes it back."""
    tells_jobs = signals.job_completed.has_listeners(Job)
    if not tells_jobs and not signals.ticket_decided.has_listeners(Decision):
        return
    jobs = Job.objects.select_related("ticket").in_bulk([job.pk for job, _ in good])
    attempts = Attempt.objects.in_bulk([job.attempt_id for job, _ in good])
    # By job, since no index of decisions begins with the attempt.
    written = Decision.objects.filter(job__in=list(jobs), attempt__in=list(attempts)).order_by("pk")
    decisions = {decision.job_id: decision for decision in written}
    for locked, ending in good if tells_jobs else ():
        job, decision = jobs[locked.pk], decisions.get(locked.pk)
        attempt = attempts[locked.attempt_id or 0]
        told = {"job": job, "ticket": job.ticket, "attempt": attempt, "result": ending.result, "decision": decision}
        signals.job_completed.send(Job, **told)
    for decision in decisions.values() if signals.ticket_decided.has_listeners(Decision) else ():
        signals.ticket_decided.send(Decision, decision=decision, ticket=jobs[decision.job_id].ticket)


#: How an attempt ends whose holder reports after its job died under it.
UNDER_A_DEATH = {
    DeadReason.SUPERSEDED: AttemptOutcome.SUPERSEDED,
    DeadReason.WITHDRAWN: AttemptOutcome.WITHDRAWN,
}


def keep_late_answer(
    job: Job | LockedJob, token: LeaseToken, ending: Ending, judgement: Judgement, *, worker: str, now: datetime
) -> None:
    """Keep an answer that came too late, bounded in size, and free the seat of work that was superseded."""
    attempt = Attempt.objects.filter(pk=token.attempt, job=job.pk, key=token.key).first()
    _free_seat(job, attempt, now)
    if ending.outcome == AttemptOutcome.RELEASED:
        # Given back uncalled: the model said nothing that could be late.
        return
    tally.count(job.lane_id, tally.STALE, now=now)
    is_erased = Evidence.objects.filter(jobs=job.pk, erased_at__isnull=False).exists()
    LateAnswer.objects.create(
        job_id=job.pk,
        lane_id=job.lane_id,
        run_id=attempt.run_id if attempt else None,
        fence=min(max(token.fence, 0), 2**63 - 1),
        revision=bounded(token.revision, MAX_NAME),
        result=bounded(str(ending.result), 32),
        why=judgement.why,
        worker=worker[:200],
        scores=None if is_erased else ending.scores,
        received_at=now,
    )


def _free_seat(job: Job | LockedJob, attempt: Attempt | None, now: datetime) -> None:
    outcome = UNDER_A_DEATH.get(DeadReason(job.dead_reason)) if job.dead_reason else None
    if attempt is not None and attempt.ended_at is None and outcome is not None:
        attempt.ended_at, attempt.outcome = now, outcome
        tally.ended(attempt.lane_id, outcome, now=now)
        attempt.save(update_fields=["ended_at", "outcome"])


def identity_of(attempt: Attempt | None) -> tuple[int, UUID] | None:
    return (attempt.pk, attempt.key) if attempt else None
