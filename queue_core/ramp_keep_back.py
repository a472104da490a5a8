"""Decisions kept back by a run that no raise will accept: it ended by hold, step-down or another policy."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Count, Min

from queue_core import audit, gate
from queue_core.clock import Clock
from queue_core.contract import lock_lane
from queue_core.gate_lines import broken
from queue_core.models import Lane, Message, StageRun
from queue_core.ramp_checks import checked_reason, may, require
from queue_core.ramp_outages import EntryCode, write_entry
from queue_core.ramp_raise import OVERRIDE, RIGHT, needs_second_person
from queue_core.ramp_runs import accept_run, resumed_chain
from queue_core.ramp_words import Acted, RampOutcome
from queue_core.states import MessageKind, MessageState

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractUser

ACCEPTED = "run.accepted"


@dataclass(frozen=True, slots=True)
class KeptBack:
    """A run that ended unaccepted, with its decisions that are still kept back. `oldest` is when the first came."""

    run: StageRun
    count: int
    oldest: "datetime"


def kept_back_runs(lane: Lane) -> list[KeptBack]:
    """The lane's ended runs that keep decisions back, the newest first. What the present run keeps back, it accepts."""
    kept = Message.objects.filter(lane=lane, state=MessageState.KEPT_BACK, kind=MessageKind.DECISION)
    counts = {
        row["decision__run"]: (row["number"], row["oldest"])
        for row in kept.order_by().values("decision__run").annotate(number=Count("pk"), oldest=Min("created_at"))
    }
    present = {run.pk for run in resumed_chain(lane.run)} if lane.run is not None else set()
    runs = StageRun.objects.filter(pk__in=counts.keys() - present).select_related("raised_by", "resumes")
    return [KeptBack(run, *counts[run.pk]) for run in runs.order_by("-started_at", "-pk")]


@transaction.atomic
def accept_held_run(
    lane_id: int, run_id: int, *, person: "AbstractUser", reason: str, shown: int, clock: Clock
) -> Acted:
    """Let the decisions go out that an ended run kept back. Its figures are measured once more and kept in the audit.

    `shown` is how many the person saw. Refused where there are others by now; where the run's answers were found wrong,
    unless the person may override; and by the two-person rule to whoever raised that run.
    """
    require(person, RIGHT, lane_id)
    reason = checked_reason(reason)
    lane = lock_lane(lane_id)
    now = clock.now()
    found = next((kept for kept in kept_back_runs(lane) if kept.run.pk == run_id), None)
    if found is None:
        return Acted(RampOutcome.NOTHING_KEPT_BACK, lane.run)
    if found.count != shown:
        return Acted(RampOutcome.OTHERS_KEPT_BACK, lane.run)
    if needs_second_person(lane, person, found.run):
        return Acted(RampOutcome.SAME_PERSON, lane.run, by=found.run.raised_by, at=found.run.started_at)
    lines = gate.read_rightly(found.run, now=now)
    wrong = broken(lines)
    if wrong is not None and not may(person, OVERRIDE, lane):
        return Acted(RampOutcome.GUARDRAIL_BROKEN, lane.run, figure=wrong.figure.value)
    released = accept_run(found.run, now=now)
    after = {"run": run_id, "stage": found.run.number, "decisions": released, "lines": [one.frozen() for one in lines]}
    audit.record(ACCEPTED, now=now, actor=person, subject=lane, lane=lane, reason=reason, after=after)
    write_entry(lane, EntryCode.RUN_ACCEPTED, now=now, person=person, text=reason, run=run_id, decisions=released)
    return Acted(RampOutcome.DONE, lane.run, by=person, at=now)
