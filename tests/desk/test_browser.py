"""What only a browser shows: an item decided by the keyboard alone, lost with the text kept, and axe on every page."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import expect

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Assignment, Decision, Item
from tests.desk.backlog import dead_now, make_live_lane, manual_now, now, waiting_now
from tests.people.cast import LEAD, item_of, leo, person, rita

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
WORDS = "You would not last one day here, go back under your stone.\nאיזה שטויות, and nobody asked you."


def awake(page):
    """The decision keys of a new item sleep for half a second."""
    for _ in range(100):
        ready = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        if ready and page.evaluate("performance.now()") - ready > 600:
            return
        page.wait_for_timeout(50)
    pytest.fail("the page was not awake within 5 s")


def test_an_item_is_decided_by_the_keyboard_alone(open_page):
    lane = make_live_lane()
    first, second = manual_now(lane, severity=2), manual_now(lane, severity=0)
    page = open_page(reverse("desk"), rita())
    awake(page)

    page.keyboard.press("t")
    page.wait_for_url(f"**{reverse('item', args=[first.pk])}")
    awake(page)
    page.keyboard.press("r")
    expect(page.locator("#id_reject")).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.type("insult")
    page.keyboard.press("Tab")
    page.keyboard.type("a plain insult")
    page.keyboard.press("Control+Enter")

    page.wait_for_url(f"**{reverse('item', args=[second.pk])}")
    expect(page.get_by_text("Decided: REJECTED.")).to_be_visible()
    decision = Decision.objects.get()
    assert (decision.verdict, decision.reason_code.code, decision.note) == ("REJECTED", "insult", "a plain insult")
    assert Item.objects.get(pk=second.pk).taken_by.username == "rita"


def test_enter_on_a_choice_decides_and_does_not_extend(open_page):
    item = manual_now(make_live_lane())
    who = rita()
    people.take(item.pk, person=who, clock=DATABASE_CLOCK)
    page = open_page(reverse("item", args=[item.pk]), who)
    page.locator("#id_approve").check()

    page.locator("#id_approve").press("Enter")

    page.wait_for_url(f"**{reverse('desk')}")
    assert Decision.objects.get().verdict == "APPROVED"


def test_a_mistake_keeps_the_page_and_what_was_typed(open_page):
    item = manual_now(make_live_lane())
    who = rita()
    people.take(item.pk, person=who, clock=DATABASE_CLOCK)
    page = open_page(reverse("item", args=[item.pk]), who)
    page.locator("#id_note").fill("typed with care")
    page.locator("#id_reject").check()

    page.get_by_role("button", name="Decide", exact=True).click()

    expect(page.get_by_text("Choose the reason code that the rejection rests on.").first).to_be_visible()
    expect(page.locator("#id_note")).to_have_value("typed with care")
    assert not Decision.objects.exists()


def test_extend_moves_the_time_and_leaves_the_typed_text(open_page):
    item = manual_now(make_live_lane())
    who = rita()
    people.take(item.pk, person=who, clock=DATABASE_CLOCK)
    before = Item.objects.get().taken_until
    page = open_page(reverse("item", args=[item.pk]), who)
    page.locator("#id_note").fill("typed with care")

    with page.expect_response(lambda answer: answer.url.endswith("/extend/")):
        page.get_by_role("button", name="Extend").click()

    expect(page.locator("#id_note")).to_have_value("typed with care")
    assert Item.objects.get().taken_until > before


def test_a_lost_assignment_is_said_while_the_text_stays(open_page):
    item = manual_now(make_live_lane())
    who = rita()
    people.take(item.pk, person=who, clock=DATABASE_CLOCK)
    page = open_page(reverse("item", args=[item.pk]), who)
    page.locator("#id_note").fill("typed with care")
    moment = now() - timedelta(seconds=1)
    Item.objects.update(taken_until=moment)
    Assignment.objects.update(until=moment)
    people.take(item.pk, person=leo(), clock=DATABASE_CLOCK)

    page.evaluate("htmx.trigger('#live', 'refresh')")

    expect(page.locator("#live").get_by_text("leo has this item.")).to_be_visible()
    expect(page.locator("#id_note")).to_have_value("typed with care")
    expect(page.locator("[data-alert-line]")).to_contain_text("leo has this item.")


def test_a_confirmed_note_is_forgotten_by_the_browser(open_page):
    item = manual_now(make_live_lane())
    who = rita()
    people.take(item.pk, person=who, clock=DATABASE_CLOCK)
    page = open_page(reverse("item", args=[item.pk]), who)
    page.locator("#id_note").fill("typed with care")
    page.locator("#id_approve").check()
    page.get_by_role("button", name="Decide", exact=True).click()
    page.wait_for_url(f"**{reverse('desk')}")

    assert page.evaluate("Object.keys(sessionStorage).filter((key) => key.startsWith('kept:'))") == []


def full_house(who):
    lane, held = make_live_lane(title="Posts"), make_live_lane(title="Images", cap=None, desk_items_per_hour=60)
    for number in range(13):
        dead_now(lane, severity=number % 3)
    for number in range(6):
        manual_now(lane, severity=number % 3, deadline_kind="hard" if number == 4 else "service")
        waiting_now(held, severity=number % 3, left=900 + 600 * number, exposure="live" if number % 2 else "hidden")
    people.take(manual_now(lane).pk, person=leo(), clock=DATABASE_CLOCK)
    item = manual_now(
        lane, severity=2, exposure="live", evidence={"text": WORDS, "author": {"id": "a-17", "since": 2019}}
    )
    people.take(item.pk, person=who, clock=DATABASE_CLOCK)
    return lane, item, dead_now(make_live_lane(title="Comments"))


def pages_of(lane, item, dead):
    return {
        "desk": reverse("desk"),
        "item": reverse("item", args=[item.pk]),
        "item-free": reverse("item", args=[item_of(dead).pk]),
        "requeue": f"{reverse('desk_requeue_group')}?lane={lane.name}&kind=dead&cause=deadline",
        "jobs": reverse("jobs"),
        "jobs-none": reverse("jobs") + "?ticket=none",
        "job": reverse("job", args=[item.job_id]),
        "job-dead": reverse("job", args=[dead.pk]),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_and_no_page_scrolls_sideways(open_page, scheme, width):
    who = person("rita", *LEAD)
    page = open_page(reverse("desk"), who, color_scheme=scheme, viewport={"width": width, "height": 844})
    look(page, "desk-empty", scheme, width)
    for name, path in pages_of(*full_house(who)).items():
        page.goto(path)
        look(page, name, scheme, width)


def look(page, name, scheme, width):
    found = Axe().run(page, options=RULES).response["violations"]
    assert [(one["id"], [node["target"] for node in one["nodes"]]) for one in found] == [], name
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"
    if folder := os.environ.get("REVIEWBOARD_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}-{scheme}-{width}.png", full_page=True)
