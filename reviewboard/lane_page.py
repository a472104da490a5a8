"""What the page of one lane shows, made from one reading: ramp path, gate table, yes/no lines, who holds what."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core import figures, gate, where
from queue_core.figures import LaneFigures, LaneState, Leases, Panel
from queue_core.figures.panels import read_panel
from queue_core.forecast.reading import Forecast, forecast
from queue_core.gate import GateReading
from queue_core.last_look import model_answers
from queue_core.models import KnownAnswer, Lane, Stage, StageRun
from queue_core.ramp_raise import people_who_may_raise
from queue_core.states import Result
from reviewboard import effect_text
from reviewboard.board_text import rate_text
from reviewboard.models import Person
from reviewboard.shapes import Check, Progress, StageStep
from reviewboard.templatetags.board import count, count_capped, duration
from reviewboard.where_text import moment

#: More than this many hours of work for people, and the desk has no room for a higher stage.
DESK_ROOM_HOURS = 4.0
#: Results of a run from which a share may be told.
LEAST_RESULTS = 20


@dataclass(frozen=True, slots=True)
class LaneReading:
    """All that was read of a lane, as of one moment."""

    lane: Lane
    as_of: datetime
    figures: LaneFigures
    gate: Panel[GateReading]
    leases: Panel[Leases]
    forecast: Panel[Forecast]
    stages: Sequence[Stage]
    others_may_raise: int | None


def read_lane(lane: Lane, person: Person, *, now: datetime) -> LaneReading:
    """Inside a snapshot. `others_may_raise` is None where the lane asks for no second person."""
    [found] = figures.board([lane], now=now)
    others = people_who_may_raise(lane).exclude(pk=person.pk).count() if lane.two_person_rule else None
    return LaneReading(
        lane=lane,
        as_of=now,
        figures=found,
        gate=read_panel(("gate", lane.pk, lane.run_id, lane.hold_id), lambda: gate.read(lane, now=now), now=now),
        leases=read_panel(("leases", lane.pk), lambda: figures.running_leases(lane, now=now), now=now),
        forecast=read_panel(("forecast", lane.pk, lane.run_id, lane.hold_id), lambda: _forecast(found), now=now),
        stages=list(Stage.objects.filter(lane=lane).order_by("number")),
        others_may_raise=others,
    )


def _forecast(found: LaneFigures) -> Forecast:
    is_stalled = figures.state_of(found) in (LaneState.NO_PROGRESS, LaneState.NOBODY, LaneState.NOT_JUDGED)
    return forecast(found.lane, now=found.now, facts=found.facts, is_stalled=is_stalled)


def stage_path(reading: LaneReading) -> list[StageStep]:
    """The plan with the present run in it. The run shows what was approved, which a later edit of the plan is not."""
    run = reading.lane.run
    found = [_stage_step(stage, reading) for stage in reading.stages]
    if run is not None and all(stage.number != run.number for stage in reading.stages):
        found.append(_current(run, reading))
    return sorted(found, key=lambda step: step.number)


def _stage_step(stage: Stage, reading: LaneReading) -> StageStep:
    run = reading.lane.run
    if run is not None and run.number == stage.number:
        return _current(run, reading)
    first = reading.stages[0].number if reading.stages else None
    higher = [one.number for one in reading.stages if run is not None and one.number > run.number]
    coming = first if run is None else min(higher, default=None)
    state = "next" if stage.number == coming else "done" if run is not None and stage.number < run.number else "later"
    return StageStep(stage.number, stage.name, state, count(stage.cap), _rate(stage.rate))


def _current(run: StageRun, reading: LaneReading) -> StageStep:
    note = ""
    if reading.lane.cap is not None and reading.lane.cap < run.cap:
        note = _("Lowered by a lead; %(approved)s were approved.") % {"approved": count(run.cap)}
    return StageStep(
        run.number,
        run.name,
        "current",
        count(reading.lane.cap),
        _rate(run.rate),
        note,
        [] if reading.figures.facts.is_highest else _soak(run, reading),
    )


def _soak(run: StageRun, reading: LaneReading) -> list[Progress]:
    found, elapsed = [], reading.as_of - run.started_at
    if run.soak_completions:
        done = min(reading.figures.completions, run.soak_completions)
        text = ngettext(
            "%(done)s of %(needed)s completion", "%(done)s of %(needed)s completions", run.soak_completions
        ) % {"done": count(done), "needed": count(run.soak_completions)}
        found.append(Progress(_("Completions of the soak"), text, done, run.soak_completions))
    if run.soak_time:
        values = {"done": duration(min(elapsed, run.soak_time)), "needed": duration(run.soak_time)}
        text = _("%(done)s of %(needed)s") % values
        most = run.soak_time.total_seconds()
        found.append(Progress(_("Time of the soak"), text, min(elapsed.total_seconds(), most), most))
    return found


def _rate(rate: int | None) -> str:
    return _("%(rate)s claims per minute") % {"rate": count(rate)} if rate is not None else ""


def checks(reading: LaneReading, *, broker: bool) -> list[Check]:
    """Yes/no lines above the action."""
    facts = reading.figures.facts
    workers = ngettext("%(number)d seen within 30 s", "%(number)d seen within 30 s", facts.workers)
    found = [
        Check(_("Workers are there."), facts.workers + facts.drainers > 0, workers % {"number": facts.workers}),
        Check(_("The scheduler is there."), facts.scheduler_seen),
        Check(_("The broker can be reached."), broker),
        _health(reading),
        _same_policy(reading),
        _desk(reading),
    ]
    shown = reading.gate.value
    if shown is not None and shown.run is not None:
        is_told = any(line.is_rightly for line in shown.lines)
        found.append(Check(_("Something tells whether it answers rightly."), is_told))
    if reading.others_may_raise is not None:
        others = ngettext("%(number)d other may raise", "%(number)d others may raise", reading.others_may_raise)
        detail = others % {"number": reading.others_may_raise}
        found.append(Check(_("A second person is available."), reading.others_may_raise > 0, detail))
    return found


def _health(reading: LaneReading) -> Check:
    model, text = reading.lane.connection, _("The model answers its health check.")
    answers = model_answers(model, reading.as_of)
    if answers is None:
        return Check(text, None, _("no look within a minute"))
    since = _("since %(at)s") % {"at": moment(model.health_since)}
    # Its first line is a sentence of ours; what the server said itself stands behind it.
    return Check(text, answers, since if answers or not model.health_detail else _(model.health_detail.splitlines()[0]))


def _same_policy(reading: LaneReading) -> Check:
    lane, hold = reading.lane, reading.lane.hold
    before = lane.run or (hold.run if hold is not None else None)
    version = _("version %(version)d") % {"version": lane.policy.version} if lane.policy else _("no policy")
    text = _("The policy is as before.")
    return Check(text, None if before is None else before.policy_id == lane.policy_id, version)


def _desk(reading: LaneReading) -> Check:
    hours, text = reading.figures.hours_of_work, _("The desk has room.")
    if hours is None:
        return Check(text, None)
    work = _("%(work)s of work wait") % {"work": duration(timedelta(hours=hours))}
    return Check(text, hours <= DESK_ROOM_HOURS, work if hours else _("nothing waits for people"))


def has_known_answers(reading: LaneReading) -> bool:
    """Whether there are texts to send of which the right answer is known, as from the next stage on."""
    return KnownAnswer.objects.filter(lane=reading.lane, is_active=True).exists()


def raise_title(reading: GateReading) -> str:
    if reading.next is None:
        return _("The last stage runs")
    if reading.run is None:
        return _("Start the probe")
    return _("Raise to stage %(number)d, %(name)s") % {"number": reading.next.number, "name": reading.next.name}


def raise_effects(reading: LaneReading, shown: GateReading) -> list[str]:
    """What the raise will do, in whole sentences; an estimate only where there is enough to rest it on."""
    if shown.next is None:
        return []
    calls = {"cap": count(shown.next.cap), "before": count(shown.cap or 0)}
    if shown.run is None:
        effects = [
            ngettext(
                "At most %(cap)s call at once goes to the model; nothing did before.",
                "At most %(cap)s calls at once go to the model; none did before.",
                shown.next.cap,
            )
            % calls,
            _("The probe draws tickets of low severity with the most time left, each at most once."),
        ]
    else:
        effects = [_("Calls at once: from %(before)s to %(cap)s.") % calls]
        effects.append(_to_people(reading, shown))
    # The probe accepts nothing: what a run that ended keeps back is a lead's to settle.
    if shown.run is not None and shown.load.kept_back:
        kept = ngettext(
            "%(number)s decision that was kept back goes out.",
            "%(number)s decisions that were kept back go out.",
            shown.load.kept_back,
        )
        effects.append(kept % {"number": count_capped(shown.load.kept_back)})
    return effects


def _to_people(reading: LaneReading, shown: GateReading) -> str:
    results, lane = shown.load.results, reading.lane
    total = sum(results.values())
    cleared = count(lane.desk_items_per_hour)
    if shown.next is None or total < LEAST_RESULTS or not lane.usual_call_time:
        return _("How many will come to people cannot be told yet; they clear about %(cleared)s an hour.") % {
            "cleared": cleared
        }
    an_hour = shown.next.cap * 3600 / lane.usual_call_time.total_seconds()
    if shown.next.rate is not None:
        an_hour = min(an_hour, shown.next.rate * 60.0)
    flow = reading.figures.flow.value
    if flow is not None:
        # No more can come than waits now and arrives meanwhile.
        an_hour = min(an_hour, shown.load.waiting + flow.arriving * 60)
    share = results.get(Result.MANUAL.value, 0) / total
    return _("About %(items)s items an hour will come to people (an estimate); they clear about %(cleared)s.") % {
        "items": rate_text(float(round(an_hour * share))),
        "cleared": cleared,
    }


def attempts_line(reading: GateReading | None) -> str:
    """How many of the waiting stand at their last attempt."""
    if reading is None or not reading.load.waiting:
        return ""
    return _("On their last attempt: %(last)s of %(waiting)s that wait.") % {
        "last": count_capped(reading.load.last_attempt),
        "waiting": count_capped(reading.load.waiting),
    }


def effect_lines(lane: Lane, leases: Leases | None) -> tuple[str, ...]:
    """What of the lane's run, or of its last one, nobody knows, and what was refused. Nothing where none ever ran."""
    has_run = lane.run is not None or (lane.hold is not None and lane.hold.run_id is not None)
    return effect_text.of_run(leases.effects, is_over=lane.run is None) if leases is not None and has_run else ()


def rest_line(leases: Leases | None) -> str:
    if leases is None or not leases.rest:
        return ""
    return ngettext("and %(number)s more", "and %(number)s more", leases.rest) % {"number": count(leases.rest)}


def plan_choices(reading: LaneReading) -> list[tuple[int, str]]:
    return [
        (stage.number, _("stage %(number)d, %(name)s") % {"number": stage.number, "name": stage.name})
        for stage in reading.stages
    ]


def may_still_resume(reading: LaneReading) -> bool:
    facts, hold = reading.figures.facts, reading.lane.hold
    return bool(
        reading.lane.run is None
        and hold is not None
        and hold.run is not None
        and isinstance(facts.hold, where.HoldFacts)
        and facts.hold.may_resume(reading.as_of)
    )
