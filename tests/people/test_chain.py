"""The chain of decisions: second looks, corrections, appeals, and the policy that a confirmed proposal names."""

from datetime import timedelta

import pytest

from queue_core import contract, people, relay
from queue_core.contract import Ending
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import (
    Appeal,
    AuditEntry,
    Decision,
    Item,
    Message,
    Policy,
    ReasonCode,
    ReasonCodeVersion,
    SecondLook,
)
from queue_core.people import AppealOutcome, CorrectOutcome, ResolveOutcome, TakeBackOutcome, TakeOutcome
from queue_core.states import AssignmentEnd, DecisionWhy, ItemEnd, ItemKind, MessageKind, MessageState
from tests.factories import T0, at, clock, done_job, leased_job, make_ground, make_lane, new_ticket
from tests.people.cast import LEAD, broken_rules, item_of, leo, manual_item, person, rita, take

pytestmark = pytest.mark.django_db


def lane_with_second_looks(**fields):
    return make_lane(second_look_share=1.0, deadline_default=timedelta(hours=4), **fields)


def lena():
    return person("lena", *LEAD, "lead_desk")


def decide(item, who, *, when, verdict="APPROVED", code="insult", note="said why"):
    make_ground("insult")
    ground = code if verdict == "REJECTED" else None
    token = take(item, who, when=when)
    return people.resolve(token, person=who, verdict=verdict, reason_code=ground, note=note, clock=clock(when))


def open_item():
    return Item.objects.get(closed_at__isnull=True)


def in_force(item):
    return Decision.objects.get(job=item.job, replaced_by__isnull=True)


def bodies():
    rows = Message.objects.filter(kind=MessageKind.DECISION, state=MessageState.READY).order_by("seq")
    return [row.body for row in rows]


def test_a_second_look_is_for_another_person_who_does_not_have_to_agree_with_anybody():
    first, second = rita(), leo()
    decide(manual_item(lane_with_second_looks(), deadline=100_000), first, when=20)
    look = open_item()

    assert (look.kind, look.params, look.deadline) == (
        ItemKind.SECOND_LOOK,
        {"decision": Decision.objects.get().pk},
        at(14_420),
    )
    assert people.take_next(person=first, clock=clock(21)).outcome == TakeOutcome.NOTHING
    assert people.take(look.pk, person=first, clock=clock(21)).outcome == TakeOutcome.NOT_FOR_YOU

    resolved = decide(look, second, when=22)

    assert resolved.outcome == ResolveOutcome.CHECKED
    kept = SecondLook.objects.get()
    assert (kept.person, kept.verdict, kept.agrees, kept.note) == (second, "APPROVED", True, "said why")
    look.refresh_from_db()
    assert (look.closed_as, look.assignments.get().ended_as) == (ItemEnd.CHECKED, AssignmentEnd.CHECKED)
    assert Decision.objects.count() == 1
    assert not Item.objects.filter(closed_at__isnull=True).exists()
    assert broken_rules() == set()


def test_a_repeat_of_a_second_look_is_already_and_writes_nothing():
    decide(manual_item(lane_with_second_looks(), deadline=100_000), rita(), when=20)
    second, look = leo(), open_item()
    token = take(look, second, when=21)
    words = {"person": second, "verdict": "APPROVED"}
    people.resolve(token, clock=clock(22), **words)

    assert people.resolve(token, clock=clock(23), **words).outcome == ResolveOutcome.ALREADY
    assert SecondLook.objects.count() == 1


@pytest.mark.parametrize("verdict", ["APPROVED", "REJECTED"])
def test_two_who_disagree_leave_the_decision_in_force_until_a_lead_decides(verdict):
    item = manual_item(lane_with_second_looks(), deadline=100_000)
    decide(item, rita(), when=20)
    first = Decision.objects.get()
    decide(open_item(), leo(), when=22, verdict="REJECTED")

    disputed = open_item()
    assert (disputed.kind, disputed.for_leads, in_force(item)) == (ItemKind.DISAGREEMENT, True, first)
    assert broken_rules() == set()

    resolved = decide(disputed, lena(), when=24, verdict=verdict)

    last = in_force(item)
    assert (resolved.outcome, last.why, last.replaces) == (ResolveOutcome.DECIDED, DecisionWhy.SECOND_LOOK, first)
    assert last.verdict == verdict
    assert [body["verdict"] for body in bodies()] == [verdict], "the first one's message had gone to nobody"
    assert broken_rules() == set()


def test_a_named_reason_code_is_looked_at_twice_whatever_the_lanes_share():
    ReasonCode.objects.create(code="terror", title="t", needs_second_look=True)
    item = manual_item(make_lane(), deadline=100_000)

    decide(item, rita(), when=20, verdict="REJECTED", code="terror")

    assert open_item().kind == ItemKind.SECOND_LOOK


def test_without_a_share_nothing_is_looked_at_twice():
    decide(manual_item(make_lane(), deadline=100_000), rita(), when=20)

    assert not Item.objects.filter(closed_at__isnull=True).exists()


def correction_of(item, lead, *, when):
    opened = people.correct(in_force(item).pk, person=lead, clock=clock(when))
    assert opened.outcome == CorrectOutcome.OPENED
    return opened.token


@pytest.mark.parametrize("is_delivered", [True, False])
def test_a_correction_replaces_the_decision_in_force_which_stays_in_the_chain(is_delivered):
    item, lead = manual_item(make_lane(), deadline=100_000), lena()
    first = decide(item, rita(), when=20).decision
    if is_delivered:
        relay.number_messages(clock=clock(31))
        assert relay.page_of_messages(0, 10)
    make_ground("insult")
    token = correction_of(item, lead, when=40)
    assert in_force(item) == first

    resolved = people.resolve(
        token, person=lead, verdict="REJECTED", reason_code="insult", note="seen anew", clock=clock(41)
    )

    second = in_force(item)
    assert (resolved.decision, second.why, second.replaces) == (second, DecisionWhy.CORRECTION, first)
    assert [body["verdict"] for body in bodies()] == (["APPROVED", "REJECTED"] if is_delivered else ["REJECTED"])
    assert bodies()[-1] | {"why": "correction", "replaces": first.pk} == bodies()[-1]
    assert AuditEntry.objects.filter(act="decision.corrected_anew", actor=lead).count() == 1
    assert broken_rules() == set()


def test_a_decision_of_the_model_is_corrected_in_the_same_way():
    job, lead = done_job(make_lane(), deadline=100_000), lena()
    first = Decision.objects.get()
    make_ground("insult")

    opened = people.correct(first.pk, person=lead, clock=clock(40))
    people.resolve(opened.token, person=lead, verdict="REJECTED", reason_code="insult", note="n", clock=clock(41))

    assert Decision.objects.get(job=job, replaced_by__isnull=True).replaces == first


def test_a_correction_taken_back_leaves_in_force_what_was_and_says_it_again_where_it_had_gone_to_nobody():
    item, lead = manual_item(make_lane(), deadline=100_000), lena()
    first = decide(item, rita(), when=20).decision
    make_ground("insult")
    token = correction_of(item, lead, when=22)
    words = {"verdict": "REJECTED", "reason_code": "insult", "note": "n"}
    second = people.resolve(token, person=lead, clock=clock(23), **words).decision

    taken = people.take_back(second.pk, person=lead, clock=clock(24))

    link = in_force(item)
    assert (taken.outcome, link.verdict, link.why) == (
        TakeBackOutcome.TAKEN_BACK,
        first.verdict,
        DecisionWhy.TAKEN_BACK,
    )
    assert [body["decision"] for body in bodies()] == [link.pk]
    assert broken_rules() == set()
    again = people.resolve(taken.token, person=lead, clock=clock(25), **words)
    assert (again.outcome, in_force(item).replaces) == (ResolveOutcome.DECIDED, link)
    assert broken_rules() == set()


def test_who_may_not_lead_corrects_nothing_and_nobody_corrects_what_is_not_in_force_or_worked_on():
    item, lead, reviewer = manual_item(make_lane(), deadline=100_000), lena(), leo()
    first = decide(item, rita(), when=20).decision
    with pytest.raises(NotPermitted):
        people.correct(first.pk, person=reviewer, clock=clock(21))
    token = correction_of(item, lead, when=22)

    busy = people.correct(first.pk, person=lead, clock=clock(23))
    assert (busy.outcome, busy.item) == (CorrectOutcome.BUSY, token.item)
    people.resolve(token, person=lead, verdict="APPROVED", note="n", clock=clock(24))
    assert people.correct(first.pk, person=lead, clock=clock(25)).outcome == CorrectOutcome.NOT_IN_FORCE


def test_whoever_decides_anew_says_why():
    item, lead = manual_item(make_lane(), deadline=100_000), lena()
    decide(item, rita(), when=20)

    with pytest.raises(InvalidRequest) as raised:
        people.resolve(correction_of(item, lead, when=22), person=lead, verdict="APPROVED", clock=clock(23))
    assert raised.value.field == "note"


def appeal(item, who, *, when, statement="I meant a stone.", **which):
    names = {"source": item.ticket.source, "external_id": item.ticket.external_id} | which
    return people.appeal(**names, statement=statement, person=who, clock=clock(when))


def gate():
    return person("gate", "appeal_decision")


@pytest.mark.parametrize(("verdict", "came"), [("APPROVED", "upheld"), ("REJECTED", "overturned")])
def test_an_appeal_is_decided_by_a_person_other_than_the_first_and_what_comes_of_it_goes_out(verdict, came):
    item, first = manual_item(make_lane(), deadline=100_000), rita()
    decision = decide(item, first, when=20).decision
    relay.number_messages(clock=clock(31))
    relay.page_of_messages(0, 10)

    opened = appeal(item, gate(), when=40)

    assert (opened.outcome, opened.appeal.decision, in_force(item)) == (AppealOutcome.OPENED, decision, decision)
    assert people.take(opened.appeal.item_id, person=first, clock=clock(41)).outcome == TakeOutcome.NOT_FOR_YOU
    decide(opened.appeal.item, leo(), when=42, verdict=verdict)
    last = in_force(item)
    assert (last.why, last.verdict, last.replaces) == (DecisionWhy.APPEAL, verdict, decision)
    assert [body.get("appeal") for body in bodies()] == [None, came]
    assert broken_rules() == set()


def test_a_decision_is_appealed_against_once_and_what_was_decided_on_appeal_is_final():
    item, sender = manual_item(make_lane(), deadline=100_000), gate()
    decide(item, rita(), when=20)
    opened = appeal(item, sender, when=40)

    again = appeal(item, sender, when=41, statement="other words")

    assert (again.outcome, again.appeal) == (AppealOutcome.KNOWN, opened.appeal)
    decide(opened.appeal.item, leo(), when=42)
    assert appeal(item, sender, when=43).outcome == AppealOutcome.FINAL
    assert Appeal.objects.count() == 1
    assert AuditEntry.objects.filter(act="decision.appealed", actor=sender).count() == 1


def test_a_decision_that_is_in_force_again_is_appealed_against_once_too():
    """Its correction was taken back: the link that says so has it in force, and is no other decision."""
    item, lead, sender = manual_item(make_lane(), deadline=100_000), lena(), gate()
    made = decide(item, rita(), when=20).decision
    token = correction_of(item, lead, when=40)
    corrected = people.resolve(token, person=lead, verdict="REJECTED", reason_code="insult", note="n", clock=clock(41))
    people.take_back(corrected.decision.pk, person=lead, clock=clock(42))

    opened = appeal(item, sender, when=43)
    again = appeal(item, sender, when=44)

    assert (opened.outcome, opened.appeal.decision) == (AppealOutcome.OPENED, made)
    assert (again.outcome, again.appeal) == (AppealOutcome.KNOWN, opened.appeal)
    decide(opened.appeal.item, person("lea", *LEAD, "lead_desk"), when=45)
    assert appeal(item, sender, when=60).outcome == AppealOutcome.FINAL
    assert broken_rules() == set()


@pytest.mark.parametrize(
    ("which", "outcome"),
    [
        ({"external_id": "nobody's"}, AppealOutcome.MISSING),
        ({"revision": "v0"}, AppealOutcome.NOT_CURRENT),
        ({}, AppealOutcome.NOTHING_DECIDED),
    ],
)
def test_there_has_to_be_something_to_appeal_against(which, outcome):
    item = manual_item(make_lane(), deadline=100_000)

    assert appeal(item, gate(), when=40, **which).outcome == outcome


@pytest.mark.parametrize("statement", ["", " ", "x" * 4001, "a\0b"])
def test_a_statement_has_bounds(statement):
    item = manual_item(make_lane(), deadline=100_000)
    decide(item, rita(), when=20)

    with pytest.raises(InvalidRequest) as raised:
        appeal(item, gate(), when=40, statement=statement)
    assert raised.value.field == "statement"


def test_an_appeal_needs_its_right():
    item = manual_item(make_lane(), deadline=100_000)
    decide(item, rita(), when=20)

    with pytest.raises(NotPermitted):
        appeal(item, leo(), when=40)


def test_an_appeal_ends_a_second_look_that_is_under_way():
    item = manual_item(lane_with_second_looks(), deadline=100_000)
    decide(item, rita(), when=20)
    look, second = open_item(), leo()
    token = take(look, second, when=21)

    opened = appeal(item, gate(), when=22)

    look.refresh_from_db()
    assert (look.closed_as, opened.appeal.item.for_leads) == (ItemEnd.APPEALED, False)
    late = people.resolve(token, person=second, verdict="APPROVED", clock=clock(23))
    assert late.outcome == ResolveOutcome.STALE
    assert broken_rules() == set()


def test_an_appeal_against_what_leads_are_at_is_for_leads():
    item = manual_item(lane_with_second_looks(), deadline=100_000)
    decide(item, rita(), when=20)
    decide(open_item(), leo(), when=22, verdict="REJECTED")

    assert appeal(item, gate(), when=24).appeal.item.for_leads is True


def test_a_superseded_revision_takes_its_appeal_with_it():
    item = manual_item(make_lane(), deadline=100_000)
    decide(item, rita(), when=20)
    opened = appeal(item, gate(), when=40)
    newer = new_ticket(item.lane, external_id=item.ticket.external_id, revision="v2", deadline=100_000)

    contract.supersede(newer, replaces="v1", clock=clock(41))

    opened.appeal.item.refresh_from_db()
    assert opened.appeal.item.closed_as == ItemEnd.SUPERSEDED


def test_a_decision_keeps_the_version_of_its_reason_code_and_the_version_its_words():
    item, who = manual_item(make_lane(), deadline=100_000), rita()
    ground = ReasonCode.objects.create(code="spam-2", title="Spam", public_text="No spam, please.", version=3)

    decision = decide(item, who, when=20, verdict="REJECTED", code="spam-2").decision
    ReasonCode.objects.filter(pk=ground.pk).update(public_text="Other words.", version=4)

    assert decision.reason_version == 3
    assert ReasonCodeVersion.objects.get(ground=ground, version=3).public_text == "No spam, please."
    assert bodies()[0]["reason_version"] == 3


def test_a_reason_code_of_another_lane_is_not_in_use_here():
    lane, other = make_lane(), make_lane()
    ReasonCode.objects.create(code="elsewhere", title="e", lanes=[other.pk])
    ReasonCode.objects.create(code="here", title="h", lanes=[lane.pk, other.pk])
    who = rita()

    with pytest.raises(InvalidRequest) as raised:
        decide(manual_item(lane, deadline=100_000), who, when=20, verdict="REJECTED", code="elsewhere")
    assert raised.value.field == "reason_code"
    done = decide(manual_item(lane, deadline=100_000), who, when=20, verdict="REJECTED", code="here")
    assert done.outcome == ResolveOutcome.DECIDED


def test_a_reason_code_that_needs_a_note_is_refused_without_one():
    ReasonCode.objects.create(code="other-2", title="o", needs_note=True)
    item, who = manual_item(make_lane(), deadline=100_000), rita()

    with pytest.raises(InvalidRequest) as raised:
        decide(item, who, when=20, verdict="REJECTED", code="other-2", note=" ")
    assert raised.value.field == "note"
    assert not Decision.objects.exists()


RULES = [{"category": "offensive", "reject_at": 0.5, "approve_below": 0.4, "reason_code": "insult"}]


@pytest.mark.parametrize(
    ("verdict", "is_of_the_new_one"), [("REJECTED", True), ("APPROVED", False)], ids=["as proposed", "otherwise"]
)
def test_a_decision_that_confirms_a_proposal_names_the_policy_that_proposed_it(verdict, is_of_the_new_one):
    make_ground("insult")
    lane = make_lane()
    job, token = leased_job(lane, deadline=100_000)
    ending = Ending("MANUAL", cause="grey_zone", outcome="verdict", scores={"offensive": 0.9})
    assert contract.complete(token, ending, clock=clock(2)) == "committed"
    item, older = item_of(job), lane.policy
    newer = Policy.objects.create(lane=lane, version=2, rules=RULES, made_at=T0)
    lane.policy = newer
    lane.save(update_fields=["policy"])
    who = rita()
    ground = "insult" if verdict == "REJECTED" else None

    resolved = people.resolve(
        take(item, who, when=20), person=who, verdict=verdict, reason_code=ground, proposed_by=newer.pk, clock=clock(21)
    )

    assert resolved.decision.policy_id == (newer.pk if is_of_the_new_one else older.pk)
    assert resolved.decision.run_id == lane.run_id


def test_a_decision_about_restricted_evidence_is_corrected_by_who_may_see_it():
    decision = Decision.objects.get(job=done_job(make_lane(), is_restricted=True))

    with pytest.raises(NotPermitted):
        people.correct(decision.pk, person=lena(), clock=clock(5))
    assert not Item.objects.exists()
    specialist = person("sue", *LEAD, "lead_desk", "view_restricted")
    assert people.correct(decision.pk, person=specialist, clock=clock(5)).outcome == CorrectOutcome.OPENED
