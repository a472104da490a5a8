"""Rejected in bulk: a right of its own, a sample decided first, a second person, marked unseen. Approved: nothing."""

import pytest
from django.db import IntegrityError, transaction

from queue_core import bulk, people
from queue_core.bulk import SecondOutcome
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import BulkAct, BulkEntry, Decision, Item, ReasonCode
from queue_core.states import BulkKind
from tests.bulk.acts import confirmed, lola, outcomes, preview, work
from tests.factories import clock, dead_job, make_ground, make_lane
from tests.people.cast import item_of, person, rita, take

pytestmark = pytest.mark.django_db


def second(act, who, when=60):
    return bulk.second(act.pk, person=who, clock=clock(when)).outcome


def decide_sample(act, who, *, but=0):
    """The sample decided by one person, `but` of them approved."""
    for number, entry in enumerate(act.entries.filter(is_sample=True).select_related("item")):
        verdict, code = ("APPROVED", None) if number < but else ("REJECTED", "insult")
        token = take(entry.item, who, when=30)
        people.resolve(token, person=who, verdict=verdict, reason_code=code, clock=clock(31))


def rejected(lane, who, *, number=23):
    make_ground()
    for _ in range(number):
        dead_job(lane, severity=1)
    return confirmed("reject", who, reason_code="insult")


def test_nothing_is_rejected_before_the_sample_and_a_second_person():
    lane, who, other = make_lane(), lola(), lola("lenny")
    act = rejected(lane, who)
    assert (act.entries.filter(is_sample=True).count(), work(act)) == (20, 0)

    assert second(act, who) == SecondOutcome.NOT_ANOTHER
    assert second(act, other) == SecondOutcome.SAMPLE_OPEN
    decide_sample(act, rita())
    with pytest.raises(NotPermitted):
        second(act, person("vera", "decide_item"))
    assert second(act, other) == SecondOutcome.SECONDED
    assert second(act, other) == SecondOutcome.ALREADY

    assert work(act, when=61) == 3
    assert sorted(outcomes(act).values()) == ["done"] * 3 + ["sampled"] * 20
    unseen = Decision.objects.filter(is_unseen=True)
    assert {(one.verdict, one.reason_code.code, one.person, one.note) for one in unseen} == {
        ("REJECTED", "insult", who, "the model is back")
    }
    assert (unseen.count(), Item.objects.filter(closed_at__isnull=True).count()) == (3, 0)


def test_one_of_the_sample_decided_otherwise_leaves_the_rest_to_people():
    act = rejected(make_lane(), lola())
    decide_sample(act, rita(), but=1)

    assert second(act, lola("lenny")) == SecondOutcome.SAMPLE_DISAGREES
    assert work(act) == 0


def test_the_makers_own_decisions_are_no_second_look():
    who = lola()
    act = rejected(make_lane(), who)
    decide_sample(act, who)

    assert second(act, lola("lenny")) == SecondOutcome.SAMPLE_DISAGREES


def test_only_a_bounded_group_of_one_lane_and_cause_and_nothing_severe(monkeypatch):
    lane, other, who = make_lane(), make_lane(), lola()
    make_ground()
    severe = [dead_job(lane, severity=2) for _ in range(2)]
    mild = [dead_job(lane, severity=0) for _ in range(21)]
    elsewhere = [dead_job(other, severity=0)]

    assert preview("reject", who, jobs=[*severe, *mild]).left_out == {"severe": 2}
    for jobs in (mild[:20], [*mild, *elsewhere]):
        with pytest.raises(InvalidRequest):
            preview("reject", who, jobs=jobs)
    monkeypatch.setattr("queue_core.bulk.previewing.MOST_REJECTED", 20)
    with pytest.raises(InvalidRequest):
        preview("reject", who, jobs=mild)
    with pytest.raises(NotPermitted):
        preview("reject", rita(), jobs=mild)


def test_no_act_approves_and_the_database_asks_for_the_second_person():
    assert not [kind for kind in BulkKind.values if "approve" in kind]
    act = rejected(make_lane(), lola())

    for change in ({"begun_at": act.previewed_at}, {"seconded_at": act.previewed_at, "seconded_by": act.by}):
        with pytest.raises(IntegrityError), transaction.atomic():
            BulkAct.objects.filter(pk=act.pk).update(**change)


def test_what_became_severe_or_was_taken_meanwhile_is_left_to_people():
    lane, who = make_lane(), lola()
    act = rejected(lane, who)
    decide_sample(act, rita())
    second(act, lola("lenny"))
    entry = BulkEntry.objects.filter(act=act, is_sample=False).first()
    take(entry.item, person("olaf", "decide_item"), when=60)

    work(act, when=61)

    entry.refresh_from_db()
    assert entry.outcome == "taken"
    assert item_of(entry.job).taken_by.username == "olaf"


def test_a_reason_code_of_another_lane_is_refused_at_the_confirmation_and_not_item_by_item():
    lane, other, who = make_lane(), make_lane(), lola()
    ReasonCode.objects.create(code="theirs", title="Theirs", lanes=[other.pk])
    for _ in range(21):
        dead_job(lane, severity=1)

    with pytest.raises(InvalidRequest) as fault:
        confirmed("reject", who, reason_code="theirs")

    assert fault.value.field == "reason_code"
    assert "theirs" not in bulk.rejecting(BulkAct.objects.get()).values_list("code", flat=True)
