"""Recall: of a run or a filter, undelivered and delivered, to people or to a new round; and runs that kept back."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from queue_core import batch, contract, figures, ramp, recalls, relay, roles
from queue_core.contract import Ending
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.ledger import auditor
from queue_core.models import AuditEntry, Decision, Item, Job, Lane, Message, Recall, RecallEntry
from queue_core.recalls import RecallActed, Selection
from queue_core.states import RecallTo, Verdict
from reviewboard.models import Person
from tests.factories import at, claim, clock, make_ground, new_ticket, waiting_job, without_guards
from tests.ramp.stories import PLAN, again, answer, fail, judged, leased, probing, pull, running

pytestmark = pytest.mark.django_db

KEEPING = (replace(PLAN[0], keeps_back=True), *PLAN[1:])
WHY = "the model was turned round"


def decided(lane: Lane, *results: str, when: float = 90, **fields: object) -> list[Decision]:
    """A decision by the model for each result, in order."""
    made = []
    for result in results:
        job = waiting_job(lane, added=when, deadline=when + 10_000, **fields)
        judged(lane, when=when)
        token = claim(job, when=when)
        ground = make_ground().code if result == "REJECTED" else None
        assert contract.complete(token, Ending(result=result, reason_code=ground), clock=clock(when)) == "committed"
        made.append(Decision.objects.get(job=job))
    return made


def recall(lane: Lane, person: Person, *, when: float = 200, shown: int | None = None, **words: object) -> RecallActed:
    """Recall what a preview of the same moment shows of the lane's run or held run, unless told otherwise."""
    fields = {name: words.pop(name) for name in ("run", "since", "verdict", "reason_code") if name in words}
    chosen = Selection(until=at(when), **fields)
    count = recalls.preview(lane, chosen).count if shown is None else shown
    return recalls.recall(lane.pk, chosen, person=person, shown=count, clock=clock(when), **({"reason": WHY} | words))


def delivered(decision: Decision) -> None:
    """The relay numbered all that was committed, and somebody read up to this one's message."""
    relay.number_messages(clock=clock(0))
    number = Message.objects.get(decision=decision, kind="decision").number
    assert [message.decision for message in relay.page_of_messages(number - 1, 1)] == [decision]


def in_force(decision: Decision) -> Decision:
    chain = Decision.objects.filter(ticket=decision.ticket, revision=decision.revision)
    return chain.get(replaced_by__isnull=True)


def test_a_lead_recalls_a_runs_decisions_and_none_is_in_force_any_more(lead: Person) -> None:
    lane = running(lead)
    first, second = decided(lane, "APPROVED", "REJECTED")

    acted = recall(lane, lead, run=lane.run.pk)

    assert (acted.outcome, acted.count) == ("recalled", 2)
    for decision in (first, second):
        link = in_force(decision)
        assert (link.why, link.verdict, link.replaces, link.person, link.note) == ("recall", None, decision, lead, WHY)
        assert (link.run, link.policy, link.decided_at) == (decision.run, decision.policy, at(200))
    assert set(Message.objects.filter(kind="decision", decision__run=lane.run).values_list("state", flat=True)) == {
        "withdrawn"
    }
    assert not Message.objects.filter(kind="decision.recalled").exists()


def test_each_ticket_gets_an_item_that_says_what_was_recalled(lead: Person) -> None:
    lane = running(lead)
    [decision] = decided(lane, "REJECTED")

    recall(lane, lead, run=lane.run.pk)

    item = Item.objects.get(ticket=decision.ticket)
    assert (item.kind, item.cause, item.job, item.closed_at) == ("recalled", "recalled", decision.job, None)
    assert item.params == {"verdict": "REJECTED", "decision": decision.pk}
    decision.job.refresh_from_db()
    assert (decision.job.state, decision.job.result) == ("DONE", "REJECTED")


def test_who_may_have_read_a_decision_is_told_that_it_is_recalled_after_it(lead: Person) -> None:
    lane = running(lead)
    read, unread = decided(lane, "APPROVED", "APPROVED")
    delivered(read)

    acted = recall(lane, lead, run=lane.run.pk)

    told = Message.objects.get(kind="decision.recalled")
    assert (told.ticket, told.decision, told.body["decision"]) == (read.ticket, in_force(read), read.pk)
    assert told.seq > Message.objects.get(decision=read, kind="decision").seq
    assert Message.objects.get(decision=read, kind="decision").state == "ready"
    assert Message.objects.get(decision=unread, kind="decision").state == "withdrawn"
    outcomes = dict(acted.recall.entries.values_list("decision", "outcome"))
    assert outcomes == {read.pk: "announced", unread.pk: "withdrawn"}


def test_a_new_review_round_goes_through_the_ramp_and_is_decided_once_more(lead: Person) -> None:
    lane = running(lead)
    [decision] = decided(lane, "REJECTED")

    recall(lane, lead, run=lane.run.pk, to=RecallTo.REVIEW, deadline_after=timedelta(hours=2))

    job = Job.objects.get(ticket=decision.ticket, round=2)
    assert (job.state, job.revision, job.evidence, job.fence) == (
        "WAITING",
        decision.revision,
        decision.job.evidence,
        0,
    )
    assert (job.queued_at, job.deadline, job.max_attempts) == (at(200), at(200 + 7200), lane.max_attempts)
    assert not Item.objects.filter(ticket=decision.ticket).exists()
    judged(lane, when=210)
    [claimed] = batch.claim_next(lane.pk, 5, clock=clock(210), worker="w").claims
    assert contract.complete(claimed.token, Ending(result="APPROVED"), clock=clock(211)) == "committed"
    again_decided = in_force(decision)
    assert (again_decided.verdict, again_decided.why, again_decided.job) == ("APPROVED", "correction", job)
    assert Message.objects.get(decision=again_decided).state == "ready"


def test_what_may_not_wait_for_a_model_goes_to_people_though_a_round_was_asked_for(lead: Person) -> None:
    lane = running(lead)
    [over] = decided(lane, "APPROVED", deadline_kind="hard")
    with without_guards():
        Job.objects.filter(pk=over.job_id).update(deadline=at(150))
    [hard] = decided(lane, "APPROVED", deadline_kind="hard")

    recall(lane, lead, run=lane.run.pk, to=RecallTo.REVIEW, deadline_after=timedelta(hours=2))

    assert Item.objects.get(closed_at__isnull=True).ticket == over.ticket
    assert Job.objects.get(round=2).ticket == hard.ticket
    assert Job.objects.get(round=2).deadline == hard.job.deadline


def test_what_was_erased_goes_to_people_since_nothing_is_left_for_a_model_to_look_at(lead: Person) -> None:
    lane = running(lead)
    [decision] = decided(lane, "REJECTED")
    contract.erase(decision.ticket_id, ground="its author asked", actor=None, clock=clock(150))

    recall(lane, lead, run=lane.run.pk, to=RecallTo.REVIEW, deadline_after=timedelta(hours=2))

    assert Item.objects.get(closed_at__isnull=True).ticket == decision.ticket
    assert not Job.objects.filter(round=2).exists()


def test_a_filter_takes_only_what_it_says(lead: Person) -> None:
    lane = running(lead)
    early, *_rest = decided(lane, "REJECTED", "APPROVED", when=90)
    late, approved = decided(lane, "REJECTED", "APPROVED", when=120)

    by_verdict = recalls.preview(lane, Selection(until=at(130), since=at(100), verdict=Verdict.REJECTED))
    recall(lane, lead, when=130, since=at(100), verdict=Verdict.REJECTED, reason_code="insult")

    assert (by_verdict.count, by_verdict.verdicts) == (1, {"REJECTED": 1})
    assert in_force(late).why == "recall"
    assert {in_force(decision).why for decision in (early, approved)} == {"first"}


def test_what_people_decided_is_not_the_models_to_recall(lead: Person) -> None:
    lane = running(lead)
    answer(lane, when=90, result="MANUAL")

    assert recalls.preview(lane, Selection(until=at(100), run=lane.run.pk)).count == 0


def test_the_preview_says_how_many_consumers_will_be_told_and_whose_revision_is_no_longer_current(lead: Person) -> None:
    lane = running(lead)
    read, old, _rest = decided(lane, "APPROVED", "APPROVED", "REJECTED")
    delivered(read)
    ticket = new_ticket(lane, external_id=old.ticket.external_id, revision="v2", deadline=9000)
    contract.supersede(ticket, replaces="v1", clock=clock(95))

    shown = recalls.preview(lane, Selection(until=at(100), run=lane.run.pk))

    assert (shown.count, shown.delivered, shown.undelivered, shown.superseded) == (3, 1, 2, 1)
    recall(lane, lead, run=lane.run.pk)
    assert in_force(old).why == "recall"
    assert not Item.objects.filter(ticket=old.ticket).exists()
    assert figures.account().balances


def test_another_number_than_was_shown_changes_nothing_and_a_second_press_names_the_first(
    lead: Person, other_lead: Person
) -> None:
    lane = running(lead)
    decided(lane, "APPROVED", "APPROVED")

    refused = recall(lane, lead, run=lane.run.pk, shown=1)
    assert (refused.outcome, refused.count, Recall.objects.count()) == ("differs", 2, 0)
    recall(lane, lead, run=lane.run.pk)
    second = recall(lane, other_lead, run=lane.run.pk, shown=2, when=201)

    assert (second.outcome, second.count, second.by, second.at) == ("differs", 0, lead, at(200))
    assert Recall.objects.count() == 1
    assert AuditEntry.objects.filter(act="decisions.recalled").count() == 1


def test_what_was_committed_after_the_preview_is_not_recalled(lead: Person) -> None:
    lane = running(lead)
    decided(lane, "APPROVED", when=90)
    chosen = Selection(until=at(100), run=lane.run.pk)
    shown = recalls.preview(lane, chosen).count
    [later] = decided(lane, "APPROVED", when=110)

    acted = recalls.recall(lane.pk, chosen, person=lead, reason=WHY, shown=shown, clock=clock(120))

    assert (acted.outcome, in_force(later).why) == ("recalled", "first")


def test_the_act_is_audited_with_its_selection_and_its_number(lead: Person) -> None:
    lane = running(lead)
    decided(lane, "APPROVED", "REJECTED")

    acted = recall(lane, lead, run=lane.run.pk, verdict=Verdict.REJECTED)

    entry = AuditEntry.objects.get(act="decisions.recalled")
    assert (entry.actor, entry.lane, entry.reason, entry.subject_id) == (lead, lane, WHY, str(acted.recall.pk))
    assert (entry.after["decisions"], entry.after["verdict"], entry.after["run"]) == (1, "REJECTED", lane.run.pk)


def test_who_may_not_recall_and_what_is_no_recall_is_refused(lead: Person, reviewer: Person) -> None:
    lane, other = running(lead), running(lead)

    with pytest.raises(NotPermitted):
        recall(lane, reviewer, run=lane.run.pk)
    with pytest.raises(InvalidRequest) as no_reason:
        recall(lane, lead, run=lane.run.pk, reason="no")
    with pytest.raises(InvalidRequest) as no_deadline:
        recall(lane, lead, run=lane.run.pk, to=RecallTo.REVIEW)
    with pytest.raises(InvalidRequest) as no_run:
        recall(lane, lead, run=other.run.pk)

    assert [fault.value.field for fault in (no_reason, no_deadline, no_run)] == ["reason", "deadline", "run"]


def test_nothing_to_recall_is_said_so(lead: Person) -> None:
    lane = running(lead)

    assert recall(lane, lead, run=lane.run.pk, shown=0).outcome == "nothing"


def test_many_are_recalled_in_chunks_and_the_progress_is_counted_from_rows(
    lead: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recalls, "CHUNK", 2)
    monkeypatch.setattr(recalls, "CHUNKS_A_TICK", 1)
    lane = running(lead)
    made = decided(lane, *["APPROVED"] * 5)

    acted = recall(lane, lead, run=lane.run.pk)
    assert recalls.progress(acted.recall) == recalls.Progress(pending=3, withdrawn=2)
    assert recalls.preview(lane, Selection(until=at(300), run=lane.run.pk)).count == 0
    assert recalls.go_on(clock=clock(201)) == 2
    # One of the rest is replaced before its chunk comes.
    Decision.objects.create(
        ticket=made[4].ticket, revision="v1", job=made[4].job, lane=lane, why="recall", replaces=made[4], person=lead,
        source_kind="own_detection", automation="none", decided_at=at(201),
    )  # fmt: skip
    assert recalls.go_on(clock=clock(202)) == 1
    recalls.go_on(clock=clock(203))

    done = recalls.progress(acted.recall)
    assert (done.pending, done.withdrawn, done.passed_over, done.total) == (0, 4, 1, 5)
    acted.recall.refresh_from_db()
    assert acted.recall.ended_at is not None
    assert not RecallEntry.objects.filter(outcome__isnull=True).exists()


def test_the_ledger_finds_nothing_after_recalls_of_every_kind(lead: Person) -> None:
    lane = running(lead)
    read, *_rest = decided(lane, "APPROVED", "REJECTED", "APPROVED")
    delivered(read)
    recall(lane, lead, run=lane.run.pk, verdict=Verdict.APPROVED)
    recall(lane, lead, when=210, run=lane.run.pk, to=RecallTo.REVIEW, deadline_after=timedelta(hours=1))

    assert audited() == []
    assert figures.account(lane).balances


def audited() -> list[str]:
    return [f"{finding.rule.code} {finding.key}" for finding in auditor.audit().findings]


class TestARunThatKeptBackAndEnded:
    def held(self, lead: Person, **settings: object) -> Lane:
        """A probe that kept two decisions back and was put on hold."""
        lane = probing(lead, stages=KEEPING, **settings)
        decided(lane, "APPROVED", "REJECTED", when=30)
        pull(lane, lead, when=40)
        return again(lane)

    def states(self) -> set[str]:
        return set(Message.objects.filter(kind="decision").values_list("state", flat=True))

    def test_is_listed_with_how_many_it_keeps(self, lead: Person) -> None:
        lane = self.held(lead)

        [kept] = ramp.kept_back_runs(lane)

        assert (kept.run, kept.count, kept.oldest) == (lane.hold.run, 2, at(30))

    def test_is_accepted_by_a_lead_and_its_decisions_go_out(self, lead: Person) -> None:
        lane = self.held(lead)
        run = lane.hold.run

        acted = ramp.accept_held_run(lane.pk, run.pk, person=lead, reason="looked at all", shown=2, clock=clock(50))

        run.refresh_from_db()
        assert (acted.outcome, run.accepted_at, self.states()) == ("done", at(50), {"ready"})
        assert AuditEntry.objects.get(act="run.accepted").after["decisions"] == 2
        assert ramp.kept_back_runs(again(lane)) == []

    def test_is_recalled_and_nothing_of_it_ever_goes_out(self, lead: Person) -> None:
        lane = self.held(lead)

        acted = recall(lane, lead, when=50, run=lane.hold.run.pk)

        assert (acted.count, self.states()) == (2, {"withdrawn"})
        assert ramp.kept_back_runs(lane) == []
        after = ramp.accept_held_run(
            lane.pk, lane.hold.run.pk, person=lead, reason="too late", shown=2, clock=clock(51)
        )
        assert after.outcome == "nothing_kept_back"

    def test_is_not_accepted_by_an_old_number(self, lead: Person) -> None:
        lane = probing(lead, stages=KEEPING)
        token = leased(lane, when=30)
        decided(lane, "APPROVED", when=30)
        pull(lane, lead, when=40)
        contract.complete(token, Ending(result="APPROVED"), clock=clock(45))

        acted = ramp.accept_held_run(lane.pk, lane.run.pk, person=lead, reason="as shown", shown=1, clock=clock(50))

        assert (acted.outcome, self.states()) == ("others_kept_back", {"kept_back"})

    def test_a_call_that_ends_after_the_acceptance_is_not_kept_back(self, lead: Person) -> None:
        lane = probing(lead, stages=KEEPING)
        token = leased(lane, when=30)
        decided(lane, "APPROVED", when=30)
        pull(lane, lead, when=40)
        ramp.accept_held_run(lane.pk, lane.run.pk, person=lead, reason="as shown", shown=1, clock=clock(50))

        contract.complete(token, Ending(result="APPROVED"), clock=clock(55))

        assert self.states() == {"ready"}

    def test_a_step_down_leaves_it_to_a_lead_and_the_present_run_is_not_listed(self, lead: Person) -> None:
        lane = running(lead, stages=(PLAN[0], replace(PLAN[1], keeps_back=True), PLAN[2]))
        decided(lane, "APPROVED", when=90)
        assert ramp.kept_back_runs(lane) == []

        ramp.step_down(lane.pk, person=lead, reason="too quick", to=1, clock=clock(100))

        assert [kept.run for kept in ramp.kept_back_runs(again(lane))] == [lane.run]

    def test_two_persons_are_asked_for_where_the_lane_asks_for_two(self, lead: Person, other_lead: Person) -> None:
        lane = self.held(lead, two_person_rule=True)
        words = {"reason": "looked at all", "shown": 2}

        first = ramp.accept_held_run(lane.pk, lane.hold.run.pk, person=lead, clock=clock(50), **words)
        second = ramp.accept_held_run(lane.pk, lane.hold.run.pk, person=other_lead, clock=clock(51), **words)

        assert (first.outcome, first.by, second.outcome) == ("same_person", lead, "done")

    def test_a_reviewer_may_not(self, lead: Person, reviewer: Person) -> None:
        lane = self.held(lead)

        with pytest.raises(NotPermitted):
            ramp.accept_held_run(lane.pk, lane.hold.run.pk, person=reviewer, reason="looked", shown=2, clock=clock(50))


def test_a_recall_is_a_line_in_the_log_of_an_open_outage(lead: Person) -> None:
    lane = running(lead, unavailable_limit=1)
    decided(lane, "APPROVED")
    fail(lane, "unavailable", when=100)

    recall(lane, lead, run=lane.run.pk)

    entry = again(lane).connection.outages.get().entries.get(code="recalled")
    assert (entry.by, entry.text, entry.params["decisions"]) == (lead, WHY, 1)


def test_leads_and_administrators_may_recall_and_reviewers_may_not(person: Callable[..., Person]) -> None:
    may = {role: person(role).has_perm("queue_core.recall_decision") for role in roles.RIGHTS}

    assert {role for role, is_allowed in may.items() if is_allowed} == {"lead", "administrator"}
