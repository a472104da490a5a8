"""One act of every kind that people do to what was decided, for tests of what a damaged one looks like."""

import io
from datetime import timedelta
from uuid import uuid4

from django.contrib.auth.models import Group

from queue_core import bulk, contract, imports, people, recalls, relay, roles
from queue_core.bulk import Terms
from queue_core.imports import NewFile, Settings
from queue_core.models import (
    AlertEpisode,
    AlertNotice,
    ApiKey,
    BulkAct,
    Decision,
    Endpoint,
    Evidence,
    ImportRun,
    Item,
    Job,
    KnownAnswer,
    KnownReply,
    Lane,
    LaneRole,
    Outage,
    OutageEntry,
    ReasonCodeVersion,
)
from queue_core.people import keeping, restricting
from queue_core.relay import Answer, rows
from queue_core.states import BulkKind, RecallTo, TryOutcome
from reviewboard.models import Person
from tests.factories import at, clock, dead_job, done_job, make_ground, make_lane, waiting_job
from tests.ledger.wide_stories import all_powerful
from tests.people.cast import item_of, take

HOUR = timedelta(hours=1)


class Stage:
    """A lane, three people who may do everything, and the rows that tests name."""

    def __init__(self) -> None:
        make_ground()
        self.lane: Lane = make_lane(deadline_default=10 * HOUR)
        self.other_lane: Lane = make_lane()
        self.ann, self.ben, self.cleo = (all_powerful(name) for name in ("ann", "ben", "cleo"))
        self.rows: dict[str, int] = {"lane": self.lane.pk, "other_lane": self.other_lane.pk, "cleo": self.cleo.pk}

    def decided(self, *, who: Person | None = None, when: float = 10, **fields: object) -> Decision:
        """By a person, on an item of the model's."""
        job = done_job(self.lane, result="MANUAL", **fields)
        return self.resolve(item_of(job), who or self.ann, when=when)

    def resolve(self, item: Item, who: Person, *, when: float, verdict: str = "APPROVED") -> Decision:
        code = "insult" if verdict == "REJECTED" else None
        token = take(item, who, when=when)
        people.resolve(
            token, person=who, verdict=verdict, reason_code=code, note="a note", clock=clock(when)
        )  # fmt: skip
        return Decision.objects.filter(job=item.job_id).latest("pk")

    def looked_at_again(self) -> None:
        """A second look that disagrees, and what the lead then decided."""
        Lane.objects.filter(pk=self.lane.pk).update(second_look_share=1)
        first = self.decided()
        Lane.objects.filter(pk=self.lane.pk).update(second_look_share=0)
        self.resolve(item_of(first.job), self.ben, when=30, verdict="REJECTED")
        disputed = self.resolve(item_of(first.job), self.cleo, when=40, verdict="REJECTED")
        self.rows |= {"looked": first.pk, "disputed": disputed.pk, "looked_job": first.job_id}

    def checked_blind(self) -> None:
        for name, verdict in [("agreed", "APPROVED"), ("disagreed", "REJECTED")]:
            job = done_job(self.lane)
            contract.open_blind_items([job.decisions.get().pk], within=HOUR, clock=clock(10))
            self.resolve(item_of(job), self.ann, when=20, verdict=verdict)
            self.rows[name] = job.pk

    def appealed(self) -> None:
        first = self.decided(who=self.ann)
        people.appeal(
            source=first.ticket.source, external_id=first.ticket.external_id, statement="I object", person=self.ann,
            clock=clock(40),
        )  # fmt: skip
        on_appeal = self.resolve(item_of(first.job), self.ben, when=50, verdict="REJECTED")
        self.rows |= {"appealed": first.pk, "on_appeal": on_appeal.pk}

    def corrected_and_taken_back(self) -> None:
        first = self.decided(who=self.ann)
        people.correct(first.pk, person=self.ben, clock=clock(40))
        corrected = self.resolve(item_of(first.job), self.ben, when=41, verdict="REJECTED")
        people.take_back(corrected.pk, person=self.ben, clock=clock(42))
        self.rows |= {"corrected": corrected.pk, "taken_back": Decision.objects.get(replaces=corrected).pk}

    def passed_on(self) -> None:
        item = item_of(done_job(self.lane, result="MANUAL"))
        people.skip(take(item, self.ann, when=10), person=self.ann, reason="not mine", clock=clock(11))
        people.hand_over(take(item, self.ann, when=12), person=self.ann, to=self.ben, clock=clock(13))
        people.escalate_item(
            item.pk, fence=Item.objects.get(pk=item.pk).fence, person=self.ben, reason="hard", clock=clock(14)
        )
        self.rows["passed"] = item.pk

    def recalled(self) -> None:
        """One that its consumer has, one that nobody has, both on another lane than the rest."""
        lane = self.other_lane
        endpoint = Endpoint.objects.create(
            name="shop", address="https://shop.test/", kinds=["decision", "decision.recalled"], created_at=at(0)
        )
        told = done_job(lane)
        relay.number_messages(clock=clock(3))
        rows.end(
            endpoint.pk,
            [(one, Answer(TryOutcome.DELIVERED, 204)) for one in rows.take(endpoint, 50, clock=clock(4))],
            clock=clock(5),
        )
        untold = done_job(lane)
        chosen = recalls.Selection(until=at(60))
        recalls.recall(
            lane.pk, chosen, person=self.ann, reason="wrong", shown=2, to=RecallTo.PEOPLE, clock=clock(60)
        )  # fmt: skip
        relay.number_messages(clock=clock(200))
        self.rows |= {"told": told.pk, "told_ticket": told.ticket_id, "untold": untold.pk}

    def in_bulk(self) -> None:
        late, mine = dead_job(self.lane), done_job(self.lane, result="MANUAL")
        self.rows["requeued"] = self._act(BulkKind.REQUEUE, [late], first=HOUR).pk
        self.rows["handed_over"] = self._act(BulkKind.HAND_OVER, [mine], to=self.ben.pk).pk
        act = self._act(BulkKind.REJECT, [dead_job(self.lane, severity=1) for _ in range(4)], reason_code="insult")
        for entry in act.entries.filter(is_sample=True).select_related("item"):
            self.resolve(entry.item, self.ben, when=71, verdict="REJECTED")
        bulk.second(act.pk, person=self.cleo, clock=clock(72))
        bulk.work(act.pk, clock=clock(73))
        stopped = self._act(BulkKind.PULL, [waiting_job(self.lane)], is_worked=False)
        bulk.stop(stopped.pk, person=self.ann, clock=clock(74))
        self.rows |= {"rejected": act.pk, "stopped": stopped.pk}

    def _act(self, kind: BulkKind, jobs: list[Job], *, is_worked: bool = True, **terms: object) -> BulkAct:
        shown = bulk.preview(
            kind, Job.objects.filter(pk__in=[job.pk for job in jobs]), selection={}, person=self.ann, clock=clock(68)
        )
        assert shown.act is not None, shown.left_out
        bulk.confirm(shown.act.pk, terms=Terms(**terms), reason="many", person=self.ann, clock=clock(69))
        if is_worked:
            bulk.work(shown.act.pk, clock=clock(70))
        return BulkAct.objects.get(pk=shown.act.pk)

    def imported(self) -> None:
        """A file with a line that was refused, and one that is still to be settled."""
        good = '{"ticket": "i1", "revision": "v1", "evidence": {"text": "x"}, "deadline": "+1h"}\n'
        for name, content in [("imported", good + '{"ticket": ""}\n'), ("uploaded", good)]:
            run = imports.upload(
                io.BytesIO(content.encode()), NewFile("x.ndjson", "forum"), person=self.ann, clock=clock(80)
            )
            self.rows[name] = run.pk
        settings = Settings("forum", self.lane)
        for act in (lambda pk: imports.settle(pk, settings, person=self.ann, clock=clock(81)), self._begin):
            act(self.rows["imported"])
            imports.work(self.rows["imported"], task="w1", clock=clock(82), is_stopping=lambda: False)
        assert ImportRun.objects.get(pk=self.rows["imported"]).state == "done"

    def _begin(self, pk: int) -> None:
        imports.begin(pk, person=self.ann, clock=clock(82))

    def kept_and_erased(self) -> None:
        kept, erased = waiting_job(self.lane), self.decided()
        for _ in range(2):
            hold = keeping.preserve(
                kept.ticket_id, person=self.ann, authority="court", reference="7", reason="ordered", until=at(900),
                clock=clock(90),
            )  # fmt: skip
        assert hold is not None
        keeping.lift(hold.pk, person=self.ann, reason="no longer", clock=clock(91))
        people.erase_content(erased.ticket_id, person=self.ann, ground="asked for it", clock=clock(92))
        Evidence.objects.filter(pk=kept.evidence_id).update(is_restricted=True)
        restricting.report(
            kept.evidence_id, person=self.ann, authority="police", reference="R1", reason="by law", clock=clock(93)
        )
        self.rows |= {
            "lifted": hold.pk, "kept_ticket": kept.ticket_id, "erased_ticket": erased.ticket_id,
            "erased_job": erased.job_id, "kept_evidence": kept.evidence_id,
        }  # fmt: skip

    def configured(self) -> None:
        lane = self.lane
        LaneRole.objects.create(person=self.ann, role=Group.objects.get(name=roles.LEAD), lane=lane)
        known = KnownAnswer.objects.create(lane=lane, title="one", text="you fool", expected="REJECTED")
        KnownReply.objects.create(
            known=known, lane=lane, run=lane.run, policy=lane.policy, connection=lane.connection, version=1,
            expected="REJECTED", asked_at=at(1),
        )  # fmt: skip
        outage = Outage.objects.create(connection=lane.connection, cause="precaution", opened_at=at(1))
        OutageEntry.objects.create(outage=outage, at=at(1), code="opened")
        ApiKey.objects.create(name="forum", prefix="p", digest="d", made_at=at(1), made_by=self.ann)
        ReasonCodeVersion.objects.create(ground=make_ground("of_old"), version=1, title="of old")
        told = AlertEpisode.objects.create(
            kind="growing", subject="one", lane=lane, begun_at=at(1), seen_at=at(1), acknowledged_at=at(2),
            acknowledged_by=self.ann,
        )  # fmt: skip
        AlertNotice.objects.create(
            episode=told, phase="begun", channel="mail", person=self.ann, key=uuid4(), due_at=at(1)
        )  # fmt: skip


def staged() -> dict[str, int]:
    stage = Stage()
    for act in (
        stage.recalled, stage.looked_at_again, stage.checked_blind, stage.appealed, stage.corrected_and_taken_back,
        stage.passed_on, stage.in_bulk, stage.imported, stage.kept_and_erased, stage.configured,
    ):  # fmt: skip
        act()
    return stage.rows
