"""The audit's page and its files: who may read it, what is found by which filter, and that nothing in it runs."""

import csv
import io
import json
import re
from datetime import UTC, datetime

import pytest
from django.urls import reverse

from queue_core import audit
from queue_core.models import AuditEntry
from reviewboard.views import audit as view
from tests.browsing import look
from tests.factories import make_lane

pytestmark = pytest.mark.django_db
HOSTILE = '=HYPERLINK("http://x")<script>alert(1)</script>\u202e'


def act(lane, *, actor=None, act="lane.held", at=datetime(2026, 3, 1, 12, tzinfo=UTC), **fields):
    return audit.record(act, now=at, actor=actor, subject=lane, lane=lane, **fields)


def entries(client, query=""):
    response = client.get(f"{reverse('audit')}?{query}")
    assert response.status_code == 200
    return re.findall(r'strange">(mark-\w+)', response.content.decode())


@pytest.mark.parametrize("name", ["vera", "rita"])
@pytest.mark.parametrize("address", ["audit", "audit_export"])
def test_the_audit_does_not_exist_for_who_may_not_read_it(client, request, name, address):
    """ADM: a page or a file that one may not have is 404, as an unknown one is."""
    client.force_login(request.getfixturevalue(name))
    args = ["csv"] if address == "audit_export" else []

    assert client.get(reverse(address, args=args)).status_code == 404
    assert not AuditEntry.objects.filter(act="audit.exported").exists()


def test_anonymous_readers_are_sent_to_sign_in(client):
    assert client.get(reverse("audit")).status_code == 302
    assert client.get(reverse("audit_export", args=["csv"])).status_code == 302


def test_acts_are_found_by_lane_person_act_and_day_in_the_readers_zone(client, leo, rita):
    leo.timezone = "Asia/Tokyo"
    leo.save()
    client.force_login(leo)
    lane, other = make_lane(), make_lane()
    act(lane, reason="mark-held", actor=rita)
    act(other, reason="mark-late", at=datetime(2026, 3, 1, 15, 30, tzinfo=UTC))
    act(lane, reason="mark-raised", act="stage.raised", at=datetime(2026, 3, 1, 14, 59, tzinfo=UTC))

    assert entries(client) == ["mark-raised", "mark-late", "mark-held"]
    assert entries(client, f"lane={lane.name}") == ["mark-raised", "mark-held"]
    assert entries(client, "who=rita") == ["mark-held"]
    assert entries(client, "who=system") == ["mark-raised", "mark-late"]
    assert entries(client, "act=stage.raised") == ["mark-raised"]
    assert entries(client, "since=2026-03-02") == ["mark-late"]
    assert entries(client, "until=2026-03-01") == ["mark-raised", "mark-held"]
    assert entries(client, "since=0001-01-01&until=9999-12-31&act=nonsense&lane=nowhere") == [
        "mark-raised", "mark-late", "mark-held"
    ]  # fmt: skip
    assert entries(client, "who=%00") == entries(client, "who=%ED%A0%80") == []


def test_nothing_at_all_and_nothing_for_this_filter_are_told_apart(client, leo):
    client.force_login(leo)

    assert "Nothing was done yet" in client.get(reverse("audit")).content.decode()
    assert "No act for this filter" in client.get(reverse("audit"), {"who": "nobody"}).content.decode()


def test_pages_go_on_after_a_row_whatever_is_added(client, leo, monkeypatch):
    monkeypatch.setattr(view, "PAGE_SIZE", 2)
    client.force_login(leo)
    lane = make_lane()
    for number in range(5):
        act(lane, reason=f"mark-{number}")

    shown, url = [], reverse("audit")
    for _page in range(3):
        answer = client.get(url).content.decode()
        shown += re.findall(r'strange">(mark-\w+)', answer)
        act(lane, reason="mark-new")
        link = re.search(r'rel="next" href="([^"]+)"', answer)
        url = link[1].replace("&amp;", "&") if link else ""

    assert shown == ["mark-4", "mark-3", "mark-2", "mark-1", "mark-0"]
    assert url == ""


def test_what_changed_is_shown_field_by_field_and_strangers_text_starts_nothing(client, leo):
    client.force_login(leo)
    act(
        make_lane(), reason=HOSTILE, before={"cap": 10, "name": "same"}, after={"cap": 50, "name": "same", "note": None}
    )

    page = client.get(reverse("audit")).content.decode()

    assert re.search(r"<dt[^>]*>cap</dt><dd><del>.*10.*</del> → <ins>.*50.*</ins></dd>", page)
    assert ">name</dt>" not in page
    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_codes_of_alerts_and_holds_are_shown_by_their_names(client, leo):
    lane = make_lane()
    act(lane, act="alert.begun", after={"kind": "held_late"})
    act(lane, after={"reason": "auto_unavailable", "form": "of a later version"})
    client.force_login(leo)

    shown = client.get(reverse("audit")).content.decode()

    for name in ("tickets are held over the target", "the model was unavailable", "of a later version"):
        assert name in shown
    assert "held_late" not in shown


def test_a_file_holds_what_is_filtered_and_no_cell_is_a_formula(client, leo, monkeypatch):
    """EXP: formula-safe, and read in chunks so that no export is the old snapshot that slows the claims."""
    monkeypatch.setattr(view, "CHUNK", 2)
    client.force_login(leo)
    lane = make_lane()
    for _number in range(5):
        act(lane, reason=HOSTILE, after={"cap": 50})
    act(make_lane(), reason="elsewhere")
    audit.seal_committed()

    answers = {kind: client.get(f"{reverse('audit_export', args=[kind])}?lane={lane.name}") for kind in view.TYPES}
    sent = {kind: b"".join(answer.streaming_content) for kind, answer in answers.items()}
    files = {kind: content.decode("utf-8-sig") for kind, content in sent.items()}

    assert sent["csv"].startswith(b"\xef\xbb\xbf"), "by which Excel knows UTF-8 (EXP-01)"
    rows = list(csv.DictReader(io.StringIO(files["csv"])))
    assert [row["number"] for row in rows] == ["5", "4", "3", "2", "1"]
    assert {row["reason"] for row in rows} == {f"'{HOSTILE}"}
    records = [json.loads(line) for line in files["ndjson"].splitlines()]
    assert [record["reason"] for record in records] == [HOSTILE] * 5
    assert (records[0]["after"], len(records[0]["seal"])) == ({"cap": 50}, 64)
    exported = AuditEntry.objects.filter(act="audit.exported").order_by("pk")
    assert [(one.actor, one.after) for one in exported] == [
        (leo, {"as": kind, "filter": f"lane={lane.name}"}) for kind in view.TYPES
    ]


def test_a_file_of_an_unknown_kind_does_not_exist(client, leo):
    client.force_login(leo)

    assert client.get(reverse("audit_export", args=["xls"])).status_code == 404


@pytest.mark.parametrize("gone", ["lane=renamed", "act=lane.painted", "since=2026-13-01"])
def test_a_file_of_a_filter_of_which_a_part_is_gone_is_none_and_not_of_all(client, leo, gone):
    client.force_login(leo)
    act(make_lane())

    assert client.get(f"{reverse('audit_export', args=['csv'])}?{gone}").status_code == 404
    assert client.get(f"{reverse('audit')}?{gone}").status_code == 200
    assert not AuditEntry.objects.filter(act="audit.exported").exists()


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_page, cast, scheme, width):
    lane = make_lane()
    act(lane, reason="the model answers again", before={"cap": 10}, after={"cap": 50, "plan": "x" * 300})
    act(lane, act="stage.raised", reason=HOSTILE)
    page = open_page(
        reverse("audit"), cast("leo", "lead"), color_scheme=scheme, viewport={"width": width, "height": 900}
    )

    look(page, "audit")
