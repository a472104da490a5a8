"""The page of deliveries in a real browser: its look by axe, on a phone, without JavaScript, and its acts."""

import pytest
from playwright.sync_api import Browser, expect

from queue_core import relay
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Delivery
from reviewboard import broker
from tests.browsing import look, pages, signed_in
from tests.factories import done_job, make_lane
from tests.relay.conftest import deliver
from tests.relay.receiver import answer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def open_page(chromium: Browser, live_server, client, ada, monkeypatch):
    monkeypatch.setattr(broker, "is_reachable", lambda: True)
    cookies = signed_in(client, ada, live_server.url)
    with pages(chromium, live_server.url) as open_it:
        yield lambda path, **options: open_it(path, cookies, **options)


def test_deliveries_look_right_and_are_worked_with(
    open_page, make_endpoint, receiver, other, clock, ada, live_server
) -> None:
    look(open_page("/deliveries/"), "empty")
    failing, healthy = make_endpoint(receiver.url, "shop"), make_endpoint(other.url, "archive-of-everything")
    kept = make_endpoint(
        "https://partner.example/hooks/decisions?tenant=4711", "partner", kinds=["decision", "outage.opened"]
    )
    relay.disable(kept.pk, person=ada, clock=clock)
    receiver.then = answer(503)
    lane = make_lane(title="Posts")
    for number in range(7):
        done_job(lane, external_id=f"post-{number}-with-a-rather-long-identifier-{number:020}")
    for endpoint in (failing, healthy):
        deliver(endpoint, clock)

    look(open_page("/deliveries/"), "full")
    look(open_page("/deliveries/", color_scheme="dark", viewport={"width": 360, "height": 700}), "phone")
    one = Delivery.objects.filter(endpoint=failing, tries__gt=0).earliest("pk")
    look(open_page(f"/deliveries/{one.pk}/", color_scheme="dark"), "delivery")
    look(open_page("/deliveries/replay/?endpoint=archive-of-everything"), "replay")
    look(open_page("/deliveries/?state=withdrawn"), "nothing-for-the-filter")

    page = open_page("/deliveries/", java_script_enabled=False)
    page.locator(".endpoint", has_text="shop").get_by_text("Disable", exact=True).click()
    page.get_by_label("Reason").first.fill("their release")
    page.get_by_role("button", name="Disable: shop").click()
    expect(page.get_by_text("shop is disabled. Its messages are kept")).to_be_visible()
    receiver.then = answer(204)
    page.locator(".endpoint", has_text="shop").get_by_role("button", name="Enable").click()
    expect(page.get_by_text("shop is enabled.")).to_be_visible()
    relay.send_due(failing.pk, clock=DATABASE_CLOCK)
    page.get_by_label("Endpoint").select_option("archive-of-everything")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="Send these again…").click()
    page.get_by_role("button", name="Send 7 messages again").click()
    expect(page.get_by_text("7 messages are sent again, with the same ids.")).to_be_visible()
    assert Delivery.objects.filter(endpoint=healthy, state="pending").count() == 7
    assert live_server.url in page.url
