"""Where the forecast stands: on the lane's page, in the polled part, and before a group's requeue."""

from datetime import timedelta

import pytest
from django.urls import reverse

from queue_core.forecast.backlog import Waiting, joined, requeued
from queue_core.forecast.terms import Order
from queue_core.models import Stage
from tests.board.conftest import _no_broker, _nothing_kept, cast, leo
from tests.desk.backlog import dead_now, make_live_lane, waiting_now
from tests.factories import at

__all__ = ["_no_broker", "_nothing_kept", "cast", "leo"]

pytestmark = pytest.mark.django_db


def test_requeued_jobs_stand_in_the_forecast_with_their_deadlines_spread_the_most_severe_first() -> None:
    cohorts = requeued({0: 30, 2: 10}, Order(), first=timedelta(hours=1), span=timedelta(hours=2))

    assert sum(one.count for one in cohorts) == pytest.approx(40)
    assert all(3600 <= one.deadline <= 3 * 3600 for one in cohorts)
    severe, harmless = ([one.deadline for one in cohorts if one.severity == severity] for severity in (2, 0))
    assert max(severe) < min(harmless)
    found = joined(Waiting([], 5, []), cohorts, now=at(0))
    assert (found.number, sum(number for _minute, _severity, number in found.due)) == (45, 40)
    assert joined(found, [], now=at(0)) is found


def test_the_lanes_page_forecasts_in_its_polled_part_and_runs_dry_outside_of_it(client, leo) -> None:
    lane = make_live_lane(cap=None)
    Stage.objects.create(lane=lane, number=1, name="probe", cap=2)
    for _number in range(3):
        waiting_now(lane, left=600)
    client.force_login(leo)

    whole = client.get(reverse("lane", args=[lane.name])).content.decode()
    polled = client.get(reverse("lane", args=[lane.name]), headers={"HX-Request": "true"}).content.decode()

    for text in (whole, polled):
        assert "Deadlines that pass if nothing starts: 3 by" in text
        assert "nothing is made up" in text
    assert "What stage 1, probe, would take first" in whole
    assert "would take first" not in polled
    assert not any(tag in polled for tag in ("<form", "<input", "<details"))


def test_a_groups_requeue_is_previewed_with_the_forecast_of_the_lane_with_it(client, leo) -> None:
    lane = make_live_lane(cap=None)
    Stage.objects.create(lane=lane, number=1, name="probe", cap=2)
    for _number in range(2):
        dead_now(lane)
    waiting_now(lane, left=600)
    client.force_login(leo)

    chosen = {"from": "desk", "kind": "requeue", "filter": f"lane={lane.name}&kind=dead&cause=deadline", "all": "1"}
    text = client.post(reverse("bulk_preview"), chosen, follow=True).content.decode()

    assert "The forecast with these jobs back in the lane" in text
    assert "3 wait, held" in text
