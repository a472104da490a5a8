"""What only a browser shows of bulk acts: rows ticked, a preview confirmed, the progress that moves by itself; axe."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from queue_core import bulk
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import BulkAct
from tests.browsing import look, pages, signed_in
from tests.bulk.acts import lola
from tests.desk.backlog import dead_now, make_live_lane, manual_now, waiting_now

# Its steps are in test_pages.py too, where no browser looks at them.
pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_from_ticked_rows_to_an_act_that_is_done(chromium, live_server, client, scheme, width):
    who, lane = lola(), make_live_lane(title="Posts")
    for number in range(4):
        dead_now(lane, severity=number % 3)
        manual_now(lane, severity=number % 2)
        waiting_now(lane, severity=number % 3, left=900 + 60 * number)
    with pages(chromium, live_server.url) as open_it:
        size = {"width": width, "height": 844}
        page = open_it(
            reverse("bulk_acts"), signed_in(client, who, live_server.url), color_scheme=scheme, viewport=size
        )
        look(page, "bulk-none")
        page.goto(reverse("desk") + f"?lane={lane.name}&kind=dead&cause=deadline")
        look(page, "bulk-desk")
        for box in page.locator("input[name=row]").all()[:3]:
            box.check()
        page.get_by_role("button", name="Preview the ticked ones").click()
        expect(page.get_by_text("3 DEAD jobs go back to the machine")).to_be_visible()
        look(page, "bulk-preview")
        page.get_by_label("Reason", exact=True).fill("the model is back")
        page.get_by_role("button", name="Requeue 3 jobs").click()
        expect(page.get_by_text("No worker has started this yet")).to_be_visible()
        look(page, "bulk-waiting")

        bulk.work(BulkAct.objects.get().pk, clock=DATABASE_CLOCK)

        expect(page.get_by_text("3 of 3 had their turn; 3 were done.")).to_be_visible()
        expect(page.locator("#live")).not_to_have_attribute("data-live", "2")
        page.reload()
        look(page, "bulk-done")
        page.goto(reverse("jobs") + "?state=WAITING")
        page.get_by_label("With many at once").select_option("move_deadlines")
        page.get_by_role("button", name="Preview all of this filter").click()
        look(page, "bulk-move")
        page.goto(reverse("bulk_acts"))
        look(page, "bulk-list")
        page.goto(reverse("preferences"))
        look(page, "preferences")
