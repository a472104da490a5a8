from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.contrib.sessions.models import Session

from reviewboard.live import LiveVersion, in_kept_order
from tests.look.gallery import NOW

POLL = {"HX-Request": "true", "X-Live-Poll": "1"}


def versions(response) -> str:
    return response["X-Live-Version"]


def test_one_address_gives_the_page_and_its_part(signed_in):
    page = signed_in.get("/")
    part = signed_in.get("/", headers={"HX-Request": "true"})

    assert b"<html" in page.content
    assert b"<html" not in part.content
    assert part.content.lstrip().startswith(b'<div id="live"')


@pytest.mark.parametrize("header", ["HX-History-Restore-Request", "HX-Boosted"])
def test_a_restored_or_boosted_page_is_whole(signed_in, header):
    """A part alone in a tab is what a restored history entry must never be."""
    assert b"<html" in signed_in.get("/", headers={"HX-Request": "true", header: "true"}).content


def test_a_poll_that_finds_nothing_new_is_answered_with_nothing(signed_in):
    first = signed_in.get("/", headers=POLL)
    again = signed_in.get("/", headers={**POLL, "X-Live-Version": versions(first)})
    changed = signed_in.get("/", headers={**POLL, "X-Live-Version": "1-another"})

    assert (first.status_code, again.status_code, changed.status_code) == (200, 204, 200)
    assert again.content == b""
    assert again["X-Live-As-Of"] == NOW.isoformat()


def test_a_click_is_always_answered_with_the_part(signed_in):
    first = signed_in.get("/", headers={"HX-Request": "true"})
    again = signed_in.get("/", headers={"HX-Request": "true", "X-Live-Version": versions(first)})

    assert again.status_code == 200


def test_versions_of_the_same_figures_differ_in_time_only():
    one, two = LiveVersion.of(NOW, "a", 1), LiveVersion.of(NOW + timedelta(seconds=1), "a", 1)

    assert two.shows_the_same_as(str(one))
    assert int(str(one).split("-")[0]) < int(str(two).split("-")[0])
    assert not LiveVersion.of(NOW, "a", 2).shows_the_same_as(str(one))


def test_a_poll_signed_out_is_told_so_without_a_page(client, gallery, db):
    answer = client.get("/preferences/", headers=POLL)

    assert (answer.status_code, answer.content) == (401, b"")
    assert answer["Cache-Control"] == "no-store"


def test_htmx_signed_out_is_not_led_to_a_sign_in_page_that_it_would_swap_in_htx_01(client, gallery, db):
    assert client.get("/preferences/", headers={"HX-Request": "true"}).status_code == 401
    assert client.get("/preferences/").status_code == 302


def test_a_poll_leaves_the_session_as_it_was(signed_in):
    before = Session.objects.get()

    signed_in.get("/", headers=POLL)

    after = Session.objects.get()
    assert (after.session_data, after.expire_date) == (before.session_data, before.expire_date)


def test_signed_in_answers_are_never_stored_and_differ_by_reader_and_part_htx_06(signed_in):
    for headers in ({}, POLL):
        answer = signed_in.get("/", headers=headers)

        assert answer["Cache-Control"] == "no-store"
        assert {"HX-Request", "Cookie"} <= {name.strip() for name in answer["Vary"].split(",")}


def rows(*keys):
    return [SimpleNamespace(pk=key) for key in keys]


def test_rows_do_not_move_under_a_readers_hand(rf):
    request = rf.get("/", headers={**POLL, "X-Live-Order": "3,1,2"})

    kept, has_changed = in_kept_order(request, rows(2, 9, 1, 3))

    assert [row.pk for row in kept] == [3, 1, 2, 9]
    assert has_changed


@pytest.mark.parametrize("order", ["", "1,2", "1,2,,nonsense\u2028"])
def test_rows_in_their_right_order_need_no_notice(rf, order):
    request = rf.get("/", headers={**POLL, "X-Live-Order": order})

    kept, has_changed = in_kept_order(request, rows(1, 2))

    assert [row.pk for row in kept] == [1, 2]
    assert not has_changed


def test_a_page_load_sorts(rf):
    kept, has_changed = in_kept_order(rf.get("/", headers={"X-Live-Order": "2,1"}), rows(1, 2))

    assert [row.pk for row in kept] == [1, 2]
    assert not has_changed


def test_a_version_has_a_time_before_its_digest():
    assert str(LiveVersion.of(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))).startswith("1000000-")
