"""The only way up: a named person who may, with a reason, by figures that still hold under the lane's lock."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import QuerySet

from queue_core import audit, gate, outbox
from queue_core.clock import Clock
from queue_core.contract import lock_lane
from queue_core.gate import GateReading, GateVerdict, Shown
from queue_core.gate_lines import GateLine
from queue_core.models import Lane, Stage, StageRun
from queue_core.ramp_checks import checked_reason, checked_text, may, require
from queue_core.ramp_outages import EntryCode, write_entry
from queue_core.ramp_runs import accept_run, begin_run, end_hold, end_run, resumed_chain, terms_of
from queue_core.ramp_words import Missing, MissingCode, Raised, RaiseOutcome
from queue_core.rights import people_who_may
from queue_core.states import MessageKind, RunEnd

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

RIGHT = "raise_stage"
OVERRIDE = "override_guardrail"


@transaction.atomic
def raise_stage(
    lane_id: int,
    *,
    person: "AbstractUser",
    reason: str,
    figures_id: str,
    override_reason: str = "",
    clock: Clock,
) -> Raised:
    """Start the probe of a lane on hold, or the next stage of a running one.

    `figures_id` is that of the reading the person saw (`GateReading.sign`). Everything is measured again under the
    lane's lock; a raise that no longer fits what stands there changes nothing and says what stands there. An unmet soak
    or guardrail needs the right to override and `override_reason`. Raises NotPermitted, and InvalidRequest for a
    reason or figures id that is none.
    """
    require(person, RIGHT, lane_id)
    reason = checked_reason(reason)
    override_reason = _checked_override(lane_id, person, override_reason)
    shown = gate.open_figures(figures_id, lane_id=lane_id)
    lane = lock_lane(lane_id)
    now = clock.now()
    if (shown.run, shown.hold) != (lane.run_id, lane.hold_id if lane.run is None else None):
        return _audited(lane, _moved(lane, shown), person=person, reason=reason, now=now)
    reading = gate.read(lane, now=now)
    refused = _refused(lane, person, reading, shown, override_reason=override_reason, now=now)
    if refused is not None or reading.next is None:
        refused = refused or Raised(RaiseOutcome.PLAN_DIFFERS, lane.run)
        return _audited(lane, refused, person=person, reason=reason, now=now)
    overridden = bool(may_raise(lane, person, reading))
    return _raise(
        lane,
        reading.next,
        reading,
        person=person,
        reason=reason,
        override_reason=override_reason if overridden else "",
        now=now,
    )


def may_raise(lane: Lane, person: "AbstractUser", reading: GateReading) -> tuple[Missing, ...]:
    """What stands between this person and the raise that `reading` is about. Empty: the button may be pressed.

    What `can_be_overridden` needs the right to override and a reason for it; the rest nobody gets past.
    """
    missing = []
    if not may(person, RIGHT, lane):
        missing.append(Missing(MissingCode.PERMISSION, {"right": RIGHT}))
    if reading.next is None:
        missing.append(Missing(MissingCode.STAGE))
    if lane.policy_id is None:
        missing.append(Missing(MissingCode.POLICY))
    return (*missing, *_second_person(lane, person, reading.run), *_soak(reading), *_guardrails(reading.lines))


def _checked_override(lane_id: int, person: "AbstractUser", text: str) -> str:
    if not checked_text(text, field="override_reason"):
        return ""
    require(person, OVERRIDE, lane_id)
    return checked_reason(text, field="override_reason")


def _audited(lane: Lane, refused: Raised, *, person: "AbstractUser", reason: str, now: datetime) -> Raised:
    """Of two who raise at once the audit says which one it was, and what the other was told."""
    after = {
        "outcome": refused.outcome.value,
        "run": lane.run_id,
        "hold": lane.hold_id,
        "missing": [one.code.value for one in refused.missing],
        "worse": list(refused.worse),
    }
    audit.record("stage.raise_refused", now=now, actor=person, subject=lane, lane=lane, reason=reason, after=after)
    return refused


def _moved(lane: Lane, shown: Shown) -> Raised:
    """Another run or hold than the one that was shown: who made it, and when."""
    run = lane.run
    if run is None:
        hold = lane.hold
        return Raised(RaiseOutcome.ON_HOLD, by=hold.by if hold else None, at=hold.started_at if hold else None)
    is_same_step = shown.next is not None and run.number == shown.next[0] and run.started_at.timestamp() >= shown.at
    outcome = RaiseOutcome.ALREADY_RAISED if is_same_step else RaiseOutcome.RUN_DIFFERS
    return Raised(outcome, run, by=run.raised_by, at=run.started_at)


def _refused(
    lane: Lane, person: "AbstractUser", reading: GateReading, shown: Shown, *, override_reason: str, now: datetime
) -> Raised | None:
    if not reading.is_for(shown):
        return Raised(RaiseOutcome.PLAN_DIFFERS, lane.run)
    if shown.is_too_old(now):
        return Raised(RaiseOutcome.FIGURES_OLD, lane.run)
    worse = reading.worse_than(shown)
    if worse:
        return Raised(RaiseOutcome.FIGURES_WORSE, lane.run, worse=worse)
    missing = may_raise(lane, person, reading)
    stays = [unmet for unmet in missing if not (unmet.can_be_overridden and override_reason)]
    return Raised(RaiseOutcome.NOT_MET, lane.run, missing=missing) if stays else None


def _raise(
    lane: Lane,
    stage: Stage,
    reading: GateReading,
    *,
    person: "AbstractUser",
    reason: str,
    override_reason: str,
    now: datetime,
) -> Raised:
    before = {"run": lane.run_id, "hold": lane.hold_id, "cap": lane.cap}
    ended = end_run(lane, ended_as=RunEnd.RAISED, person=person, now=now)
    accepted = accept_run(ended, now=now) if ended is not None else 0
    end_hold(lane, person=person, now=now)
    run = begin_run(
        lane,
        terms_of(stage),
        person=person,
        reason=reason,
        override_reason=override_reason,
        figures=reading.frozen(),
        now=now,
    )
    after: dict[str, Any] = {
        "run": run.pk,
        "stage": run.number,
        "cap": run.cap,
        "rate": run.rate,
        "released_messages": accepted,
    }
    if override_reason:
        after["override_reason"] = override_reason
    audit.record(
        "stage.raised", now=now, actor=person, subject=lane, lane=lane, reason=reason, before=before, after=after
    )
    write_entry(lane, EntryCode.RAISED, now=now, person=person, text=reason, stage=run.number, cap=run.cap, run=run.pk)
    body = {"lane": lane.name, "stage": run.number, "cap": run.cap, "rate": run.rate, "started_at": now.isoformat()}
    outbox.record(MessageKind.STAGE_RAISED, body, now=now, lane=lane)
    return Raised(RaiseOutcome.RAISED, run, by=person, at=now)


def _second_person(lane: Lane, person: "AbstractUser", run: StageRun | None) -> list[Missing]:
    """The two-person rule: not by who raised the stage before, nor by who resumed it. The probe has none before it."""
    if run is None or not needs_second_person(lane, person, run):
        return []
    raisers = {chained.raised_by_id for chained in resumed_chain(run)}
    others = people_who_may_raise(lane).exclude(pk__in=raisers - {None}).count()
    code = MissingCode.SECOND_PERSON if others else MissingCode.NOBODY_ELSE
    return [Missing(code, {"others": others})]


def needs_second_person(lane: Lane, person: "AbstractUser", run: StageRun) -> bool:
    """Whether somebody else has to go on from this run: the lane asks for two, and this person raised or resumed it."""
    return lane.two_person_rule and person.pk in {chained.raised_by_id for chained in resumed_chain(run)}


def people_who_may_raise(lane: Lane) -> "QuerySet[AbstractUser]":
    """Active people with the right to raise this lane, by a role everywhere or on it."""
    return people_who_may(RIGHT, lane)


def _soak(reading: GateReading) -> list[Missing]:
    soak, missing = reading.soak, []
    if soak is None:
        return []
    if soak.completions < soak.completions_needed:
        params = {"done": soak.completions, "needed": soak.completions_needed}
        missing.append(Missing(MissingCode.SOAK_COMPLETIONS, params))
    if soak.elapsed < soak.time_needed:
        times = {"seconds": soak.elapsed.total_seconds(), "seconds_needed": soak.time_needed.total_seconds()}
        missing.append(Missing(MissingCode.SOAK_TIME, times))
    return missing


def _guardrails(lines: tuple[GateLine, ...]) -> list[Missing]:
    codes = {
        GateVerdict.BAD: MissingCode.GUARDRAIL_BAD,
        GateVerdict.INCONCLUSIVE: MissingCode.GUARDRAIL_INCONCLUSIVE,
    }
    return [Missing(codes[line.verdict], line.frozen()) for line in lines if line.verdict in codes]
