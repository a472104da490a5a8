"""The pages of imports in a real browser: how they look, and that they work by keyboard and without JavaScript."""

import pytest
from playwright.sync_api import Browser, expect

from queue_core import imports, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import ImportRun, Job
from reviewboard import broker
from reviewboard.models import Person
from tests.browsing import look, pages, signed_in
from tests.factories import make_lane

# Its steps are in test_upload_pages.py too, where no browser looks at them.
pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.django_db(transaction=True)]

ROWS = "".join(
    f'post-{n};"A text, with ""quotes"" and\r\na second line {n}";{"soon" if n % 3 else "+4h"}\r\n' for n in range(70)
)
CSV = f"Post ID;A column with a rather long name;deadline\r\n{ROWS}".encode("utf-8-sig")


@pytest.fixture
def leo() -> Person:
    somebody = Person.objects.create_user("leo")
    roles.assign(somebody, roles.LEAD)
    return somebody


@pytest.fixture
def open_page(chromium: Browser, live_server, client, leo, monkeypatch):
    monkeypatch.setattr(broker, "is_reachable", lambda: True)
    monkeypatch.setattr("queue_core.wakeups._send", lambda *_args: None)
    cookies = signed_in(client, leo, live_server.url)
    with pages(chromium, live_server.url) as open_it:
        yield lambda path, **options: open_it(path, cookies, **options)


def work() -> None:
    imports.work(ImportRun.objects.latest("pk").pk, task="w", clock=DATABASE_CLOCK, is_stopping=lambda: False)


def test_a_file_is_imported_without_a_script_and_each_step_looks_right(open_page, live_server, tmp_path) -> None:
    make_lane(name="posts", title="Posts", cap=None)
    file = tmp_path / "a-rather-long-name-of-a-file-from-the-old-system-2026-11.csv"
    file.write_bytes(CSV)

    page = open_page("/imports/", java_script_enabled=False)
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    settled = page.url.removeprefix(live_server.url)
    for name, options in {
        "settings-light": {"color_scheme": "light"},
        "settings-phone": {"viewport": {"width": 360, "height": 700}, "color_scheme": "dark"},
    }.items():
        look(open_page(settled, **options), name)

    page.get_by_label("Lane").select_option("posts")
    page.get_by_label("Revision").fill("1")
    page.get_by_label("Post ID").select_option("ticket")
    page.get_by_label("A column with a rather long name").select_option("evidence")
    page.get_by_role("button", name="Try it dry").click()
    expect(page.get_by_text("No worker has started this yet")).to_be_visible()
    living = open_page(settled, color_scheme="dark")
    look(living, "waiting-dark")
    work()
    # The poll brings the end of the dry run, and asks no more.
    expect(living.get_by_text("Nothing was written yet.")).to_be_visible()
    look(open_page(settled), "checked-light")
    look(open_page(settled, viewport={"width": 360, "height": 700}), "checked-phone")

    page.reload()
    page.get_by_role("button", name="Import 24 tickets").click()
    expect(page.get_by_role("button", name="Stop the import")).to_be_visible()
    work()
    page.reload()
    expect(page.get_by_text("The file is deleted.")).to_be_visible()
    look(open_page(settled, color_scheme="dark"), "done-dark")
    look(open_page("/imports/"), "list-light")
    look(open_page("/imports/", viewport={"width": 360, "height": 700}, color_scheme="dark"), "list-phone")
    assert Job.objects.count() == 24
