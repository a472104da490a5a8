"""The page that describes the API, in a real browser under the site's policy."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.api.conftest import API
from tests.browsing import pages

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.django_db(transaction=True)]


def test_it_shows_every_call_and_asks_nobody_else(chromium, live_server, tmp_path) -> None:
    asked: set[str] = set()
    with pages(chromium, live_server.url) as open_it:
        page = open_it("/sign-in/")
        page.on("request", lambda request: asked.add(urlsplit(request.url).netloc or urlsplit(request.url).scheme))
        page.goto(f"{API}/docs")
        page.get_by_text("Send many tickets", exact=True).click()

        page.get_by_text("Newline-delimited JSON").wait_for()
        assert page.locator(".opblock").count() >= 15
        assert page.locator("html").get_attribute("lang") == "en"
        expect(page.get_by_role("main").get_by_role("heading", level=1)).to_contain_text("Reviewboard")
        expect(page.get_by_role("link", name="Back to the board")).to_be_visible()

    assert asked <= {urlsplit(live_server.url).netloc, "data"}
