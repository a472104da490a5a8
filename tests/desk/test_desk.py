"""The desk's page by role, whole and in part, and what its buttons do."""

import re

import pytest
from django.urls import reverse

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Item, Job
from tests.desk.backlog import dead_now, make_live_lane, manual_now, waiting_now
from tests.people.cast import leo, person, rita

pytestmark = pytest.mark.django_db
POLL = {"HX-Request": "true", "X-Live-Poll": "1"}


def page(client, who, path="desk", **query):
    client.force_login(who)
    return client.get(reverse(path), query)


def text(response):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_who_acts_after_the_session_ended_comes_back_to_the_page_and_not_to_the_acts_address(client):
    """MOD: an act's address answers no GET, so that a sign-in which leads there ends on an empty page."""
    from_page = client.post("/desk/9/decide/", headers={"Referer": "http://testserver/desk/9/"})
    from_elsewhere = client.post("/lanes/posts/hold/", headers={"Referer": "https://elsewhere.example/"})
    by_link = client.get("/desk/?kind=dead")

    assert from_page["Location"] == "/sign-in/?next=http%3A//testserver/desk/9/"
    assert from_elsewhere["Location"] == "/sign-in/?next=/"
    assert by_link["Location"] == "/sign-in/?next=/desk/%3Fkind%3Ddead"


def test_anonymous_readers_are_sent_to_sign_in(client):
    response = client.get(reverse("desk"))

    assert response.status_code == 302
    assert reverse("sign_in") in response.url


def test_who_may_nothing_finds_no_desk(client):
    assert page(client, person("xavier")).status_code == 404


def test_a_viewer_sees_the_desk_without_any_button(client):
    manual_now(make_live_lane())
    waiting_now(make_live_lane(cap=None))

    response = page(client, person("vera", "view_board"))

    assert response.status_code == 200
    assert reverse("desk_take_next") not in response.content.decode()
    assert "/take/" not in response.content.decode()
    assert "/pull/" not in response.content.decode()


def test_the_empty_desk_says_so(client):
    assert "Nothing is open at the desk" in text(page(client, rita()))


def test_a_reviewer_sees_items_most_severe_first(client):
    lane = make_live_lane()
    mild, severe = manual_now(lane, severity=0), manual_now(lane, severity=2)

    body = page(client, rita()).content.decode()

    assert body.index(reverse("item", args=[severe.pk])) < body.index(reverse("item", args=[mild.pk]))


def test_a_large_group_is_one_line_and_its_items_are_behind_it(client):
    lane = make_live_lane()
    for _ in range(11):
        dead_now(lane)
    single = manual_now(lane)

    body = page(client, leo()).content.decode()
    items = set(re.findall(r'href="/desk/(\d+)/"', body))

    assert items == {str(single.pk)}
    assert "Requeue group" in body
    shown = page(client, person("lena", "decide_item"), lane=lane.name, kind="dead", cause="deadline")
    assert len(set(re.findall(r'href="/desk/(\d+)/"', shown.content.decode()))) == 11


def test_before_the_deadline_stands_there_only_while_a_lane_is_on_hold(client):
    held = make_live_lane(cap=None, desk_items_per_hour=60)
    job = waiting_now(held)

    response = page(client, leo())

    assert reverse("desk_pull", args=[job.pk]) in response.content.decode()
    assert "people can reach 1 of 1 waiting tickets in time" in text(response)
    assert "Nobody had an item in the last 30 minutes" in text(response)


def test_nothing_for_you_says_what_others_hold_and_when_the_next_is_free(client):
    lane = make_live_lane()
    people.take(manual_now(lane).pk, person=leo(), clock=DATABASE_CLOCK)

    response = page(client, rita())

    assert "Nothing for you: 1 item is held by others." in text(response)
    assert "data-countdown" in response.content.decode()


def test_take_next_leads_to_the_item_that_needs_a_person_most(client):
    lane = make_live_lane()
    manual_now(lane, severity=0)
    severe = manual_now(lane, severity=2)
    client.force_login(rita())

    response = client.post(reverse("desk_take_next"))

    assert response.url == reverse("item", args=[severe.pk])


def test_take_next_of_nothing_says_so_on_the_desk(client):
    client.force_login(rita())

    assert "Nothing is open at the desk." in text(client.post(reverse("desk_take_next"), follow=True))


def test_taking_what_another_took_first_says_who(client):
    """MOD-08: a lost race is a sentence, not an error page."""
    item = manual_now(make_live_lane())
    people.take(item.pk, person=leo(), clock=DATABASE_CLOCK)
    client.force_login(rita())

    response = client.post(reverse("desk_take", args=[item.pk]), follow=True)

    assert response.status_code == 200
    assert "leo was quicker and has it now." in text(response)


def test_pull_takes_a_waiting_ticket_and_leads_to_its_item(client):
    job = waiting_now(make_live_lane(cap=None))
    client.force_login(leo())

    response = client.post(reverse("desk_pull", args=[job.pk]))

    job.refresh_from_db()
    assert (job.state, job.dead_reason) == ("DEAD", "pulled")
    assert response.url == reverse("item", args=[Item.objects.get(job=job).pk])


@pytest.mark.parametrize("name", ["desk_take", "desk_pull"])
@pytest.mark.parametrize("number", [0, 2**63, 10**30])
def test_numbers_of_nothing_are_not_found(client, name, number):
    """IMP-12: huge numbers in an address are 404."""
    client.force_login(leo())

    assert client.post(f"/desk/{number}/take/" if name == "desk_take" else f"/desk/pull/{number}/").status_code == 404


@pytest.mark.parametrize("path", ["desk_take_next", "bulk_preview"])
def test_viewers_act_on_nothing(client, path):
    """ADM-09: an action without the right changes nothing."""
    dead_now(make_live_lane())
    client.force_login(person("vera", "view_board", "view_evidence"))

    assert client.post(reverse(path)).status_code == 404
    assert Job.objects.get().state == "DEAD"


@pytest.mark.parametrize(
    "query", ["page=x", "page=99999999999999999999", "lane=%00", "kind=dead&cause=%00", "since=x", "lane=a"]
)
def test_odd_queries_are_harmless(client, query):
    """IMP-07, IMP-12: NUL and nonsense in the address are no error."""
    manual_now(make_live_lane())
    client.force_login(rita())

    assert client.get(f"{reverse('desk')}?{query}").status_code == 200


def test_pages_follow_each_other_without_gap_or_repeat(client):
    lane = make_live_lane()
    for number in range(60):
        manual_now(lane, severity=number % 3)
    client.force_login(rita())

    seen, url = [], reverse("desk")
    while url:
        body = client.get(url).content.decode()
        seen += re.findall(r'href="/desk/(\d+)/"', body)
        found = re.search(r'rel="next" href="([^"]+)"', body)
        url = found and found[1].replace("&amp;", "&")

    assert len(seen) == len(set(seen)) == 60


def test_the_poll_gets_text_only_and_nothing_when_nothing_changed(client):
    lane = make_live_lane()
    manual_now(lane)
    client.force_login(rita())
    first = client.get(reverse("desk"), headers=POLL)

    again = client.get(reverse("desk"), headers=POLL | {"X-Live-Version": first["X-Live-Version"]})

    body = first.content.decode()
    assert "<html" not in body
    assert not re.search(r"<(form|input|details|textarea|button)\b", body)
    assert again.status_code == 204


def test_the_poll_says_how_many_came_since_the_page_was_loaded(client):
    lane = make_live_lane()
    last = manual_now(lane)
    manual_now(lane)
    client.force_login(rita())

    body = client.get(reverse("desk"), {"since": last.pk}, headers=POLL).content.decode()

    assert "1 new item since this page was loaded." in body


def test_the_desk_reads_a_fixed_number_of_times(client, django_assert_max_num_queries):
    lane, held = make_live_lane(), make_live_lane(cap=None)
    for _ in range(12):
        dead_now(lane)
        manual_now(lane)
        waiting_now(held)
    client.force_login(leo())

    with django_assert_max_num_queries(30):
        client.get(reverse("desk"))
