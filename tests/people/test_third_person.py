"""Who looks once more at what was decided had no part in it: not the one who decided, looked again, or let it begin."""

import pytest
from django.urls import reverse

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import BulkAct, BulkEntry, Decision, Item
from queue_core.people import ResolveOutcome, TakeOutcome
from queue_core.people.eligibility import open_to, took_part
from queue_core.states import BulkOutcome, ItemKind
from tests.factories import at, clock, make_ground, make_lane, past_the_guards
from tests.people.cast import LEAD, leo, manual_item, person, rita, take
from tests.people.test_chain import appeal, decide, gate, lane_with_second_looks, lena, open_item

pytestmark = pytest.mark.django_db


def lead(name):
    return person(name, *LEAD, "lead_desk")


def disputed(first, second):
    """An item about which these two disagreed."""
    decide(manual_item(lane_with_second_looks(), deadline=100_000), first, when=20)
    decide(open_item(), second, when=22, verdict="REJECTED")
    found = open_item()
    assert found.kind == ItemKind.DISAGREEMENT
    return found


def test_neither_of_two_leads_who_disagreed_settles_it():
    first, second, third = lead("first"), lead("second"), lead("third")
    item = disputed(first, second)

    for one in (first, second):
        assert people.take(item.pk, person=one, clock=clock(24)).outcome == TakeOutcome.NOT_FOR_YOU
        assert people.take_next(person=one, clock=clock(24)).outcome == TakeOutcome.NOTHING
        assert people.supply(one, now=at(24)).for_others
    assert decide(item, third, when=25).outcome == ResolveOutcome.DECIDED


def test_a_disagreement_is_handed_over_to_neither_of_the_two():
    first, third = lead("first"), lead("third")
    item = disputed(first, leo())
    token = take(item, third, when=24)

    with pytest.raises(InvalidRequest) as raised:
        people.hand_over(token, person=third, to=first, clock=clock(25))
    assert raised.value.field == "to"


def test_whoever_holds_what_is_their_own_matter_does_not_decide_it():
    first, third = lead("first"), lead("third")
    item = disputed(first, leo())
    token = take(item, third, when=24)
    # As a deploy of an older version may have left it.
    past_the_guards()
    item.assignments.update(person=first)
    Item.objects.filter(pk=item.pk).update(taken_by=first)

    with pytest.raises(NotPermitted):
        people.resolve(token, person=first, verdict="APPROVED", note="n", clock=clock(25))


def test_who_looked_again_and_agreed_does_not_decide_the_appeal():
    item, second = manual_item(lane_with_second_looks(), deadline=100_000), leo()
    decide(item, rita(), when=20)
    decide(open_item(), second, when=22)

    opened = appeal(item, gate(), when=24).appeal.item

    assert people.take(opened.pk, person=second, clock=clock(25)).outcome == TakeOutcome.NOT_FOR_YOU
    assert decide(opened, lena(), when=26).outcome == ResolveOutcome.DECIDED


def test_who_let_a_bulk_rejection_begin_does_not_decide_the_appeal_against_it():
    item, first, second = manual_item(make_lane(), deadline=100_000), rita(), leo()
    decide(item, first, when=20, verdict="REJECTED")
    act = BulkAct.objects.create(
        kind="reject", selection={}, by=first, reason_code=make_ground("insult"), previewed_at=at(1)
    )
    BulkEntry.objects.create(
        act=act, place=0, job=item.job, item=item, fence=1, item_fence=1, deadline=at(9), severity=0
    )
    for fields in ({"reason": "spam", "confirmed_at": at(2)}, {"seconded_by": second, "seconded_at": at(3)}):
        BulkAct.objects.filter(pk=act.pk).update(**fields)
    BulkEntry.objects.update(outcome=BulkOutcome.DONE, at=at(4))

    opened = appeal(item, gate(), when=24).appeal.item

    assert people.take(opened.pk, person=second, clock=clock(25)).outcome == TakeOutcome.NOT_FOR_YOU


def test_one_who_took_their_decision_back_may_take_the_item_again():
    third = lead("third")
    item = disputed(rita(), leo())
    decision = decide(item, third, when=24).decision
    token = people.take_back(decision.pk, person=third, clock=clock(25)).token
    people.give_back(token, person=third, clock=clock(26))

    assert took_part(item.job_id) == {person_id for person_id in took_part(item.job_id) if person_id != third.pk}
    assert people.take(token.item, person=third, clock=clock(27)).outcome == TakeOutcome.TAKEN


def test_the_list_and_the_row_say_the_same_of_who_may():
    first, second, third = lead("first"), lead("second"), lead("third")
    item = disputed(first, second)
    everybody = (first, second, third, rita(), leo())

    in_sql = [bool(open_to(Item.objects.filter(pk=item.pk), one)) for one in everybody]

    assert in_sql == [people.may_work_on(item, one) for one in everybody] == [False, False, True, False, False]
    assert list(people.who_may_work_on(item)) == [third]


def test_the_page_says_who_may_not_and_that_nobody_else_may(client):
    first = lead("first")
    item = disputed(first, leo())
    client.force_login(first)
    page = reverse("item", args=[item.pk])

    alone = client.get(page).content.decode()
    assert "You had a part in what was decided here" in alone
    assert "Nobody else may decide it" in alone
    assert reverse("desk_take", args=[item.pk]) not in alone + client.get(reverse("desk")).content.decode()

    third = lead("third")
    assert "Nobody else" not in client.get(page).content.decode()
    assert people.take(item.pk, person=third, clock=DATABASE_CLOCK).outcome == TakeOutcome.TAKEN
    assert Decision.objects.count() == 1
