"""The page that describes the API, in a real browser under the site's policy: wide and on a phone, light and dark."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.api.conftest import API
from tests.browsing import look, pages

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.django_db(transaction=True)]


def test_it_is_read_by_eye_ear_and_keys_and_asks_nobody_else(chromium, live_server) -> None:
    asked: set[str] = set()
    phone = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"}
    with pages(chromium, live_server.url) as open_it:
        for name, terms in (("api", {}), ("api-phone", phone)):
            page = open_it("/sign-in/", **terms)
            page.on("request", lambda request: asked.add(urlsplit(request.url).netloc or urlsplit(request.url).scheme))
            page.goto(f"{API}/docs")
            look(page, name)

            page.get_by_role("link", name="Send many tickets", exact=True).focus()
            page.keyboard.press("Enter")

            expect(page.get_by_role("heading", name="Send many tickets", exact=True)).to_be_in_viewport()

    assert asked <= {urlsplit(live_server.url).netloc, "data"}
