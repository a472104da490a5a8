"""Calls that brought no verdict: their leases are given back, and their lane is judged in the same transaction.

Calls that ended in the same way one behind another are ended together: a model that goes away ends two hundred at once,
and the last of them would else outlive its lease while the others are written down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from django.db import transaction
from django.db.models import Min

from queue_core import hold
from queue_core.clock import Clock
from queue_core.contract import GivenBack, lock_lane, release_together
from queue_core.contract.rules import PROBE
from queue_core.errors import InvalidCompletion
from queue_core.gate_lines import Figure, GateVerdict
from queue_core.gate_lines import judge as judge_lines
from queue_core.gate_measure import CALLS, count_calls
from queue_core.last_look import model_answers
from queue_core.models import Attempt, Lane, StageRun
from queue_core.ramp_judge import AWAY, hold_if_broken, streak_reason
from queue_core.states import (
    ENDING_OUTCOMES,
    SILENT_OUTCOMES,
    TIMEOUT_OUTCOMES,
    AttemptOutcome,
    HoldReason,
    LeaseOutcome,
    LeaseToken,
)

#: Silent ends that cost a ticket some of its budget, unless it is the model's and not the ticket's.
CHARGED_SILENCE = (*TIMEOUT_OUTCOMES, AttemptOutcome.INVALID_ANSWER)


@dataclass(frozen=True, slots=True)
class BadEnd:
    """What a call that brought no verdict said of itself."""

    token: LeaseToken
    detail: str = ""
    latency: timedelta | None = None
    retry_after: timedelta | None = None


def end_badly(
    token: LeaseToken,
    *,
    outcome: AttemptOutcome,
    clock: Clock,
    worker: str = "",
    detail: str = "",
    latency: timedelta | None = None,
    retry_after: timedelta | None = None,
) -> LeaseOutcome:
    """As `end_badly_together`, for one."""
    end = BadEnd(token, detail, latency, retry_after)
    [answer] = end_badly_together([end], outcome=outcome, clock=clock, worker=worker)
    return answer


@transaction.atomic
def end_badly_together(
    ends: Sequence[BadEnd], *, outcome: AttemptOutcome, clock: Clock, worker: str = ""
) -> list[LeaseOutcome]:
    """Give leases of one lane back whose calls ended so, and judge the lane. An outcome for each, in order.

    As `contract.release`; but what is no answer is not charged in the probe, nor where it puts the lane on hold. Raises
    InvalidCompletion for tokens of several lanes.
    """
    attempts = _attempts_of(ends)
    lane = _lock_lane_of(attempts)
    run = lane.run if lane is not None else None
    of_run = [attempt for attempt in attempts if run is not None and attempt.run_id == run.pk]
    if lane is None or run is None or not of_run:
        spared = _spared(outcome, attempts, None, breaks=False)
        return release_together(_given_back(ends, outcome, spared), clock=clock, worker=worker)
    if run.keeps_back:
        # Before the tickets: completions take a run that keeps back in this order, and a hold writes it.
        StageRun.objects.select_for_update(no_key=True).values_list("pk").get(pk=run.pk)
    is_silence = outcome in CHARGED_SILENCE and _is_silence(lane, run, of_run, outcome, clock.now())
    breaks = is_silence or (outcome in TIMEOUT_OUTCOMES and _break_the_run(run, len(of_run), clock.now()))
    spared = _spared(outcome, attempts, run, breaks=breaks)
    answers = release_together(_given_back(ends, outcome, spared), clock=clock, worker=worker)
    counted = {attempt.pk for attempt in of_run}
    given_back = zip(ends, answers, strict=True)
    ended = [end for end, answer in given_back if answer != LeaseOutcome.STALE and end.token.attempt in counted]
    _judge_ends(lane, run, ends, ended, outcome, is_silence=is_silence, now=clock.now())
    return answers


def _attempts_of(ends: Sequence[BadEnd]) -> list[Attempt]:
    jobs = {end.token.attempt: end.token.job for end in ends}
    found = Attempt.objects.select_related("job", "run").filter(pk__in=list(jobs))
    return [attempt for attempt in found if attempt.job_id == jobs[attempt.pk]]


def _lock_lane_of(attempts: Sequence[Attempt]) -> Lane | None:
    lanes = {attempt.lane_id for attempt in attempts}
    if len(lanes) > 1:
        raise InvalidCompletion("Ends of one lane are given together.", field="ends")
    return lock_lane(lanes.pop()) if lanes else None


def _given_back(ends: Sequence[BadEnd], outcome: AttemptOutcome, spared: set[int]) -> list[GivenBack]:
    return [
        GivenBack(end.token, outcome, end.detail, end.latency, charge=False if end.token.attempt in spared else None)
        for end in ends
    ]


def _is_silence(lane: Lane, run: StageRun, attempts: Sequence[Attempt], outcome: AttemptOutcome, now: datetime) -> bool:
    """Whether the model has answered nobody, of at least two tickets, for so many calls running as the lane allows.

    Or for fewer, when one of these ends would end its job: in a lane with few tickets a model that hangs, or whose
    server answers each call with an error, would else spend their budgets before any share is conclusive. One ticket
    alone tells nothing of the model, since it may be the ticket; unless the last health check failed too.
    """
    last = (
        Attempt.objects.filter(lane_id=run.lane_id, run=run, ended_at__gte=run.started_at, outcome__in=CALLS)
        .order_by("-ended_at", "-pk")
        .values_list("outcome", "job")[: lane.unavailable_limit - 1]
    )
    silent = [job for _outcome, job in takewhile(lambda row: row[0] in SILENT_OUTCOMES, last)]
    is_one = len({*silent, *(attempt.job_id for attempt in attempts)}) < 2
    if is_one and model_answers(lane.connection, now) is not False:
        return False
    if len(silent) + len(attempts) >= lane.unavailable_limit:
        return True
    dying = [attempt.job_id for attempt in attempts if attempt.job.attempts >= attempt.job.max_attempts]
    if not dying or run.number == PROBE:
        return False
    # Tickets that no model answers rightly come one behind another too: they rest together. A model that answered
    # another one since is not away.
    return outcome == AttemptOutcome.TIMEOUT or not _has_answered_since(run, dying)


def _has_answered_since(run: StageRun, job_ids: Sequence[int]) -> bool:
    """Whether a call of the run was answered since the first of it for these jobs began."""
    begun = Attempt.objects.filter(job__in=job_ids, run=run).aggregate(first=Min("started_at"))["first"]
    answered = Attempt.objects.filter(lane_id=run.lane_id, run=run, ended_at__gte=begun, outcome__in=ENDING_OUTCOMES)
    return answered.exists()


def _spared(outcome: AttemptOutcome, attempts: Sequence[Attempt], run: StageRun | None, *, breaks: bool) -> set[int]:
    """Attempts whose silence is not charged: the probe's, and those for which a run is held, with what was out then.

    The hold would give back the budget of those that bring it; but charged first, one could have ended its job.
    """
    if outcome not in CHARGED_SILENCE:
        return set()
    spared = set()
    for attempt in attempts:
        of_run = run is not None and attempt.run_id == run.pk
        if attempt.run is not None and (
            attempt.run.number == PROBE or (breaks if of_run else _ended_for_silence(attempt.run))
        ):
            spared.add(attempt.pk)
    return spared


def _break_the_run(run: StageRun, more: int, now: datetime) -> bool:
    """Whether so many timeouts more are too many."""
    counts = count_calls(run, since=now - run.window, now=now).with_timeouts_more(more)
    return {line.figure: line.verdict for line in judge_lines(run, counts)}[Figure.TIMEOUTS] == GateVerdict.BAD


def _ended_for_silence(run: StageRun) -> bool:
    return run.holds.filter(hold.FOR_SILENCE).exists()


def _judge_ends(
    lane: Lane,
    run: StageRun,
    ends: Sequence[BadEnd],
    ended: Sequence[BadEnd],
    outcome: AttemptOutcome,
    *,
    is_silence: bool,
    now: datetime,
) -> None:
    """Judge a lane by `ended`, those of `ends` whose lease still held. What the model asked for counts in any case."""
    if outcome == AttemptOutcome.OVERLOADED:
        _rest(lane, ends, now)
    if not ended:
        return
    reason, params = _reason_of(lane, run, ended, outcome, is_silence=is_silence)
    if reason is not None:
        hold.automatic(lane, run_id=run.pk, reason=reason, params=params, now=now)
        return
    hold_if_broken(lane, run, count_calls(run, since=now - run.window, now=now), now)


def _reason_of(
    lane: Lane, run: StageRun, ends: Sequence[BadEnd], outcome: AttemptOutcome, *, is_silence: bool
) -> tuple[HoldReason | None, dict[str, Any]]:
    """The hold that these ends alone ask for, whatever the shares are."""
    detail = ends[-1].detail
    if is_silence and outcome == AttemptOutcome.INVALID_ANSWER:
        return HoldReason.AUTO_ERRORS, {hold.RUNNING: lane.unavailable_limit, "detail": detail}
    if is_silence:
        return HoldReason.AUTO_TIMEOUTS, {hold.RUNNING: lane.unavailable_limit}
    if outcome == AttemptOutcome.MISCONFIGURED:
        return HoldReason.AUTO_MISCONFIGURED, {"detail": detail}
    longest = max((end.retry_after for end in ends if end.retry_after is not None), default=None)
    if outcome == AttemptOutcome.OVERLOADED and longest is not None and longest > lane.retry_after_limit:
        return HoldReason.AUTO_OVERLOADED, {"retry_after": longest.total_seconds()}
    if outcome in AWAY:
        return streak_reason(lane, run), {hold.RUNNING: lane.unavailable_limit, "detail": detail}
    return None, {}


def _rest(lane: Lane, ends: Sequence[BadEnd], now: datetime) -> None:
    """Let the lane claim nothing before the time that the model asked for. Beyond the limit it goes on hold instead."""
    waits = [end.retry_after for end in ends if end.retry_after is not None]
    longest = max((wait for wait in waits if timedelta(0) < wait <= lane.retry_after_limit), default=None)
    if longest is None:
        return
    until = now + longest
    if lane.claims_not_before is None or lane.claims_not_before < until:
        lane.claims_not_before = until
        lane.save(update_fields=["claims_not_before"])
