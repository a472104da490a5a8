"""One batch of claims: called together, each ended by its own token as its answer comes.

An end that fails never takes the others with it: it is logged, and its job is left to its lease.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby

from queue_core import batch, contract, ramp
from queue_core.batch import Claimed
from queue_core.clock import Clock
from queue_core.connections import Answer, Call, Connection, Flight, Overloaded, idempotency_key
from queue_core.contract import CALL_MARGIN, Ending
from queue_core.endings import Rulebook, ending_of, ending_of_restricted
from queue_core.errors import ConfigurationFault
from queue_core.models import Attempt, Lane, LateAnswer
from queue_core.persistence import persistently
from queue_core.ramp import BadEnd
from queue_core.states import AttemptOutcome, LeaseToken, Result

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Desk:
    """Where a batch is worked on: its lane and connection, by whom, and by which clock."""

    lane: Lane
    adapter: Connection
    clock: Clock
    worker: str
    is_stopping: Callable[[], bool]


type More = Callable[[int], Sequence[Claimed]]

#: New claims are asked for when so much of the room is free: a claim for each single answer would cost more than it
#: brings, and a batch that waits for its slowest call would leave the rest idle.
FREE_SHARE = 10
#: So long after a claim brought nothing the next is tried, at the earliest.
PAUSE = 0.1
#: What writing down one end may take, of which there may be as many at once as there are calls.
WRITING = timedelta(milliseconds=20)


def work_on(claims: Sequence[Claimed], desk: Desk, more: More | None = None) -> None:
    """Call the model for these claims and end each of them, as its answer comes.

    `more(room)` claims up to `room` further jobs whenever places have become free; it returns none when this worker
    should take on nothing new.
    """
    more = more or _no_more
    calling = _Calling(desk)
    calling.begin(claims)
    paused_until = 0.0
    while calling.is_out:
        calling.end_answered()
        room = calling.room
        if room * FREE_SHARE < desk.adapter.at_once or time.monotonic() < paused_until or desk.is_stopping():
            continue
        try:
            further = more(room)
            calling.begin(further)
        except Exception:
            # What is out is still to be ended; what failed here will fail again where nothing hangs on it.
            logger.exception("no more could be claimed for lane %d while calls are out", desk.lane.pk)
            more = _no_more
            continue
        if not further:
            paused_until = time.monotonic() + PAUSE


def _no_more(_room: int) -> Sequence[Claimed]:
    return ()


class _Calling:
    """The calls of one worker that are out, each with the claim it is for."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._flight = Flight(desk.adapter)
        self._out: dict[int, tuple[Claimed, Rulebook]] = {}

    @property
    def is_out(self) -> bool:
        return self._flight.out > 0

    @property
    def room(self) -> int:
        return self._flight.room

    def begin(self, claims: Sequence[Claimed]) -> None:
        """Call the model for claims, but for those that are given back because no time is left for a call."""
        if not claims:
            return
        rulebook = Rulebook.of({claim.policy for claim in claims})
        in_time = _with_time_left(_lengthened(claims, self._desk), self._desk)
        calls = []
        for claim, call in _calls(in_time, rulebook, self._desk):
            self._out[call.attempt] = (claim, rulebook)
            calls.append(call)
        self._flight.start(calls)

    def end_answered(self) -> None:
        """Wait for an answer, and end what was answered by then: in the order of arrival, what is alike together.

        In another order the lane would be judged by calls that did not fail one behind another.
        """
        judged = [found for call, answer in self._flight.answers() if (found := self._judged(call, answer))]
        for outcome, group in groupby(judged, key=lambda one: one.gives_back):
            if outcome is None:
                _complete([(one.claim.token, one.ending) for one in group if one.ending is not None], self._desk)
            else:
                ends = [_bad_end(one.claim.token, one.answer) for one in group]
                _end_badly(ends, outcome, clock=self._desk.clock, worker=self._desk.worker)

    def _judged(self, call: Call, answer: Answer) -> "_Judged | None":
        claim, rulebook = self._out.pop(call.attempt)
        try:
            return _Judged(claim, answer, _judged(claim, answer, rulebook, self._desk))
        except Exception:
            logger.exception("judging the answer for job %d, fence %d raised", claim.token.job, claim.token.fence)
            return None


@dataclass(frozen=True, slots=True)
class _Judged:
    """An answer with the end that it brings; without one it gives its job back."""

    claim: Claimed
    answer: Answer
    ending: Ending | None

    @property
    def gives_back(self) -> AttemptOutcome | None:
        return None if self.ending is not None else self.answer.outcome


def end_misconfigured(claims: Sequence[Claimed], fault: ConfigurationFault, *, clock: Clock, worker: str) -> None:
    """End claims of a lane that cannot work as it is set up: given back, and the lane is held with the sentence."""
    ends = [BadEnd(claim.token, str(fault)) for claim in claims]
    _end_badly(ends, AttemptOutcome.MISCONFIGURED, clock=clock, worker=worker)


def _lengthened(claims: Sequence[Claimed], desk: Desk) -> list[Claimed]:
    """The claims, with leases long enough for one call where the lane's own are shorter."""
    needed = desk.lane.connection.call_time_limit + 2 * CALL_MARGIN + len(claims) * WRITING
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
            version, questions = rulebook.version(claim.policy), rulebook.questions(claim.policy)
        except ConfigurationFault as fault:
            end_misconfigured([claim], fault, clock=desk.clock, worker=desk.worker)
            continue
        yield claim, replace(_call_of(claim, limit, version, answered.get(claim.token.job, 0)), questions=questions)


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


def _judged(claim: Claimed, answer: Answer, rulebook: Rulebook, desk: Desk) -> Ending | None:
    """The end to be committed for this answer. None: it gives the job back."""
    if claim.is_restricted and not desk.adapter.allow_restricted:
        return ending_of_restricted(answer)
    return ending_of(answer, rulebook.policy(claim.policy), rulebook.codes)


def _bad_end(token: LeaseToken, answer: Answer) -> BadEnd:
    retry_after = answer.retry_after if isinstance(answer, Overloaded) else None
    return BadEnd(token, getattr(answer, "detail", ""), answer.latency, retry_after)


def _complete(ready: list[tuple[LeaseToken, Ending]], desk: Desk) -> None:
    if not ready:
        return
    try:
        # The same tokens again after a lost connection: what was committed before it broke is answered already-done.
        persistently(lambda: batch.complete_many(ready, clock=desk.clock, worker=desk.worker))
    except Exception:
        logger.exception("%d answers could not be written down; their jobs are left to their leases", len(ready))


def _end_badly(ends: Sequence[BadEnd], outcome: AttemptOutcome, *, clock: Clock, worker: str) -> None:
    """Together; one by one where that raises, so that only the guilty one is left to its lease."""
    if not ends:
        return
    try:
        persistently(lambda: ramp.end_badly_together(ends, outcome=outcome, clock=clock, worker=worker))
    except Exception:
        logger.exception("%d ends could not be written down together", len(ends))
        if len(ends) > 1:
            for end in ends:
                _end_badly([end], outcome, clock=clock, worker=worker)


def _give_back(claim: Claimed, desk: Desk) -> None:
    try:
        persistently(
            lambda: contract.release(claim.token, outcome=AttemptOutcome.RELEASED, clock=desk.clock, worker=desk.worker)
        )
    except Exception:
        logger.exception("job %d, fence %d could not be given back", claim.token.job, claim.token.fence)
