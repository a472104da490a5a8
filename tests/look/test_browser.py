"""What only a browser can show: looks, the strict policy, the page's clock, kept text, keys."""

import json
import re
from itertools import cycle

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browsing import LOOKS, REFUSALS, look, open_as, pages, signed_in, stands_within_the_window
from tests.look.gallery import HOSTILE
from tests.look.living import STEERING, steer_anew

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAGES = ["/", "/desk/", "/living/", "/preferences/", "/preferences/password/", "/sign-in/", "/gone/"]


@pytest.fixture(autouse=True)
def steering():
    return steer_anew()


@pytest.fixture
def cookies(live_server, gallery, client, olga):
    return signed_in(client, olga, live_server.url)


@pytest.fixture
def open_page(chromium: Browser, live_server, cookies):
    with pages(chromium, live_server.url, excused=REFUSALS) as open_it:
        yield lambda path, *, signed_in=True, **options: open_it(path, cookies if signed_in else (), **options)


@pytest.fixture
def living(open_page):
    return open_page("/living/")


def note(page: Page):
    return page.locator("#note")


def kept(page: Page) -> list[str]:
    return page.evaluate("Object.keys(sessionStorage).filter((key) => key.startsWith('kept:'))")


def poll_until(condition, page: Page, what: str) -> None:
    for _ in range(100):
        if condition():
            return
        page.wait_for_timeout(100)
    pytest.fail(f"not within 10 s: {what}")


# --- Looks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("looks", LOOKS)
def test_axe_finds_nothing(open_page, looks):
    page = open_page("about:blank")
    for path, (width, scheme) in zip(PAGES, cycle(looks), strict=False):
        open_as(page, path, width, scheme)
        look(page, f"gallery-{path.strip('/')}")


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_no_page_scrolls_sideways(open_page, width):
    page = open_page("/", viewport={"width": width, "height": 700})
    for path in PAGES:
        page.goto(path)
        stands_within_the_window(page, path)


def test_strangers_text_starts_nothing(open_page):
    """MOD-14: no alert, no request, no element of theirs."""
    page = open_page("about:blank")
    dialogs, requests = [], []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: requests.append(request.url))
    page.goto("/")
    page.wait_for_load_state("networkidle")

    assert dialogs == []
    assert not [url for url in requests if "logout" in url or url.endswith("/x")]
    assert page.locator("#hostile img, #hostile script, #hostile a").count() == 0
    assert page.locator("#hostile").get_by_text(HOSTILE[0]).count() == 2


def test_an_override_reverses_no_neighbour(open_page):
    """MOD-15: the button beside it reads as before and stands to its right."""
    page = open_page("/")
    row = page.locator("#hostile li", has_text="never closed")
    button = row.get_by_role("button", name="neighbour").bounding_box()
    text = row.locator(".row-main .strange").bounding_box()

    assert text is not None
    assert button is not None
    assert text["x"] < button["x"]


def test_the_page_stands_without_a_script(open_page):
    page = open_page("/sign-in/", signed_in=False, java_script_enabled=False)
    page.get_by_label("Username").fill("olga")
    page.get_by_label("Password").fill("sunflower-4711")
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("heading", name="Board")).to_be_visible()
    assert re.search(r"2026-03-14 02:52", page.locator(".headline-since time").first.inner_text())


# --- The clock --------------------------------------------------------------------------------------------------------


def test_new_figures_come_by_themselves_again_and_again(living):
    for figure in (2, 3, 4):
        STEERING.figure = figure
        expect(living.locator("#figure")).to_have_text(str(figure))

    expect(living.get_by_text("Reconnecting.")).to_be_hidden()


def test_a_changed_headline_is_said_once_and_figures_are_not(living):
    said = living.locator("[data-status-line]")
    STEERING.figure = 2
    expect(living.locator("#figure")).to_have_text("2")
    expect(said).to_be_empty()

    STEERING.state = "on hold"

    expect(said).to_have_text("posts: on hold")


def test_an_automatic_hold_is_called_out(living):
    STEERING.alarm = "posts was put on hold: the model was unavailable."

    expect(living.get_by_role("alert")).to_have_text(STEERING.alarm)


def test_nothing_new_moves_only_the_time_of_the_figures(living):
    before = living.locator("[data-as-of]").inner_text()
    version = living.locator("#live").get_attribute("data-version")

    expect(living.locator("[data-as-of]")).not_to_have_text(before)
    assert living.locator("#live").get_attribute("data-version") == version


def test_an_older_answer_is_dropped_htx_10(living):
    STEERING.is_read_late, STEERING.figure = True, 7
    seen = STEERING.polls
    poll_until(lambda: STEERING.polls > seen + 1, living, "two more polls")

    expect(living.locator("#figure")).to_have_text("1")


def test_a_hidden_tab_does_not_poll_and_asks_at_once_when_shown_htx_04(open_page):
    living = open_page("about:blank")
    living.clock.install()
    living.goto("/living/")
    poll_until(lambda: STEERING.polls > 0, living, "the first poll")
    hide = "(hidden) => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
    show = f"{hide} document.dispatchEvent(new Event('visibilitychange')); }}"
    living.evaluate(show, True)
    living.wait_for_load_state("networkidle")
    seen = STEERING.polls
    living.wait_for_timeout(2500)
    assert STEERING.polls == seen

    # With the page's clock at rest: no poll that was due anyway can bring it.
    living.clock.pause_at(living.evaluate("Date.now()") / 1000 + 60)
    STEERING.figure = 3
    living.evaluate(show, False)

    expect(living.locator("#figure")).to_have_text("3")


def test_a_reader_may_pause_the_page(living):
    living.get_by_role("button", name="Pause the updates").click()
    living.wait_for_load_state("networkidle")
    seen = STEERING.polls
    living.wait_for_timeout(2500)
    assert STEERING.polls == seen

    STEERING.figure = 4
    living.get_by_role("button", name="Pause the updates").click()

    expect(living.locator("#figure")).to_have_text("4")


@pytest.mark.parametrize("status", [500, 404, 403, 200])
def test_after_three_misses_the_page_is_stale_and_raising_waits_but_hold_does_not(living, status):
    """Neither an error nor a page that is not ours (200 without the root) is swapped in."""
    STEERING.poll_status = 299 if status == 200 else status

    expect(living.get_by_text("Reconnecting.")).to_be_visible()
    expect(living.locator("#raise")).to_be_disabled()
    expect(living.locator("#hold")).to_be_enabled()
    expect(living.locator("#figure")).to_have_text("1")
    assert "an error page" not in living.content()

    STEERING.poll_status = 200
    expect(living.get_by_text("Reconnecting.")).to_be_hidden()
    expect(living.locator("#raise")).to_be_enabled()


def test_a_page_without_anything_living_offers_no_pause(open_page):
    expect(open_page("/preferences/").locator("[data-live-pause]")).to_be_hidden()


# --- Signed out, and kept text ----------------------------------------------------------------------------------------


def test_a_session_that_is_over_changes_nothing_but_a_banner_htx_01(living, settings):
    note(living).fill("half a sentence")
    cookies = living.context.cookies()
    living.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)

    expect(living.get_by_text("You are signed out.")).to_be_visible()
    expect(note(living)).to_have_value("half a sentence")
    expect(living.locator("#figure")).to_have_text("1")
    assert living.url.endswith("/living/")
    link = living.get_by_role("link", name="Sign in (new tab)")
    assert (link.get_attribute("target"), link.get_attribute("rel")) == ("_blank", "noopener")

    living.context.add_cookies(cookies)
    expect(living.get_by_text("You are signed out.")).to_be_hidden()


def test_typed_text_survives_a_reload_and_goes_when_the_server_confirms(living):
    note(living).fill("half a sentence")
    living.reload()
    expect(note(living)).to_have_value("half a sentence")

    living.locator("#hold").click()
    expect(living.get_by_text("acted")).to_be_visible()
    note(living).fill("")
    living.reload()

    expect(note(living)).to_have_value("")


def test_text_about_a_restricted_item_is_never_kept(open_page):
    STEERING.is_restricted = True
    page = open_page("/living/")
    note(page).fill("half a sentence")
    page.reload()

    expect(note(page)).to_have_value("")
    assert kept(page) == []


def test_signing_out_deletes_kept_text(living):
    note(living).fill("half a sentence")
    living.locator("summary.menu-button").click()
    living.get_by_role("button", name="Sign out").click()

    expect(living.get_by_role("heading", name="You are signed out")).to_be_visible()
    assert kept(living) == []


# --- Forms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [409, 422])
def test_a_refusal_that_explains_itself_is_shown(living, status):
    STEERING.post_status = status
    living.locator("#hold").click()

    expect(living.locator("#result")).to_contain_text("acted")
    expect(living.locator("#result [data-focus]")).to_be_focused()


@pytest.mark.parametrize(
    ("status", "sentence"), [(403, "You may not do this"), (404, "not there any more"), (500, "went wrong on our side")]
)
def test_an_error_is_a_line_and_the_text_stays(living, status, sentence):
    STEERING.post_status = status
    note(living).fill("half a sentence")
    living.locator("#hold").click()

    expect(living.locator("[data-message-line]")).to_contain_text(sentence)
    expect(note(living)).to_have_value("half a sentence")
    expect(living.locator("#result")).to_be_empty()


def test_a_server_that_is_not_reached_is_a_line_and_the_text_stays(living):
    note(living).fill("half a sentence")
    living.route("**/act/", lambda route: route.abort())
    living.locator("#hold").click()

    expect(living.locator("[data-message-line]")).to_contain_text("not reached")
    expect(note(living)).to_have_value("half a sentence")


def test_a_form_is_sent_once_however_often_it_is_clicked(living):
    """HTX-09 at the page: a second click before the answer sends nothing."""
    living.evaluate("for (let i = 0; i < 3; i++) document.getElementById('hold').click()")
    expect(living.get_by_text("acted")).to_be_visible()
    living.wait_for_load_state("networkidle")

    assert len(STEERING.posts) == 1


def test_a_form_can_be_sent_again_after_its_answer(living):
    living.locator("#hold").click()
    expect(living.get_by_text("acted")).to_be_visible()
    living.locator("#hold").click()

    poll_until(lambda: len(STEERING.posts) == 2, living, "a second post")


def test_the_token_is_read_when_a_form_is_sent_htx_02(living):
    """Signing in again in another tab has changed it meanwhile."""
    fresh = "A" * 32
    (old,) = [one for one in living.context.cookies() if one["name"] == "csrftoken"]
    living.context.add_cookies([{**old, "value": fresh}])
    living.locator("#hold").click()

    expect(living.get_by_text("acted")).to_be_visible()
    assert STEERING.tokens == [fresh]


# --- Times and keys ---------------------------------------------------------------------------------------------------


def test_times_follow_the_servers_clock_not_the_browsers(chromium, open_page):
    """A browser that is ten years off still counts the same time left."""
    STEERING.seconds_left = 600
    page = open_page("about:blank")
    page.clock.set_system_time("2016-01-01T00:00:00Z")
    page.goto("/living/")

    expect(page.locator(".countdown")).to_contain_text("min")
    assert re.fullmatch(r"(10 min|[89] min( \d+ s)?) left", page.locator(".countdown").inner_text())


def test_a_countdown_warns_at_sixty_and_twenty_seconds_and_at_its_end(open_page):
    STEERING.seconds_left = 70
    page = open_page("about:blank")
    page.clock.install()
    page.goto("/living/")
    # Without answers from the server, whose clock goes on at its own pace.
    page.get_by_role("button", name="Pause the updates").click()
    said = page.locator("[data-status-line]")
    expect(said).to_be_empty()

    page.clock.run_for(11_500)
    expect(said).to_have_text("This item: 60 seconds left.")
    page.clock.run_for(40_000)
    expect(said).to_have_text("This item: 20 seconds left.")
    page.clock.run_for(21_000)
    expect(said).to_have_text("This item: the time is over.")


def awake(page: Page) -> None:
    """Past the half second in which a new item takes no decision."""
    page.wait_for_timeout(600)


def test_letters_choose_and_ctrl_enter_decides(living):
    awake(living)
    living.keyboard.press("r")
    expect(living.get_by_label("Reject")).to_be_checked()
    living.keyboard.press("n")
    living.keyboard.type("are and rare")
    living.keyboard.press("Control+Enter")

    expect(living.get_by_text("acted")).to_be_visible()
    assert STEERING.posts == [{"verdict": "REJECTED", "note": "are and rare"}]


def test_a_new_item_takes_no_decision_for_half_a_second(open_page):
    """A key meant for the item before must not decide this one."""
    page = open_page("about:blank")
    page.clock.install()
    page.goto("/living/")
    page.keyboard.press("a")
    expect(page.get_by_label("Approve")).not_to_be_checked()

    page.clock.run_for(600)
    page.keyboard.press("a")

    expect(page.get_by_label("Approve")).to_be_checked()


def test_a_key_held_down_decides_once(living):
    awake(living)
    held = json.dumps({"key": "a", "code": "KeyA", "bubbles": True, "repeat": True})
    living.evaluate(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {held}))")

    expect(living.get_by_label("Approve")).not_to_be_checked()


@pytest.mark.parametrize(
    ("mode", "key", "is_checked"), [("off", "a", False), ("alt", "a", False), ("alt", "Alt+a", True)]
)
def test_keys_follow_the_persons_choice(open_page, olga, mode, key, is_checked):
    olga.shortcuts = mode
    olga.save(update_fields=["shortcuts"])
    page = open_page("/living/")
    awake(page)
    page.keyboard.press(key)

    expect(page.get_by_label("Approve")).to_be_checked(checked=is_checked)


def test_a_question_mark_lists_the_keys_of_this_page(living):
    living.keyboard.press("?")
    listed = living.get_by_role("dialog", name="Keys of this page")

    expect(listed.get_by_text("Approve", exact=True)).to_be_visible()
    expect(listed).to_contain_text("Ctrl+Enter")
    living.keyboard.press("Escape")
    expect(listed).to_have_count(0)


def test_escape_closes_a_confirmation_and_gives_the_focus_back(open_page):
    page = open_page("/")
    page.get_by_label("until").fill("x")
    page.keyboard.press("Escape")

    expect(page.locator("details#hold")).not_to_have_attribute("open", "")
    expect(page.locator("#hold > summary")).to_be_focused()
