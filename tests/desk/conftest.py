import pytest
from django.test import Client

from tests.browsing import REFUSALS, pages, signed_in


@pytest.fixture
def open_page(chromium, live_server):
    """Opens an address as somebody, in a session of its own. What the console complains of fails the test."""
    with pages(chromium, live_server.url, excused=REFUSALS) as open_it:
        yield lambda path, who, **options: open_it(path, signed_in(Client(), who, live_server.url), **options)
