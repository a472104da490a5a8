"""What one person is shown, and when a break is offered."""

from datetime import timedelta

import pytest
from django.urls import reverse

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Assignment
from reviewboard import wellness
from tests.desk.backlog import make_live_lane, manual_now
from tests.factories import at, clock, make_lane
from tests.people.cast import manual_item, rita, take

pytestmark = pytest.mark.django_db


def worked(who, lane, minutes, *, severity=0, first=0, each=10):
    """Items taken one after another, `each` minutes apart, until `minutes` are over."""
    for start in range(first, minutes, each):
        item = manual_item(lane, severity=severity, deadline=90_000)
        token = take(item, who, when=60 * start)
        people.resolve(token, person=who, verdict="APPROVED", clock=clock(60 * (start + each - 1)))


@pytest.mark.parametrize(
    ("chosen", "severity", "is_hidden"),
    [("never", 2, False), ("severe", 1, False), ("severe", 2, True), ("always", 0, True)],
)
def test_words_are_hidden_as_each_person_chose(chosen, severity, is_hidden):
    who = rita()
    who.text_hidden = chosen

    assert wellness.veil_of(who, severity).hides_text is is_hidden


def test_pictures_are_grey_and_blurred_unless_one_says_otherwise():
    who = rita()
    assert (wellness.veil_of(who, 0).is_grey, wellness.veil_of(who, 0).is_blurred) == (True, True)

    who.images_blurred = False

    assert (wellness.veil_of(who, 0).is_grey, wellness.veil_of(who, 0).is_blurred) == (True, False)


def test_a_break_is_offered_after_so_many_minutes_without_one():
    who, lane = rita(), make_lane(assignment_time=timedelta(minutes=9))
    worked(who, lane, 50)

    assert not wellness.exposure(who, now=at(60 * 49)).offers_break
    seen = wellness.exposure(who, now=at(60 * 50))
    assert (seen.items, seen.offers_break, seen.since_break) == (5, True, timedelta(minutes=50))
    assert not wellness.exposure(who, now=at(60 * 55)).offers_break, "five minutes without an item are a break"
    who.break_minutes = 0
    assert not wellness.exposure(who, now=at(60 * 50)).offers_break


def test_a_break_is_offered_after_so_many_severe_items_and_counts_anew_after_it():
    who, lane = rita(), make_lane(assignment_time=timedelta(minutes=1))
    who.break_severe = 3
    worked(who, lane, 6, severity=2, each=2)

    seen = wellness.exposure(who, now=at(60 * 6))
    assert (seen.severe, seen.severe_since_break, seen.offers_break) == (3, 3, True)

    worked(who, lane, 14, severity=2, first=12, each=2)
    seen = wellness.exposure(who, now=at(60 * 14))
    assert (seen.severe, seen.severe_since_break, seen.offers_break) == (4, 1, False)


def test_take_next_passes_over_the_categories_that_one_does_not_see(client):
    who, lane = rita(), make_live_lane()
    who.hidden_categories = "gore, self-harm"
    who.save()
    manual_now(lane, severity=2, category="gore")
    offered = manual_now(lane, severity=0, category="spam")
    client.force_login(who)

    answer = client.post(reverse("desk_take_next"))

    assert answer.url == reverse("item", args=[offered.pk])
    client.post(reverse("desk_take_next"))
    assert Assignment.objects.count() == 1


def test_a_pause_after_this_one_takes_no_next_item(client):
    who, lane = rita(), make_live_lane()
    item, _other = manual_now(lane), manual_now(lane)
    token = people.take(item.pk, person=who, clock=DATABASE_CLOCK).token
    client.force_login(who)
    sent = {"verdict": "APPROVED", "then": "next", "fence": token.fence, "key": token.key, "pause": "on"}

    answer = client.post(reverse("item_decide", args=[item.pk]), sent)

    assert answer.url == reverse("desk")
    assert Assignment.objects.count() == 1


def test_preferences_are_kept_and_bounded(client):
    who = rita()
    client.force_login(who)
    sent = {
        "text_hidden": "severe", "images_grey": "on", "break_minutes": "30", "break_severe": "5",
        "hidden_categories": "gore",
    }  # fmt: skip

    assert client.post(reverse("preferences_shown"), sent).status_code == 302
    who.refresh_from_db()
    assert (who.text_hidden, who.images_grey, who.images_blurred, who.break_minutes) == ("severe", True, False, 30)
    assert client.post(reverse("preferences_shown"), sent | {"break_minutes": "-1"}).status_code == 422
    assert client.post(reverse("preferences_shown"), sent | {"break_minutes": "9999"}).status_code == 422
