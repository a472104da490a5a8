"""The judgements of the contract, as pure functions of a locked row, a token and a time.

The single verbs and the batch twin both judge here, so that there is one rule and not two that look alike.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from queue_core.states import (
    TIMEOUT_OUTCOMES,
    UNEXECUTED_OUTCOMES,
    AttemptOutcome,
    ClaimOutcome,
    CompleteOutcome,
    JobState,
    LeaseToken,
    Result,
)

#: Left free between the end of a call's time limit and the end of its lease, to write the answer down.
CALL_MARGIN = timedelta(milliseconds=500)
#: Ends after every deadline that a row can hold, and within the dates of PostgreSQL.
LONGEST_LEASE = timedelta(days=3_000_000)
#: A claim gives nothing when nobody judged the guardrails for longer than this.
JUDGED_WITHIN = timedelta(seconds=30)
#: The number of the probe's stage.
PROBE = 1
#: So long after it began a person's hold can be resumed; later only the probe leads out of it.
RESUME_WITHIN = timedelta(minutes=15)
#: The window of a stage's rate.
RATE_WINDOW = timedelta(seconds=60)


def is_resumable(held_since: datetime, *, now: datetime) -> bool:
    """Whether a person's hold is young enough to be resumed. At RESUME_WITHIN exactly it no longer is."""
    return now - held_since < RESUME_WITHIN


class LockedJob(Protocol):
    """The contract fields of a job, as read under its row lock."""

    state: str
    revision: str
    fence: int
    attempts: int
    max_attempts: int
    deadline: datetime
    lease_until: datetime | None
    result: str | None


def judge_claim(job: LockedJob, *, now: datetime, max_attempts: int | None = None) -> ClaimOutcome:
    """Whether the job itself may be claimed: CLAIMED if so, else why not.

    Deadline is judged before budget, everywhere. Only a lease that runs protects a job from either.
    """
    if job.state == JobState.DONE:
        return ClaimOutcome.DONE
    if job.state == JobState.DEAD:
        return ClaimOutcome.DEAD
    if job.state == JobState.LEASED and is_running(job, now=now):
        return ClaimOutcome.HELD
    if now >= job.deadline:
        return ClaimOutcome.DIED_DEADLINE
    if job.attempts >= (job.max_attempts if max_attempts is None else max_attempts):
        return ClaimOutcome.DIED_ATTEMPTS
    return ClaimOutcome.CLAIMED


def is_running(job: LockedJob, *, now: datetime) -> bool:
    """Whether a LEASED job's lease runs. `lease_until` is the first instant at which it no longer does."""
    return job.lease_until is not None and now < job.lease_until


def lease_end(*, now: datetime, lease: timedelta, deadline: datetime) -> datetime:
    """Compared as lengths: a lease of any length may be asked for, and `now + lease` be beyond all dates."""
    return now + lease if lease < deadline - now else deadline


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a token is worth now. `why` says which test made it stale."""

    outcome: CompleteOutcome
    why: str = ""


def judge_token(job: LockedJob, attempt: tuple[int, UUID] | None, token: LeaseToken, *, now: datetime) -> Judgement:
    """Whether a token still gives the right to end its attempt: COMMITTED if so, else STALE and why.

    `attempt` is (id, key) of the attempt row of the job's present fence, or None if there is none.
    """
    if job.state != JobState.LEASED:
        return Judgement(CompleteOutcome.STALE, "not_leased")
    if token.fence != job.fence:
        return Judgement(CompleteOutcome.STALE, "fence")
    if token.revision != job.revision:
        return Judgement(CompleteOutcome.STALE, "revision")
    if attempt != (token.attempt, token.key):
        return Judgement(CompleteOutcome.STALE, "attempt")
    if not is_running(job, now=now):
        return Judgement(CompleteOutcome.STALE, "lease_over")
    return Judgement(CompleteOutcome.COMMITTED)


def judge_completion(
    job: LockedJob, attempt: tuple[int, UUID] | None, token: LeaseToken, result: str, *, now: datetime
) -> Judgement:
    """As `judge_token`, with the repeat of a completion that was committed before.

    On a DONE job only fence and result are compared: a repeat need not prove anything else, since it changes nothing.
    """
    if job.state == JobState.DONE:
        if token.fence == job.fence and result == job.result:
            return Judgement(CompleteOutcome.ALREADY_DONE)
        return Judgement(CompleteOutcome.STALE, "done")
    return judge_token(job, attempt, token, now=now)


def is_result(result: str) -> bool:
    return result in Result.values


@dataclass(frozen=True, slots=True)
class Effect:
    """What the end of an attempt without a result does to its job (the table in DESIGN.md)."""

    is_charged: bool
    rests: bool
    lengthens_back_off: bool


def effect_of(outcome: AttemptOutcome) -> Effect:
    """The effect of an outcome that gives the job back. Outcomes that end the job have none: ValueError."""
    if outcome in (AttemptOutcome.UNAVAILABLE, AttemptOutcome.OVERLOADED):
        return Effect(is_charged=False, rests=True, lengthens_back_off=False)
    if outcome in UNEXECUTED_OUTCOMES:
        return Effect(is_charged=False, rests=False, lengthens_back_off=False)
    if outcome == AttemptOutcome.INVALID_ANSWER or outcome in TIMEOUT_OUTCOMES:
        return Effect(is_charged=True, rests=True, lengthens_back_off=True)
    raise ValueError(f"{outcome} does not give a job back")
