"""Plans of stages played against one scenario: what each would lose to deadlines and waste in calls."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from django.utils.translation import gettext as _

from queue_core.errors import InvalidRequest
from queue_core.forecast.drain import drain, even
from queue_core.forecast.draws import Chance, Draw, Mean
from queue_core.forecast.terms import Arrivals, Calls, Cohort, Course, Kind, Order, Plan, Step
from queue_core.models.lanes import MAX_CAP

MOST_STEPS = 5_000
LONGEST = timedelta(days=14)
#: A given backlog is dealt out over so many moments at which it came in.
SLICES = 60
MOST_STAGES = 20

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LENGTH = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd]?)")
STAGE = re.compile(r"(?:(?P<hold>hold)|(?P<cap>\d+)(?::(?P<rate>\d+))?)(?:@(?P<length>[^,@]+))?")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One night. `outage` is how long nothing runs before a plan begins; the backlog is what waits at its start."""

    arrivals: Arrivals
    calls: Calls = field(default_factory=Calls)
    order: Order = field(default_factory=Order)
    backlog: Sequence[Cohort] = ()
    outage: float = 0.0
    horizon: float = 12 * 3600.0
    step: float = 30.0
    seed: int | None = 1

    def draw(self) -> Draw:
        return Mean() if self.seed is None else Chance(self.seed)


@dataclass(frozen=True, slots=True)
class Played:
    """What one plan came to with one weight of urgency."""

    plan: Plan
    weight: float
    course: Course


def play(scenario: Scenario, plans: Sequence[Plan], weights: Sequence[float]) -> list[Played]:
    """Each plan with each weight, all against the same night: the seed is the same for each."""
    played = []
    for plan in plans:
        for weight in weights:
            order = replace(scenario.order, weight=weight)
            course = drain(
                [_reordered(cohort, scenario, order) for cohort in scenario.backlog],
                _shifted(plan, scenario.outage),
                arrivals=scenario.arrivals,
                calls=scenario.calls,
                order=order,
                draw=scenario.draw(),
                moments=even(scenario.horizon, scenario.step),
            )
            played.append(Played(plan, weight, course))
    return played


def backlog_of(number: float, arrivals: Arrivals, order: Order) -> list[Cohort]:
    """A backlog of `number` tickets that came in at the arrivals' pace, or within an hour where nothing arrives.

    None is older than most of its deadline, so that all of them can still be reached at the start.
    """
    shortest = min((kind.time_given for kind in arrivals.kinds), default=3600.0)
    pace = arrivals.per_minute / 60
    span = min(number / pace if pace else 3600.0, 0.9 * shortest)
    cohorts = []
    for slice_ in range(SLICES):
        queued = -span * (slice_ + 0.5) / SLICES
        for kind in arrivals.kinds:
            deadline = queued + kind.time_given
            urgency = order.urgency(queued, deadline, kind.severity)
            cohorts.append(Cohort(urgency, deadline, kind.severity, number * kind.share / SLICES, order.max_attempts))
    return _in_whole_tickets(cohorts, number)


def plan_of(text: str) -> Plan:
    """A plan as it is written: stages as CAP[:RATE][@LENGTH] parted by commas, the first one the probe.

    The last stage has no length, the others need one. `hold@LENGTH` is a time in which nothing runs. Raises
    InvalidRequest, naming the part.
    """
    steps, start, parts = list[Step](), 0.0, [part.strip() for part in text.split(",")]
    if len(parts) > MOST_STAGES:
        raise InvalidRequest(_("A plan has at most %(most)d stages.") % {"most": MOST_STAGES}, field="plan")
    is_first_stage = True
    for number, part in enumerate(parts, start=1):
        found = STAGE.fullmatch(part)
        is_last = number == len(parts)
        if found is None or (found["length"] is None) != is_last:
            raise InvalidRequest(
                _("“%(part)s” is no stage: write CAP:RATE@LENGTH, as 10:300@5m; the last one without a length.")
                % {"part": part},
                field="plan",
            )
        cap = 0 if found["hold"] else _cap(found["cap"])
        is_probe = is_first_stage and cap > 0 and not is_last
        is_first_stage = is_first_stage and cap == 0
        steps.append(Step(start, cap, float(found["rate"]) if found["rate"] else None, is_probe, part))
        start += length_of(found["length"], field="plan") if found["length"] else 0.0
    return Plan(steps, text)


def length_of(text: str, *, field: str) -> float:
    """A length of time in seconds: 90, 90s, 1.5h, 500ms. Raises InvalidRequest."""
    found = LENGTH.fullmatch(text.strip())
    seconds = float(found[1]) * (0.001 if found[2] == "ms" else UNITS.get(found[2], 1)) if found else -1.0
    if not 0 < seconds <= LONGEST.total_seconds():
        raise InvalidRequest(
            _("“%(text)s” is no length of time: write 90s, 5m, 3h or 2d, at most 14 days.") % {"text": text},
            field=field,
        )
    return seconds


def kinds_of(shares: Sequence[float], times_given: Sequence[float]) -> list[Kind]:
    """Kinds of tickets of severity 0, 1, 2, 3 by their shares; one time for all or one for each."""
    total = sum(shares)
    if not 1 <= len(shares) <= 4 or total <= 0 or min(shares) < 0 or len(times_given) not in (1, len(shares)):
        raise InvalidRequest(
            _("Give up to four shares, for severity 0 to 3, and one deadline for all or one for each."),
            field="severities",
        )
    times = list(times_given) if len(times_given) > 1 else list(times_given) * len(shares)
    return [Kind(severity, share / total, times[severity]) for severity, share in enumerate(shares) if share]


def _cap(text: str) -> int:
    cap = int(text)
    if not 1 <= cap <= MAX_CAP:
        raise InvalidRequest(_("A cap is from 1 to %(most)d.") % {"most": MAX_CAP}, field="plan")
    return cap


def _shifted(plan: Plan, by: float) -> Plan:
    return replace(plan, steps=[replace(step, start=step.start + by) for step in plan.steps])


def _reordered(cohort: Cohort, scenario: Scenario, order: Order) -> Cohort:
    """The cohort under another weight: when it was queued follows from its urgency under the scenario's own."""
    own = scenario.order
    if own.weight >= 1.0:
        return replace(cohort)
    bonus = cohort.severity * own.severity_bonus
    queued = (cohort.urgency + bonus - own.weight * cohort.deadline) / (1 - own.weight)
    return replace(cohort, urgency=order.urgency(queued, cohort.deadline, cohort.severity))


def _in_whole_tickets(cohorts: list[Cohort], number: float) -> list[Cohort]:
    """Counts rounded so that they still sum to the number."""
    carried, dealt = 0.0, 0.0
    for cohort in cohorts:
        exact = cohort.count + carried
        cohort.count = float(round(exact))
        carried = exact - cohort.count
        dealt += cohort.count
    cohorts[-1].count += number - dealt
    return [cohort for cohort in cohorts if cohort.count > 0]
