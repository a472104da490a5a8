"""Board and lane where a lane has hardly anything: each page says so in words, in both languages, and none fails."""

import pytest
from django.urls import reverse
from django.utils import translation

from queue_core.models import Lane, Stage
from tests.board.scene import a_lane, start, workers_seen

pytestmark = pytest.mark.django_db


def without_a_plan(lane: Lane, _leo) -> None:
    Stage.objects.filter(lane=lane).delete()


def without_a_policy(lane: Lane, _leo) -> None:
    Lane.objects.filter(pk=lane.pk).update(policy=None)


def without_a_ticket(lane: Lane, leo) -> None:
    start(lane, leo)


def with_one_seat(lane: Lane, leo) -> None:
    Stage.objects.filter(lane=lane).update(cap=1, rate=1, soak_completions=0)
    start(lane, leo, stages=4)


def with_its_stage_taken_away(lane: Lane, leo) -> None:
    start(lane, leo, stages=2)
    Stage.objects.filter(lane=lane, number__gte=2).delete()


ODD = [without_a_plan, without_a_policy, without_a_ticket, with_one_seat, with_its_stage_taken_away]


@pytest.fixture(autouse=True)
def _language_as_before():
    with translation.override(translation.get_language()):
        yield


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("make", ODD, ids=lambda make: make.__name__)
def test_an_odd_lane_has_a_page_rmp_06(client, leo, make, language) -> None:
    lane = a_lane("odd", title="Odd")
    make(lane, leo)
    workers_seen()
    client.force_login(leo)

    answers = [
        client.get(address, headers={"Accept-Language": language})
        for address in ("/", reverse("lane", args=["odd"]), reverse("lane_recall", args=["odd"]), reverse("outages"))
    ]

    assert [answer.status_code for answer in answers] == [200] * 4
    assert "Odd" in answers[1].content.decode()
