"""The numbers for leads, against sums made by hand, and that they rank nobody."""

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from queue_core import people
from queue_core.models import LaneRole
from queue_core.people import team
from queue_core.states import Verdict
from reviewboard.views import desk_numbers
from tests.factories import at, clock, make_ground, make_lane
from tests.people.cast import LEAD, leo, manual_item, person, rita, take

pytestmark = pytest.mark.django_db
APPROVED, REJECTED = Verdict.APPROVED, Verdict.REJECTED


def decide(lane, who, *, taken, after, verdict=APPROVED):
    """An item that somebody takes at one second and decides so many seconds later."""
    token = take(manual_item(lane, deadline=100_000), who, when=taken)
    code = "insult" if verdict == REJECTED else None
    resolved = people.resolve(token, person=who, verdict=verdict, reason_code=code, clock=clock(taken + after))
    assert resolved.outcome == "decided"


@pytest.fixture
def worked(db):
    """Two lanes and two people: 10, 30 and 50 seconds on the first lane, 20 on the second."""
    make_ground("insult")
    posts, comments = make_lane(title="Posts"), make_lane(title="Comments")
    zoe, bob = rita(), leo()
    for who, name in ((zoe, "zoe"), (bob, "bob")):
        who.username = name
        who.save(update_fields=["username"])
    decide(posts, zoe, taken=10, after=30)
    decide(posts, zoe, taken=50, after=10, verdict=REJECTED)
    decide(posts, bob, taken=100, after=50)
    decide(comments, zoe, taken=200, after=20)
    return posts, comments, zoe, bob


@pytest.fixture
def read(client, monkeypatch):
    """The page as it was ten minutes after the first act, for somebody."""
    monkeypatch.setattr(desk_numbers, "DATABASE_CLOCK", clock(600))

    def open_it(who, query=""):
        client.force_login(who)
        return client.get(reverse("desk_numbers") + query)

    return open_it


def test_sums_of_lanes_and_of_people_are_those_made_by_hand(worked):
    posts, comments, zoe, bob = worked

    lanes = team.of_lanes([posts.pk, comments.pk], since=at(0))
    each = team.of_people([posts.pk, comments.pk], since=at(0))

    told = {key: (one.handled, one.median.total_seconds(), one.ended) for key, one in (lanes | each).items()}
    assert told == {
        posts.pk: (3, 30, {"APPROVED": 2, "REJECTED": 1}),
        comments.pk: (1, 20, {"APPROVED": 1}),
    } | {zoe.pk: (3, 20, {"APPROVED": 2, "REJECTED": 1}), bob.pk: (1, 50, {"APPROVED": 1})}


@pytest.mark.parametrize(("since", "handled"), [(39.999, 3), (40, 2), (60, 1), (150, 0)])
def test_a_window_begins_right_after_its_edge(worked, since, handled):
    posts, *_others = worked

    sums = team.of_lanes([posts.pk], since=at(since))[posts.pk]

    assert (sums.handled, sums.agreement) == (handled, None)
    assert sum(sums.ended.values()) == handled


def test_people_stand_by_name_and_in_pages_whatever_they_did(worked, read, monkeypatch):
    ada = person("ada", *LEAD, "lead_desk", "view_person_figures")
    page = read(ada)
    assert [(one.username, sums.handled) for one, sums in page.context["people"]] == [("bob", 1), ("zoe", 3)]
    assert "sort" not in page.content.decode()
    monkeypatch.setattr(desk_numbers, "PAGE_SIZE", 1)

    first = read(ada, "?days=7")
    second = read(ada, first.context["pager"].next_url)

    assert [one.username for page in (first, second) for one, _sums in page.context["people"]] == ["bob", "zoe"]
    assert "days=7" in first.context["pager"].next_url
    assert not second.context["pager"].next_url


def test_a_lead_of_one_lane_reads_the_sums_of_that_lane_alone(worked, read):
    _posts, comments, _zoe, _bob = worked
    lead = person("lea")
    LaneRole.objects.create(person=lead, role=Group.objects.get(name="lead"), lane=comments)

    page = read(lead)

    assert [(lane, sums.handled) for lane, sums in page.context["lanes"]] == [(comments, 1)]
    assert not page.context["may_see_people"]
    assert "Posts" not in page.content.decode()
    assert "zoe" not in page.content.decode()


def test_where_nothing_was_ended_the_page_says_so(read, client):
    lane = make_lane(title="Quiet")
    ada = person("ada", *LEAD, "lead_desk", "view_person_figures")

    page = read(ada)

    [(shown, sums)] = page.context["lanes"]
    assert (shown, sums.handled, sums.median) == (lane, 0, None)
    assert "Nobody ended an item in this time." in page.content.decode()
