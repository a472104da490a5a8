"""Hostile content on every page that shows it, in a real browser with the policy on: text, and nothing but text."""

import base64
import struct
import time
import zlib

import pytest
from django.db import transaction
from django.urls import reverse
from playwright.sync_api import expect

from queue_core import bulk, people
from queue_core.bulk import Terms
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Attempt, Job, ReasonCode
from queue_core.states import BulkKind
from tests.browsing import pages, signed_in
from tests.bulk.acts import HOUR
from tests.desk.backlog import dead_now, make_live_lane, manual_now
from tests.desk.test_browser import awake
from tests.factories import past_the_guards
from tests.people.cast import LEAD, item_of, person
from tests.reading.hostile import ALL, LARGE, MARKUP, SCRIPTS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: Seconds in which a page with 200 KB of the worst kind is there and answers, on a machine with other things to do.
PATIENCE = 12.0


def png(width, height):
    """A grey picture that claims to be so large."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = zlib.compress((b"\0" + b"\x80" * width) * min(height, 64))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    body = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(body).decode()


def everywhere(payload):
    """Evidence with a payload as key, as value and deep within."""
    return {"text": payload, payload: payload, "links": [payload, {"href": payload, "deep": {payload: [payload]}}]}


@pytest.fixture
def reader():
    return person(MARKUP[2][:100], *LEAD, "view_auditentry", "manage_deliveries")


@pytest.fixture
def open_page(chromium, live_server, client, reader):
    with pages(chromium, live_server.url) as open_it:
        page = open_it(reverse("preferences"), signed_in(client, reader, live_server.url))
        asked, dialogs = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        yield page
        assert dialogs == []
        assert [url for url in asked if not url.startswith((live_server.url, "data:image/"))] == []


def looks_harmless(page, path):
    page.goto(path)
    found = page.evaluate(
        """() => ({
          ids: [...document.querySelectorAll('[id]')].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i),
          strange: document.querySelectorAll('.strange :not(.hidden-char)').length,
          links: [...document.links].map((a) => a.href).filter((href) => !href.startsWith(location.origin)),
          wide: document.documentElement.scrollWidth > innerWidth,
        })"""
    )
    assert found == {"ids": [], "strange": 0, "links": [], "wide": False}, path


def test_hostile_content_is_text_on_every_page(open_page, reader):
    """MOD-09, MOD-14, MOD-15."""
    lane = make_live_lane(title=MARKUP[0])
    ReasonCode.objects.create(code="hostile", title=MARKUP[0], public_text=MARKUP[1])
    jobs = [
        dead_now(
            lane, external_id=payload[:200], revision=payload[:200], category=payload[:64], source=payload[:64],
            evidence=everywhere(payload),
        )
        for payload in ALL
    ]  # fmt: skip
    together = {"text": "\n".join(ALL)} | {payload: [payload, {payload: payload}] for payload in ALL}
    items = [manual_now(lane, external_id=f"m {payload}"[:200], evidence=together) for payload in ALL[:5]]
    for item, payload in zip(items, ALL, strict=False):
        answered_by(item, payload)
    for item, payload in zip(items[:4], ALL, strict=False):
        token = people.take(item.pk, person=reader, clock=DATABASE_CLOCK).token
        people.resolve(token, person=reader, verdict="APPROVED", note=payload, clock=DATABASE_CLOCK)
    act = requeued(reader, jobs[:3], reason=MARKUP[0])
    people.take(items[4].pk, person=reader, clock=DATABASE_CLOCK)

    paths = [reverse(name) for name in ("desk", "jobs", "audit", "board", "bulk_acts")]
    paths += [reverse("bulk_act", args=[act.pk]), reverse("lane", args=[lane.name])]
    paths += [reverse("item", args=[items[4].pk]), reverse("job", args=[items[0].job_id])]
    paths += [reverse("job", args=[jobs[0].pk]), reverse("jobs") + "?ticket=%3Cimg%20src%3Dx%3E"]
    for path in paths:
        looks_harmless(open_page, path)
    page = open_page
    page.goto(reverse("item", args=[item_of(jobs[ALL.index(SCRIPTS[0])]).pk]))
    expect(page.locator(".evidence")).to_contain_text("U+202E")
    expect(page.get_by_role("button", name="Take it")).to_be_visible()


def answered_by(item, name):
    """As if a model and a worker of such a name had been at it."""
    with transaction.atomic():
        past_the_guards()
        Attempt.objects.filter(job=item.job).update(model=name[:200], worker=name[:200])


def requeued(who, jobs, *, reason):
    rows = Job.objects.filter(pk__in=[job.pk for job in jobs])
    act = bulk.preview(BulkKind.REQUEUE, rows, selection={}, person=who, clock=DATABASE_CLOCK).act
    bulk.confirm(act.pk, terms=Terms(first=HOUR), reason=reason, person=who, clock=DATABASE_CLOCK)
    bulk.work(act.pk, clock=DATABASE_CLOCK)
    return act


def test_large_texts_freeze_no_page_and_pictures_wait_behind_a_veil(open_page, reader):
    lane, page = make_live_lane(), open_page
    for name, text in LARGE.items():
        item = manual_now(lane, evidence={"text": text})
        began = time.monotonic()
        looks_harmless(page, reverse("item", args=[item.pk]))
        page.get_by_role("button", name="Take it").hover()
        assert time.monotonic() - began < PATIENCE, name

    reader.text_hidden = "always"
    reader.save()
    pictures = {"small": png(60, 40), "bomb": png(60_000, 60_000), "lies": "data:image/png;base64,PHN2Zy8+"}
    item = manual_now(lane, evidence={"text": "words to hide"} | pictures)
    looks_harmless(page, reverse("item", args=[item.pk]))
    picture = page.locator(".picture img")
    assert picture.count() == 1
    assert "blur" in picture.evaluate("(img) => getComputedStyle(img).filter")
    assert page.evaluate("document.querySelector('.picture img').naturalWidth") == 60
    expect(page.get_by_text("60000 × 60000 pixels: too large")).to_be_visible()
    expect(page.get_by_text("words to hide")).to_be_hidden()

    awake(page)
    page.keyboard.press("u")

    expect(page.get_by_text("words to hide")).to_be_visible()
    assert picture.evaluate("(img) => getComputedStyle(img).filter") == "none"
