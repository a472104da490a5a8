"""What the model of a drain is given: plain numbers. Times are seconds from the moment of the question."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

#: The normal quantile of 0.95: what lies between a median and a p95.
P95 = 1.6448536269514722


@dataclass(slots=True)
class Cohort:
    """Tickets that are alike, as one count. `tries` are the attempts left, `rested` the back-offs had so far.

    `is_fresh`: they came after the moment of the question.
    """

    urgency: float
    deadline: float
    severity: int
    count: float
    tries: int = 3
    rested: int = 0
    ready_at: float = 0.0
    is_fresh: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of ticket that arrives: its share of the arrivals, and how long after its arrival its deadline is."""

    severity: int
    share: float
    time_given: float


@dataclass(frozen=True, slots=True)
class Arrivals:
    """`per_minute` tickets of these kinds, whose shares sum to one."""

    per_minute: float
    kinds: Sequence[Kind] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """Which ticket comes first (`contract.order`), and how long one rests after a failure."""

    weight: float = 0.5
    severity_bonus: float = 600.0
    max_attempts: int = 3
    back_off: float = 5.0
    longest_back_off: float = 300.0

    def urgency(self, queued_at: float, deadline: float, severity: int) -> float:
        return queued_at + self.weight * (deadline - queued_at) - severity * self.severity_bonus

    def rest(self, rested: int) -> float:
        return min(self.back_off * 2.0 ** min(rested, 40), self.longest_back_off)


@dataclass(frozen=True, slots=True)
class Calls:
    """How calls of the model go: their length as a log-normal of this median and p95, and shares of how they end.

    `unavailable` gives the attempt back, `invalid` and `timeouts` charge it. Calls longer than `time_limit` time out
    besides. A ticket with less than `needs` left is passed over: too late for the model.
    """

    median: float = 1.0
    p95: float = 2.0
    time_limit: float = 10.0
    needs: float = 2.5
    unavailable: float = 0.0
    invalid: float = 0.0
    timeouts: float = 0.0
    manual: float = 0.0

    @property
    def sigma(self) -> float:
        return math.log(max(self.p95 / self.median, 1.0)) / P95

    @property
    def mean(self) -> float:
        """How long a call keeps its seat, on average."""
        usual = min(self.median * math.exp(self.sigma**2 / 2), self.time_limit)
        return usual * (1 - self.timeouts) + self.time_limit * self.timeouts

    def longer_than(self, seconds: float) -> float:
        """The share of calls that take longer than this."""
        if seconds <= 0:
            return 1.0
        if self.sigma == 0:
            return 1.0 if self.median > seconds else 0.0
        return 0.5 * math.erfc(math.log(seconds / self.median) / (self.sigma * math.sqrt(2)))


@dataclass(frozen=True, slots=True)
class Step:
    """A stage from `start` on: `cap` calls at once and at most `rate` a minute. Cap 0 is a hold."""

    start: float
    cap: int
    rate: float | None = None
    is_probe: bool = False
    name: str = ""

    def calls_a_second(self, calls: Calls) -> float:
        by_cap = self.cap / calls.mean
        return by_cap if self.rate is None else min(by_cap, self.rate / 60)


@dataclass(frozen=True, slots=True)
class Plan:
    """The stages of a ramp, by their start."""

    steps: Sequence[Step]
    name: str = ""

    def at(self, moment: float) -> Step:
        found = Step(0.0, 0)
        for step in self.steps:
            if step.start > moment + 1e-9:
                break
            found = step
        return found


@dataclass(frozen=True, slots=True)
class Point:
    """How it stood at a time: what waits, and what has ended until then."""

    at: float
    waiting: float
    done: float
    dead: float


@dataclass(slots=True)
class Course:
    """What came of it. Deaths by severity: before their turn, in the call, and with their attempts spent.

    `fresh` counts, of those lost to deadlines, the ones that came after the moment of the question.
    `emptied_at` is when nothing was left to claim for the first time; None: not within the horizon.
    """

    horizon: float
    arrived: float = 0.0
    done: float = 0.0
    manual: float = 0.0
    calls: float = 0.0
    wasted: float = 0.0
    emptied_at: float | None = None
    passed: dict[int, float] = field(default_factory=lambda: dict.fromkeys(range(4), 0.0))
    in_call: dict[int, float] = field(default_factory=lambda: dict.fromkeys(range(4), 0.0))
    spent: dict[int, float] = field(default_factory=lambda: dict.fromkeys(range(4), 0.0))
    fresh: dict[int, float] = field(default_factory=lambda: dict.fromkeys(range(4), 0.0))
    left: float = 0.0
    points: list[Point] = field(default_factory=list)

    @property
    def missed(self) -> dict[int, float]:
        """Lost to deadlines, by severity: before their turn or in the call."""
        return {severity: self.passed[severity] + self.in_call[severity] for severity in self.passed}

    @property
    def dead(self) -> float:
        return sum(self.missed.values()) + sum(self.spent.values())
