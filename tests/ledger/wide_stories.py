"""Stories of all acts: what people look at again, appeal and take back; recalls, bulk acts, erasures, holds."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission

from queue_core import blind_samples, bulk, contract, people, recalls, relay
from queue_core.bulk import Terms
from queue_core.errors import CallerError, NotPermitted
from queue_core.models import (
    Assignment,
    BulkAct,
    Decision,
    Endpoint,
    Evidence,
    Job,
    PreservationHold,
)
from queue_core.people import keeping, restricting
from queue_core.relay import Answer, rows
from queue_core.states import AssignmentToken, BulkKind, RecallTo, TryOutcome, Verdict
from reviewboard.models import Person
from tests.factories import at, clock, make_lane, new_ticket
from tests.ledger.stories import Story
from tests.people.cast import person

SOME_KINDS = [BulkKind.REQUEUE, BulkKind.PULL, BulkKind.MOVE_DEADLINES, BulkKind.HAND_OVER, BulkKind.ESCALATE]
#: What an act answers that was done. Verbs that answer nothing of the kind count by themselves.
DONE = {
    "taken", "decided", "checked", "requeued", "skipped", "escalated", "opened", "taken_back", "recalled", "confirmed",
    "erased", "lifted", "restricted",
}  # fmt: skip
#: The token of whoever holds nothing.
NOTHING = AssignmentToken(0, 1, UUID(int=0))
LOOKED_AGAIN = {"second_look_share": 0.5}
CHECKED_BLIND = {"blind_share": 0.5, "least_blind": 2, "max_disagreement": 0.5}


def all_powerful(name: str) -> Person:
    rights = Permission.objects.filter(content_type__app_label="queue_core")
    return person(name, *rights.values_list("codename", flat=True))


class WideStory(Story):
    """Two lanes, one of which keeps back; three people who may do everything, so that one is always another."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.lanes = [
            make_lane(cap=50, run=CHECKED_BLIND | {"keeps_back": True}, **LOOKED_AGAIN),
            make_lane(cap=50, run=CHECKED_BLIND, **LOOKED_AGAIN),
        ]
        self.cast = [all_powerful(name) for name in ("ann", "ben", "cleo")]
        self.by_key = {who.pk: who for who in self.cast}
        self.endpoint = Endpoint.objects.create(
            name="shop", address="https://shop.test/", kinds=["decision", "decision.recalled"], created_at=at(0)
        )
        #: How often each act was played to an end, for a test that the story has them all.
        self.played: Counter[str] = Counter()

    def play(self, steps: int) -> None:
        acts = [
            *[self.receive] * 6, *[self.claim_batch] * 4, self.take_over, *[self.complete_many] * 6, self.release,
            self.sweep, self.requeue, self.move_deadline, self.pull, self.supersede, self.withdraw,
            *[self.take] * 7, *[self.resolve] * 7, self.resolve_requeue, self.put_down, self.skip, self.escalate,
            self.appeal, self.appeal, self.correct, self.correct, *[self.take_back] * 3, self.recall, self.go_on,
            *[self.check_blind] * 2, *[self.number] * 2, *[self.deliver] * 2, self.begin_bulk, *[self.work_in_bulk] * 2,
            self.erase, self.preserve, self.lift, self.restrict, self.report,
        ]  # fmt: skip
        for _ in range(steps):
            self.now += self.chance.choice([0.25, 1, 2, 3])
            act = self.chance.choice(acts)
            try:
                done = act()
            except NotPermitted:
                raise
            except CallerError:
                continue
            self.played[act.__name__] += str(getattr(done, "outcome", done)) in DONE

    def receive(self) -> None:
        ticket = new_ticket(
            self.lane(),
            deadline=self.now + self.chance.choice([60, 1000, 3000]),
            submitted=self.now,
            severity=self.chance.choice([0, 1, 1, 2, 2, 3]),
        )
        contract.receive(ticket, clock=clock(self.now))

    def somebody(self) -> Person:
        return self.chance.choice(self.cast)

    def take(self) -> object:
        who = self.somebody()
        taken = people.take_next(person=who, clock=clock(self.now))
        self.hold(who, taken.token)
        return taken

    def hold(self, who: Person, token: AssignmentToken | None) -> None:
        if token is not None:
            self.held.append((who, token))

    def in_hand(self) -> tuple[Person, AssignmentToken]:
        """Mostly what somebody really holds, the newest first; now and then any token that was ever given."""
        if self.held and self.chance.random() < 0.2:
            return self.chance.choice(self.held)
        held = Assignment.objects.filter(ended_at__isnull=True, person__in=[who.pk for who in self.cast])
        for one in held.order_by("-taken_at", "-pk")[:1]:
            return self.by_key[one.person_id], AssignmentToken(one.item_id, one.fence, one.key)
        return self.somebody(), NOTHING

    def resolve(self) -> object:
        who, token = self.in_hand()
        verdict = self.chance.choice(list(Verdict))
        code = "insult" if verdict == Verdict.REJECTED else None
        return people.resolve(
            token, person=who, verdict=verdict, reason_code=code, note="as it is written", clock=clock(self.now)
        )

    def skip(self) -> object:
        who, token = self.in_hand()
        return people.skip(token, person=who, reason="not my language", clock=clock(self.now))

    def escalate(self) -> object:
        who, token = self.in_hand()
        return people.escalate(token, person=who, reason="too hard for me", clock=clock(self.now))

    def appeal(self) -> object:
        ticket = self.a_ticket()
        if ticket is None:
            return None
        return people.appeal(
            source=ticket.source, external_id=ticket.external_id, statement="I object", person=self.somebody(),
            clock=clock(self.now),
        )  # fmt: skip

    def a_decision(self, **conditions: object) -> Decision | None:
        """One of the last few: older ones are mostly replaced."""
        found = list(Decision.objects.filter(**conditions).order_by("-pk")[:6])
        return self.chance.choice(found) if found else None

    def correct(self) -> object:
        decision, who = self.a_decision(), self.somebody()
        if decision is None:
            return None
        done = people.correct(decision.pk, person=who, clock=clock(self.now))
        self.hold(who, done.token)
        return done

    def take_back(self) -> object:
        decision = Decision.objects.filter(assignment__isnull=False).order_by("-pk").first()
        if decision is None or decision.person_id not in self.by_key:
            return None
        who = self.by_key[decision.person_id]
        done = people.take_back(decision.pk, person=who, clock=clock(self.now))
        self.hold(who, done.token)
        return done

    def recall(self) -> object:
        lane = self.lane()
        run = lane.run_id if self.chance.random() < 0.5 else None
        chosen = recalls.Selection(until=at(self.now), run=run, since=at(self.now - 200))
        to = self.chance.choice(list(RecallTo))
        return recalls.recall(
            lane.pk, chosen, person=self.somebody(), reason="wrong answers",
            shown=recalls.preview(lane, chosen).count, to=to, deadline_after=timedelta(seconds=500),
            clock=clock(self.now),
        )  # fmt: skip

    def go_on(self) -> None:
        recalls.go_on(clock=clock(self.now))

    def check_blind(self) -> None:
        blind_samples.draw_due(clock=clock(self.now))

    def number(self) -> None:
        relay.number_messages(clock=clock(self.now))

    def deliver(self) -> None:
        answer = self.chance.choice([Answer(TryOutcome.DELIVERED, 204), Answer(TryOutcome.FAILED, 500)])
        self.endpoint.refresh_from_db()
        taken = rows.take(self.endpoint, 3, clock=clock(self.now))
        if taken:
            rows.end(self.endpoint.pk, [(one, answer) for one in taken], clock=clock(self.now))

    def begin_bulk(self) -> object:
        who, to = self.chance.sample(self.cast, 2)
        kind = self.chance.choice(SOME_KINDS)
        shown = bulk.preview(kind, Job.objects.all(), selection={}, person=who, clock=clock(self.now))
        if shown.act is None:
            return None
        terms = Terms(first=timedelta(seconds=600), span=timedelta(seconds=50), to=to.pk)
        return bulk.confirm(shown.act.pk, terms=terms, reason="many of them", person=who, clock=clock(self.now))

    def work_in_bulk(self) -> None:
        act = BulkAct.objects.filter(confirmed_at__isnull=False, ended_at__isnull=True).order_by("pk").first()
        if act is None:
            return
        if self.chance.random() < 0.2:
            bulk.stop(act.pk, person=self.somebody(), clock=clock(self.now))
        bulk.work(act.pk, clock=clock(self.now))

    def erase(self) -> object:
        ticket = self.a_ticket()
        if ticket is None or self.chance.random() < 0.5:
            return None
        return people.erase_content(ticket.pk, person=self.somebody(), ground="asked for it", clock=clock(self.now))

    def preserve(self) -> None:
        ticket = self.a_ticket()
        if ticket is not None:
            keeping.preserve(
                ticket.pk, person=self.somebody(), authority="court", reference="7", reason="ordered",
                until=at(self.now + 300), clock=clock(self.now),
            )  # fmt: skip
            self.played["preserve"] += 1

    def lift(self) -> object:
        holds = list(PreservationHold.objects.order_by("-pk").values_list("pk", flat=True)[:3])
        if not holds:
            return None
        return keeping.lift(
            self.chance.choice(holds), person=self.somebody(), reason="no longer", clock=clock(self.now)
        )

    def restrict(self) -> object:
        who, token = self.in_hand()
        return restricting.restrict_and_leave(token, person=who, clock=clock(self.now))

    def report(self) -> None:
        evidence = Evidence.objects.filter(is_restricted=True).order_by("pk").first()
        if evidence is not None:
            restricting.report(
                evidence.pk, person=self.somebody(), authority="police", reference="R1", reason="by law",
                clock=clock(self.now),
            )  # fmt: skip
            self.played["report"] += 1


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], WideStory]:
    """Makes the story of a seed: what production leaves to chance follows from it too, and no worker is woken."""

    def story(seed: int) -> WideStory:
        random.seed(seed)
        told = WideStory(seed)
        monkeypatch.setattr("queue_core.blind_samples._is_drawn", lambda _one, share: told.chance.random() < share)
        monkeypatch.setattr(
            "queue_core.people.second_looks._is_drawn",
            lambda locked, _assignment: told.chance.random() < locked.item.lane.second_look_share,
        )
        return told

    monkeypatch.setattr("queue_core.wakeups._send", lambda _task, *_args: None)
    return story
