"""A lane's figures as the board and its own page show them: headline, next step, four figures, layer bar."""

from datetime import datetime, timedelta

from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core import figures
from queue_core.figures import LaneFigures, LaneState
from queue_core.figures.flow import LAST_WITHIN
from queue_core.gate_lines import GateVerdict
from queue_core.gate_told import GateTold
from queue_core.last_look import model_answers
from queue_core.models import Lane
from queue_core.states import HoldReason
from queue_core.where import CAPS, RESUME_WITHIN, Layer, LayerCount
from reviewboard import gate_told_text
from reviewboard.drawing import LayerBar, LayerPart, layer_bar
from reviewboard.ramp_text import listed, what_was_met
from reviewboard.shapes import Figure, FigurePart, Headline, NextStep, Tone
from reviewboard.templatetags.board import count, duration
from reviewboard.where_text import hold_reason, layer_name, layer_note, moment

TONES = {
    LaneState.NOT_JUDGED: Tone.BAD,
    LaneState.NOBODY: Tone.BAD,
    LaneState.HELD_AUTOMATICALLY: Tone.HOLD,
    LaneState.NO_PROGRESS: Tone.BAD,
    LaneState.HELD_BY_PERSON: Tone.HOLD,
    LaneState.UNREAD: Tone.WARN,
    LaneState.GROWING: Tone.WARN,
    LaneState.LATE: Tone.WARN,
    LaneState.PAUSED: Tone.WARN,
    LaneState.RAMPING: Tone.INFO,
    LaneState.STEADY: Tone.GOOD,
}


def title_of(lane: Lane) -> str:
    return lane.title or lane.name


def lane_url(lane: Lane) -> str:
    return reverse("lane", args=[lane.name])


def headline(found: LaneFigures, state: LaneState, *, level: int, gate: GateTold | None = None) -> Headline:
    """What stands at the top of a lane. `gate` is that of its run, where it was read."""
    is_judged = state == LaneState.RAMPING and gate is not None and found.is_raise_due
    cause, since = (gate_told_text.in_short(gate), None) if is_judged and gate else _cause(found, state)
    word = _word(found, state)
    alarm = ""
    if state == LaneState.HELD_AUTOMATICALLY and found.facts.hold and _is_news(found):
        alarm = _("The lane %(lane)s put itself on hold: %(reason)s.") % {
            "lane": title_of(found.lane),
            "reason": hold_reason(found.facts.hold.reason),
        }
    return Headline(
        subject=f"lane-{found.lane.pk}",
        state=state.value,
        word=word,
        tone=Tone.WARN if is_judged and gate and gate.verdict == GateVerdict.BAD else TONES[state],
        cause=cause,
        since=since,
        name=title_of(found.lane),
        url=lane_url(found.lane),
        alarm=alarm,
        level=level,
    )


def _is_news(found: LaneFigures) -> bool:
    """Whether an automatic hold is called out: the first of an outage is, those after it belong to what is known."""
    hold, outage = found.facts.hold, found.open_outage
    if hold is None or hold.reason == HoldReason.NEW_LANE:
        return False
    return outage is None or hold.since <= outage.opened_at


def _word(found: LaneFigures, state: LaneState) -> str:
    match state:
        case LaneState.HELD_AUTOMATICALLY | LaneState.HELD_BY_PERSON:
            return _("on hold")
        case LaneState.NOT_JUDGED:
            return _("nobody judges the guardrails")
        case LaneState.NOBODY:
            return _("nobody is working")
        case LaneState.NO_PROGRESS:
            return _("no progress")
        case LaneState.GROWING:
            flow = found.flow.value
            return _("GROWING by %(rate)s/min") % {"rate": rate_text(flow.growth if flow else 0)}
        case LaneState.PAUSED:
            return _("pausing")
        case LaneState.UNREAD:
            return _("running, figures not read yet")
        case LaneState.RAMPING:
            return stage_text(found.lane)
    return _("running")


def stage_text(lane: Lane) -> str:
    run = lane.run
    if run is None:
        return _("on hold")
    return _("running stage %(number)d, %(name)s") % {"number": run.number, "name": run.name}


def _cause(found: LaneFigures, state: LaneState) -> tuple[str, datetime | None]:
    hold, run = found.facts.hold, found.lane.run
    if state in (LaneState.HELD_AUTOMATICALLY, LaneState.HELD_BY_PERSON):
        return (_hold_cause(found), hold.since if hold else None)
    match state:
        case LaneState.NOT_JUDGED:
            return _("Nothing is claimed while nobody judges"), found.facts.judged_at
        case LaneState.NOBODY:
            return _("There is room in the stage, but no worker was seen for 30 seconds."), None
        case LaneState.NO_PROGRESS:
            return _no_result(figures.stalled_since(found))
        case LaneState.PAUSED:
            return _("The model asked for a pause until %(at)s.") % {"at": moment(found.facts.retry_until)}, None
        case LaneState.LATE:
            return _("The oldest wait is over the target of %(target)s.") % {
                "target": duration(found.lane.wait_target)
            }, None
        case LaneState.GROWING if run is not None and not found.facts.is_highest:
            return stage_text(found.lane), run.started_at
        case LaneState.RAMPING | LaneState.STEADY if run is not None:
            by = run.raised_by
            return (_("raised by %(person)s") % {"person": by.get_username()} if by else ""), run.started_at
    return "", None


def _no_result(since: datetime | None) -> tuple[str, datetime | None]:
    if since is None:
        text = _("Work waits, but no call has ended with a result for more than %(time)s.")
        return text % {"time": duration(LAST_WITHIN)}, None
    return _("Work waits, but no call has ended with a result"), since


def _hold_cause(found: LaneFigures) -> str:
    hold = found.facts.hold
    if hold is None:
        return ""
    values = {"reason": hold_reason(hold.reason), "person": hold.by, "until": moment(hold.until)}
    if hold.is_automatic:
        row = found.lane.hold
        sentence = what_was_met(row.reason, row.params) if row is not None else ""
        if sentence:
            return _("automatically: %(reason)s (%(sentence)s)") % {**values, "sentence": sentence}
        return _("automatically: %(reason)s") % values
    if hold.until is not None:
        return _("by %(person)s: %(reason)s, on purpose until %(until)s") % values
    return _("by %(person)s: %(reason)s") % values


def next_step(  # noqa: C901  one case a state
    found: LaneFigures,
    state: LaneState,
    *,
    may_raise: bool,
    may_close: bool,
    on_page: bool = False,
    gate: GateTold | None = None,
) -> NextStep:
    """The one thing to do, and who may. `gate` is that of the lane's run; None where nobody has read it lately."""
    page = "" if on_page else lane_url(found.lane)
    url = f"{page}#raise"
    who = _("You may do this.") if may_raise else _("A lead may do this.")
    match state:
        case LaneState.HELD_AUTOMATICALLY | LaneState.HELD_BY_PERSON:
            url = f"{page}#resume" if _may_resume(found) else url
            return NextStep(_held_step(found), _held_label(found), url, who, is_yours=may_raise)
        case LaneState.NOT_JUDGED:
            return NextStep(_("Start the scheduler or a worker."), who=_("A platform engineer does this."))
        case LaneState.NOBODY:
            return NextStep(_("Start workers."), who=_("A platform engineer does this."))
        case LaneState.NO_PROGRESS:
            url = f"{page}#leases"
            return NextStep(
                _("Look who holds what, and put the lane on hold if it does not move."), _("Who holds what"), url
            )
        case LaneState.PAUSED:
            return NextStep(_("Nothing to do: it moves by itself at %(at)s.") % {"at": moment(found.facts.retry_until)})
        case LaneState.UNREAD:
            return NextStep(_("The figures take too long to read. They are tried again by themselves."))
        case LaneState.STEADY:
            return _steady_step(found, page, may_close=may_close)
        case LaneState.LATE:
            return NextStep(_("The flow holds, but tickets wait too long: see below what they wait for."))
    run = found.lane.run
    if run is None or found.facts.is_highest:
        return NextStep(_("More comes in than the model answers, and there is no higher stage in the plan."))
    if found.is_soaked:
        if model_answers(found.lane.connection, found.now) is False:
            text = _("Stage %(number)d has run its time, but the model does not answer its health check. Wait for it.")
            return NextStep(text % {"number": run.number})
        if gate is not None and gate.verdict != GateVerdict.GOOD:
            text = gate_told_text.not_passed(gate, found, run)
            return NextStep(text, _("What is missing"), f"{page}#raise", is_yours=may_raise)
        text = _("Stage %(number)d has run its time. Look at the gate; then raise the stage.")
        if gate is not None:
            text = _("Stage %(number)d has run its time, and its gate passes. Raise the stage.")
        # The panel of an open page rests on figures of before: another address makes the browser read it again.
        url = f"?soaked={run.pk}#raise" if on_page else url
        return NextStep(text % {"number": run.number}, _("Raise the stage"), url, who, is_yours=may_raise)
    return NextStep(_soaking(found))


def _steady_step(found: LaneFigures, page: str, *, may_close: bool) -> NextStep:
    if found.open_outage is None:
        return NextStep(_("Nothing to do: it runs by itself."))
    unsteady = found.outage_unsteady
    if unsteady:
        text = _("Nothing to do here: it runs by itself. The outage stays open until %(lanes)s run steadily too.")
        return NextStep(text % {"lanes": listed([str(lane) for lane in unsteady])})
    who = _("You may do this.") if may_close else _("A lead may do this.")
    return NextStep(
        _("It runs steadily: close the outage."), _("Close the outage"), f"{page}#outage", who, is_yours=may_close
    )


def is_outage_to_close(found: LaneFigures, state: LaneState) -> bool:
    """Whether closing the outage is what is left to do for a lane that runs by itself."""
    return state == LaneState.STEADY and found.open_outage is not None and not found.outage_unsteady


def _held_step(found: LaneFigures) -> str:
    model, hold = found.lane.connection, found.facts.hold
    if hold is not None and _may_resume(found):
        return _("Resume it at its stage until %(until)s, or start the probe.") % {
            "until": moment(hold.since + RESUME_WITHIN)
        }
    answers = model_answers(model, found.now)
    if answers is False:
        return _("The model does not answer its health check. Start the probe when it does.")
    if answers and model.health_since is not None:
        return _("The model has answered its health check since %(at)s. A few harmless tickets go first.") % {
            "at": moment(model.health_since)
        }
    return _("Nothing moves before a person starts the probe. A few harmless tickets go first.")


def _held_label(found: LaneFigures) -> str:
    if _may_resume(found):
        return _("Resume or start the probe")
    return _("Start the probe")


def _may_resume(found: LaneFigures) -> bool:
    hold, row = found.facts.hold, found.lane.hold
    return hold is not None and row is not None and row.run_id is not None and hold.may_resume(found.now)


def _soaking(found: LaneFigures) -> str:
    run = found.lane.run
    if run is None:
        return ""
    if found.completions < run.soak_completions:
        text = _("Nothing to do yet: stage %(number)d proves itself, %(done)d of %(needed)d completions.")
        return text % {"number": run.number, "done": found.completions, "needed": run.soak_completions}
    return _("Nothing to do yet: stage %(number)d proves itself until %(at)s.") % {
        "number": run.number,
        "at": moment(run.started_at + run.soak_time),
    }


def four_figures(found: LaneFigures) -> list[Figure]:
    return [_oldest(found), _passing(found), _flow(found), _people(found)]


def _oldest(found: LaneFigures) -> Figure:
    table = found.layers.value
    ready, held = (table.oldest_ready, table.oldest_held) if table else (None, None)
    note = _("target %(target)s") % {"target": duration(found.lane.wait_target)}
    if table is None:
        return Figure(_("Oldest wait"), [FigurePart("–")], _("not read yet"))
    return Figure(
        _("Oldest wait"),
        [
            FigurePart(duration(ready), _("ready"), _age_tone(found, ready)),
            FigurePart(duration(held), _("held"), None if _is_on_purpose(found) else _age_tone(found, held)),
        ],
        note,
        found.layers.kept_from,
    )


def _age_tone(found: LaneFigures, age: timedelta | None) -> Tone | None:
    return Tone.BAD if age is not None and age > found.lane.wait_target else None


def _is_on_purpose(found: LaneFigures) -> bool:
    """A person's hold with an end that is not over: the only one whose age alarms nobody."""
    hold = found.facts.hold
    return hold is not None and not hold.is_automatic and hold.until is not None and hold.until > found.now


def _passing(found: LaneFigures) -> Figure:
    passing, label = found.passing.value, _("Deadline within the hour")
    if passing is None:
        return Figure(label, [FigurePart("–")], _("not read yet"))
    total = sum(passing.values())
    shares = [
        # In one piece, so that a narrow figure breaks between two severities and not inside one.
        (_("severity %(severity)d: %(number)s") % {"severity": severity, "number": count(number)}).replace(
            " ", "\N{NO-BREAK SPACE}"
        )
        for severity, number in passing.items()
    ]
    part = FigurePart(count(total), tone=Tone.WARN if total else None)
    return Figure(label, [part], listed(shares), found.passing.kept_from)


def _flow(found: LaneFigures) -> Figure:
    flow, label = found.flow.value, _("Per minute, lately")
    if flow is None:
        return Figure(label, [FigurePart("–")], _("not read yet"))
    tone = Tone.WARN if figures.is_growing(found) else None
    return Figure(
        label,
        [
            FigurePart(rate_text(flow.decided), _("decided")),
            FigurePart(rate_text(flow.arriving), _("arriving"), tone),
        ],
        _("over the last 5 min"),
        found.flow.kept_from,
    )


def _people(found: LaneFigures) -> Figure:
    table, label, hours = found.layers.value, _("Waiting for people"), found.hours_of_work
    if table is None:
        return Figure(label, [FigurePart("–")], _("not read yet"))
    items = table.count_of(Layer.PEOPLE)
    if hours is None:
        return Figure(label, [FigurePart(count(items), _("items"))], kept_from=found.layers.kept_from)
    note = ngettext("%(items)s item at %(pace)s an hour", "%(items)s items at %(pace)s an hour", items) % {
        "items": count(items),
        "pace": count(found.lane.desk_items_per_hour),
    }
    work = duration(timedelta(hours=hours)) if items else duration(timedelta(0))
    parts = [FigurePart(work, _("of work"))] if items else [FigurePart(_("none"))]
    return Figure(label, parts, note if items else "", found.layers.kept_from, is_estimate=bool(items))


def bar(found: LaneFigures) -> LayerBar:
    table = found.layers.value
    return layer_bar([_part(layer, table.counts.get(layer) if table else None, found) for layer in Layer])


def _part(layer: Layer, counted: LayerCount | None, found: LaneFigures) -> LayerPart:
    number = counted.count if counted is not None else 0
    return LayerPart(
        layer.value,
        layer_name(layer),
        number,
        counted.oldest if counted is not None else None,
        layer_note(layer),
        trend=found.trends.get(layer),
        cap=CAPS[layer] - 1 if layer in CAPS else None,
    )


def line_text(found: LaneFigures) -> str:
    """A healthy lane in half a line."""
    table, flow = found.layers.value, found.flow.value
    if table is None or flow is None:
        return _("figures are not read yet")
    values = {"oldest": duration(table.oldest_ready), "rate": rate_text(flow.decided)}
    if table.oldest_ready is None:
        return _("nothing waits, %(rate)s/min") % values
    return _("oldest %(oldest)s, %(rate)s/min") % values


def rate_text(rate: float) -> str:
    """A rate a minute: whole from ten on, one digit below."""
    return number_format(rate, 0 if rate >= 10 or rate == int(rate) else 1, force_grouping=True)
