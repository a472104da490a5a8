"""Texts whose right result is known, sent to the models of running lanes: at each stage's start, and again by schedule.

They are never tickets: no claim, no lease, no decision. One is out at a time in each lane, beside what the stage lets
through, within a call's time limit. Rows say what was asked; a round that was cut short goes on with the next task.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, OuterRef, Q, Subquery

from queue_core import hold
from queue_core.clock import EPOCH, Clock
from queue_core.connections import Answer, Call, build, call_all, idempotency_key
from queue_core.connections.answers import MAX_NAME, bounded
from queue_core.contract import lock_lane
from queue_core.endings import Rulebook, ending_of
from queue_core.errors import ConfigurationFault
from queue_core.gate import read_rightly
from queue_core.gate_lines import Figure, GateVerdict
from queue_core.models import KnownAnswer, KnownReply, Lane, StageRun
from queue_core.models.jobs import MAX_DETAIL
from queue_core.states import AttemptOutcome, HoldReason

logger = logging.getLogger(__name__)

SOURCE = "known-answers"
#: Texts of one lane that are sent in one turn; the others have the next ones.
MOST_TEXTS = 50
#: One task asks for so long and no longer; the next one goes on.
SLICE = timedelta(seconds=20)
#: A text gets so long at most, whatever the connection allows a ticket.
LONGEST_CALL = timedelta(seconds=60)
#: A reply that is open so much longer than a call may take was left behind by a worker that died.
LOST_AFTER = timedelta(minutes=2)


def ask_due(*, clock: Clock, is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Ask what is due in every running lane, within one slice of time. Safe to run twice at once. Returns how many."""
    ends = clock.now() + SLICE
    return sum(_ask_lane(turn, ends, clock, is_stopping) for turn in _turns(clock))


@dataclass(frozen=True, slots=True)
class _Turn:
    """What one lane is still to be asked in its round, what was asked longest ago first."""

    lane: Lane
    run: StageRun
    texts: Sequence[KnownAnswer]
    last: datetime


def _turns(clock: Clock) -> list[_Turn]:
    """The lanes with something to ask, that whose turn was longest ago first: a model that hangs keeps no other lane
    from being asked, and no text keeps those behind it from theirs, though the next round comes before it is through.
    """
    turns = []
    lanes = Lane.objects.filter(run__max_wrong_ratio__isnull=False).order_by("pk")
    for lane in lanes.select_related("run", "connection"):
        run = lane.run
        if run is not None and _begins_or_goes_on(lane, run, clock.now()):
            texts = _texts(run)
            due = [text for text, asked in texts if run.known_asked_at is None or asked < run.known_asked_at]
            turns.append(_Turn(lane, run, due[:MOST_TEXTS], max((asked for _text, asked in texts), default=EPOCH)))
    return sorted((turn for turn in turns if turn.texts), key=lambda turn: turn.last)


def _texts(run: StageRun) -> list[tuple[KnownAnswer, datetime]]:
    """The texts in use with when this run asked each last; EPOCH where it never did."""
    asked = KnownReply.objects.filter(run=run, known=OuterRef("pk")).order_by("-asked_at").values("asked_at")[:1]
    texts = KnownAnswer.objects.filter(lane_id=run.lane_id, is_active=True).annotate(asked=Subquery(asked))
    found = [(text, text.asked or EPOCH) for text in texts.order_by("pk")]
    return sorted(found, key=lambda pair: pair[1])


def _begins_or_goes_on(lane: Lane, run: StageRun, now: datetime) -> bool:
    """Whether a round is open. Whoever moves its time begins it."""
    if lane.claims_not_before is not None and now < lane.claims_not_before:
        return False
    due = Q(known_asked_at__isnull=True) | Q(known_asked_at__lte=now - F("known_every"))
    is_new = StageRun.objects.filter(due, pk=run.pk, ended_at__isnull=True).update(known_asked_at=now)
    if is_new:
        lost = KnownReply.objects.filter(run=run, ended_at__isnull=True, asked_at__lte=now - LOST_AFTER)
        lost.update(ended_at=now, outcome=AttemptOutcome.UNKNOWN)
    run.refresh_from_db(fields=["known_asked_at", "ended_at"])
    return run.ended_at is None


def _ask_lane(turn: _Turn, ends: datetime, clock: Clock, is_stopping: Callable[[], bool]) -> int:
    lane, run, asked = turn.lane, turn.run, 0
    for known in turn.texts:
        if is_stopping() or clock.now() >= ends:
            break
        reply = _opened(run, known, clock)
        if reply is None:
            continue
        asked += 1
        _close(reply, _answered(lane, reply), clock)
        if _hold_if_wrong(lane.pk, run.pk, clock):
            break
    return asked


@transaction.atomic
def _opened(run: StageRun, known: KnownAnswer, clock: Clock) -> KnownReply | None:
    """The row of one asking, written before the call. None: the text was asked in this round, or the run ended."""
    locked = StageRun.objects.select_for_update(no_key=True).get(pk=run.pk)
    if locked.ended_at is not None or locked.known_asked_at is None:
        return None
    if KnownReply.objects.filter(run=run, known=known, asked_at__gte=locked.known_asked_at).exists():
        return None
    return KnownReply.objects.create(
        known=known,
        lane_id=run.lane_id,
        run=run,
        policy_id=run.policy_id,
        connection_id=run.connection_id,
        version=known.version,
        expected=known.expected,
        asked_at=clock.now(),
    )


def _answered(lane: Lane, reply: KnownReply) -> Answer | ConfigurationFault:
    try:
        adapter, rulebook = build(lane.connection), Rulebook.of({reply.policy_id})
        [(_call, answer)] = call_all(adapter, [_call_of(lane, reply, rulebook)])
    except ConfigurationFault as fault:
        return fault
    return answer


def _call_of(lane: Lane, reply: KnownReply, rulebook: Rulebook) -> Call:
    named = f"known-{reply.known_id}"
    version = rulebook.version(reply.policy_id)
    # A key of its own each time: a model that remembers its answers must not tell us yesterday's.
    key = idempotency_key(
        source=SOURCE, ticket=named, revision=str(reply.version), policy_version=version, answered=reply.pk
    )
    return Call(
        attempt=-reply.pk,
        source=SOURCE,
        ticket=named,
        revision=str(reply.version),
        policy_version=version,
        fence=1,
        idempotency_key=key,
        evidence=json.dumps({"text": reply.known.text}, ensure_ascii=False),
        time_limit=min(lane.connection.call_time_limit, LONGEST_CALL),
        questions=rulebook.questions(reply.policy_id),
    )


def _close(reply: KnownReply, answer: Answer | ConfigurationFault, clock: Clock) -> None:
    if isinstance(answer, ConfigurationFault):
        outcome, detail, ending = AttemptOutcome.MISCONFIGURED, str(answer), None
    else:
        outcome, detail = answer.outcome, getattr(answer, "detail", "")
        rulebook = Rulebook.of({reply.policy_id})
        ending = ending_of(answer, rulebook.policy(reply.policy_id), rulebook.codes)
        reply.latency, reply.model = answer.latency, bounded(answer.model, MAX_NAME)
    reply.ended_at, reply.outcome, reply.detail = clock.now(), outcome, bounded(detail, MAX_DETAIL)
    if ending is not None:
        reply.scores, reply.cause = ending.scores, ending.cause
    KnownReply.objects.filter(pk=reply.pk, ended_at__isnull=True).update(
        ended_at=reply.ended_at,
        outcome=reply.outcome,
        result=ending.result if ending is not None else None,
        cause=reply.cause,
        scores=reply.scores,
        latency=reply.latency,
        model=reply.model,
        detail=reply.detail,
    )


@transaction.atomic
def _hold_if_wrong(lane_id: int, run_id: int, clock: Clock) -> bool:
    """The machine may lower the flow: a lane whose known answers are wrong beyond its limit goes on hold."""
    lane = lock_lane(lane_id)
    run = lane.run
    if run is None or run.pk != run_id:
        return True
    now = clock.now()
    wrong = next((line for line in read_rightly(run, now=now) if line.figure == Figure.WRONG), None)
    if wrong is None or wrong.verdict != GateVerdict.BAD:
        return False
    return hold.automatic(lane, run_id=run_id, reason=HoldReason.AUTO_WRONG, params=wrong.frozen(), now=now)
