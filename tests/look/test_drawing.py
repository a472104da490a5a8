from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from reviewboard.drawing import BAR_WIDTH, LayerPart, Mark, Series, layer_bar, line_chart

START = datetime(2026, 3, 14, tzinfo=UTC)


def minutes(count: int) -> list[datetime]:
    return [START + timedelta(minutes=i) for i in range(count)]


def test_a_bar_is_as_wide_as_its_parts_and_keeps_their_order() -> None:
    bar = layer_bar(
        [LayerPart("held", "held", 900), LayerPart("ready", "ready", 100), LayerPart("people", "people", 0)]
    )

    assert [rect.code for rect in bar.rects] == ["held", "ready"]
    assert bar.rects[0].width > 8 * bar.rects[1].width
    assert bar.rects[-1].x + bar.rects[-1].width == pytest.approx(BAR_WIDTH, abs=0.1)
    assert bar.total == 1000


def test_a_single_ticket_is_seen_beside_ten_thousand() -> None:
    bar = layer_bar([LayerPart("held", "held", 10_001), LayerPart("lease_over", "lease over", 1)])

    assert bar.rects[1].width > 5


def test_three_largest_layers_are_named_and_the_rest_is_summed() -> None:
    bar = layer_bar([LayerPart(str(n), str(n), n) for n in (1, 5, 4, 3, 2)])

    assert [part.count for part in bar.top] == [5, 4, 3]
    assert bar.rest_count == 3


def test_an_empty_bar_has_no_rects() -> None:
    assert layer_bar([LayerPart("held", "held", 0)]).rects == []


def test_a_line_stops_at_a_gap_and_starts_again() -> None:
    chart = line_chart("t", minutes(4), [Series("a", "one", [1, None, 2, 3])])

    assert chart.lines[0].path.count("M") == 2
    assert chart.rows[1].values == [None]


def test_end_labels_do_not_cover_each_other() -> None:
    chart = line_chart("t", minutes(2), [Series("a", "one", [1, 1]), Series("b", "two", [1, 1])])

    assert abs(chart.lines[0].label_y - chart.lines[1].label_y) >= 16


@pytest.mark.parametrize(("name", "signs"), [("by the model", 12), ("由人员决定的内容", 16)])
def test_a_long_name_has_its_place_beside_the_lines(name: str, signs: int) -> None:
    """A phone writes it with 16 px, in the drawing's own measure: some nine for each sign."""
    short = line_chart("t", minutes(2), [Series("a", "one", [1, 1])])
    chart = line_chart("t", minutes(2), [Series("a", "one", [1, 1]), Series("b", name, [1, 1])])

    assert chart.width - chart.lines[0].label_x >= signs * 9
    assert chart.time_ticks[-1].position == chart.right < short.right


def test_more_than_sixty_points_are_refused() -> None:
    with pytest.raises(ValueError, match="60"):
        line_chart("t", minutes(61), [Series("a", "one", [0.0] * 61)])


def test_a_series_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="each time"):
        line_chart("t", minutes(2), [Series("a", "one", [0.0])])


def test_marks_outside_the_chart_are_left_out() -> None:
    marks = [Mark(START - timedelta(hours=1), "hold", "before"), Mark(START, "hold", "hold")]

    chart = line_chart("t", minutes(2), [Series("a", "one", [0, 4])], marks=marks)

    assert [mark.label for mark in chart.marks] == ["hold"]


def test_a_chart_without_any_point_draws_nothing() -> None:
    assert line_chart("t", [], [Series("a", "one", [])]).lines == []


@pytest.mark.parametrize(("highest", "top"), [(0, 4), (4, 4), (5, 8), (9, 10), (81, 100), (199, 200), (4000, 4000)])
def test_the_axis_ends_on_a_short_number(highest: float, top: float) -> None:
    chart = line_chart("t", minutes(2), [Series("a", "one", [0, highest])])

    assert chart.ticks[-1].value == top


def test_end_labels_stay_above_the_times_and_marks_close_to_each_other_share_no_place() -> None:
    times = minutes(60)
    series = [Series(code, code, [0.0] * 60) for code in "abc"]
    marks = [Mark(times[n], "stage", f"stage {n}") for n in (10, 12, 40)]
    chart = line_chart("flow", times, series, marks=marks)

    labels = [line.label_y for line in chart.lines]
    assert max(labels) <= chart.bottom + 4
    assert [b - a for a, b in pairwise(labels)] == [16.0, 16.0]
    assert [mark.is_named for mark in chart.marks] == [True, False, True]
