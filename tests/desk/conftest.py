import pytest
from django.test import Client

from tests.browsing import pages, signed_in

#: A 409 or 422 is an answer, but the browser and htmx log it as a failure; and a poll that an act replaced, or that was
#: out when the test went on to the next page.
LOGGED_ANSWERS = (
    "Failed to load resource", "Response Status Error", "htmx:sendAbort", "htmx:sendError", "htmx:afterRequest"
)  # fmt: skip


@pytest.fixture
def open_page(chromium, live_server):
    """Opens an address as somebody, in a session of its own. What the console complains of fails the test."""
    with pages(chromium, live_server.url, excused=LOGGED_ANSWERS) as open_it:
        yield lambda path, who, **options: open_it(path, signed_in(Client(), who, live_server.url), **options)
