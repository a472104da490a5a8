"""`manage.py simulate`: play a lane's ramp forward on a copy of its figures, plan by plan, before a night comes."""

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.forecast import from_lane, plot, scenario
from queue_core.forecast.scenario import Played, Scenario, length_of
from queue_core.forecast.terms import Arrivals, Calls, Order, Plan
from queue_core.models import Lane

MOST_TICKETS = 1_000_000_000
MOST_PLAYED = 24
#: Of severity 0, 1, 2. What is of severity 3 goes to people at once, unless a lane's model sees it first.
DEFAULT_SHARES = "70,20,10"
DEFAULT_DEADLINES = "6h,4h,2h,1h"
DEFAULT_PLAN = "2:60@3m,10:300@5m,50:1500@5m,200"

HELP = """
Plays plans of stages against the same night and says what each loses to deadlines and wastes in calls. With --lane the
night is a copy of that lane: what waits, what comes, how its calls go, its order and its plan; every option given
besides replaces a part of it. Without a lane all comes from the options and no database is needed. Nothing is written.
The same seed gives the same answer. A plan: stages as CAP[:RATE][@LENGTH], as 2:60@3m,10:300@5m,200; hold@30m waits.
"""


class Command(BaseCommand):
    help = HELP
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--lane", help=_("The lane to copy, by its name."))
        parser.add_argument("--plan", action="append", help=_("A plan; may be given several times."))
        parser.add_argument("--weight", action="append", type=float, help=_("Weight of urgency, 0 to 1; several."))
        parser.add_argument("--waiting", type=int, help=_("Tickets that wait at the start."))
        parser.add_argument("--arrivals", type=float, help=_("Tickets that come a minute."))
        parser.add_argument("--outage", help=_("How long nothing runs before the plan begins, as 3h."))
        parser.add_argument(
            "--severities",
            help=_(
                "Shares of severity 0,1,2,3 of what the model gets, as 70,20,10. Severity 3 goes to people at once, so "
                "give it a share only where a lane's model sees it first."
            ),
        )
        parser.add_argument("--deadlines", help=_("Time given, one for all or one for each severity, as 6h,4h,2h,1h."))
        parser.add_argument("--call", help=_("Length of a call, usual and slow (p95), as 800ms,3s."))
        parser.add_argument("--time-limit", help=_("A call's time limit, as 10s."))
        parser.add_argument("--errors", type=float, help=_("Share of calls with an invalid answer: attempts charged."))
        parser.add_argument("--unavailable", type=float, help=_("Share of calls refused uncalled: not charged."))
        parser.add_argument("--timeouts", type=float, help=_("Share of calls that time out besides the slow ones."))
        parser.add_argument("--attempts", type=int, help=_("Attempts of a ticket."))
        parser.add_argument("--hours", type=float, default=12.0, help=_("How far to play."))
        parser.add_argument("--step", default="30s", help=_("Length of one step."))
        parser.add_argument("--seed", type=int, default=1, help=_("The seed of the night."))
        parser.add_argument("--svg", type=Path, metavar="FILE", help=_("Draw what waits over time into a file."))
        parser.add_argument("--json", action="store_true", help=_("Print one object instead of a table."))

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            night, plans, weights = _asked(options)
        except InvalidRequest as mistake:
            raise CommandError(f"--{mistake.field.replace('_', '-')}: {mistake}") from mistake
        played = scenario.play(night, plans, weights)
        labels = [_label(one, plans) for one in played]
        if options["json"]:
            self.stdout.write(json.dumps({"seed": night.seed, "played": [_record(one) for one in played]}))
        else:
            self._tell(night, plans, played)
        if options["svg"] is not None:
            _draw(options["svg"], played, labels)

    def _tell(self, night: Scenario, plans: Sequence[Plan], played: Sequence[Played]) -> None:
        self.stdout.write(
            _("%(waiting)s wait at the start, %(arriving)s come a minute; seed %(seed)s, %(hours)s hours.")
            % {
                "waiting": f"{sum(cohort.count for cohort in night.backlog):,.0f}",
                "arriving": f"{night.arrivals.per_minute:,.4g}",
                "seed": night.seed,
                "hours": f"{night.horizon / 3600:g}",
            }
        )
        for number, plan in enumerate(plans, start=1):
            self.stdout.write(_("Plan %(number)d: %(plan)s") % {"number": number, "plan": plan.name})
        heads = [
            _("plan"), _("w"), _("empty at"), _("decided"), _("lost"), _("sev. 3"), _("sev. 2"), _("sev. 1"),
            _("sev. 0"), _("in the call"), _("attempts spent"), _("calls"), _("wasted"), _("left"),
        ]  # fmt: skip
        rows = [_cells(one, plans) for one in played]
        widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
        for row in [heads, *rows]:
            self.stdout.write("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
        highest = plot.highest_of(played)
        self.stdout.write(
            _("What waits, from the start to the end; a full block is %(most)s:") % {"most": f"{highest:,.0f}"}
        )
        for one in played:
            self.stdout.write(f"{_label(one, plans):>12}  {plot.sparkline(one, highest=highest)}")


def _asked(options: dict[str, Any]) -> tuple[Scenario, list[Plan], list[float]]:
    """The night, the plans and the weights; InvalidRequest names the option."""
    night, own_plan = _base(options)
    night = _changed(night, options)
    weights = options["weight"] or ([0.0, 0.5, 1.0] if options["lane"] is None else [night.order.weight])
    if any(not 0.0 <= weight <= 1.0 for weight in weights):
        raise InvalidRequest(_("A weight is from 0 to 1."), field="weight")
    plans = [scenario.plan_of(text) for text in options["plan"] or [own_plan]]
    if len(plans) * len(weights) > MOST_PLAYED:
        raise InvalidRequest(_("At most %(most)d plans and weights at once.") % {"most": MOST_PLAYED}, field="plan")
    return night, plans, weights


def _base(options: dict[str, Any]) -> tuple[Scenario, str]:
    if options["lane"] is None:
        return Scenario(Arrivals(100.0, _kinds(options)), outage=3 * 3600.0), DEFAULT_PLAN
    lane = Lane.objects.select_related("connection", "run", "hold", "policy").filter(name=options["lane"]).first()
    if lane is None:
        raise InvalidRequest(_("There is no lane “%(name)s”.") % {"name": options["lane"]}, field="lane")
    night, plan = from_lane.copy(lane, now=DATABASE_CLOCK.now())
    return night, plan or DEFAULT_PLAN


def _changed(night: Scenario, options: dict[str, Any]) -> Scenario:
    """The night with what the options say of it."""
    _check(options)
    arrivals = night.arrivals
    if options["severities"] or options["deadlines"]:
        arrivals = replace(arrivals, kinds=_kinds(options))
    if options["arrivals"] is not None:
        arrivals = replace(arrivals, per_minute=options["arrivals"])
    order: Order = night.order
    if options["attempts"] is not None:
        order = replace(order, max_attempts=options["attempts"])
    night = replace(
        night,
        arrivals=arrivals,
        order=order,
        calls=_calls(night.calls, options),
        horizon=options["hours"] * 3600,
        step=length_of(options["step"], field="step"),
        seed=options["seed"],
    )
    if options["outage"] is not None:
        night = replace(night, outage=length_of(options["outage"], field="outage"))
    if options["waiting"] is not None:
        night = replace(night, backlog=scenario.backlog_of(options["waiting"], arrivals, order))
    if night.horizon / night.step > scenario.MOST_STEPS:
        text = _("That would be more than %(most)d steps: make them longer.") % {"most": scenario.MOST_STEPS}
        raise InvalidRequest(text, field="step")
    return night


def _kinds(options: dict[str, Any]) -> list[Any]:
    shares = _numbers(options["severities"] or DEFAULT_SHARES, field="severities")
    given = [length_of(part, field="deadlines") for part in (options["deadlines"] or DEFAULT_DEADLINES).split(",")]
    return scenario.kinds_of(shares, given[: len(shares)] if len(given) > 1 else given)


def _calls(calls: Calls, options: dict[str, Any]) -> Calls:
    if options["call"]:
        lengths = [length_of(part, field="call") for part in options["call"].split(",")]
        median, p95 = lengths[0], lengths[-1]
        if len(lengths) > 2 or p95 < median:
            raise InvalidRequest(_("Give the usual length and the slow one, as 800ms,3s."), field="call")
        calls = replace(calls, median=median, p95=p95, needs=p95 + 0.5, time_limit=max(calls.time_limit, p95))
    if options["time_limit"]:
        calls = replace(calls, time_limit=length_of(options["time_limit"], field="time_limit"))
    shares = {"invalid": options["errors"], "unavailable": options["unavailable"], "timeouts": options["timeouts"]}
    return replace(calls, **{name: share for name, share in shares.items() if share is not None})


def _check(options: dict[str, Any]) -> None:
    for name in ("errors", "unavailable", "timeouts"):
        if options[name] is not None and not 0.0 <= options[name] <= 1.0:
            raise InvalidRequest(_("A share is from 0 to 1."), field=name)
    for name, least, most in (
        ("waiting", 0, MOST_TICKETS), ("arrivals", 0, MOST_TICKETS), ("attempts", 1, 1000), ("hours", 0.1, 336)
    ):  # fmt: skip
        if options[name] is not None and not least <= options[name] <= most:
            raise InvalidRequest(_("From %(least)s to %(most)s.") % {"least": least, "most": most}, field=name)


def _numbers(text: str, *, field: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as fault:
        raise InvalidRequest(_("Write numbers separated by commas, as 70,20,8,2."), field=field) from fault


def _label(one: Played, plans: Sequence[Plan]) -> str:
    return _("plan %(number)d, w %(weight)s") % {"number": plans.index(one.plan) + 1, "weight": f"{one.weight:g}"}


def _cells(one: Played, plans: Sequence[Plan]) -> list[str]:
    course = one.course
    empty = "–" if course.emptied_at is None else _("%(hours)s h") % {"hours": f"{course.emptied_at / 3600:.1f}"}
    numbers = [
        course.done,
        sum(course.missed.values()),
        *(course.missed[severity] for severity in (3, 2, 1, 0)),
        sum(course.in_call.values()),
        sum(course.spent.values()),
        course.calls,
        course.wasted,
        course.left,
    ]
    return [str(plans.index(one.plan) + 1), f"{one.weight:g}", empty, *(f"{number:,.0f}" for number in numbers)]


def _record(one: Played) -> dict[str, Any]:
    course = one.course
    return {
        "plan": one.plan.name,
        "weight": one.weight,
        "arrived": course.arrived,
        "decided": course.done,
        "lost": course.missed,
        "lost_in_call": course.in_call,
        "attempts_spent": course.spent,
        "calls": course.calls,
        "wasted": course.wasted,
        "left": course.left,
        "empty_at_seconds": course.emptied_at,
    }


def _draw(path: Path, played: Sequence[Played], labels: Sequence[str]) -> None:
    try:
        path.write_text(plot.svg(played, labels, title=_("Tickets that wait")), encoding="utf-8")
    except OSError as fault:
        raise CommandError(_("%(file)s cannot be written: %(fault)s") % {"file": path, "fault": fault}) from fault
