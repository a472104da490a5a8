"""The charts of a lane's page: cut where the reader's clock cuts, with what happened marked on them."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone
from django.utils.timezone import localtime

from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Hold, Lane, LaneMinute, LaneSample, LaneTotal
from reviewboard.drawing import LineChart
from reviewboard.lane_charts import Span, charts, points
from tests.factories import make_lane, make_run

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def decided(lane: Lane, at: datetime, number: int = 1) -> None:
    LaneMinute.objects.create(lane=lane, minute=at, counts={"result.APPROVED": number, "added": 2})


def flow(lane: Lane, span: Span, now: datetime) -> LineChart:
    return charts(lane, span, now=now)[1]


def decided_by_label(chart: LineChart) -> list[tuple[str, float | None]]:
    return [(format(localtime(row.at), "%m-%d %H:%M"), row.values[0]) for row in chart.rows if row.values[0]]


def test_days_are_cut_at_the_readers_midnight_also_when_clocks_are_set_back_obs_06() -> None:
    lane = make_lane()
    for at in ("2026-11-01T08:30Z", "2026-11-01T09:30Z", "2026-11-02T07:30Z"):
        decided(lane, datetime.fromisoformat(at))
    now = datetime(2026, 11, 2, 7, 59, tzinfo=UTC)

    with timezone.override("America/Los_Angeles"):
        by_day, by_hour = flow(lane, Span.DAYS, now), flow(lane, Span.TODAY, now)

        assert decided_by_label(by_day) == [("11-01 00:00", 3)]
        assert decided_by_label(by_hour) == [("11-01 01:00", 1), ("11-01 01:00", 1), ("11-01 23:00", 1)]
    assert len(by_hour.rows) == 25
    assert len({tick.position for tick in by_hour.time_ticks}) == len(by_hour.time_ticks)
    assert sum(row.values[0] or 0 for row in by_day.rows) == 3


@pytest.mark.parametrize(
    ("zone", "times", "hours"),
    [
        # Midnight comes twice.
        ("America/Havana", ("2026-11-01T04:30Z", "2026-11-01T05:30Z", "2026-11-02T04:30Z"), 25),
        # There is no midnight.
        ("Africa/Cairo", ("2026-04-23T22:00Z", "2026-04-23T22:30Z", "2026-04-24T20:30Z"), 23),
        # Clocks are set back by half an hour.
        ("Australia/Lord_Howe", ("2026-04-04T13:00Z", "2026-04-04T15:15Z", "2026-04-05T13:15Z"), 25),
    ],
)
def test_a_day_on_which_clocks_are_set_has_all_that_happened_in_it_obs_06(zone, times, hours) -> None:
    lane = make_lane()
    for at in times:
        decided(lane, datetime.fromisoformat(at))
    midnight = datetime.fromisoformat(times[0]).replace(minute=0)
    LaneSample.objects.create(lane=lane, minute=midnight, taken_at=midnight, oldest_ready=MINUTE, layers={})
    now = datetime.fromisoformat(times[2]) + MINUTE

    with timezone.override(zone):
        waits, by_day = charts(lane, Span.DAYS, now=now)
        by_hour = flow(lane, Span.TODAY, now)

    assert [row.values[0] for row in by_day.rows if row.values[0]] == [3]
    assert [row.values[0] for row in waits.rows if row.values[0]] == [1]
    assert sum(row.values[0] or 0 for row in by_hour.rows) == 3
    assert len(by_hour.rows) == hours


def test_today_begins_at_the_readers_midnight_in_a_zone_of_half_hours_obs_09() -> None:
    lane = make_lane()
    decided(lane, datetime(2026, 12, 1, 18, 29, tzinfo=UTC))
    decided(lane, datetime(2026, 12, 1, 18, 31, tzinfo=UTC))
    now = datetime(2026, 12, 1, 20, 0, tzinfo=UTC)

    with timezone.override("Asia/Kolkata"):
        assert decided_by_label(flow(lane, Span.TODAY, now)) == [("12-02 00:00", 1)]


@pytest.mark.parametrize(("span", "most"), [(Span.HOUR, 60), (Span.TODAY, 25), (Span.DAYS, 30)])
def test_no_chart_has_more_than_sixty_points_and_its_last_is_of_late(span: Span, most: int) -> None:
    now = datetime(2026, 3, 29, 21, 59, tzinfo=UTC)
    with timezone.override("Europe/Berlin"):
        times = points(span, now=now)

    assert len(times) <= most
    assert times == sorted(set(times))
    assert (
        times[-1] <= now < times[-1] + {Span.HOUR: 2 * MINUTE, Span.TODAY: 60 * MINUTE, Span.DAYS: 1440 * MINUTE}[span]
    )


def test_the_minute_that_has_only_begun_counts_for_none_of_the_hour() -> None:
    lane, now = make_lane(), datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)
    decided(lane, now.replace(second=0) - MINUTE, 2)
    decided(lane, now.replace(second=0), 5)
    LaneSample.objects.create(
        lane=lane, minute=now.replace(second=0), taken_at=now, oldest_ready=timedelta(hours=1), layers={}
    )

    waits, by_minute = charts(lane, Span.HOUR, now=now)

    assert [row.values[0] for row in by_minute.rows[-2:]] == [0, 2]
    assert [row.values[0] for row in waits.rows] == [None] * len(waits.rows)


def test_waits_are_the_longest_seen_and_a_time_in_which_nobody_looked_is_a_gap() -> None:
    lane, now = make_lane(), datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)
    for minutes, ready, held in ((10, timedelta(minutes=3), None), (8, None, timedelta(minutes=90))):
        minute = now.replace(second=0) - timedelta(minutes=minutes)
        LaneSample.objects.create(
            lane=lane, minute=minute, taken_at=minute, oldest_ready=ready, oldest_held=held, layers={}
        )

    waits = charts(lane, Span.HOUR, now=now)[0]
    values = [tuple(row.values) for row in waits.rows[-10:-6]]

    assert values == [(3.0, 0.0), (None, None), (0.0, 90.0), (None, None)]


def test_holds_and_stages_of_the_time_are_marked_and_older_ones_are_not() -> None:
    lane, now = make_lane(), datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
    Hold.objects.create(lane=lane, is_automatic=True, reason="auto_errors", started_at=now - timedelta(minutes=30))
    make_run(lane, number=3, started_at=now - timedelta(minutes=10), ended_at=now, ended_as="held")
    make_run(lane, number=2, started_at=now - timedelta(minutes=90), ended_at=now, ended_as="held")

    marks = charts(lane, Span.HOUR, now=now)[1].marks

    assert [(mark.kind, mark.is_named) for mark in marks] == [("hold", True), ("stage", True)]


def test_the_page_has_both_charts_with_their_tables_outside_of_what_is_polled(client, vera) -> None:
    lane, now = make_lane(), DATABASE_CLOCK.now()
    decided(lane, now.replace(second=0, microsecond=0), 7)
    client.force_login(vera)

    whole = client.get(reverse("lane", args=[lane.name]), {"chart": "today"}).content.decode()
    odd = client.get(reverse("lane", args=[lane.name]), {"chart": "<script>"})
    polled = client.get(reverse("lane", args=[lane.name]), headers={"HX-Request": "true", "X-Live-Poll": "1"})

    assert whole.count('<figure class="chart">') == 2
    assert 'aria-current="true">today</a>' in whole
    assert [one.is_shown for one in odd.context["chart_spans"]] == [True, False, False]
    assert b"<details" not in polled.content
    assert b'class="chart"' not in polled.content


def test_a_layer_on_the_board_says_by_how_many_it_grows(client, vera) -> None:
    now = DATABASE_CLOCK.now()
    lane = make_lane(cap=None)
    LaneSample.objects.create(
        lane=lane, minute=now - timedelta(minutes=10), taken_at=now - timedelta(minutes=10), layers={"held": 0}
    )
    LaneTotal.objects.create(lane=lane, code="WAITING", number=31_980)
    client.force_login(vera)

    board = " ".join(client.get(reverse("board")).content.decode().split())

    assert "31,980" in board
    assert re.search(r"\+3,[01]\d\d/min", board), "over ten minutes, and what the page took to be read"
