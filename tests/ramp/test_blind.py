"""Blind checks: a sample of a run's decisions for people who do not see them, and what their verdicts do."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from queue_core import blind_samples, contract, figures, gate, people, ramp, recalls
from queue_core.contract import Ending
from queue_core.ledger import auditor
from queue_core.models import Attempt, AuditEntry, BlindCheck, Decision, Item, Lane, Message
from queue_core.recalls import Selection
from queue_core.states import AssignmentToken, LeaseToken, Verdict
from reviewboard.models import Person
from tests.factories import at, claim, clock, make_ground, new_ticket, past_the_guards, waiting_job
from tests.ramp.stories import PLAN, again, answer, judged, leased, probing, pull

pytestmark = pytest.mark.django_db

ALL = (replace(PLAN[0], cap=20, blind_share=1.0, least_blind=2, max_disagreement=0.25), *PLAN[1:])


def sampled(lane: Lane, *results: str, when: float = 30) -> list[Item]:
    for result in results:
        answer(lane, when=when, result=result)
    blind_samples.draw_due(clock=clock(when + 6))
    return list(Item.objects.filter(kind="blind", closed_at__isnull=True).order_by("pk"))


def taken(item: Item, person: Person, *, when: float = 40) -> AssignmentToken:
    found = people.take(item.pk, person=person, clock=clock(when))
    assert found.token is not None, found.outcome
    return found.token


def check(item: Item, person: Person, verdict: str, *, when: float = 50) -> people.Resolved:
    return people.resolve(
        taken(item, person, when=when - 1), person=person, verdict=Verdict(verdict),
        reason_code=make_ground().code if verdict == "REJECTED" else None, clock=clock(when),
    )  # fmt: skip


def test_a_sampled_decision_is_an_item_for_people_and_its_ticket_stays_decided(lead: Person) -> None:
    lane = probing(lead, stages=ALL)

    [item] = sampled(lane, "APPROVED", "MANUAL")

    decision = Decision.objects.get()
    assert (item.job, item.params, item.deadline) == (decision.job, {"decision": decision.pk}, at(36 + 4 * 3600))
    assert figures.account(lane).balances
    assert figures.account(lane).decided == 1
    assert not Message.objects.filter(kind="item.opened", body__item=item.pk).exists()


def test_each_decision_is_drawn_once_by_chance_whoever_draws_and_however_often(lead: Person) -> None:
    lane = probing(lead, stages=(replace(ALL[0], blind_share=0.5), *PLAN[1:]))
    for number in range(8):
        # The key of an attempt is chance: here they lie in the two halves of it in turn.
        token = with_key(leased(lane, when=20), (number << 64) + (0x1000 if number % 2 else 0xF0000000))
        assert contract.complete(token, Ending(result="APPROVED"), clock=clock(30)) == "committed"

    drawn = [blind_samples.draw_due(clock=clock(when)) for when in (33, 36, 36, 37)]

    assert drawn == [0, 4, 0, 0]


def with_key(token: LeaseToken, key: int) -> LeaseToken:
    past_the_guards()
    Attempt.objects.filter(pk=token.attempt).update(key=UUID(int=key))
    return replace(token, key=UUID(int=key))


def test_no_more_is_drawn_than_people_can_keep_up_with(lead: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind_samples, "MOST_OPEN", 2)

    assert len(sampled(probing(lead, stages=ALL), *["APPROVED"] * 4)) == 2


def test_what_is_read_in_parts_is_drawn_whole(lead: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind_samples, "MOST_READ", 3)
    lane = probing(lead, stages=ALL)
    for when in (30, 30, 31, 31, 32):
        answer(lane, when=when)

    drawn = [blind_samples.draw_due(clock=clock(40)) for _tick in range(4)]

    assert (sum(drawn), drawn[0]) == (5, 2)


def test_restricted_evidence_and_what_is_no_longer_current_are_left_out(lead: Person) -> None:
    lane = probing(lead, stages=ALL)
    job = waiting_job(lane, added=20, deadline=9000, is_restricted=True)
    judged(lane, when=20)
    contract.complete(claim(job, when=20), Ending(result="APPROVED"), clock=clock(30))
    answer(lane, when=30)
    old = Decision.objects.order_by("pk").last()
    newer = new_ticket(lane, external_id=old.ticket.external_id, revision="v2", deadline=9000)
    contract.supersede(newer, replaces="v1", clock=clock(31))

    assert blind_samples.draw_due(clock=clock(40)) == 0


def test_a_check_that_agrees_changes_nothing_but_is_kept_and_counted(lead: Person, reviewer: Person) -> None:
    lane = probing(lead, stages=ALL)
    [item] = sampled(lane, "APPROVED")

    resolved = check(item, reviewer, "APPROVED")

    decision = Decision.objects.get()
    kept = BlindCheck.objects.get()
    assert (resolved.outcome, resolved.decision) == ("checked", decision)
    assert (kept.agrees, kept.verdict, kept.person, kept.run, kept.decision) == (
        True,
        "APPROVED",
        reviewer,
        lane.run,
        decision,
    )
    item.refresh_from_db()
    assert (item.closed_as, item.assignments.get().ended_as) == ("checked", "checked")
    assert AuditEntry.objects.get(act="item.checked").actor == reviewer
    assert Message.objects.filter(kind="decision").count() == 1


def test_a_repeat_of_the_same_check_is_already_done(lead: Person, reviewer: Person) -> None:
    lane = probing(lead, stages=ALL)
    [item] = sampled(lane, "APPROVED")
    token = taken(item, reviewer)
    words = {"person": reviewer, "clock": clock(50)}
    assert people.resolve(token, verdict=Verdict.APPROVED, **words).outcome == "checked"

    assert people.resolve(token, verdict=Verdict.APPROVED, **words).outcome == "already"
    other = people.resolve(token, verdict=Verdict.REJECTED, reason_code=make_ground().code, **words)
    assert (other.outcome, Decision.objects.count()) == ("stale", 1)


def test_a_check_that_does_not_agree_replaces_the_decision_as_a_second_look(lead: Person, reviewer: Person) -> None:
    lane = probing(lead, stages=ALL)
    [item] = sampled(lane, "APPROVED")

    resolved = check(item, reviewer, "REJECTED")

    first, second = Decision.objects.order_by("pk")
    assert (resolved.outcome, resolved.decision) == ("decided", second)
    assert (second.why, second.replaces, second.verdict, second.person) == ("second_look", first, "REJECTED", reviewer)
    assert (second.automation, second.policy, second.run) == ("none", None, None)
    assert BlindCheck.objects.get().agrees is False
    states = dict(Message.objects.filter(kind="decision").values_list("decision", "state"))
    assert states == {first.pk: "withdrawn", second.pk: "ready"}


def test_agreement_counts_for_the_gate_and_too_few_checks_are_inconclusive(lead: Person, reviewer: Person) -> None:
    lane = probing(lead, stages=ALL)
    items = sampled(lane, *["APPROVED"] * 4)

    lines = []
    for item, verdict in zip(items, ["APPROVED", "APPROVED", "REJECTED", "REJECTED"], strict=True):
        check(item, reviewer, verdict)
        line = next(one for one in gate.read(again(lane), now=at(60)).lines if one.figure == "disagreement")
        lines.append((line.sample, line.verdict.value))

    assert lines == [(1, "inconclusive"), (2, "good"), (3, "bad"), (4, "bad")]


def test_a_check_of_a_recalled_decision_is_closed_and_the_ticket_is_looked_at_openly(
    lead: Person, reviewer: Person
) -> None:
    lane = probing(lead, stages=ALL)
    [item] = sampled(lane, "APPROVED")
    token = taken(item, reviewer)

    recalls.recall(
        lane.pk, Selection(until=at(45), run=lane.run.pk), person=lead, reason="all wrong", shown=1, clock=clock(45)
    )

    item.refresh_from_db()
    assert (item.closed_as, Item.objects.get(closed_at__isnull=True).kind) == ("recalled", "recalled")
    late = people.resolve(token, person=reviewer, verdict=Verdict.APPROVED, clock=clock(50))
    assert (late.outcome, late.why) == ("stale", "item_closed")


def test_the_ledger_finds_nothing_in_checks_of_every_end(lead: Person, reviewer: Person) -> None:
    lane = probing(lead, stages=ALL)
    agreed, not_agreed, _open = sampled(lane, "APPROVED", "APPROVED", "APPROVED")
    check(agreed, reviewer, "APPROVED")
    check(not_agreed, reviewer, "REJECTED")

    assert [f"{one.rule.code} {one.key}" for one in auditor.audit().findings] == []


def test_a_run_that_ended_is_drawn_from_no_more(lead: Person) -> None:
    lane = probing(lead, stages=ALL)
    answer(lane, when=30)
    pull(lane, lead, when=31)

    assert blind_samples.draw_due(clock=clock(40)) == 0
    assert ramp.next_stage(again(lane)).number == 1
    assert timedelta(seconds=40) < blind_samples.WITHIN
