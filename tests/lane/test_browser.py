"""Raise and hold as a lead does it, in a real browser; the looks of board and lane by axe."""

from datetime import timedelta
from itertools import cycle

import pytest
from playwright.sync_api import Browser, Page, expect

from queue_core import contract, hold, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Decision, Item, KnownAnswer, KnownReply, Lane, LaneMinute, Message, Outage, Stage
from tests.board.scene import a_lane, break_down, fill, judged, run_some, start, work, workers_seen
from tests.browsing import LOOKS, REFUSALS, look, open_as, pages, signed_in, stands_within_the_window
from tests.factories import make_run
from tests.lane.test_policy_and_outage import another_version

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def open_page(chromium: Browser, live_server, client, leo):
    cookies = signed_in(client, leo, live_server.url)
    with pages(chromium, live_server.url, excused=REFUSALS) as open_it:
        yield lambda path, **options: open_it(path, cookies, **options)


@pytest.fixture
def held(leo) -> Lane:
    lane = a_lane("posts", title="Posts")
    fill(lane, 12, waited=timedelta(hours=2))
    start(lane, leo)
    break_down(lane)
    return lane


def fresh(lane: Lane) -> Lane:
    return Lane.objects.select_related("run", "hold").get(pk=lane.pk)


@pytest.mark.parametrize("with_javascript", [True, False])
def test_a_lead_goes_from_the_board_to_a_started_probe(open_page, held, with_javascript) -> None:
    page = open_page("/", java_script_enabled=with_javascript)
    page.get_by_role("link", name="Start the probe").click()
    page.get_by_label("Reason").fill("the model answers again")

    page.get_by_role("button", name="Start the probe").click()

    expect(page.get_by_text("Stage 1, probe, runs: at most 2 calls at once.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Posts")
    assert fresh(held).run.number == 1


@pytest.mark.parametrize("with_javascript", [True, False])
def test_a_raise_without_a_real_reason_keeps_the_page_and_says_so(open_page, held, with_javascript) -> None:
    page = open_page("/lanes/posts/", java_script_enabled=with_javascript)
    page.get_by_label("Reason").fill("ok")

    page.get_by_role("button", name="Start the probe").click()

    expect(page.locator("#action .field-errors")).to_contain_text("at least 5 characters")
    expect(page.get_by_label("Reason")).to_have_value("ok")
    assert fresh(held).is_on_hold


@pytest.mark.parametrize("link", ["Refresh figures", "Raise the stage"])
def test_a_lead_who_watched_the_soak_gets_the_raise_that_it_earned(open_page, leo, link) -> None:
    """The panel rests on the figures of its own moment; both links to it read them anew, also from the page itself."""
    lane = a_lane("posts", title="Posts")
    fill(lane, 60, waited=timedelta(hours=2))
    start(lane, leo, since=timedelta(minutes=2))
    workers_seen()
    page = open_page("/lanes/posts/")
    expect(page.locator("#raise")).to_contain_text("What is missing")
    work(lane, 30)
    expect(page.get_by_role("link", name="Raise the stage")).to_be_visible(timeout=15_000)
    expect(page.locator("#raise")).to_contain_text("What is missing")

    page.get_by_role("link", name=link).click()

    expect(page.locator("#raise").get_by_role("button", name="Raise to stage 2")).to_be_visible()
    expect(page.locator("#raise")).not_to_contain_text("What is missing")
    expect(page.locator("#raise")).to_be_in_viewport()


def test_a_raise_that_somebody_else_made_first_is_explained_in_place(open_page, held, leo) -> None:
    page = open_page("/lanes/posts/")
    page.get_by_label("Reason").fill("the model answers again")
    start(held, leo)

    page.get_by_role("button", name="Start the probe").click()

    expect(page.locator("#action")).to_contain_text("Somebody was faster: this stage runs already.")
    expect(page.locator("#action")).to_contain_text("the model answers again")
    assert fresh(held).runs.count() == 2


def test_a_poll_leaves_the_reason_and_the_open_hold_form_alone(open_page, leo) -> None:
    """HTX-08: the figures move on; what is typed, opened and focused does not."""
    lane = a_lane("posts", title="Posts")
    fill(lane, 12, waited=timedelta(hours=2))
    start(lane, leo)
    page = open_page("/lanes/posts/")
    page.locator("#hold summary").click()
    note = page.get_by_label("Note")
    note.fill("half a sen")
    before = page.locator("#live").get_attribute("data-version")
    run_some(lane, 2)

    expect(page.locator("#leases table tbody tr")).to_have_count(2, timeout=15_000)

    assert page.locator("#live").get_attribute("data-version") != before
    expect(note).to_have_value("half a sen")
    expect(note).to_be_focused()


def test_a_short_lease_of_a_worker_warns_nobody_of_its_end(open_page, leo) -> None:
    lane = a_lane("posts", lease=timedelta(seconds=15))
    fill(lane, 5, waited=timedelta(hours=2))
    start(lane, leo)
    run_some(lane, 2)

    page = open_page("/lanes/posts/")

    expect(page.locator("#leases time[data-countdown]").first).to_contain_text("left")
    expect(page.locator("[data-status-line]")).to_be_empty()
    expect(page.locator("#leases .is-urgent")).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_hold_asks_once_in_place_and_stands(open_page, leo, width) -> None:
    lane = a_lane("posts", title="Posts")
    start(lane, leo)
    page = open_page("/lanes/posts/", viewport={"width": width, "height": 844})
    if width == 390:
        page.locator(".sticky-foot a").click()
    page.locator("#hold summary").click()
    page.get_by_label("the model answers wrongly").check()

    page.get_by_role("button", name="Hold now").click()

    expect(page.get_by_text("The lane is on hold. Nothing new goes to the model.")).to_be_visible()
    stands = fresh(lane).hold
    assert (stands.reason, stands.by) == ("wrong_answers", leo)


def test_a_hold_works_while_the_page_is_stale(open_page, leo, live_server) -> None:
    """A page that cannot refresh blocks raising, never holding."""
    lane = a_lane("posts", title="Posts")
    fill(lane, 30, waited=timedelta(hours=2))
    start(lane, leo)
    page = open_page("/lanes/posts/")
    page.route("**/lanes/posts/", lambda route: route.abort() if route.request.method == "GET" else route.continue_())

    expect(page.locator("[data-stale-banner]")).to_be_visible(timeout=30_000)
    expect(page.locator("#raise [data-needs-fresh]")).to_be_disabled()
    page.locator("#hold summary").click()
    page.get_by_label("as a precaution").check()
    page.get_by_role("button", name="Hold now").click()
    for _time in range(100):
        if fresh(lane).is_on_hold:
            break
        page.wait_for_timeout(100)
    assert fresh(lane).is_on_hold


@pytest.mark.parametrize("with_javascript", [True, False])
def test_a_lead_puts_another_policy_into_force_and_closes_the_outage(open_page, held, leo, with_javascript) -> None:
    start(held, leo, stages=4)
    another_version(held)
    page = open_page("/lanes/posts/", java_script_enabled=with_javascript)
    page.locator("#policy summary", has_text="Put version 2 into force").click()
    page.locator("#policy textarea").fill("too much got through")
    page.locator("#policy button").click()
    expect(page.get_by_text("Version 2 of the policy is in force: a new run has begun")).to_be_visible()

    page.locator("#outage summary").click()
    page.locator("#outage textarea").fill("ok")
    page.locator("#outage button").click()
    expect(page.locator("#outage .field-errors")).to_contain_text("at least 5 characters")
    page.locator("#outage textarea").fill("no errors for ten minutes")
    page.locator("#outage button").click()

    expect(page.get_by_text("The outage is closed: the lanes run steadily.")).to_be_visible()
    assert fresh(held).policy.version == 2
    assert Outage.objects.get().closed_by == leo


def full_scene(leo, cast) -> None:
    rita = cast("rita", roles.REVIEWER)
    posts = a_lane("posts", title="Posts", exposure_default="live")
    fill(posts, 40, waited=timedelta(hours=3))
    start(posts, leo)
    break_down(posts)
    another_version(posts)
    reviews = a_lane("reviews", title="Reviews")
    fill(reviews, 60, waited=timedelta(minutes=9), seed=3)
    reviews = start(reviews, leo, stages=2, since=timedelta(minutes=6))
    workers_seen()
    work(reviews, 16)
    work(reviews, 14, result="MANUAL")
    run_some(reviews, 10)
    images = a_lane("images", title="Profile images")
    fill(images, 10, waited=timedelta(minutes=40), seed=5)
    start(images, leo, stages=3, since=timedelta(hours=1))
    hold.pull(images.pk, person=rita, form="hold", reason="wrong_answers", clock=DATABASE_CLOCK)
    calm = a_lane("comments", title="Comments")
    start(calm, leo, stages=4, since=timedelta(hours=1))
    judged(calm)


@pytest.mark.parametrize("looks", LOOKS)
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_page, leo, cast, looks) -> None:
    full_scene(leo, cast)
    lanes = [f"/lanes/{name}/" for name in ("posts", "reviews", "images", "comments")]
    outages = ["/outages/", f"/outages/{Outage.objects.get().pk}/"]
    page = open_page("about:blank")
    for path, (width, scheme) in zip(["/", *lanes, *outages], cycle(looks), strict=False):
        open_as(page, path, width, scheme)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        look(page, named(path))
        for narrow in (390, 320):
            page.set_viewport_size({"width": narrow, "height": 844})
            stands_within_the_window(page, named(path))


def named(path: str) -> str:
    return path.partition("?")[0].strip("/").replace("/", "-") or "board"


def wrong_scene(leo, cast) -> Lane:
    """A probe that keeps back and answers wrongly, by every measure of the gate's second half; then on hold."""
    lane = a_lane("posts", title="Posts")
    terms = {"max_share_shift": 0.2, "max_wrong_ratio": 0.1, "blind_share": 1.0, "max_disagreement": 0.1}
    Stage.objects.filter(lane=lane).update(keeps_back=True, least_blind=2, soak_time=timedelta(0), rate=None, **terms)
    fill(lane, 60, waited=timedelta(hours=2))
    now = DATABASE_CLOCK.now()
    make_run(lane, number=4, is_last=True, policy=lane.policy, started_at=now - timedelta(days=6),
             ended_at=now - timedelta(days=1), ended_as="held")  # fmt: skip
    minutes = [now - timedelta(days=3) + timedelta(minutes=i) for i in range(60)]
    usual = {"result.APPROVED": 2, "result.REJECTED": 7, "result.MANUAL": 1}
    LaneMinute.objects.bulk_create([LaneMinute(lane=lane, minute=at, counts=usual) for at in minutes])
    lane = start(lane, leo)
    workers_seen()
    work(lane, 14)
    known = KnownAnswer.objects.create(lane=lane, title="an insult", text="you fool", expected="REJECTED")
    KnownReply.objects.create(known=known, lane=lane, run=lane.run, policy=lane.policy, connection=lane.connection,
                              version=1, expected="REJECTED", asked_at=now, ended_at=now, outcome="verdict",
                              result="APPROVED")  # fmt: skip
    ids = Decision.objects.filter(run=lane.run).values_list("pk", flat=True)[:3]
    contract.open_blind_items(list(ids), within=timedelta(hours=4), clock=DATABASE_CLOCK)
    return lane


def test_a_lead_reads_both_halves_of_the_gate_and_recalls_what_was_kept_back(open_page, leo, cast) -> None:
    lane = wrong_scene(leo, cast)
    page = open_page("/")
    page.set_default_timeout(30_000)
    page.goto("/lanes/posts/")
    expect(page.locator("table.gate").get_by_text("not as usual").first).to_be_visible()
    expect(page.get_by_text("but its gate does not pass.")).to_be_visible()
    look_at(page, f"/desk/{Item.objects.filter(kind='blind').first().pk}/", "dark", 390)
    hold.pull(lane.pk, person=leo, form="hold", reason="wrong_answers", clock=DATABASE_CLOCK)
    look_at(page, "/lanes/posts/", "light", 1280)

    page.get_by_role("link", name="Recall them").click()
    page.wait_for_url("**/recall/?run=*")
    look_at(page, page.url, "dark", 390)
    page.get_by_label("Reason", exact=True).fill("the model was turned round")
    page.get_by_role("button", name="Recall 14 decisions").click()

    expect(page.get_by_text("14 decisions are no longer in force.")).to_be_visible()
    # With the line on top that tells what was done.
    look(page, "recalled")
    assert set(Message.objects.filter(kind="decision").values_list("state", flat=True)) == {"withdrawn"}
    assert Item.objects.filter(kind="recalled", closed_at__isnull=True).count() == 14


def look_at(page: Page, path: str, scheme: str, width: int) -> None:
    open_as(page, path, width, scheme)
    look(page, named(path))
