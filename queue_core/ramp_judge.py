"""The machine's half of the ramp, which may only lower: guardrails judged by workers as they work."""

from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from django.db import transaction

from queue_core import hold
from queue_core.clock import Clock
from queue_core.contract import lock_lane, release
from queue_core.contract.rules import PROBE
from queue_core.gate_lines import Counts, Figure, GateVerdict, broken
from queue_core.gate_lines import judge as judge_lines
from queue_core.gate_measure import CALLS, count_calls
from queue_core.models import Attempt, Lane, StageRun
from queue_core.ramp_words import JudgeOutcome
from queue_core.states import TIMEOUT_OUTCOMES, AttemptOutcome, HoldReason, LeaseOutcome, LeaseToken

#: How often a running lane is judged though nothing fails in it.
JUDGE_EVERY = timedelta(seconds=5)
#: Of fewer calls the usual call time stays what it was.
LEAST_TIMED = 5

REASONS = {
    Figure.ERRORS: HoldReason.AUTO_ERRORS,
    Figure.TIMEOUTS: HoldReason.AUTO_TIMEOUTS,
    Figure.STALE: HoldReason.AUTO_STALE,
    Figure.LATENCY: HoldReason.AUTO_SLOW,
}
AWAY = (AttemptOutcome.UNAVAILABLE, AttemptOutcome.OVERLOADED)
#: Ends in which the model said nothing of the ticket.
SILENT = (*AWAY, *TIMEOUT_OUTCOMES)


def judge_if_due(lane_id: int, *, clock: Clock) -> JudgeOutcome:
    """Judge a running lane's guardrails, unless somebody just did. Cheap when nothing is due."""
    lane = Lane.objects.only("run", "judged_at").get(pk=lane_id)
    if lane.run_id is None:
        return JudgeOutcome.ON_HOLD
    if not _is_due(lane, clock.now()):
        return JudgeOutcome.NOT_DUE
    return _judge(lane_id, clock, only_if_due=True)


def judge(lane_id: int, *, clock: Clock) -> JudgeOutcome:
    """Judge a running lane's guardrails now: HELD puts it on hold. Keeps `judged_at` and the usual call time."""
    return _judge(lane_id, clock, only_if_due=False)


@transaction.atomic
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
    """Give a lease back whose call brought no verdict, and judge its lane in the same transaction.

    As `contract.release`; but timeouts of the probe, and the one that puts the lane on hold, are not charged.
    """
    attempt = Attempt.objects.select_related("job").filter(pk=token.attempt, job=token.job).first()
    if attempt is None:
        return release(token, outcome=outcome, clock=clock, worker=worker, detail=detail, latency=latency)
    lane = lock_lane(attempt.lane_id)
    run = lane.run if lane.run_id == attempt.run_id else None
    if run is not None and run.keeps_back:
        # Before the ticket: completions take a run that keeps back in this order, and a hold writes it.
        StageRun.objects.select_for_update(no_key=True).values_list("pk").get(pk=run.pk)
    is_silence = outcome == AttemptOutcome.TIMEOUT and run is not None and _is_silence(lane, run, attempt)
    charge = False if is_silence or (outcome in TIMEOUT_OUTCOMES and _spares(attempt, run, clock.now())) else None
    answer = release(token, outcome=outcome, clock=clock, worker=worker, detail=detail, latency=latency, charge=charge)
    now = clock.now()
    if outcome == AttemptOutcome.OVERLOADED and run is not None:
        _rest(lane, retry_after, now)
    if answer != LeaseOutcome.STALE and run is not None:
        if is_silence:
            params = {"running": lane.unavailable_limit}
            hold.automatic(lane, run_id=run.pk, reason=HoldReason.AUTO_TIMEOUTS, params=params, now=now)
        else:
            _judge_end(lane, run, outcome, detail=detail, retry_after=retry_after, now=now)
    return answer


def _is_silence(lane: Lane, run: StageRun, attempt: Attempt) -> bool:
    """Whether the model has answered nobody, of at least two tickets, for so many calls running as the lane allows.

    Or for fewer, when this timeout would end its job: in a lane with few tickets a model that hangs would else spend
    their budgets before any share is conclusive. One ticket alone tells nothing of the model: it may be the ticket.
    """
    last = (
        Attempt.objects.filter(lane_id=run.lane_id, run=run, ended_at__gte=run.started_at, outcome__in=CALLS)
        .order_by("-ended_at", "-pk")
        .values_list("outcome", "job")[: lane.unavailable_limit - 1]
    )
    silent = list(takewhile(lambda row: row[0] in SILENT, last))
    if all(job == attempt.job_id for _outcome, job in silent):
        return False
    is_last = attempt.job.attempts >= attempt.job.max_attempts and run.number != PROBE
    return is_last or len(silent) + 1 >= lane.unavailable_limit


def streak_reason(lane: Lane, run: StageRun) -> HoldReason | None:
    """The hold that the last calls of a run ask for: so many unavailable or overloaded answers running."""
    last = list(
        Attempt.objects.filter(lane_id=run.lane_id, run=run, ended_at__gte=run.started_at, outcome__in=CALLS)
        .order_by("-ended_at", "-pk")
        .values_list("outcome", flat=True)[: lane.unavailable_limit]
    )
    if len(last) < lane.unavailable_limit or any(outcome not in AWAY for outcome in last):
        return None
    is_load = all(outcome == AttemptOutcome.OVERLOADED for outcome in last)
    return HoldReason.AUTO_OVERLOADED if is_load else HoldReason.AUTO_UNAVAILABLE


@transaction.atomic
def _judge(lane_id: int, clock: Clock, *, only_if_due: bool) -> JudgeOutcome:
    lane = lock_lane(lane_id)
    now = clock.now()
    run = lane.run
    if run is None:
        return JudgeOutcome.ON_HOLD
    if only_if_due and not _is_due(lane, now):
        return JudgeOutcome.NOT_DUE
    counts = count_calls(run, since=now - run.window, now=now)
    _keep_judgement(lane, counts, now)
    if _hold_if_broken(lane, run, counts, now):
        return JudgeOutcome.HELD
    is_good = all(line.verdict == GateVerdict.GOOD for line in judge_lines(run, counts))
    return JudgeOutcome.GOOD if is_good else JudgeOutcome.INCONCLUSIVE


def _is_due(lane: Lane, now: datetime) -> bool:
    return lane.judged_at is None or now - lane.judged_at >= JUDGE_EVERY


def _keep_judgement(lane: Lane, counts: Counts, now: datetime) -> None:
    lane.judged_at = now
    if counts.timed >= LEAST_TIMED:
        lane.usual_call_time = counts.usual
    lane.save(update_fields=["judged_at", "usual_call_time"])


def _hold_if_broken(lane: Lane, run: StageRun, counts: Counts, now: datetime) -> bool:
    line = broken(judge_lines(run, counts))
    if line is None:
        return False
    return hold.automatic(lane, run_id=run.pk, reason=REASONS[line.figure], params=line.frozen(), now=now)


def _judge_end(
    lane: Lane,
    run: StageRun,
    outcome: AttemptOutcome,
    *,
    detail: str,
    retry_after: timedelta | None,
    now: datetime,
) -> None:
    reason, params = _reason_of_end(lane, run, outcome, detail=detail, retry_after=retry_after)
    if reason is not None:
        hold.automatic(lane, run_id=run.pk, reason=reason, params=params, now=now)
        return
    _hold_if_broken(lane, run, count_calls(run, since=now - run.window, now=now), now)


def _reason_of_end(
    lane: Lane, run: StageRun, outcome: AttemptOutcome, *, detail: str, retry_after: timedelta | None
) -> tuple[HoldReason | None, dict[str, Any]]:
    """The hold that this end alone asks for, whatever the shares are."""
    if outcome == AttemptOutcome.MISCONFIGURED:
        return HoldReason.AUTO_MISCONFIGURED, {"detail": detail}
    if outcome == AttemptOutcome.OVERLOADED and retry_after is not None and retry_after > lane.retry_after_limit:
        return HoldReason.AUTO_OVERLOADED, {"retry_after": retry_after.total_seconds()}
    if outcome in AWAY:
        return streak_reason(lane, run), {"running": lane.unavailable_limit, "detail": detail}
    return None, {}


def _rest(lane: Lane, retry_after: timedelta | None, now: datetime) -> None:
    """Let the lane claim nothing before the time that the model asked for. Beyond the limit it goes on hold instead."""
    if retry_after is None or not timedelta(0) < retry_after <= lane.retry_after_limit:
        return
    until = now + retry_after
    if lane.claims_not_before is None or lane.claims_not_before < until:
        lane.claims_not_before = until
        lane.save(update_fields=["claims_not_before"])


def _spares(attempt: Attempt, run: StageRun | None, now: datetime) -> bool:
    """Whether a timeout is not charged: the probe's, and those for which a run is held, with what was out meanwhile.

    The hold would give back the budget of the one that brings it; but charged first, it could have ended its job.
    """
    if attempt.run is not None and attempt.run.number == PROBE:
        return True
    if run is None:
        return attempt.run is not None and attempt.run.holds.filter(reason=HoldReason.AUTO_TIMEOUTS).exists()
    counts = count_calls(run, since=now - run.window, now=now).with_one_timeout_more()
    lines = {line.figure: line.verdict for line in judge_lines(run, counts)}
    return lines[Figure.TIMEOUTS] == GateVerdict.BAD
