"""A job's life as a path of steps, each with its own length, out of the rows that its verbs left."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from queue_core.models import Assignment, Attempt, AuditEntry, Decision, Item, Job
from queue_core.states import (
    ERROR_OUTCOMES,
    TIMEOUT_OUTCOMES,
    AssignmentEnd,
    AttemptOutcome,
    DeadReason,
    DecisionWhy,
    ItemKind,
    JobState,
)
from reviewboard.act_names import act_name
from reviewboard.shapes import LifeStep, Tone
from reviewboard.templatetags.board import duration

#: Attempts shown of one job. A job with more says how many are left out.
MOST_ATTEMPTS = 200
#: A wait shorter than this is no step of its own.
SHORTEST_WAIT = timedelta(milliseconds=500)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The rows of one job's life, each list oldest first."""

    job: Job
    attempts: Sequence[Attempt]
    acts: Sequence[AuditEntry] = ()
    items: Sequence[Item] = ()
    assignments: Sequence[Assignment] = ()
    decisions: Sequence[Decision] = ()


@dataclass(slots=True)
class _Path:
    """Steps in the order of time. `since` is when the job began to wait; None while it does not."""

    now: datetime
    since: datetime | None
    steps: list[LifeStep] = field(default_factory=list)

    def wait_until(self, at: datetime) -> None:
        if self.since is not None and at - self.since >= SHORTEST_WAIT:
            self.steps.append(LifeStep(_("Waited"), Tone.IDLE, self.since, duration(at - self.since)))
        self.since = None


def life_of(ledger: Ledger, *, now: datetime) -> list[LifeStep]:
    job = ledger.job
    path = _Path(now, job.added_at, [LifeStep(_("Added"), Tone.INFO, job.added_at)])
    events: list[tuple[datetime, int, object]] = [(a.started_at, 1, a) for a in ledger.attempts]
    events += [(act.at, 0, act) for act in ledger.acts]
    events += [(item.opened_at, 2, item) for item in ledger.items]
    events += [(one.taken_at, 3, one) for one in ledger.assignments]
    events += [(one.decided_at, 4, one) for one in ledger.decisions]
    for at, _rank, event in sorted(events, key=lambda one: one[:2]):
        _add(path, at, event)
    _end(path, job)
    return path.steps


def _add(path: _Path, at: datetime, event: object) -> None:
    if isinstance(event, Attempt):
        path.wait_until(at)
        path.steps.append(_attempt_step(event, path.now))
        path.since = event.ended_at if _gave_back(event) else None
    elif isinstance(event, AuditEntry):
        if event.act == "job.requeued":
            path.since = at
        path.steps.append(_act_step(event))
    elif isinstance(event, Item):
        path.wait_until(at)
        path.steps.append(_item_step(event))
    elif isinstance(event, Assignment):
        path.steps.append(_assignment_step(event, path.now))
    elif isinstance(event, Decision):
        path.wait_until(at)
        path.steps.append(_decision_step(event))


def _gave_back(attempt: Attempt) -> bool:
    return attempt.ended_at is not None and not attempt.is_committed


def _attempt_step(attempt: Attempt, now: datetime) -> LifeStep:
    if attempt.outcome == AttemptOutcome.FENCE_RAISED:
        title = _("Fence raised by a person to %(fence)d") % {"fence": attempt.fence}
        return LifeStep(title, Tone.HOLD, attempt.started_at)
    title = _("Claimed by %(worker)s, fence %(fence)d") % {"worker": attempt.worker or "–", "fence": attempt.fence}
    end = attempt.ended_at or now
    lines = [_attempt_line(attempt)]
    if not attempt.is_charged:
        lines.append(_("Not charged to its budget."))
    tone = _attempt_tone(attempt)
    return LifeStep(
        title, tone, attempt.started_at, duration(end - attempt.started_at), lines, attempt.ended_at is None
    )


def _attempt_line(attempt: Attempt) -> str:
    if attempt.outcome is None:
        return _("The call is running, or its worker is gone: its lease says until when.")
    return str(AttemptOutcome(attempt.outcome).label)


def _attempt_tone(attempt: Attempt) -> Tone:
    if attempt.is_committed:
        return Tone.GOOD
    if attempt.outcome in TIMEOUT_OUTCOMES:
        return Tone.WARN
    return Tone.BAD if attempt.outcome in ERROR_OUTCOMES else Tone.INFO


def _act_step(act: AuditEntry) -> LifeStep:
    titles = {
        "job.requeued": _("Requeued by %(name)s"),
        "job.deadline_moved": _("Deadline moved by %(name)s"),
        "job.pulled": _("Taken out of the machine's hands by %(name)s"),
    }
    title = titles.get(act.act, _("%(name)s: %(act)s")) % {"name": act.actor_name, "act": act_name(act.act)}
    return LifeStep(title, Tone.INFO, act.at, lines=[act.reason] if act.reason else [])


def _item_step(item: Item) -> LifeStep:
    if item.kind == ItemKind.DEAD and item.cause in DeadReason.values:
        title = _("DEAD: %(reason)s. People got an item.") % {"reason": DeadReason(item.cause).label}
        return LifeStep(title, Tone.BAD, item.opened_at)
    title = _("People got an item: %(kind)s") % {"kind": ItemKind(item.kind).label}
    return LifeStep(title, Tone.WARN, item.opened_at)


def _assignment_step(assignment: Assignment, now: datetime) -> LifeStep:
    is_open = assignment.ended_at is None and assignment.until > now
    end = assignment.ended_at or min(assignment.until, now)
    title = _("Taken by %(name)s") % {"name": assignment.person.get_username()}
    lines = [str(AssignmentEnd(assignment.ended_as).label)] if assignment.ended_as else []
    return LifeStep(title, Tone.INFO, assignment.taken_at, duration(end - assignment.taken_at), lines, is_open)


def _decision_step(decision: Decision) -> LifeStep:
    who = decision.person.get_username() if decision.person is not None else _("the model")
    if decision.why == DecisionWhy.TAKEN_BACK:
        return LifeStep(_("Decision taken back by %(name)s") % {"name": who}, Tone.INFO, decision.decided_at)
    if decision.why == DecisionWhy.RECALL:
        return LifeStep(_("Decision recalled by %(name)s") % {"name": who}, Tone.WARN, decision.decided_at)
    title = _("Decided %(verdict)s by %(name)s") % {"verdict": decision.verdict, "name": who}
    return LifeStep(title, Tone.GOOD, decision.decided_at)


def _end(path: _Path, job: Job) -> None:
    if job.finished_at is not None:
        path.wait_until(job.finished_at)
    if job.state == JobState.DEAD and job.dead_reason in (DeadReason.SUPERSEDED, DeadReason.WITHDRAWN):
        title = _("DEAD: %(reason)s") % {"reason": DeadReason(job.dead_reason).label}
        path.steps.append(LifeStep(title, Tone.IDLE, job.finished_at))
    elif job.state == JobState.WAITING and path.since is not None:
        length = duration(path.now - path.since)
        path.steps.append(LifeStep(_("Waits"), Tone.IDLE, path.since, length, is_open=True))
