"""The model of a drain: cohorts of tickets, the most urgent first, against calls that come at a pace.

Pure. What it keeps to are the rules of the contract: urgency (`contract.order`), back-off, budget, tickets too late for
the model passed over, and deadlines that end what waits. The work grows with cohorts and steps, never with tickets.
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from queue_core.forecast.draws import Draw
from queue_core.forecast.terms import Arrivals, Calls, Cohort, Course, Order, Plan, Point, Step

#: Less than this of a ticket is none: fractions come from expectations.
NOTHING = 1e-6
#: What a worker keeps free before the end of a lease to write the answer down (`contract.rules.CALL_MARGIN`).
MARGIN = 0.5
MOST_SEVERE_FOR_THE_PROBE = 1

type _Entry = tuple[float, int, Cohort]


def drain(
    backlog: Iterable[Cohort],
    plan: Plan,
    *,
    arrivals: Arrivals,
    calls: Calls,
    order: Order,
    draw: Draw,
    moments: Sequence[float],
) -> Course:
    """Play the queue forward from 0 through `moments`, rising; the last one is the horizon.

    The backlog's cohorts are copied. With `draws.Mean` the course is the expected one, with `draws.Chance` one that may
    happen.
    """
    queue = _Queue(calls, order, draw, Course(moments[-1]))
    for one in backlog:
        queue.put(replace(one))
    moment = 0.0
    for until in moments:
        length = until - moment
        queue.arrive(arrivals, moment, length)
        queue.wake(moment)
        queue.bury(moment)
        queue.serve(plan.at(moment), moment, length)
        moment = until
        queue.note(moment)
    queue.bury(moment)
    queue.course.left = queue.waiting
    return queue.course


def even(horizon: float, step: float) -> list[float]:
    """Moments `step` apart, the last at the horizon."""
    number = max(1, math.ceil(horizon / step - NOTHING))
    return [min(step * (place + 1), horizon) for place in range(number)]


def widening(horizon: float, number: int) -> list[float]:
    """Moments that are close together at first: what is near can be told finely, what is far cannot."""
    return [horizon * ((place + 1) / number) ** 2 for place in range(number)]


@dataclass(slots=True)
class _Queue:
    calls: Calls
    order: Order
    draw: Draw
    course: Course
    waiting: float = 0.0
    _ready: list[_Entry] = field(default_factory=list)
    _resting: list[_Entry] = field(default_factory=list)
    _ends: list[_Entry] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)
    _carried: float = 0.0

    def put(self, cohort: Cohort) -> None:
        if cohort.count <= NOTHING:
            return
        self.waiting += cohort.count
        heapq.heappush(self._ends, (cohort.deadline, next(self._numbers), cohort))
        self._queue(cohort)

    def arrive(self, arrivals: Arrivals, moment: float, length: float) -> None:
        number = self.draw.count(arrivals.per_minute * length / 60)
        if number <= NOTHING or not arrivals.kinds:
            return
        self.course.arrived += number
        parts = self.draw.split(number, [kind.share for kind in arrivals.kinds])
        for kind, part in zip(arrivals.kinds, parts, strict=True):
            deadline = moment + kind.time_given
            urgency = self.order.urgency(moment, deadline, kind.severity)
            self.put(Cohort(urgency, deadline, kind.severity, part, self.order.max_attempts, 0, moment, True))

    def wake(self, moment: float) -> None:
        """Back-off that is over."""
        while self._resting and self._resting[0][0] <= moment:
            cohort = heapq.heappop(self._resting)[2]
            if cohort.count > NOTHING:
                heapq.heappush(self._ready, (cohort.urgency, next(self._numbers), cohort))

    def bury(self, moment: float) -> None:
        """What waits past its deadline is dead, whether it rests, is too late for a call, or had no turn."""
        while self._ends and self._ends[0][0] <= moment:
            cohort = heapq.heappop(self._ends)[2]
            self._lose(cohort, cohort.count, self.course.passed)
            self._take(cohort, cohort.count)

    def serve(self, stage: Step, moment: float, length: float) -> None:
        """The calls of one step, to the most urgent that have time for one."""
        amount = stage.calls_a_second(self.calls) * length
        room, self._carried = self.draw.whole(amount, self._carried)
        left = room
        for cohort in self._for_the_probe(moment) if stage.is_probe else self._most_urgent(moment):
            number = min(left, cohort.count)
            if number <= NOTHING:
                break
            self._call(cohort, number, moment)
            left -= number
        if self.course.emptied_at is None and not stage.is_probe and room > NOTHING and self._is_empty(moment):
            self.course.emptied_at = moment + length * (1 - left / room)
        # A capacity that nobody used is gone: a seat cannot be saved up.
        self._carried = 0.0 if left > NOTHING else self._carried

    def note(self, moment: float) -> None:
        self.course.points.append(Point(moment, self.waiting, self.course.done, self.course.dead))

    def _queue(self, cohort: Cohort) -> None:
        if cohort.ready_at > 0:
            heapq.heappush(self._resting, (cohort.ready_at, next(self._numbers), cohort))
        else:
            heapq.heappush(self._ready, (cohort.urgency, next(self._numbers), cohort))

    def _most_urgent(self, moment: float) -> Iterator[Cohort]:
        """The head of the order, again and again: the caller takes of it, or ends."""
        while self._ready:
            cohort = self._ready[0][2]
            if cohort.count > NOTHING and cohort.deadline > moment + self.calls.needs:
                yield cohort
            else:
                # Too late for the model, or nobody left: it stays only in the order of deadlines.
                heapq.heappop(self._ready)

    def _for_the_probe(self, moment: float) -> list[Cohort]:
        """Harmless, not on its last attempt, with the most time left first."""
        fitting = [
            entry[2]
            for entry in self._ready
            if entry[2].count > NOTHING
            and entry[2].severity <= MOST_SEVERE_FOR_THE_PROBE
            and (entry[2].tries > 1 or self.order.max_attempts == 1)
            and entry[2].deadline > moment + self.calls.needs
        ]
        return sorted(fitting, key=lambda cohort: -cohort.deadline)

    def _is_empty(self, moment: float) -> bool:
        return next(self._most_urgent(moment), None) is None

    def _call(self, cohort: Cohort, number: float, moment: float) -> None:
        calls, left = self.calls, cohort.deadline - moment - MARGIN
        too_long = calls.longer_than(min(calls.time_limit, left))
        too_long = min(1.0, too_long + calls.timeouts * (1 - too_long))
        rest = 1 - too_long
        shares = [too_long, rest * calls.unavailable, rest * (1 - calls.unavailable) * calls.invalid]
        late, unavailable, invalid, answered = self.draw.split(number, [*shares, 1 - sum(shares)])
        self._take(cohort, number)
        self.course.calls += number
        self.course.wasted += number - answered
        self.course.done += answered
        self.course.manual += answered * calls.manual
        if left < calls.time_limit:
            self._lose(cohort, late, self.course.in_call)
            late = 0.0
        self._give_back(cohort, late + invalid, moment, is_charged=True)
        self._give_back(cohort, unavailable, moment, is_charged=False)

    def _give_back(self, cohort: Cohort, number: float, moment: float, *, is_charged: bool) -> None:
        if number <= NOTHING:
            return
        if is_charged and cohort.tries <= 1:
            self.course.spent[cohort.severity] += number
            return
        rest = self.order.rest(cohort.rested)
        self.put(
            Cohort(
                cohort.urgency,
                cohort.deadline,
                cohort.severity,
                number,
                cohort.tries - is_charged,
                cohort.rested + is_charged,
                moment + rest,
                cohort.is_fresh,
            )
        )

    def _lose(self, cohort: Cohort, number: float, where: dict[int, float]) -> None:
        where[cohort.severity] += number
        if cohort.is_fresh:
            self.course.fresh[cohort.severity] += number

    def _take(self, cohort: Cohort, number: float) -> None:
        cohort.count -= number
        self.waiting = max(0.0, self.waiting - number)
