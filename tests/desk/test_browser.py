"""What only a browser shows: an item decided by the keyboard alone, lost with the text kept, and axe on every page."""

from datetime import timedelta
from itertools import cycle

import pytest
from django.contrib.sessions.models import Session
from django.urls import reverse
from playwright.sync_api import expect

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Assignment, Decision, Item, ItemPass, Message
from tests.browsing import LOOKS, look, open_as, signed_in
from tests.desk.backlog import dead_now, make_live_lane, manual_now, now, waiting_now
from tests.people.cast import LEAD, item_of, leo, person, rita

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WORDS = "You would not last one day here, go back under your stone.\nאיזה שטויות, and nobody asked you."


def awake(page):
    """The decision keys of a new item sleep for half a second."""
    for _ in range(100):
        ready = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        if ready and page.evaluate("performance.now()") - ready > 600:
            return
        page.wait_for_timeout(50)
    pytest.fail("the page was not awake within 5 s")


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


def test_extend_moves_the_time_and_leaves_the_typed_text_htx_08(open_page):
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


def choose_and_decide(page):
    """What a person does by keys alone: reads, chooses, says why where it takes a reason code, decides."""
    if "drop" in page.locator(".evidence").inner_text():
        page.keyboard.press("r")
        expect(page.locator("#id_reject")).to_be_checked()
        page.keyboard.press("Tab")
        page.keyboard.type("insult")
    else:
        page.keyboard.press("a")
        expect(page.locator("#id_approve")).to_be_checked()
    page.keyboard.press("Control+Enter")


@pytest.mark.parametrize("number", [10, pytest.param(100, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_items_are_decided_one_after_another_by_the_keyboard_alone(open_page, number):
    lane = make_live_lane()
    words = ["drop this" if place % 3 == 0 else "keep this" for place in range(number)]
    wanted = {manual_now(lane, evidence={"text": text}).job_id: text for text in words}
    page = open_page(reverse("desk"), rita())
    awake(page)
    page.keyboard.press("t")

    for left in range(number, 0, -1):
        page.wait_for_url("**/desk/*/")
        address = page.url
        awake(page)
        choose_and_decide(page)
        page.wait_for_url(lambda url, before=address: url != before)
        assert Item.objects.filter(closed_at__isnull=True).count() == left - 1

    verdicts = dict(Decision.objects.values_list("job", "verdict"))
    assert verdicts == {job: "REJECTED" if "drop" in text else "APPROVED" for job, text in wanted.items()}
    expect(page.get_by_text("Nothing is open at the desk.").first).to_be_visible()


def test_a_slip_of_the_finger_is_taken_back_by_z_and_what_one_leaves_to_others_is_skipped_by_s(open_page):
    lane, who = make_live_lane(), rita()
    first, second = manual_now(lane, severity=2), manual_now(lane, severity=0)
    people.take(first.pk, person=who, clock=DATABASE_CLOCK)
    page = open_page(reverse("item", args=[first.pk]), who)
    awake(page)
    page.keyboard.press("n")
    page.keyboard.type("typed with care, a z and an s in it")
    page.locator("#id_approve").check()
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**{reverse('item', args=[second.pk])}")
    awake(page)

    page.keyboard.press("z")

    expect(page.get_by_text("Taken back: nobody was told.")).to_be_visible()
    expect(page.locator("#id_note")).to_have_value("typed with care, a z and an s in it")
    expect(page.locator("#id_approve")).to_be_checked()
    assert not Message.objects.filter(kind="decision", state="ready").exists()
    awake(page)
    page.keyboard.press("s")
    page.keyboard.type("I know the author")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Skipped. Take next offers it to others.")).to_be_visible()
    assert ItemPass.objects.get().reason == "I know the author"


def test_the_help_lists_the_keys_of_the_page(open_page):
    item, who = manual_now(make_live_lane()), leo()
    people.take(item.pk, person=who, clock=DATABASE_CLOCK)
    page = open_page(reverse("item", args=[item.pk]), who)

    page.keyboard.press("?")

    keys = page.locator("dialog.keys kbd").all_inner_texts()
    assert {"a", "r", "s", "n", "e", "Ctrl+Enter", "?"} <= set(keys)
    assert len(keys) == len(set(keys)), "no key acts twice"


@pytest.mark.parametrize(
    "winner",
    [
        pytest.param(0, id="the first browser first"),
        # Both orders without a browser: tests/people/test_races.py.
        pytest.param(1, id="the second browser first", marks=pytest.mark.long),
    ],
)
def test_two_browsers_on_one_item_and_on_one_button_make_one_decision_and_the_other_is_told_mod_01(open_page, winner):
    lane, reviewers = make_live_lane(), [rita(), leo()]
    free, held = manual_now(lane), manual_now(lane)
    people.take(held.pk, person=reviewers[0], clock=DATABASE_CLOCK)
    tabs = [open_page(reverse("item", args=[held.pk]), reviewers[0]) for _ in range(2)]
    first, second = tabs[winner], tabs[1 - winner]
    first.locator("#id_reject").check()
    first.locator("#id_reason_code").select_option("insult")
    second.locator("#id_approve").check()
    second.locator("#id_note").fill("the slower one's words")

    first.get_by_role("button", name="Decide", exact=True).click()
    first.wait_for_url(f"**{reverse('desk')}")
    second.get_by_role("button", name="Decide", exact=True).click()

    expect(second.get_by_text("The item was decided before your decision arrived.")).to_be_visible()
    expect(second.get_by_text("Decided by rita.")).to_be_visible()
    expect(second.get_by_text("the slower one's words")).to_be_visible()
    assert Decision.objects.get().verdict == "REJECTED"

    pages = [open_page(reverse("item", args=[free.pk]), who) for who in reviewers]
    for page in (pages[winner], pages[1 - winner]):
        page.get_by_role("button", name="Take it").click()
        page.wait_for_load_state()
    expect(pages[1 - winner].get_by_text(f"{reviewers[winner].username} was quicker and has it now.")).to_be_visible()
    assert Assignment.objects.filter(item=free).count() == 1


def test_a_typed_note_outlives_a_refresh_a_lost_assignment_and_the_session(open_page, client, live_server):
    item, who = manual_now(make_live_lane()), rita()
    people.take(item.pk, person=who, clock=DATABASE_CLOCK)
    page = open_page(reverse("item", args=[item.pk]), who)
    note = page.locator("#id_note")
    note.fill("typed with care")
    reason = page.locator("#id_skip_reason")
    reason.evaluate("field => { field.closest('details').open = true }")
    reason.fill("a reason to skip it")

    page.reload()
    expect(note).to_have_value("typed with care")
    expect(reason).to_have_value("a reason to skip it")

    moment = now() - timedelta(seconds=1)
    Item.objects.update(taken_until=moment)
    Assignment.objects.update(until=moment)
    page.reload()
    page.get_by_role("button", name="Take it").click()
    expect(note).to_have_value("typed with care")

    Session.objects.all().delete()
    note.fill("typed with more care")
    page.locator("#id_approve").check()
    page.get_by_role("button", name="Decide", exact=True).click()
    expect(page.locator("[data-signed-out-banner]")).to_be_visible()
    expect(note).to_have_value("typed with more care")
    page.context.add_cookies(signed_in(client, who, live_server.url))
    page.get_by_role("button", name="Decide", exact=True).click()
    page.wait_for_url(f"**{reverse('desk')}")
    assert Decision.objects.get().note == "typed with more care"
    mine = f"Object.keys(sessionStorage).filter((key) => key.startsWith('kept:item-{item.pk}-2'))"
    assert page.evaluate(mine) == [], "what the server confirmed is forgotten, the reasons beside it too"


def full_house(who):
    lane, held = (
        make_live_lane(title="Posts", most_held=20),
        make_live_lane(title="Images", cap=None, desk_items_per_hour=60),
    )
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


def led(lane, who):
    """What a lead has more of: an appeal that was escalated, an item handed over, a decision just made."""
    other = person("lou", *LEAD)
    appealed = manual_now(lane, severity=1)
    for one in (appealed, manual_now(lane)):
        token = people.take(one.pk, person=other, clock=DATABASE_CLOCK).token
        people.resolve(token, person=other, verdict="APPROVED", clock=DATABASE_CLOCK)
    opened = people.appeal(
        source=appealed.ticket.source, external_id=appealed.ticket.external_id, statement=WORDS, person=who,
        clock=DATABASE_CLOCK,
    ).appeal  # fmt: skip
    people.escalate_item(opened.item_id, fence=0, person=who, reason="not for one alone", clock=DATABASE_CLOCK)
    people.take(opened.item_id, person=who, clock=DATABASE_CLOCK)
    handed = people.take(manual_now(lane).pk, person=other, clock=DATABASE_CLOCK).token
    people.hand_over(handed, person=other, to=who, reason="your language", clock=DATABASE_CLOCK)
    skipped = people.take(manual_now(lane).pk, person=other, clock=DATABASE_CLOCK).token
    people.skip(skipped, person=other, reason="I know the author", clock=DATABASE_CLOCK)
    own = people.take(manual_now(lane).pk, person=who, clock=DATABASE_CLOCK).token
    people.resolve(own, person=who, verdict="APPROVED", clock=DATABASE_CLOCK)
    return opened


def pages_of(lane, item, dead, opened):
    return {
        "appeal": reverse("item", args=[opened.item_id]),
        "numbers": reverse("desk_numbers"),
        "job-appealed": reverse("job", args=[opened.decision.job_id]),
        "desk": reverse("desk"),
        "item": reverse("item", args=[item.pk]),
        "item-free": reverse("item", args=[item_of(dead).pk]),
        "jobs": reverse("jobs"),
        "jobs-none": reverse("jobs") + "?ticket=none",
        "job": reverse("job", args=[item.job_id]),
        "job-dead": reverse("job", args=[dead.pk]),
    }


@pytest.mark.parametrize("looks", LOOKS)
def test_axe_finds_nothing_and_no_page_scrolls_sideways(open_page, looks):
    who = person("rita", *LEAD, "lead_desk", "view_person_figures", "appeal_decision")
    page = open_page(reverse("desk"), who)
    look(page, "desk-empty")
    lane, item, dead = full_house(who)
    paths = pages_of(lane, item, dead, led(lane, who))
    for (name, path), (width, scheme) in zip(paths.items(), cycle(looks), strict=False):
        open_as(page, path, width, scheme)
        look(page, name)
