"""The list of jobs: filters, search, pages; by role."""

import re

import pytest
from django.db import OperationalError
from django.urls import reverse

from reviewboard import ticket_search
from reviewboard.views import jobs as view
from tests.desk.backlog import dead_now, make_live_lane, manual_now, waiting_now
from tests.people.cast import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def vera(client):
    who = person("vera", "view_board")
    client.force_login(who)
    return who


def listed(client, query=""):
    response = client.get(f"{reverse('jobs')}?{query}")
    assert response.status_code == 200
    return [int(pk) for pk in re.findall(r'href="/jobs/(\d+)/"', response.content.decode())]


def test_who_may_nothing_finds_no_jobs(client):
    client.force_login(person("xavier"))

    assert client.get(reverse("jobs")).status_code == 404


def test_anonymous_readers_are_sent_to_sign_in(client):
    assert client.get(reverse("jobs")).status_code == 302


def test_nothing_at_all_and_nothing_for_this_filter_are_told_apart(client, vera):
    assert "No job yet" in client.get(reverse("jobs")).content.decode()
    assert "No job for this filter" in client.get(reverse("jobs"), {"state": "DEAD"}).content.decode()


def test_filters_by_lane_state_and_layer(client, vera):
    lane, held = make_live_lane(), make_live_lane(cap=None)
    manual, dead, waiting = manual_now(lane).job_id, dead_now(lane).pk, waiting_now(held).pk

    assert listed(client) == sorted([manual, dead, waiting], reverse=True)
    assert listed(client, f"lane={held.name}") == [waiting]
    assert listed(client, "state=DEAD") == [dead]
    assert listed(client, "layer=held") == [waiting]
    assert set(listed(client, "layer=people")) == {manual, dead}
    assert listed(client, f"lane={lane.name}&layer=people&state=DONE") == [manual]
    assert listed(client, "layer=delivery") == sorted([manual, dead, waiting], reverse=True)


def test_a_ticket_is_found_by_its_exact_id_in_every_source(client, vera):
    lane = make_live_lane()
    one = waiting_now(lane, source="a", external_id="t/1").pk
    other = waiting_now(lane, source="b", external_id="t/1").pk
    waiting_now(lane, source="b", external_id="t/10")

    assert listed(client, "ticket=t/1") == [other, one]
    assert listed(client, "ticket=t") == []


def test_the_search_probes_the_index_for_each_source(django_assert_num_queries):
    waiting_now(make_live_lane(), external_id="t/1")

    with django_assert_num_queries(2):
        assert len(ticket_search.ticket_ids("t/1")) == 1


@pytest.mark.parametrize(
    "query",
    [
        "page=99999999999999999999",
        "page=-1",
        "ticket=%00",
        "ticket=a%00b",
        "ticket=%ED%A0%80",
        "lane=%00",
        "state=waiting",
        "layer=nowhere",
        "ticket=" + "9" * 5000,
        "%00=%00",
    ],
)
def test_odd_queries_are_harmless(client, vera, query):
    """IMP-07, IMP-12: NUL, huge numbers and nonsense in the query string."""
    waiting_now(make_live_lane())

    assert client.get(f"{reverse('jobs')}?{query}").status_code == 200


def test_pages_follow_each_other_and_back_without_gap_or_repeat(client, vera, monkeypatch):
    monkeypatch.setattr(view, "PAGE_SIZE", 4)
    lane = make_live_lane()
    newest_first = sorted((waiting_now(lane).pk for _ in range(10)), reverse=True)

    seen, url = [], f"lane={lane.name}"
    pages = []
    while url is not None:
        pages.append(url)
        body = client.get(f"{reverse('jobs')}?{url}").content.decode()
        seen.append([int(pk) for pk in re.findall(r'href="/jobs/(\d+)/"', body)])
        found = re.search(r'rel="next" href="/jobs/\?([^"]+)"', body)
        url = found and found[1].replace("&amp;", "&")
    previous = re.search(r'rel="prev" href="/jobs/\?([^"]+)"', body)[1].replace("&amp;", "&")

    assert seen == [newest_first[:4], newest_first[4:8], newest_first[8:]]
    assert listed(client, previous) == seen[1]
    assert all(f"lane={lane.name}" in page for page in pages)


def test_a_page_does_not_shift_when_jobs_are_added(client, vera, monkeypatch):
    monkeypatch.setattr(view, "PAGE_SIZE", 2)
    lane = make_live_lane()
    first = [waiting_now(lane).pk for _ in range(4)]
    body = client.get(reverse("jobs")).content.decode()
    following = re.search(r'rel="next" href="/jobs/\?([^"]+)"', body)[1].replace("&amp;", "&")
    waiting_now(lane)

    assert listed(client, following) == [first[1], first[0]]


def test_a_cursor_of_another_filter_is_the_first_page_with_a_notice(client, vera, monkeypatch):
    monkeypatch.setattr(view, "PAGE_SIZE", 1)
    lane = make_live_lane()
    jobs = [waiting_now(lane).pk for _ in range(3)]
    body = client.get(reverse("jobs")).content.decode()
    cursor = re.search(r'page=([^"&]+)"', body)[1]

    response = client.get(f"{reverse('jobs')}?state=WAITING&page={cursor}")

    assert "That page belonged to another list." in response.content.decode()
    assert f"/jobs/{jobs[-1]}/" in response.content.decode()


def test_a_list_that_cannot_be_read_in_time_says_so(client, vera, monkeypatch):
    """PGQ-21: on time-out the page says so, and is neither an error nor an empty list."""

    class Cancelled(Exception):
        sqlstate = "57014"

    def slow(*args, **kwargs):
        raise OperationalError("canceled") from Cancelled()

    monkeypatch.setattr(view, "read_page", slow)

    response = client.get(reverse("jobs"))

    assert response.status_code == 200
    assert "The list could not be read in time." in response.content.decode()
    assert "No job" not in response.content.decode()


def test_the_list_reads_a_fixed_number_of_times(client, vera, django_assert_max_num_queries):
    lane = make_live_lane()
    for _ in range(20):
        waiting_now(lane)

    with django_assert_max_num_queries(14):
        client.get(reverse("jobs"), {"layer": "ready"})
