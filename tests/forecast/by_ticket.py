"""What really happens, ticket by ticket and call by call: written without the model that is tested against it."""

import heapq
from dataclasses import dataclass, field
from random import Random


@dataclass(slots=True)
class OneTicket:
    queued: float
    deadline: float
    severity: int
    urgency: float
    tries: int = 3
    rests: int = 0


@dataclass(slots=True)
class World:
    """Seats that each call for one ticket at a time, most urgent first. Times in seconds."""

    seed: int
    cap: int
    median: float
    sigma: float
    arrivals_a_minute: float
    times_given: tuple[float, float, float, float]
    shares: tuple[float, float, float, float] = (0.5, 0.3, 0.15, 0.05)
    weight: float = 0.5
    bonus: float = 600.0
    invalid: float = 0.02
    now: float = 0.0
    waiting: list[tuple[float, int, OneTicket]] = field(default_factory=list)
    resting: list[tuple[float, int, OneTicket]] = field(default_factory=list)
    running: list[tuple[float, int, OneTicket]] = field(default_factory=list)
    calls_ended: list[float] = field(default_factory=list)
    came: list[float] = field(default_factory=list)
    passed: list[OneTicket] = field(default_factory=list)
    spent: int = 0
    done: int = 0
    emptied_at: float | None = None
    number: int = 0
    chance: Random = field(init=False)
    next_arrival: float = field(init=False)

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)
        self.next_arrival = self.chance.expovariate(self.arrivals_a_minute / 60)

    def add(self, queued: float) -> None:
        severity = self.chance.choices(range(4), self.shares)[0]
        deadline = queued + self.times_given[severity] * self.chance.uniform(0.8, 1.2)
        urgency = queued + self.weight * (deadline - queued) - severity * self.bonus
        self._put(self.waiting, urgency, OneTicket(queued, deadline, severity, urgency))

    def play(self, until: float) -> None:
        while True:
            self._claim()
            moments = [self.next_arrival]
            moments += [heap[0][0] for heap in (self.resting, self.running) if heap]
            if min(moments) > until:
                break
            self.now = min(moments)
            self._happen()
        self.now = until
        self._bury()

    def _happen(self) -> None:
        if self.next_arrival <= self.now:
            self.came.append(self.now)
            self.add(self.now)
            self.next_arrival = self.now + self.chance.expovariate(self.arrivals_a_minute / 60)
        while self.resting and self.resting[0][0] <= self.now:
            ticket = heapq.heappop(self.resting)[2]
            self._put(self.waiting, ticket.urgency, ticket)
        while self.running and self.running[0][0] <= self.now:
            self._end(heapq.heappop(self.running)[2])

    def _end(self, ticket: OneTicket) -> None:
        self.calls_ended.append(self.now)
        if self.now >= ticket.deadline:
            self.passed.append(ticket)
        elif self.chance.random() >= self.invalid:
            self.done += 1
        elif ticket.tries == 1:
            self.spent += 1
        else:
            ticket.tries -= 1
            ticket.rests += 1
            self._put(self.resting, self.now + 5 * 2 ** (ticket.rests - 1), ticket)

    def _claim(self) -> None:
        while len(self.running) < self.cap and self.waiting:
            ticket = heapq.heappop(self.waiting)[2]
            if ticket.deadline <= self.now:
                self.passed.append(ticket)
                continue
            length = self.median * self.chance.lognormvariate(0, self.sigma)
            self._put(self.running, self.now + length, ticket)
        if not self.waiting and len(self.running) < self.cap and self.emptied_at is None:
            self.emptied_at = self.now

    def _bury(self) -> None:
        dead = [entry for entry in self.waiting if entry[2].deadline <= self.now]
        self.passed += [entry[2] for entry in dead]
        self.waiting = [entry for entry in self.waiting if entry[2].deadline > self.now]
        heapq.heapify(self.waiting)

    def _put(self, heap: list[tuple[float, int, OneTicket]], key: float, ticket: OneTicket) -> None:
        self.number += 1
        heapq.heappush(heap, (key, self.number, ticket))
