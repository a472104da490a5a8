"""The page of one lane: its figures live, and beside them what may be done."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from queue_core import figures, people, ramp, where
from queue_core.figures.panels import read_panel
from queue_core.forecast.dry_run import dry_run
from queue_core.gate import GateReading
from queue_core.gate_told import GateTold
from queue_core.models import Outage
from reviewboard import (
    board_text,
    broker,
    forecast_text,
    gate_text,
    lane_charts,
    lane_history,
    lane_layers,
    lane_page,
    lane_policy,
    outage_text,
    recall_text,
)
from reviewboard.lane_forms import CapForm, CloseOutageForm, PolicyForm, PullForm, RaiseForm, ResumeForm, StepDownForm
from reviewboard.lane_page import LaneReading
from reviewboard.live import LiveVersion, page_or_partial, wants_partial
from reviewboard.models import Person
from reviewboard.outage_text import OutageLine
from reviewboard.ramp_text import missing_text
from reviewboard.shapes import Conflict
from reviewboard.views.access import lane_to_view, may, outages_seen
from reviewboard.views.permits import needs, person_of
from reviewboard.where_text import prospect_name


@require_safe
@needs("view_board")
def lane(request: HttpRequest, name: str) -> HttpResponse:
    is_broker_there = broker.is_reachable()
    with figures.snapshot() as as_of:
        reading = lane_page.read_lane(lane_to_view(request, name), person_of(request), now=as_of)
        context = live_context(request, reading, is_broker_there=is_broker_there)
        if not wants_partial(request):
            context |= action_context(request, reading, {})
            context |= _chart_context(request, reading)
    version = LiveVersion.of(as_of, context["live_facts"])
    return page_or_partial(request, "lane/lane.html", "live", context, version=version)


def answer_with_lane(
    request: HttpRequest,
    name: str,
    *,
    status: int,
    conflict: Conflict | None = None,
    bound: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """The page again after an act that did not happen: what stands there now, with what was typed kept."""
    is_broker_there = broker.is_reachable()
    with figures.snapshot() as as_of:
        reading = lane_page.read_lane(lane_to_view(request, name), person_of(request), now=as_of)
        context = live_context(request, reading, is_broker_there=is_broker_there)
        context |= action_context(request, reading, bound or {})
    context |= {"conflict": conflict, "as_of": as_of, "live_version": str(LiveVersion.of(as_of, "answer"))}
    return page_or_partial(request, "lane/lane.html", "action", context, status=status)


def live_context(request: HttpRequest, reading: LaneReading, *, is_broker_there: bool) -> dict[str, Any]:
    """The polled part: text and figures only."""
    state = figures.state_of(reading.figures)
    shown = reading.gate.value
    told = GateTold.of(shown.lines) if shown is not None and shown.run is not None else None
    lane = reading.lane
    rights = {"may_raise": may(request, "raise_stage", lane), "may_close": may(request, "manage_outage", lane)}
    live = {
        "headline": board_text.headline(reading.figures, state, level=1, gate=told),
        "step": board_text.next_step(reading.figures, state, gate=told, **rights, on_page=True),
        "outage": _line_to_see(request, reading.figures.open_outage, outage_text.open_line(reading.figures)),
        "figures": board_text.four_figures(reading.figures),
        "bar": board_text.bar(reading.figures),
        "exposure": reading.figures.exposure.value if reading.figures.exposure else "",
        "exposed": lane_layers.exposed(reading.figures),
        "stages": lane_page.stage_path(reading),
        "gate_rows": gate_text.gate_rows(shown),
        "gate_notes": gate_text.notes(shown, has_known_answers=lane_page.has_known_answers(reading)),
        "gate_kept_from": reading.gate.kept_from,
        "checks": lane_page.checks(reading, broker=is_broker_there),
        "attempts_line": lane_page.attempts_line(shown),
        "forecast": forecast_text.table(reading.forecast.value) if reading.forecast.value else None,
        "forecast_kept_from": reading.forecast.kept_from,
        "leases": reading.leases.value,
        "leases_kept_from": reading.leases.kept_from,
        "effect_lines": lane_page.effect_lines(lane, reading.leases.value),
        "rest_line": lane_page.rest_line(reading.leases.value),
    }
    return {"nav": "board", "lane": reading.lane, "live_facts": tuple(live.items()), **live}


def _line_to_see(request: HttpRequest, outage: Outage | None, line: OutageLine | None) -> OutageLine | None:
    """Without its link where the connection is also of lanes that the reader may not see."""
    if outage is None or line is None or outages_seen(request).filter(pk=outage.pk).exists():
        return line
    return replace(line, url="")


def action_context(request: HttpRequest, reading: LaneReading, bound: Mapping[str, Any]) -> dict[str, Any]:
    """The forms, and what stands still below. `bound` are forms that came back with a mistake or a conflict."""
    shown, person = reading.gate.value, person_of(request)
    is_kept, before = reading.gate.is_kept, ramp.last_outage(reading.lane.connection)
    context: dict[str, Any] = {
        "may_raise": may(request, "raise_stage", reading.lane),
        "may_hold": may(request, "hold_lane", reading.lane),
        **_standing_context(reading),
        "history": lane_history.history(reading.lane),
        "acts": lane_history.acts(reading.lane),
        "outage_before": _line_to_see(request, before, outage_text.closed_line(before)),
        "typed": [(_("Reason"), bound["typed"])] if bound.get("typed") else [],
        **_policy_context(request, reading, bound),
    }
    context |= _kept_back_context(request, reading, bound)
    if may(request, "manage_outage", reading.lane):
        context |= _outage_context(reading, bound)
    if context["may_hold"]:
        context["hold_form"] = bound.get("hold_form") or _hold_form(reading)
    if context["may_raise"]:
        context |= _lead_forms(reading, bound)
        if shown is not None and not is_kept:
            context |= _raise_context(reading, shown, person, bound)
    return context


def _policy_context(request: HttpRequest, reading: LaneReading, bound: Mapping[str, Any]) -> dict[str, Any]:
    """The rules in force for everybody; the other versions, each with its form, for those who may choose."""
    policies = lane_policy.read_policies(reading.lane)
    context: dict[str, Any] = {
        "policy": policies.in_force,
        "may_make_policy": request.user.is_staff and may(request, "add_policy", reading.lane),
    }
    if may(request, "force_policy", reading.lane):
        tried = bound.get("policy_form")
        forms = [
            tried if tried is not None and tried.version == one.pk else PolicyForm(lane=reading.lane, version=one.pk)
            for one in policies.others
        ]
        context |= {
            "may_force": True,
            "policy_choices": list(zip(policies.others, forms, strict=True)),
            "policy_effect": lane_policy.effect(reading.lane),
        }
    return context


def _chart_context(request: HttpRequest, reading: LaneReading) -> dict[str, Any]:
    """The charts stand outside the polled part: a reader who opened their table keeps it open."""
    lane, span = reading.lane, lane_charts.Span.chosen(request.GET.get("chart", ""))
    key = ("charts", lane.pk, span, timezone.get_current_timezone_name(), get_language())
    drawn = read_panel(key, lambda: lane_charts.charts(lane, span, now=reading.as_of), now=reading.as_of)
    return {"charts": drawn.value or (), "chart_spans": lane_charts.span_links(span)}


def _standing_context(reading: LaneReading) -> dict[str, Any]:
    """What is looked into once for a whole page, not at each poll: the dry run, and what the layers are made of."""
    lane, now = reading.lane, reading.as_of
    drawn = read_panel(("dry run", lane.pk, lane.run_id), lambda: dry_run(lane, now=now), now=now)
    made = read_panel(("made up", lane.pk), lambda: where.make_up(lane, now=now, facts=reading.figures.facts), now=now)
    return {
        "dry_run": drawn.value,
        "made_up": lane_layers.rows(made.value),
        "severities": lane_layers.SEVERITIES,
        "prospects": [prospect_name(one) for one in lane_layers.PROSPECTS],
    }


def _kept_back_context(request: HttpRequest, reading: LaneReading, bound: Mapping[str, Any]) -> dict[str, Any]:
    """Decisions that no raise will let go, for those who may accept or recall them."""
    may_accept = may(request, "raise_stage", reading.lane)
    may_recall = may(request, "recall_decision", reading.lane)
    if not may_accept and not may_recall:
        return {}
    found = ramp.kept_back_runs(reading.lane)
    rows = recall_text.kept_back_rows(found, may_accept=may_accept, now=reading.as_of, bound=bound.get("accept_form"))
    return {"may_recall": may_recall, "kept_back": rows}


def _outage_context(reading: LaneReading, bound: Mapping[str, Any]) -> dict[str, Any]:
    """The form to close the open outage, or what is missing for it."""
    outage, unsteady = reading.figures.open_outage, reading.figures.outage_unsteady
    if outage is None:
        return {}
    if unsteady:
        return {"outage_missing": [outage_text.unsteady_text(lane) for lane in unsteady]}
    return {"outage_form": bound.get("outage_form") or CloseOutageForm(outage=outage)}


def _hold_form(reading: LaneReading) -> PullForm | None:
    """On hold already, only the stricter form is left, while something runs that it could refuse."""
    lane, leases = reading.lane, reading.leases.value
    if lane.is_on_hold:
        is_refusing = lane.hold is not None and lane.hold.form == "refuse"
        if is_refusing or leases is None or not leases.longest:
            return None
    return PullForm(lane=lane)


def _lead_forms(reading: LaneReading, bound: Mapping[str, Any]) -> dict[str, Any]:
    lane, run, hold = reading.lane, reading.lane.run, reading.lane.hold
    stages = lane_page.plan_choices(reading)
    forms: dict[str, Any] = {}
    if run is not None:
        forms["cap_form"] = bound.get("cap_form") or CapForm(lane=lane, run=run)
        if any(number < run.number for number, _name in stages):
            forms["step_down_form"] = bound.get("step_down_form") or StepDownForm(run=run, stages=stages)
    elif hold is not None and hold.run is not None and lane_page.may_still_resume(reading):
        forms["resume_form"] = bound.get("resume_form") or ResumeForm(hold=hold, run=hold.run, stages=stages)
    return forms


def _raise_context(
    reading: LaneReading, shown: GateReading, person: Person, bound: Mapping[str, Any]
) -> dict[str, Any]:
    """The raise form rests on the figures read just now, also after a refusal: the second press sees them."""
    missing = ramp.may_raise(reading.lane, person, shown)
    firm = [one for one in missing if not one.can_be_overridden]
    can_override = bool(missing) and not firm and people.may(person, "override_guardrail", reading.lane)
    can_raise = shown.next is not None and (not missing or can_override)
    keep = f"raise-{reading.lane.pk}-{shown.run.pk if shown.run else shown.hold}"
    form = RaiseForm(initial=bound.get("raise_data"), may_override=can_override, keep=keep)
    typed = bound.get("raise_typed") or (None if can_raise else bound.get("raise_data"))
    return {
        "figures_id": shown.sign(),
        "raise_title": lane_page.raise_title(shown),
        "raise_effects": lane_page.raise_effects(reading, shown),
        "raise_missing": [missing_text(one) for one in missing if shown.next is not None],
        "raise_form": (bound.get("raise_errors") or form) if can_raise else None,
        "raise_typed": [(_("Reason"), text) for text in (typed or {}).values() if text],
        "raise_is_override": can_override,
        "is_last_stage": shown.next is None,
        "figures_at": shown.taken_at,
    }
