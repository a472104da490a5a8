"""Pages opened in a real Chromium, each in a context of its own, and how they are judged: console, axe, width."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from playwright.sync_api import Browser, Page, expect

#: Milliseconds that anything on a page may take.
LIMIT = 10_000
#: What axe judges by. Of what it passes nobody asks for more than one example, which spares it half of its time.
AXE_RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}
#: Width and scheme. In CI the pages of a test take these two by turns: the same rules in the same colours, and what a
#: page may get wrong shows in one of them. All four on every page for those who ask.
LOOKS = [
    pytest.param([(1280, "light"), (390, "dark")], id="by turns"),
    *[
        pytest.param([(width, scheme)], id=f"{width}-{scheme}", marks=pytest.mark.long)
        for width in (1280, 390)
        for scheme in ("light", "dark")
    ],
]
#: What htmx says of a request that was out when its page was left or an act took its place, which is nobody's fault.
#: Nothing real hides behind it: a request that failed has a line of the browser's own beside it, the first of REFUSALS.
CUT_SHORT = ("htmx:afterRequest", "htmx:sendAbort", "htmx:sendError")
#: Any answer other than 2xx, or none, as the browser and htmx log it: for tests that ask for one and look at the page.
REFUSALS = ("Failed to load resource", "Response Status Error")
#: Where pictures of what was looked at are put, for eyes; nowhere in a usual run.
PICTURES = os.environ.get("REVIEWBOARD_PICTURES", "")


@contextmanager
def pages(
    chromium: Browser, site: str, *, excused: tuple[str, ...] = (), limit: int = LIMIT
) -> Iterator[Callable[..., Page]]:
    """`open_it(path, cookies, **options)`. What a console complains of fails at the end, but for what is excused."""
    contexts, complaints = [], []
    # As long as a page's own steps: on a busy machine Playwright's own five seconds were over first.
    expect.set_options(timeout=limit)

    def open_it(path: str, cookies: Sequence[Any] = (), **options: Any) -> Page:
        context = chromium.new_context(base_url=site, **options)
        contexts.append(context)
        if cookies:
            context.add_cookies(cookies)
        page = context.new_page()
        page.set_default_timeout(limit)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path)
        return page

    try:
        yield open_it
        # Before the contexts are closed: what a page says of its own end is no part of the test.
        unexpected = [text for text in complaints if not text.startswith(CUT_SHORT + excused)]
    finally:
        for context in contexts:
            context.close()
    assert not unexpected, "the console said:\n" + "\n".join(unexpected)


def signed_in(client: Any, who: Any, site: str) -> list[dict[str, str]]:
    """The cookies of a session of this person."""
    client.force_login(who)
    sent = client.cookies[settings.SESSION_COOKIE_NAME]
    return [{"name": settings.SESSION_COOKIE_NAME, "value": sent.value, "url": site}]


def open_as(page: Page, path: str, width: int, scheme: Any) -> None:
    """The address in a window so wide, for eyes that like it light or dark."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(path)


def look(page: Page, name: str) -> None:
    """As it stands now: axe finds nothing, and nothing runs over the edge of the window."""
    if PICTURES:
        scheme = "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
        page.screenshot(path=Path(PICTURES) / f"{name}-{scheme}-{page.evaluate('innerWidth')}.png", full_page=True)
    # Without motion: on a slow machine axe would look at colours that are on their way.
    page.emulate_media(reduced_motion="reduce")
    found = Axe().run(page, options=AXE_RULES).response["violations"]
    assert [(one["id"], [node["target"] for node in one["nodes"]]) for one in found] == [], name
    stands_within_the_window(page, name)


def stands_within_the_window(page: Page, name: str) -> None:
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{name} scrolls sideways by {wide} px"
