"""One batch of claims: called together, each ended by its own token as its answer comes.

An end that fails never takes the others with it: it is logged, and its job is left to its lease.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from queue_core import batch, contract, ramp
from queue_core.batch import Claimed
from queue_core.clock import Clock
from queue_core.connections import Answer, Call, Connection, Overloaded, call_all, idempotency_key
from queue_core.contract import CALL_MARGIN, Ending
from queue_core.endings import Rulebook, ending_of, ending_of_restricted
from queue_core.errors import ConfigurationFault
from queue_core.models import Attempt, Lane, LateAnswer
from queue_core.persistence import persistently
from queue_core.states import AttemptOutcome, LeaseOutcome, LeaseToken, Result

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Desk:
    """Where a batch is worked on: its lane and connection, by whom, and by which clock."""

    lane: Lane
    adapter: Connection
    clock: Clock
    worker: str
    is_stopping: Callable[[], bool]


def work_on(claims: Sequence[Claimed], desk: Desk) -> None:
    """Call the model for these claims and end each of them."""
    rulebook = Rulebook.of({claim.policy for claim in claims})
    callable_claims = _with_time_left(_lengthened(claims, desk), desk)
    calls: dict[int, tuple[Claimed, Call]] = {}
    for claim, call in _calls(callable_claims, rulebook, desk):
        calls[call.attempt] = (claim, call)
    if calls:
        _call(calls, rulebook, desk)


def end_misconfigured(claims: Sequence[Claimed], fault: ConfigurationFault, *, clock: Clock, worker: str) -> None:
    """End claims of a lane that cannot work as it is set up: given back, and the lane is held with the sentence."""
    for claim in claims:
        _end_badly(claim.token, AttemptOutcome.MISCONFIGURED, clock=clock, worker=worker, detail=str(fault))


def _lengthened(claims: Sequence[Claimed], desk: Desk) -> list[Claimed]:
    """The claims, with leases long enough for one call where the lane's own are shorter."""
    needed = desk.lane.connection.call_time_limit + 2 * CALL_MARGIN
    if desk.lane.lease >= needed:
        return list(claims)
    for claim in claims:
        contract.renew(claim.token, clock=desk.clock, lease=needed)
    ends = dict(
        Attempt.objects.filter(pk__in=[claim.token.attempt for claim in claims]).values_list("pk", "lease_until")
    )
    return [replace(claim, lease_until=ends[claim.token.attempt]) for claim in claims]


def _with_time_left(claims: Sequence[Claimed], desk: Desk) -> list[tuple[Claimed, timedelta]]:
    """Each claim with its call's time limit. Those that have too little left, or all on stopping, are given back."""
    now = desk.clock.now()
    limit = desk.lane.connection.call_time_limit
    # Never more than half a lease: a usual call that is longer than the lease is the guardrails' to judge, and must
    # not turn into claims that are given back again for ever.
    least = min(batch.usual_call(desk.lane) - CALL_MARGIN, limit, desk.lane.lease / 2)
    in_time = []
    for claim in claims:
        left = min(limit, claim.lease_until - now - CALL_MARGIN)
        if left < least or desk.is_stopping():
            _give_back(claim, desk)
        else:
            in_time.append((claim, left))
    return in_time


def _calls(
    claims: Sequence[tuple[Claimed, timedelta]], rulebook: Rulebook, desk: Desk
) -> Iterator[tuple[Claimed, Call]]:
    answered = _answered([claim for claim, _limit in claims])
    for claim, limit in claims:
        try:
            version = rulebook.version(claim.policy)
        except ConfigurationFault as fault:
            end_misconfigured([claim], fault, clock=desk.clock, worker=desk.worker)
            continue
        yield claim, _call_of(claim, limit, version, answered.get(claim.token.job, 0))


def _call_of(claim: Claimed, limit: timedelta, version: int, answered: int) -> Call:
    key = idempotency_key(
        source=claim.source,
        ticket=claim.external_id,
        revision=claim.token.revision,
        policy_version=version,
        answered=answered,
    )
    return Call(
        attempt=claim.token.attempt,
        source=claim.source,
        ticket=claim.external_id,
        revision=claim.token.revision,
        policy_version=version,
        fence=claim.token.fence,
        idempotency_key=key,
        evidence=claim.evidence,
        time_limit=limit,
        is_restricted=claim.is_restricted,
    )


def _answered(claims: Sequence[Claimed]) -> dict[int, int]:
    """How many answers each job had already: only an answer received may change what the model is asked."""
    jobs = [claim.token.job for claim in claims if claim.token.fence > 1]
    if not jobs:
        return {}
    invalid = Attempt.objects.filter(job__in=jobs, outcome=AttemptOutcome.INVALID_ANSWER).values_list("job", flat=True)
    late = LateAnswer.objects.filter(job__in=jobs, result__in=Result.values).values_list("job", flat=True)
    received = [*invalid, *late]
    return {job: received.count(job) for job in set(received)}


def _call(calls: dict[int, tuple[Claimed, Call]], rulebook: Rulebook, desk: Desk) -> None:
    counted = _Counted(desk.adapter)
    ready: list[tuple[LeaseToken, Ending]] = []
    answers = call_all(counted, [call for _claim, call in calls.values()])
    for taken, (call, answer) in enumerate(answers, start=1):
        claim = calls[call.attempt][0]
        ending = _judged(claim, answer, rulebook, desk)
        if ending is not None:
            ready.append((claim.token, ending))
        # Answers that lie ready are committed together; none waits for a call that is still out.
        if counted.answered <= taken:
            _complete(ready, desk)
            ready = []
    _complete(ready, desk)


def _judged(claim: Claimed, answer: Answer, rulebook: Rulebook, desk: Desk) -> Ending | None:
    """The end to be committed for this answer. None: it gave the job back, which is done already."""
    if claim.is_restricted and not desk.adapter.allow_restricted:
        return ending_of_restricted(answer)
    try:
        ending = ending_of(answer, rulebook.policy(claim.policy), rulebook.codes)
    except Exception:
        logger.exception("judging the answer for job %d, fence %d raised", claim.token.job, claim.token.fence)
        return None
    if ending is None:
        _end_unanswered(claim, answer, desk)
    return ending


def _end_unanswered(claim: Claimed, answer: Answer, desk: Desk) -> None:
    _end_badly(
        claim.token,
        answer.outcome,
        clock=desk.clock,
        worker=desk.worker,
        detail=getattr(answer, "detail", ""),
        latency=answer.latency,
        retry_after=answer.retry_after if isinstance(answer, Overloaded) else None,
    )


def _complete(ready: list[tuple[LeaseToken, Ending]], desk: Desk) -> None:
    if not ready:
        return
    try:
        # The same tokens again after a lost connection: what was committed before it broke is answered already-done.
        persistently(lambda: batch.complete_many(ready, clock=desk.clock, worker=desk.worker))
    except Exception:
        logger.exception("%d answers could not be written down; their jobs are left to their leases", len(ready))


def _end_badly(
    token: LeaseToken,
    outcome: AttemptOutcome,
    *,
    clock: Clock,
    worker: str,
    detail: str = "",
    latency: timedelta | None = None,
    retry_after: timedelta | None = None,
) -> LeaseOutcome | None:
    try:
        return persistently(
            lambda: ramp.end_badly(
                token,
                outcome=outcome,
                clock=clock,
                worker=worker,
                detail=detail,
                latency=latency,
                retry_after=retry_after,
            )
        )
    except Exception:
        logger.exception("the end of job %d, fence %d raised; it is left to its lease", token.job, token.fence)
        return None


def _give_back(claim: Claimed, desk: Desk) -> None:
    try:
        persistently(
            lambda: contract.release(claim.token, outcome=AttemptOutcome.RELEASED, clock=desk.clock, worker=desk.worker)
        )
    except Exception:
        logger.exception("job %d, fence %d could not be given back", claim.token.job, claim.token.fence)


class _Counted:
    """An adapter, and how many of the calls it was given it has answered so far."""

    def __init__(self, adapter: Connection) -> None:
        self._adapter = adapter
        self.answered = 0
        self.at_once = adapter.at_once
        self.allow_restricted = adapter.allow_restricted
        self.prepare = adapter.prepare
        self.check_health = adapter.check_health

    def review(self, calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
        return self._count(self._adapter.review(calls))

    def _count(self, answers: Iterator[tuple[Call, Answer]]) -> Iterator[tuple[Call, Answer]]:
        for pair in answers:
            self.answered += 1
            yield pair
