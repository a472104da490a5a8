"""A lane put on hold: by a person at once, or by the machine in the transaction that ends an attempt."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Q

from queue_core import audit, outbox, ramp_outages
from queue_core.clock import Clock, is_instant
from queue_core.contract import give_back_attempts, lock_lane, refuse_running
from queue_core.errors import InvalidRequest
from queue_core.gate_measure import CALLS
from queue_core.models import Attempt, Hold, Lane, StageRun
from queue_core.models.lanes import MAX_CAP
from queue_core.ramp_checks import checked_text, require
from queue_core.ramp_outages import EntryCode
from queue_core.ramp_runs import end_hold, end_run
from queue_core.states import PERSONS_HOLD_REASONS, SILENT_OUTCOMES, HoldForm, HoldReason, MessageKind, RunEnd

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

RIGHT = "hold_lane"
#: Of the parameters of a person's hold: the cap at which the lane ran, where that was less than approved.
CAP = "cap"
#: The longest trailing streak of calls without an answer whose budget a hold gives back.
LONGEST_STREAK = 2 * MAX_CAP
#: Of parameters of an automatic hold: how many calls running brought no answer.
RUNNING = "running"
#: Holds for which the calls before them cost no ticket its budget: timeouts, or so many running that nobody answered.
FOR_SILENCE = Q(is_automatic=True) & (Q(reason=HoldReason.AUTO_TIMEOUTS) | Q(params__has_key=RUNNING))
#: Holds that tell of an outage of the connection; the others are changes of our own.
OUTAGES = frozenset(
    {
        HoldReason.AUTO_UNAVAILABLE,
        HoldReason.AUTO_OVERLOADED,
        HoldReason.AUTO_ERRORS,
        HoldReason.AUTO_TIMEOUTS,
        HoldReason.AUTO_STALE,
        HoldReason.AUTO_SLOW,
        HoldReason.AUTO_MISCONFIGURED,
        HoldReason.AUTO_WRONG,
    }
)


class HoldOutcome(StrEnum):
    HELD = "held"
    #: It was on hold already; now its running results are refused too.
    REFUSING = "refusing"
    ALREADY_ON_HOLD = "already_on_hold"


@dataclass(frozen=True, slots=True)
class Held:
    """`hold` is the one that stands now; `refused` is how many running results were refused by this act."""

    outcome: HoldOutcome
    hold: Hold
    refused: int = 0


@transaction.atomic
def pull(
    lane_id: int,
    *,
    person: "AbstractUser",
    form: str,
    reason: str,
    note: str = "",
    until: datetime | None = None,
    clock: Clock,
) -> Held:
    """Put a lane on hold at once, whatever stage it runs by now: a hold never loses against a raise.

    On a lane that is on hold already nothing changes, but that "hold and refuse" still refuses what runs.
    """
    require(person, RIGHT, lane_id)
    form, reason, note = _checked(form, reason, note)
    lane = lock_lane(lane_id)
    now = clock.now()
    if until is not None and not (is_instant(until) and until > now):
        raise InvalidRequest("The time until which the lane is held is not after now.", field="until")
    if lane.run is None and lane.hold is not None:
        return _refuse_on_hold(lane, lane.hold, form, person=person, note=note, now=now, clock=clock)
    run = end_run(lane, ended_as=RunEnd.HELD, person=person, now=now)
    hold = Hold(lane=lane, form=form, reason=reason, note=note, by_id=person.pk, run=run, until=until, started_at=now)
    if run is not None and lane.cap is not None and lane.cap < run.cap:
        # What a lead had lowered it to: a resume goes on with no more.
        hold.params = {CAP: lane.cap}
    refused = _refuse(lane, clock) if form == HoldForm.REFUSE else 0
    _begin(lane, hold, person=person, now=now, refused=refused)
    return Held(HoldOutcome.HELD, hold, refused)


def automatic(
    lane: Lane, *, run_id: int | None, reason: HoldReason, params: dict[str, Any] | None = None, now: datetime
) -> bool:
    """Put a locked lane on hold, if `run_id` still runs there. False: another run or a hold came first.

    Running calls may still commit. A hold because nobody was answered gives back the budget of the run's trailing
    calls without an answer, once.
    """
    if run_id is None or lane.run is None or lane.run_id != run_id:
        return False
    run = lane.run
    end_run(lane, ended_as=RunEnd.AUTOMATIC_HOLD, person=None, now=now)
    hold = Hold(lane=lane, is_automatic=True, reason=reason, params=params or {}, run=run, started_at=now)
    if reason in OUTAGES:
        ramp_outages.open_for(lane, reason, now=now)
    if reason == HoldReason.AUTO_TIMEOUTS or RUNNING in hold.params:
        # Jobs are locked here beside the one that the caller ended. No circle can close: every verb with many jobs
        # locks all their tickets before the first job, and the caller's ticket keeps it from both. And before the
        # lane's row is written: its run and hold are keys, and whoever has such a job meets the lane at its commit,
        # where its new rows' lane is looked up.
        give_back_attempts(_trailing_silence(run))
    _begin(lane, hold, person=None, now=now)
    return True


def for_change(lane: Lane, *, reason: HoldReason, person: "AbstractUser | None", now: datetime) -> Hold:
    """Put a locked lane on an automatic hold because what it stands on was changed, in place of its run or hold.

    It replaces a person's hold too: that could be resumed, and what runs then would not be what was approved.
    """
    run = end_run(lane, ended_as=RunEnd.AUTOMATIC_HOLD, person=person, now=now)
    held_before = end_hold(lane, person=person, now=now)
    run = run or (held_before.run if held_before else None)
    hold = Hold(lane=lane, is_automatic=True, reason=reason, run=run, started_at=now)
    hold.by_id = person.pk if person is not None else None
    _begin(lane, hold, person=person, now=now)
    return hold


def _checked(form: str, reason: str, note: str) -> tuple[HoldForm, HoldReason, str]:
    if form not in HoldForm.values:
        raise InvalidRequest("A hold has one of two forms.", field="form")
    if reason not in PERSONS_HOLD_REASONS:
        raise InvalidRequest("A hold has one of four reasons.", field="reason")
    return HoldForm(form), HoldReason(reason), checked_text(note, field="note")


def _begin(lane: Lane, hold: Hold, *, person: "AbstractUser | None", now: datetime, refused: int = 0) -> None:
    hold.save(force_insert=True)
    run = lane.run
    lane.run, lane.hold, lane.cap = None, hold, None
    lane.save(update_fields=["run", "hold", "cap"])
    facts = {"reason": hold.reason, "form": hold.form, "automatic": hold.is_automatic, "params": hold.params}
    ramp_outages.write_entry(
        lane, EntryCode.HELD, now=now, person=person, text=hold.note, stage=run.number if run else None, **facts
    )
    audit.record(
        "lane.held",
        now=now,
        actor=person,
        subject=lane,
        lane=lane,
        reason=hold.note,
        before={"run": run.pk, "stage": run.number} if run else None,
        after={"hold": hold.pk, "until": hold.until.isoformat() if hold.until else None, "refused": refused, **facts},
    )
    body = {"lane": lane.name, "stage": run.number if run else None, "since": now.isoformat(), **facts}
    outbox.record(MessageKind.LANE_ON_HOLD, body, now=now, lane=lane)


def _refuse_on_hold(
    lane: Lane, hold: Hold, form: HoldForm, *, person: "AbstractUser", note: str, now: datetime, clock: Clock
) -> Held:
    if form != HoldForm.REFUSE or hold.form == HoldForm.REFUSE:
        return Held(HoldOutcome.ALREADY_ON_HOLD, hold)
    refused = _refuse(lane, clock)
    hold.form = form
    hold.save(update_fields=["form"])
    audit.record(
        "lane.results_refused",
        now=now,
        actor=person,
        subject=lane,
        lane=lane,
        reason=note,
        before={"form": HoldForm.HOLD.value},
        after={"hold": hold.pk, "form": form.value, "refused": refused},
    )
    return Held(HoldOutcome.REFUSING, hold, refused)


def _refuse(lane: Lane, clock: Clock) -> int:
    return refuse_running(lane.pk, clock=clock)


def _trailing_silence(run: StageRun) -> list[int]:
    """Ids of the calls without an answer that ended a run: the last of its calls, back to the first that had one."""
    ended = (
        Attempt.objects.filter(lane_id=run.lane_id, run=run, ended_at__gte=run.started_at, outcome__in=CALLS)
        .order_by("-ended_at", "-pk")
        .values_list("pk", "outcome")[:LONGEST_STREAK]
    )
    return [pk for pk, _outcome in takewhile(lambda row: row[1] in SILENT_OUTCOMES, ended)]
