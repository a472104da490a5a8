"""Lives of many tickets, drawn from a seeded source of chance and played through the verbs at times that only grow."""

from collections.abc import Callable
from random import Random

from queue_core import batch, contract, people
from queue_core.contract import Ending
from queue_core.models import Attempt, Item, Job, Lane, Ticket
from queue_core.states import AssignmentToken, AttemptOutcome, LeaseToken, Verdict
from reviewboard.models import Person
from tests.factories import at, clock, make_ground, make_lane, new_ticket
from tests.people.cast import leo, rita

RELEASES = [
    AttemptOutcome.TIMEOUT,
    AttemptOutcome.UNAVAILABLE,
    AttemptOutcome.OVERLOADED,
    AttemptOutcome.INVALID_ANSWER,
    AttemptOutcome.RELEASED,
]


class Story:
    """Two lanes, two people, and whatever chance makes of them."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.now = 1.0
        self.lanes: list[Lane] = [make_lane(cap=50), make_lane(cap=50)]
        self.leo: Person = leo()
        self.rita: Person = rita()
        self.tokens: list[LeaseToken] = []
        self.held: list[tuple[Person, AssignmentToken]] = []
        make_ground()

    def play(self, steps: int) -> None:
        """Acts that find nothing to do are lost, and that is part of the story."""
        acts: list[Callable[[], object]] = [
            self.receive, self.receive, self.receive, self.claim_batch, self.claim_one, self.take_over, self.complete,
            self.complete, self.complete_many, self.release, self.release, self.renew, self.sweep, self.requeue,
            self.move_deadline, self.pull, self.refuse_running, self.give_back_budget, self.supersede, self.withdraw,
            self.take, self.take, self.resolve, self.resolve, self.resolve_requeue, self.put_down,
        ]  # fmt: skip
        for _ in range(steps):
            self.now += self.chance.choice([0.25, 1, 5, 30, 120])
            self.chance.choice(acts)()

    def receive(self) -> None:
        ticket = new_ticket(
            self.lane(),
            deadline=self.now + self.chance.choice([20, 300, 2000]),
            submitted=self.now - self.chance.choice([0, 50]),
            severity=self.chance.choice([0, 1, 1, 2, 3]),
        )
        contract.receive(ticket, clock=clock(self.now))

    def lane(self) -> Lane:
        return self.chance.choice(self.lanes)

    def a_job(self, **conditions: object) -> Job | None:
        jobs = list(Job.objects.filter(**conditions).order_by("pk"))
        return self.chance.choice(jobs) if jobs else None

    def claim_batch(self) -> None:
        got = batch.claim_next(self.lane().pk, self.chance.randint(1, 4), clock=clock(self.now), worker="w")
        self.tokens += [one.token for one in got.claims]

    def claim_one(self) -> None:
        job = self.a_job()
        answer = contract.claim(job.pk, clock=clock(self.now), worker="w") if job else None
        if answer is not None and answer.token is not None:
            self.tokens.append(answer.token)

    def take_over(self) -> None:
        got = batch.claim_expired(self.lane().pk, clock=clock(self.now), worker="w")
        self.tokens += [one.token for one in got.claims]

    def a_token(self) -> LeaseToken | None:
        """Any that was ever given out: most are stale by now."""
        return self.chance.choice(self.tokens[-8:]) if self.tokens else None

    def ending(self) -> Ending:
        result = self.chance.choice(["APPROVED", "REJECTED", "MANUAL"])
        return Ending(result=result, reason_code="insult" if result == "REJECTED" else None, cause="grey_zone")

    def complete(self) -> None:
        token = self.a_token()
        if token is not None:
            contract.complete(token, self.ending(), clock=clock(self.now), worker="w")

    def complete_many(self) -> None:
        endings = [(token, self.ending()) for token in self.tokens[-5:]]
        batch.complete_many(endings, clock=clock(self.now), worker="w")

    def release(self) -> None:
        token = self.a_token()
        if token is not None:
            contract.release(token, outcome=self.chance.choice(RELEASES), clock=clock(self.now), worker="w")

    def renew(self) -> None:
        token = self.a_token()
        if token is not None:
            contract.renew(token, clock=clock(self.now))

    def sweep(self) -> None:
        contract.sweep(clock=clock(self.now))
        contract.wake_due(clock=clock(self.now))

    def requeue(self) -> None:
        job = self.a_job(state="DEAD")
        if job is not None:
            deadline = at(self.now + 500)
            contract.requeue(job.pk, deadline=deadline, clock=clock(self.now), person=self.leo, reason="again")

    def move_deadline(self) -> None:
        job = self.a_job(state="WAITING")
        if job is not None:
            deadline = at(self.now + 700)
            contract.move_deadline(job.pk, deadline=deadline, clock=clock(self.now), person=self.leo, reason="late")

    def pull(self) -> None:
        job = self.a_job()
        if job is not None:
            contract.pull(job.pk, person=self.leo, clock=clock(self.now), reason="mine")

    def refuse_running(self) -> None:
        contract.refuse_running(self.lane().pk, clock=clock(self.now))

    def give_back_budget(self) -> None:
        timeouts = Attempt.objects.filter(outcome=AttemptOutcome.TIMEOUT).order_by("-pk").values_list("pk", flat=True)
        contract.give_back_attempts(list(timeouts[:3]))

    def a_ticket(self) -> Ticket | None:
        tickets = list(Ticket.objects.order_by("pk"))
        return self.chance.choice(tickets) if tickets else None

    def supersede(self) -> None:
        old = self.a_ticket()
        if old is not None:
            revision = f"{old.current_revision}+"
            ticket = new_ticket(
                self.lane(),
                source=old.source,
                external_id=old.external_id,
                revision=revision,
                deadline=self.now + 300,
            )
            contract.supersede(ticket, replaces=old.current_revision, clock=clock(self.now))

    def withdraw(self) -> None:
        ticket = self.a_ticket()
        if ticket is not None:
            contract.withdraw(source=ticket.source, external_id=ticket.external_id, clock=clock(self.now))

    def take(self) -> None:
        who = self.chance.choice([self.leo, self.rita])
        items = list(Item.objects.filter(closed_at__isnull=True).order_by("pk"))
        if items:
            taken = people.take(self.chance.choice(items).pk, person=who, clock=clock(self.now))
            if taken.token is not None:
                self.held.append((who, taken.token))

    def resolve(self) -> None:
        if self.held:
            who, token = self.chance.choice(self.held[-4:])
            verdict = self.chance.choice(list(Verdict))
            code = "insult" if verdict == Verdict.REJECTED else None
            people.resolve(token, person=who, verdict=verdict, reason_code=code, clock=clock(self.now))

    def resolve_requeue(self) -> None:
        if self.held:
            _who, token = self.chance.choice(self.held[-4:])
            people.resolve_requeue(
                token, person=self.leo, deadline=at(self.now + 400), reason="again", clock=clock(self.now)
            )

    def put_down(self) -> None:
        if self.held:
            who, token = self.chance.choice(self.held[-4:])
            match self.chance.choice(["extend", "give_back", "hand_over"]):
                case "extend":
                    people.extend(token, person=who, clock=clock(self.now))
                case "give_back":
                    people.give_back(token, person=who, clock=clock(self.now))
                case _:
                    other = self.rita if who == self.leo else self.leo
                    people.hand_over(token, person=who, to=other, clock=clock(self.now))
