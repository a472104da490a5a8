"""An outage on the board, on its lanes' pages and on its own, and who may close it when."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse
from django.utils import translation

from queue_core import contract, hold, ramp, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Lane, LaneRole, Outage, OutageEntry
from queue_core.states import HoldReason
from reviewboard.models import Person
from reviewboard.outage_text import entry_text
from reviewboard.views import outages as outages_view
from tests.board.scene import a_connection, a_lane, ago, break_down, fill, start, work, workers_seen
from tests.lane.test_lane import HTMX, page, post, text

pytestmark = pytest.mark.django_db

WHY = "no errors for ten minutes"


def down(lane: Lane, leo) -> Outage:
    """The lane runs, its model goes away, and it holds itself."""
    start(lane, leo)
    break_down(lane)
    return Outage.objects.get(connection=lane.connection, closed_at__isnull=True)


@pytest.fixture
def lane(db) -> Lane:
    lane = a_lane("posts", title="Posts")
    fill(lane, 20, waited=timedelta(minutes=2))
    return lane


@pytest.fixture
def outage(lane, leo) -> Outage:
    return down(lane, leo)


@pytest.fixture
def steady(lane, leo, outage) -> Lane:
    """Back to the last stage, and nothing left to do but to close the outage."""
    workers_seen()
    lane = start(lane, leo, stages=4)
    contract.wake_due(clock=ago(-timedelta(hours=1)))
    work(lane, 20)
    return lane


def closing(outage: Outage, reason: str = WHY) -> dict[str, object]:
    return {"outage-outage": outage.pk, "outage-reason": reason}


def test_a_reader_of_one_lane_gets_no_link_to_an_outage_of_lanes_that_they_may_not_see(client, lane, outage) -> None:
    rudi = Person.objects.create_user("rudi")
    LaneRole.objects.create(person=rudi, role=Group.objects.get(name=roles.VIEWER), lane=lane)
    client.force_login(rudi)
    link = f'href="{reverse("outage", args=[outage.pk])}"'
    assert link in page(client, lane).content.decode()

    a_lane("chat", connection=outage.connection)

    assert client.get(reverse("outage", args=[outage.pk])).status_code == 404
    assert link not in page(client, lane).content.decode()


# --- On the board and the lane's page ---------------------------------------------------------------------------------


def test_an_open_outage_is_one_line_on_the_card_and_on_the_lanes_page(client, vera, lane, outage) -> None:
    client.force_login(vera)

    for shown in (client.get("/"), page(client, lane)):
        assert "An outage of the model has been open since" in text(shown)
        assert "the model was unavailable. Its lane: Posts." in text(shown)
        assert reverse("outage", args=[outage.pk]) in text(shown)


def test_a_lane_without_an_outage_says_nothing_of_one(client, leo, lane) -> None:
    client.force_login(leo)

    shown = page(client, lane)

    assert "An outage of the model" not in text(shown)
    assert "outage_form" not in shown.context


def test_a_lead_reads_what_the_outage_waits_for(client, leo) -> None:
    shared = a_connection("shared")
    posts = a_lane("posts", title="Posts", connection=shared)
    reviews = a_lane("reviews", title="Reviews", connection=shared)
    for one in (posts, reviews):
        fill(one, 20, waited=timedelta(minutes=2))
        down(one, leo)
    start(posts, leo)
    client.force_login(leo)

    shown = text(page(client, posts))

    assert "It can be closed when every lane of it runs its last stage." in shown
    assert "Posts runs stage 1, probe, which is not its last." in shown
    assert "Reviews is on hold." in shown
    assert "Its lanes: Posts, Reviews." in shown


def test_a_steady_lane_with_an_open_outage_has_one_step_left(client, leo, vera, steady) -> None:
    client.force_login(leo)
    board = client.get("/")
    assert [one.pk for one in board.context["cards"]] == [steady.pk]
    for shown, address in ((board, f"{reverse('lane', args=['posts'])}#outage"), (page(client, steady), "#outage")):
        assert "It runs steadily: close the outage." in text(shown)
        assert f'href="{address}"' in text(shown)
        assert "You may do this." in text(shown)
    client.force_login(vera)

    assert "A lead may do this." in text(client.get("/"))


def test_a_steady_lane_waits_for_the_other_lanes_of_its_outage(client, leo, steady, outage) -> None:
    other = a_lane("reviews", title="Reviews", connection=outage.connection)
    start(other, leo)
    hold.pull(other.pk, person=leo, form="hold", reason=HoldReason.PRECAUTION, clock=DATABASE_CLOCK)
    client.force_login(leo)

    assert "The outage stays open until" in text(page(client, steady))
    assert steady.pk not in [one.pk for one in client.get("/").context["cards"]]


# --- Closing it -------------------------------------------------------------------------------------------------------


def test_a_closed_outage_leaves_nothing_to_do(client, leo, steady, outage) -> None:
    client.force_login(leo)

    answer = post(client, "outage_close", steady, closing(outage))

    assert (answer.status_code, answer.url) == (302, reverse("lane", args=["posts"]))
    assert outage.entries.last().text == WHY
    shown = text(page(client, steady))
    assert "The outage is closed: the lanes run steadily." in shown
    assert "The last outage of the connection was from" in shown
    assert "Nothing to do: it runs by itself." in shown


@pytest.mark.parametrize("reason", ["", "ok"])
def test_an_outage_is_not_closed_without_a_reason(client, leo, steady, outage, reason) -> None:
    client.force_login(leo)

    answer = post(client, "outage_close", steady, closing(outage, reason), **HTMX)

    outage.refresh_from_db()
    assert answer.status_code == 422
    assert answer.context["outage_form"].errors["reason"]
    assert outage.closed_at is None


def test_a_refused_close_names_the_lanes_and_keeps_the_reason(client, leo, lane, outage) -> None:
    client.force_login(leo)

    answer = post(client, "outage_close", lane, closing(outage), **HTMX)

    assert answer.status_code == 409
    assert "Posts is on hold." in text(answer)
    assert WHY in text(answer)


def test_the_second_to_close_it_reads_who_was_faster(client, leo, cast, steady, outage) -> None:
    ramp.close_outage(outage.pk, person=cast("lina", roles.LEAD), reason=WHY, clock=DATABASE_CLOCK)
    client.force_login(leo)

    answer = post(client, "outage_close", steady, closing(outage))

    assert answer.status_code == 409
    assert "The outage is closed already." in text(answer)
    assert "lina" in text(answer)


@pytest.mark.parametrize("name", ["vera", "rita"])
def test_who_may_not_keep_outages_finds_no_form_and_no_address(client, request, steady, outage, name) -> None:
    client.force_login(request.getfixturevalue(name))

    assert 'id="outage"' not in text(page(client, steady))
    assert post(client, "outage_close", steady, closing(outage)).status_code == 404
    outage.refresh_from_db()
    assert outage.closed_at is None


@pytest.mark.parametrize("sent", ["", "x", "9" * 30, "-1"])
def test_an_outage_that_is_none_does_not_exist(client, leo, lane, sent) -> None:
    client.force_login(leo)

    assert post(client, "outage_close", lane, {"outage-outage": sent, "outage-reason": WHY}).status_code == 404


# --- Their own pages --------------------------------------------------------------------------------------------------


def test_a_list_without_outages_says_when_one_comes(client, vera) -> None:
    client.force_login(vera)

    assert "No outage yet" in text(client.get(reverse("outages")))


def test_the_list_is_paged_newest_first_in_a_fixed_number_of_queries(client, vera, django_assert_max_num_queries):
    connection, lane = a_connection("old"), a_lane("posts")
    for number in range(60):
        at = ago(timedelta(hours=number)).now()
        row = Outage.objects.create(
            connection=connection, cause=HoldReason.AUTO_ERRORS, opened_at=at, closed_at=at, closed_by=vera
        )
        OutageEntry.objects.create(outage=row, at=at, lane=lane, code="held")
    client.force_login(vera)

    with django_assert_max_num_queries(12):
        first = client.get(reverse("outages"))
    second = client.get(reverse("outages") + first.context["pager"].next_url)

    opened = [one.opened_at for answer in (first, second) for one in answer.context["rows"]]
    assert (len(first.context["rows"]), len(second.context["rows"])) == (50, 10)
    assert opened == sorted(opened, reverse=True)
    assert second.context["pager"].previous_url
    assert "This is the first page." in text(client.get(reverse("outages") + "?page=forged"))


def test_the_page_tells_what_happened_with_reasons_and_the_figures_of_each_raise(client, vera, leo, steady, outage):
    ramp.set_cap(steady.pk, person=leo, cap=7, reason="the desk is full", clock=DATABASE_CLOCK)
    ramp.step_down(steady.pk, person=leo, to=2, reason="the desk is fuller", clock=DATABASE_CLOCK)
    hold.pull(steady.pk, person=leo, form="refuse", reason=HoldReason.DESK_FULL, clock=DATABASE_CLOCK)
    ramp.resume(steady.pk, person=leo, reason="they caught up", clock=DATABASE_CLOCK)
    client.force_login(vera)

    answer = client.get(reverse("outage", args=[outage.pk]))

    assert [line.text for line in answer.context["log"]] == [
        "The outage was opened by the system: the model was unavailable.",
        "Posts put itself on hold: the model was unavailable.",
        "leo raised Posts to stage 1: at most 2 calls at once.",
        "leo raised Posts to stage 2: at most 10 calls at once.",
        "leo raised Posts to stage 3: at most 50 calls at once.",
        "leo raised Posts to stage 4: at most 200 calls at once.",
        "leo set the cap of Posts to 7 calls at once.",
        "leo stepped Posts down to stage 2: at most 7 calls at once.",
        "leo put Posts on hold and refused the running results: people cannot keep up.",
        "leo resumed Posts at stage 2: at most 7 calls at once.",
    ]
    probe, cap = answer.context["log"][2], answer.context["log"][6]
    assert (probe.said, cap.said, cap.frozen) == ("the model answers again", "the desk is full", ())
    assert "waiting" in [name for name, _value in probe.frozen]
    assert "In spite of what was missing: a small lane, watched closely" in text(answer)
    assert "Posts runs stage 2, trickle, which is not its last." in text(answer)


def test_a_long_log_stands_on_one_page_for_print_and_says_where_it_is_cut(client, vera, outage, monkeypatch) -> None:
    monkeypatch.setattr(outages_view, "LOG_SIZE", 3)
    for minute in range(4):
        OutageEntry.objects.create(outage=outage, at=outage.opened_at + timedelta(minutes=minute), code="note")
    all_of_them, address = OutageEntry.objects.filter(outage=outage).count(), reverse("outage", args=[outage.pk])
    client.force_login(vera)

    page, whole = client.get(address), client.get(f"{address}?log=whole")
    monkeypatch.setattr(outages_view, "MOST_WHOLE", 4)
    cut = client.get(f"{address}?log=whole")

    assert "The whole log on one page, for print" in text(page)
    assert [len(answer.context["log"]) for answer in (page, whole, cut)] == [3, all_of_them, 4]
    assert "This is one page of the log." not in text(whole)
    assert "The first 4 lines of the log." in text(cut)


def test_an_entry_of_a_later_version_is_shown_by_its_code(outage) -> None:
    assert entry_text(OutageEntry(outage=outage, at=outage.opened_at, code="painted")) == "painted"


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_code_of_the_log_is_a_sentence(lane, leo, outage, language) -> None:
    values = {"cause": "auto_errors", "reason": "precaution", "form": "hold", "automatic": False}
    values |= {"stage": 2, "cap": 1, "policy": 3, "decisions": 2, "to": "lena"}
    with translation.override(language):
        for code in ramp.EntryCode:
            entry = OutageEntry(outage=outage, at=outage.opened_at, by=leo, lane=lane, code=code, params=values)
            assert entry_text(entry) not in ("", code)
