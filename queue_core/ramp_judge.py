"""The machine's half of the ramp, which may only lower: guardrails judged by workers as they work."""

from datetime import datetime, timedelta

from django.db import transaction

from queue_core import hold
from queue_core.clock import Clock
from queue_core.contract import lock_lane
from queue_core.gate_lines import Counts, Figure, GateVerdict, broken
from queue_core.gate_lines import judge as judge_lines
from queue_core.gate_measure import CALLS, count_calls
from queue_core.models import Attempt, Lane, StageRun
from queue_core.ramp_words import JudgeOutcome
from queue_core.states import SILENT_OUTCOMES, AttemptOutcome, HoldReason

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


def streak_reason(lane: Lane, run: StageRun) -> HoldReason | None:
    """The hold that the last calls of a run ask for: so many unavailable or overloaded answers running.

    Or so many of any silence, of at least two tickets: a server on its way down ends its calls in every way there is.
    """
    last = list(
        Attempt.objects.filter(lane_id=run.lane_id, run=run, ended_at__gte=run.started_at, outcome__in=CALLS)
        .order_by("-ended_at", "-pk")
        .values_list("outcome", "job")[: lane.unavailable_limit]
    )
    outcomes = {outcome for outcome, _job in last}
    if len(last) < lane.unavailable_limit or not outcomes <= set(SILENT_OUTCOMES):
        return None
    if outcomes == {AttemptOutcome.OVERLOADED}:
        return HoldReason.AUTO_OVERLOADED
    is_of_model = outcomes <= set(AWAY) or len({job for _outcome, job in last}) > 1
    return HoldReason.AUTO_UNAVAILABLE if is_of_model else None


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
    if hold_if_broken(lane, run, counts, now):
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


def hold_if_broken(lane: Lane, run: StageRun, counts: Counts, now: datetime) -> bool:
    """Put a locked lane on hold if one of its run's guardrails is broken by these calls."""
    line = broken(judge_lines(run, counts))
    if line is None:
        return False
    return hold.automatic(lane, run_id=run.pk, reason=REASONS[line.figure], params=line.frozen(), now=now)
