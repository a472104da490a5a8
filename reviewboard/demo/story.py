"""The demo's past, played through the product's own verbs by a clock that the story moves.

Nothing is written past the contract: each ticket was received, claimed, answered by the real local model and judged by
the lane's policy, each stage was raised on figures that were measured, at the times that the story says.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count

from queue_core import batch, calls, contract, gate, people, ramp
from queue_core.clock import FixedClock
from queue_core.connections.local import LocalConnection
from queue_core.contract import NewTicket
from queue_core.errors import InvalidJob
from queue_core.models import Item, Lane, Outage
from queue_core.people import ResolveOutcome
from queue_core.ramp import OutageOutcome, RaiseOutcome
from queue_core.states import Verdict
from reviewboard.demo.connection import DemoConnection
from reviewboard.demo.texts import DemoText
from reviewboard.models import DemoModel, Person

UP, DOWN = DemoModel.Condition.UP, DemoModel.Condition.DOWN
#: A verb reads the clock more than once, and a round trip takes its time.
READING = timedelta(milliseconds=15)
WORKER = "story"
MOST_BATCHES = 1000


class StoryClock(FixedClock):
    """Stands where the story is, and moves a little with each reading, as time does."""

    def now(self) -> datetime:
        self.moment += READING
        return self.moment

    def go_to(self, moment: datetime) -> None:
        """Never back: what was written stays in the past."""
        self.moment = max(self.moment, moment)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One ticket of the story, with the time it came in and its deadline."""

    text: DemoText
    at: datetime
    deadline: datetime


@dataclass(slots=True)
class Story:
    clock: StoryClock
    _numbers: "count[int]" = field(default_factory=lambda: count(10_231))

    def receive(self, lane: Lane, arrivals: Iterable[Arrival], *, source: str, prefix: str, every: timedelta) -> None:
        """Take tickets in as they come, a handful at a time; meanwhile deadlines pass as they do."""
        waiting: list[Arrival] = []
        for arrival in sorted(arrivals, key=lambda arrival: arrival.at):
            if waiting and arrival.at - waiting[0].at >= every:
                self._take_in(lane, waiting, source, prefix)
                waiting = []
            waiting.append(arrival)
        self._take_in(lane, waiting, source, prefix)

    def _take_in(self, lane: Lane, arrivals: Sequence[Arrival], source: str, prefix: str) -> None:
        if not arrivals:
            return
        self.clock.go_to(arrivals[-1].at)
        answers = contract.receive_many(
            [self._ticket(lane, arrival, source, prefix) for arrival in arrivals], clock=self.clock
        )
        refused = [answer for answer in answers if isinstance(answer, InvalidJob)]
        if refused:
            raise refused[0]
        contract.sweep(clock=self.clock)

    def _ticket(self, lane: Lane, arrival: Arrival, source: str, prefix: str) -> NewTicket:
        text = arrival.text
        return NewTicket(
            source=source,
            external_id=f"{prefix}-{next(self._numbers)}",
            revision="1",
            lane=lane,
            evidence={"text": text.text, "language": text.language},
            deadline=arrival.deadline,
            submitted_at=arrival.at,
            severity=text.severity,
            category=text.category,
            exposure=text.exposure,
        )

    def work(self, lane: Lane, *, condition: DemoModel.Condition = UP, most: int | None = None) -> int:
        """Drain a lane as a worker does, until nothing is left, its stage refuses, or `most` claims were made."""
        model = DemoConnection(LocalConnection(allow_restricted=False), lambda: condition, pause=lambda _seconds: None)
        made = 0
        contract.wake_due(clock=self.clock)
        for _turn in range(MOST_BATCHES):
            ramp.judge(lane.pk, clock=self.clock)
            limit = model.at_once if most is None else min(model.at_once, most - made)
            found = batch.claim_next(lane.pk, limit, clock=self.clock, worker=WORKER) if limit > 0 else None
            if found is None or not found.claims:
                break
            made += len(found.claims)
            present = Lane.objects.select_related("connection", "run").get(pk=lane.pk)
            self.clock.go_to(self.clock.moment + timedelta(seconds=0.8))
            calls.work_on(found.claims, calls.Desk(present, model, self.clock, WORKER, lambda: False))
        return made

    def raise_stage(self, lane: Lane, person: Person, reason: str) -> None:
        """Raise on figures read now. The story keeps to the rules, so a refusal is a fault of the story."""
        present = Lane.objects.select_related("run", "hold", "connection").get(pk=lane.pk)
        reading = gate.read(present, now=self.clock.now())
        raised = ramp.raise_stage(lane.pk, person=person, reason=reason, figures_id=reading.sign(), clock=self.clock)
        if raised.outcome != RaiseOutcome.RAISED:
            raise AssertionError(f"the story's raise was {raised.outcome}: {raised.missing}")

    def close_outage(self, lane: Lane, person: Person, reason: str) -> None:
        outage = Outage.objects.get(connection=lane.connection, closed_at__isnull=True)
        acted = ramp.close_outage(outage.pk, person=person, reason=reason, clock=self.clock)
        if acted.outcome != OutageOutcome.CLOSED:
            raise AssertionError(f"the story's outage was {acted.outcome}")

    def decide_items(self, lane: Lane, reviewers: Sequence[Person]) -> None:
        """People clear the lane's desk: what the model found rude enough to doubt goes, one in three."""
        for number, item in enumerate(Item.objects.filter(lane=lane, closed_at__isnull=True).order_by("pk")):
            person = reviewers[number % len(reviewers)]
            taken = people.take(item.pk, person=person, clock=self.clock)
            assert taken.token is not None, taken.outcome
            self.clock.go_to(self.clock.moment + timedelta(seconds=35))
            verdict = Verdict.REJECTED if number % 3 == 2 else Verdict.APPROVED
            resolved = people.resolve(
                taken.token,
                person=person,
                verdict=verdict,
                reason_code="insult" if verdict == Verdict.REJECTED else "",
                note="",
                clock=self.clock,
            )
            assert resolved.outcome == ResolveOutcome.DECIDED, resolved.outcome
