"""What a lead does to a flow that was approved: resume, step down, set its cap, force a policy."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext as _

from queue_core import audit, gate
from queue_core.clock import Clock
from queue_core.contract import lock_lane
from queue_core.contract.rules import is_resumable
from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.hold import CAP
from queue_core.models import AuditEntry, Hold, Lane, Policy, ReasonCode, Stage, StageRun
from queue_core.policy import Policy as Rules
from queue_core.policy_fit import misfits
from queue_core.questions import read_questions
from queue_core.ramp_checks import checked_reason, require
from queue_core.ramp_judge import streak_reason
from queue_core.ramp_outages import EntryCode, write_entry
from queue_core.ramp_runs import (
    begin_run,
    end_hold,
    end_run,
    is_as_approved,
    lowered_terms,
    terms_of,
    terms_under_another_policy,
)
from queue_core.ramp_words import Acted, RampOutcome
from queue_core.states import RunEnd

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

RIGHT = "raise_stage"
FORCE = "force_policy"
FORCED = "policy.forced"


@transaction.atomic
def resume(
    lane_id: int,
    *,
    person: "AbstractUser",
    reason: str,
    to: int | None = None,
    hold_id: int | None = None,
    clock: Clock,
) -> Acted:
    """Go on after a person's hold, within 15 minutes, at the held stage or (`to`) a lower one.

    With no more than flowed, where a lead had lowered the cap. Refused where a guardrail of the held run is broken or
    its connection changed: then only the probe leads out. `hold_id`, if given, is the hold that was shown.
    """
    require(person, RIGHT, lane_id)
    reason = checked_reason(reason)
    lane = lock_lane(lane_id)
    now = clock.now()
    hold, refused = _resumable(lane, hold_id, now)
    if hold is None or hold.run is None:
        return refused
    held, flowed = hold.run, min(hold.params.get(CAP, hold.run.cap), hold.run.cap)
    terms = terms_of(held) if to is None or to == held.number else _lower(lane, held, to=to, below=flowed)
    if terms is None:
        return Acted(RampOutcome.NOT_LOWER)
    end_hold(lane, person=person, now=now)
    run = begin_run(
        lane,
        terms,
        person=person,
        reason=reason,
        figures=_figures(lane, held, hold, now),
        now=now,
        resumes=held if terms["number"] == held.number else None,
    )
    _keep_cap(lane, min(flowed, run.cap))
    _note(lane, EntryCode.RESUMED, "lane.resumed", run, person=person, reason=reason, now=now, before={"hold": hold.pk})
    return Acted(RampOutcome.DONE, run, by=person, at=now)


@transaction.atomic
def step_down(
    lane_id: int, *, person: "AbstractUser", reason: str, to: int, run_id: int | None = None, clock: Clock
) -> Acted:
    """Run a lower stage of the plan at once, with no more than flows now. `run_id` is the run that was shown."""
    require(person, RIGHT, lane_id)
    reason = checked_reason(reason)
    lane = lock_lane(lane_id)
    now = clock.now()
    run, refused = _running(lane, run_id)
    if run is None or lane.cap is None:
        return refused
    terms = _lower(lane, run, to=to, below=lane.cap)
    if terms is None:
        return Acted(RampOutcome.NOT_LOWER, run, by=run.raised_by, at=run.started_at)
    figures = gate.read(lane, now=now).frozen()
    before = {"run": run.pk, "stage": run.number, "cap": lane.cap}
    end_run(lane, ended_as=RunEnd.STEPPED_DOWN, person=person, now=now)
    lower = begin_run(lane, terms, person=person, reason=reason, figures=figures, now=now)
    _note(
        lane, EntryCode.STEPPED_DOWN, "stage.stepped_down", lower, person=person, reason=reason, now=now, before=before
    )
    return Acted(RampOutcome.DONE, lower, by=person, at=now)


@transaction.atomic
def set_cap(
    lane_id: int, *, person: "AbstractUser", cap: int, reason: str, run_id: int | None = None, clock: Clock
) -> Acted:
    """Lower the running stage's cap, or lift it again, at most to what was approved with the run."""
    require(person, RIGHT, lane_id)
    reason = checked_reason(reason)
    lane = lock_lane(lane_id)
    now = clock.now()
    run, refused = _running(lane, run_id)
    if run is None:
        return refused
    if not 1 <= cap <= run.cap:
        raise InvalidRequest(
            _("The cap is from 1 to %(approved)d, which was approved with this stage.") % {"approved": run.cap},
            field="cap",
        )
    if cap == lane.cap:
        return Acted(RampOutcome.UNCHANGED, run)
    before = {"cap": lane.cap}
    lane.cap = cap
    lane.save(update_fields=["cap"])
    _note(lane, EntryCode.CAP_SET, "lane.cap_set", run, person=person, reason=reason, now=now, before=before)
    return Acted(RampOutcome.DONE, run, by=person, at=now)


@transaction.atomic
def force_policy(
    lane_id: int, policy_id: int, *, person: "AbstractUser", reason: str, replaces: int | None = None, clock: Clock
) -> Acted:
    """Put a version of the lane's policy into force: a new run of the same stage at the same cap, to be soaked again.

    On hold it is in force from the next run on. `replaces`, if given, is the version that was shown as in force. Where
    the lane asks for two persons, whoever made it may not be the one: MADE_BY_THE_SAME. Raises InvalidRequest for
    a policy of another lane, one whose rules or questions are broken, or one that the lane's connection cannot answer.
    """
    require(person, FORCE, lane_id)
    reason = checked_reason(reason)
    lane = lock_lane(lane_id)
    now = clock.now()
    policy = _sound_policy(lane, policy_id)
    if policy.pk == lane.policy_id:
        return _forced_already(lane, RampOutcome.UNCHANGED)
    if replaces is not None and replaces != lane.policy_id:
        return _forced_already(lane, RampOutcome.POLICY_DIFFERS)
    if lane.two_person_rule and policy.made_by_id == person.pk:
        return Acted(RampOutcome.MADE_BY_THE_SAME, lane.run, by=policy.made_by, at=policy.made_at)
    before = {"policy": lane.policy.version if lane.policy else None, "run": lane.run_id}
    run, cap = lane.run, lane.cap
    figures = gate.read(lane, now=now).frozen()
    lane.policy = policy
    lane.save(update_fields=["policy"])
    if run is not None:
        end_run(lane, ended_as=RunEnd.POLICY, person=person, now=now)
        run = begin_run(
            lane, terms_under_another_policy(lane, run), person=person, reason=reason, figures=figures, now=now
        )
        _keep_cap(lane, cap)
    _note(
        lane,
        EntryCode.POLICY_FORCED,
        FORCED,
        run,
        person=person,
        reason=reason,
        now=now,
        before=before,
        after={"policy": policy.version},
    )
    return Acted(RampOutcome.DONE, run, by=person, at=now)


def _keep_cap(lane: Lane, cap: int | None) -> None:
    """The run was approved with its cap; what flows is what a lead had lowered it to before."""
    if lane.cap != cap:
        lane.cap = cap
        lane.save(update_fields=["cap"])


def _resumable(lane: Lane, hold_id: int | None, now: datetime) -> tuple[Hold | None, Acted]:
    if lane.run is not None:
        return None, Acted(RampOutcome.RUNNING, lane.run, by=lane.run.raised_by, at=lane.run.started_at)
    hold = lane.hold
    if hold is None or hold.is_automatic or hold.run is None:
        return None, Acted(RampOutcome.NOT_A_PERSONS_HOLD, at=hold.started_at if hold else None)
    outcome, figure = _standing(lane, hold, hold.run, hold_id, now)
    return (hold if outcome == RampOutcome.DONE else None), Acted(
        outcome, by=hold.by, at=hold.started_at, figure=figure
    )


def _standing(lane: Lane, hold: Hold, held: StageRun, hold_id: int | None, now: datetime) -> tuple[RampOutcome, str]:
    if hold_id is not None and hold_id != hold.pk:
        return RampOutcome.DIFFERS, ""
    if not is_resumable(hold.started_at, now=now):
        return RampOutcome.TOO_LATE, ""
    if not is_as_approved(lane, held):
        return RampOutcome.CONNECTION_DIFFERS, ""
    figure = _broken_figure(lane, held, since=hold.started_at - held.window, now=now)
    return (RampOutcome.GUARDRAIL_BROKEN, figure) if figure else (RampOutcome.DONE, "")


def _broken_figure(lane: Lane, run: StageRun, *, since: datetime, now: datetime) -> str:
    """What broke in the window before the hold, or in the calls that have ended since."""
    line = gate.broken_line(run, now=now, since=since)
    if line is not None:
        return line.figure.value
    return "errors" if streak_reason(lane, run) is not None else ""


def _running(lane: Lane, run_id: int | None) -> tuple[StageRun | None, Acted]:
    if lane.run is None:
        hold = lane.hold
        return None, Acted(RampOutcome.ON_HOLD, by=hold.by if hold else None, at=hold.started_at if hold else None)
    if run_id is not None and run_id != lane.run_id:
        return None, Acted(RampOutcome.DIFFERS, lane.run, by=lane.run.raised_by, at=lane.run.started_at)
    return lane.run, Acted(RampOutcome.DONE)


def _lower(lane: Lane, run: StageRun, *, to: int, below: int) -> dict[str, Any] | None:
    if to >= run.number:
        return None
    stage = Stage.objects.filter(lane=lane, number=to).first()
    if stage is None:
        raise InvalidRequest(_("The plan has no stage %(number)d.") % {"number": to}, field="to")
    return lowered_terms(stage, below=below, rate=run.rate)


def _figures(lane: Lane, held: StageRun, hold: Hold, now: datetime) -> dict[str, Any]:
    lines = gate.read_lines(held, now=now, since=hold.started_at - held.window)
    return {**gate.read(lane, now=now).frozen(), "lines": [line.frozen() for line in lines]}


def _forced_already(lane: Lane, outcome: RampOutcome) -> Acted:
    """Who put the present version into force is in the audit alone: on hold no run begins with it."""
    entry = AuditEntry.objects.filter(lane=lane, act=FORCED).select_related("actor").order_by("-pk").first()
    if entry is None:
        return Acted(outcome, lane.run)
    return Acted(outcome, lane.run, by=entry.actor, at=entry.at)


def _sound_policy(lane: Lane, policy_id: int) -> Policy:
    policy = Policy.objects.filter(pk=policy_id, lane=lane).select_related("made_by").first()
    if policy is None:
        raise InvalidRequest(_("This lane has no such policy."), field="policy")
    try:
        rules = Rules.from_rules(policy.rules, codes=ReasonCode.rejecting(lane.pk))
        questions = read_questions(policy.questions)
    except ConfigurationFault as fault:
        raise InvalidRequest(str(fault), field="policy") from fault
    if problems := misfits(rules, questions, lane.connection):
        told = " ".join(f"{problem.field}: {problem.message}" for problem in problems)
        raise InvalidRequest(told, field="policy")
    return policy


def _note(
    lane: Lane,
    code: EntryCode,
    act: str,
    run: StageRun | None,
    *,
    person: "AbstractUser",
    reason: str,
    now: datetime,
    before: dict[str, Any],
    after: dict[str, Any] | None = None,
) -> None:
    stands = {"run": run.pk if run else None, "stage": run.number if run else None, "cap": lane.cap, **(after or {})}
    audit.record(act, now=now, actor=person, subject=lane, lane=lane, reason=reason, before=before, after=stands)
    write_entry(lane, code, now=now, person=person, text=reason, **stands)
