"""Items that are not decided but passed on: skipped, handed over by name, escalated to a lead."""

from datetime import timedelta

import pytest

from queue_core import people
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import Assignment, AuditEntry, Item, ItemPass
from queue_core.people import HoldingOutcome, ResolveOutcome, TakeOutcome
from queue_core.people.assignments import SKIPPED_RESTS
from queue_core.people.outcomes import Stale
from queue_core.states import AssignmentEnd, PassedAs
from tests.factories import clock, make_lane
from tests.people.cast import LEAD, leo, manual_item, person, rita, take

pytestmark = pytest.mark.django_db
SAM = ("view_board", "decide_item")


@pytest.fixture
def item():
    return manual_item(make_lane(assignment_time=timedelta(seconds=100)), deadline=100_000)


def take_next(who, *, when):
    return people.take_next(person=who, clock=clock(when))


def chief(name="lena"):
    return person(name, *LEAD, "lead_desk")


def test_what_was_skipped_goes_to_others_at_once_and_not_to_the_same_person_for_a_while(item):
    who, other = rita(), leo()

    held = people.skip(take(item, who, when=10), person=who, reason="I know the author", clock=clock(11))

    assert held.outcome == HoldingOutcome.SKIPPED
    assert take_next(who, when=12).outcome == TakeOutcome.NOTHING
    assert take_next(other, when=13).token.item == item.pk
    rests = SKIPPED_RESTS.total_seconds()
    assert take_next(who, when=10 + rests).outcome == TakeOutcome.NOTHING
    assert take_next(who, when=12 + rests).token.item == item.pk
    passed = ItemPass.objects.get()
    assert (passed.person, passed.passed_as, passed.reason) == (who, PassedAs.SKIPPED, "I know the author")
    assert Assignment.objects.order_by("fence").first().ended_as == AssignmentEnd.SKIPPED


def test_one_who_skipped_an_item_may_still_take_it_by_hand(item):
    who = rita()
    people.skip(take(item, who, when=10), person=who, reason="later", clock=clock(11))

    assert people.take(item.pk, person=who, clock=clock(12)).outcome == TakeOutcome.TAKEN


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501, "a\0b"])
def test_passing_on_needs_a_reason_within_its_bounds(item, reason):
    who = rita()
    token = take(item, who, when=10)

    for act in (people.skip, people.escalate):
        with pytest.raises(InvalidRequest) as raised:
            act(token, person=who, reason=reason, clock=clock(11))
        assert raised.value.field == "reason"
    item.refresh_from_db()
    assert item.taken_by == who


def test_an_escalated_item_is_taken_and_decided_by_leads_alone(item):
    who, other, lead = rita(), person("sam", *SAM), chief()
    held = people.escalate(take(item, who, when=10), person=who, reason="not sure of the law", clock=clock(11))

    assert held.outcome == HoldingOutcome.ESCALATED
    assert take_next(other, when=12).outcome == TakeOutcome.NOTHING
    assert people.take(item.pk, person=other, clock=clock(12)).outcome == TakeOutcome.NOT_FOR_YOU
    token = take_next(lead, when=13).token
    assert token.item == item.pk
    resolved = people.resolve(token, person=lead, verdict="APPROVED", clock=clock(14))
    assert resolved.outcome == ResolveOutcome.DECIDED
    entry = AuditEntry.objects.get(act="item.escalated")
    assert (entry.actor, entry.reason) == (who, "")
    assert ItemPass.objects.get().reason == "not sure of the law"


def test_a_lead_who_lost_the_right_meanwhile_decides_nothing(item):
    who, lead = rita(), chief()
    people.escalate(take(item, who, when=10), person=who, reason="r", clock=clock(11))
    token = take(item, lead, when=12)
    lead.user_permissions.set(lead.user_permissions.exclude(codename="lead_desk"))

    with pytest.raises(NotPermitted):
        people.resolve(token, person=type(lead).objects.get(pk=lead.pk), verdict="APPROVED", clock=clock(13))


def test_handing_over_names_the_person_keeps_why_and_gives_a_whole_new_time(item):
    who, other = rita(), leo()

    held = people.hand_over(take(item, who, when=10), person=who, to=other, reason="your language", clock=clock(50))

    item.refresh_from_db()
    assert (held.outcome, item.taken_by) == (HoldingOutcome.HANDED_OVER, other)
    assert held.until == item.taken_until == clock(150).now()
    passed = ItemPass.objects.get()
    assert (passed.person, passed.to, passed.reason) == (who, other, "your language")
    entry = AuditEntry.objects.get(act="item.handed_over")
    assert (entry.actor, entry.before, entry.after) == (who, {"taken_by": "rita"}, {"taken_by": "leo"})


def test_an_item_for_leads_is_handed_over_to_leads_alone(item):
    who, lead, other = rita(), chief(), person("sam", *SAM)
    people.escalate(take(item, who, when=10), person=who, reason="r", clock=clock(11))
    token = take(item, lead, when=12)

    with pytest.raises(InvalidRequest) as raised:
        people.hand_over(token, person=lead, to=other, clock=clock(13))
    assert raised.value.field == "to"


@pytest.mark.parametrize(
    ("seen", "why"), [(0, Stale.TAKEN_AGAIN), (1, Stale.NOT_YOURS)], ids=["taken since it was seen", "another's"]
)
def test_what_others_hold_is_passed_on_by_nobody_but_a_lead(item, seen, why):
    who, other, lead = rita(), leo(), chief()
    take(item, who, when=10)
    words = {"person": other, "reason": "r", "clock": clock(11)}

    for held in (
        people.escalate_item(item.pk, fence=seen, **words),
        people.hand_over_item(item.pk, fence=seen, to=lead, **words),
    ):
        assert (held.outcome, held.why) == (HoldingOutcome.STALE, why)
    item.refresh_from_db()
    assert (item.taken_by, item.for_leads) == (who, False)

    done = people.hand_over_item(item.pk, fence=1, to=other, person=lead, reason="r", clock=clock(12))
    assert done.outcome == HoldingOutcome.HANDED_OVER


def test_a_lane_says_how_many_items_one_person_may_hold_and_the_refusal_says_the_number():
    lane, wide = make_lane(most_held=2), make_lane(most_held=3)
    who, other = rita(), leo()
    items = [manual_item(lane, deadline=100_000) for _ in range(3)]
    for one in items[:2]:
        take(one, who, when=10)

    for taken in (people.take(items[2].pk, person=who, clock=clock(11)), take_next(who, when=11)):
        assert (taken.outcome, taken.most_held) == (TakeOutcome.HANDS_FULL, 2)
    token = take(items[2], other, when=12)
    held = people.hand_over(token, person=other, to=who, clock=clock(13))
    assert (held.outcome, held.most_held) == (HoldingOutcome.HANDS_FULL, 2)

    roomier = manual_item(wide, deadline=100_000)
    assert take_next(who, when=14).token.item == roomier.pk
    assert Item.objects.filter(taken_by=who).count() == 3


def test_what_a_lead_escalated_out_of_somebodys_hands_is_lost_to_them_and_not_forbidden(item):
    who = rita()
    token = take(item, who, when=10)
    people.escalate_item(item.pk, fence=token.fence, person=chief(), reason="this is mine", clock=clock(11))

    late = people.resolve(token, person=who, verdict="APPROVED", clock=clock(12))

    assert (late.outcome, late.why) == (ResolveOutcome.STALE, Stale.NOT_TAKEN)


def test_one_whose_time_is_over_may_be_handed_the_item_anew(item):
    who = rita()
    fence = take(item, who, when=10).fence
    again = {"fence": fence, "person": leo(), "to": who, "reason": "do go on"}

    with pytest.raises(InvalidRequest):
        people.hand_over_item(item.pk, **again | {"person": chief()}, clock=clock(109))
    assert people.hand_over_item(item.pk, **again, clock=clock(111)).outcome == HoldingOutcome.HANDED_OVER
