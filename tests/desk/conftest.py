import pytest

#: A 409 or 422 is an answer, but the browser and htmx log it as a failure.
LOGGED_ANSWERS = ("Failed to load resource", "Response Status Error")


@pytest.fixture
def open_page(chromium, live_server, client, settings):
    """Opens an address as somebody, in a context of its own. What the console complains of fails the test."""
    contexts, complaints = [], []

    def open_it(path, who, **options):
        client.force_login(who)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        context = chromium.new_context(base_url=live_server.url, **options)
        contexts.append(context)
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}])
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path)
        return page

    yield open_it
    for context in contexts:
        context.close()
    # A 409 or 422 is an answer, but the browser logs it as a failure.
    assert [
        text for text in complaints if not text.startswith(("Failed to load resource", "Response Status Error"))
    ] == []
