"""Pages opened in a real Chromium, each in a context of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from playwright.sync_api import Browser, Page

#: Milliseconds that anything on a page may take.
LIMIT = 10_000
#: What axe judges by.
AXE_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


@contextmanager
def pages(chromium: Browser, site: str, *, excused: tuple[str, ...] = ()) -> Iterator[Callable[..., Page]]:
    """`open_it(path, cookies, **options)`. What a console complains of fails at the end, but for what is excused."""
    contexts, complaints = [], []

    def open_it(path: str, cookies: Sequence[Any] = (), **options: Any) -> Page:
        context = chromium.new_context(base_url=site, **options)
        contexts.append(context)
        if cookies:
            context.add_cookies(cookies)
        page = context.new_page()
        page.set_default_timeout(LIMIT)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert [text for text in complaints if not text.startswith(excused)] == []


def signed_in(client: Any, who: Any, site: str) -> list[dict[str, str]]:
    """The cookies of a session of this person."""
    client.force_login(who)
    sent = client.cookies[settings.SESSION_COOKIE_NAME]
    return [{"name": settings.SESSION_COOKIE_NAME, "value": sent.value, "url": site}]
