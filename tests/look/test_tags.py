from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.template import Context, Template
from django.utils import timezone, translation

from queue_core.states import JobState
from reviewboard.templatetags import board

AT = datetime(2026, 3, 14, 4, 52, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (None, "–"),
        (timedelta(0), "0 s"),
        (timedelta(seconds=-5), "0 s"),
        (0.84, "0.8 s"),
        (timedelta(seconds=59.9), "59 s"),
        (timedelta(minutes=1), "1 min"),
        (timedelta(minutes=41, seconds=10), "41 min 10 s"),
        (timedelta(hours=3, minutes=12, seconds=9), "3 h 12 min"),
        (timedelta(hours=23, minutes=59, seconds=59), "23 h 59 min"),
        (timedelta(days=2, hours=4), "2 d 4 h"),
    ],
)
def test_a_length_has_two_units_at_most(length: timedelta | float | None, text: str) -> None:
    assert board.duration(length) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0, "0"), (9_999, "9,999"), (10_000, "10,000"), (10_001, "10,000+")]
)
def test_a_capped_count_says_that_it_is_capped(value: int | None, text: str) -> None:
    assert board.count_capped(value) == text


def test_a_time_is_exact_without_a_script_and_names_its_zone() -> None:
    with timezone.override(ZoneInfo("Asia/Shanghai")):
        written = board.when(AT)

    assert 'datetime="2026-03-14T04:52:07+00:00"' in written
    assert 'title="2026-03-14 12:52:07, Asia/Shanghai (UTC+08:00)"' in written
    assert ">2026-03-14 12:52</time>" in written


def test_no_time_is_a_dash() -> None:
    assert board.when(None) == board.countdown(None) == "–"


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_state_keeps_its_word_and_has_a_shape_and_a_gloss(state: JobState, language: str) -> None:
    with translation.override(language):
        badge = board.state_badge(state)

    assert f'translate="no">{state.value}</span>' in badge
    assert "<svg" in badge
    assert 'class="state-gloss">' in badge


def test_severity_is_told_by_number_and_bars_not_by_colour_alone() -> None:
    assert "▮▮▮▯" in board.severity_chip(2)
    assert "severity 2" in board.severity_chip(2)


def test_an_unknown_icon_is_a_mistake_that_is_seen() -> None:
    with pytest.raises(KeyError):
        Template("{% load board %}{% icon 'nonsense' %}").render(Context())


def test_the_page_takes_its_clock_from_the_figures_that_it_shows() -> None:
    written = Template("{% load board %}{% server_now %}").render(Context({"as_of": AT}))

    assert written == AT.isoformat()


def test_numbers_in_attributes_have_a_point_in_every_language() -> None:
    with translation.override("de"):
        assert board.unlocalized(0.5) == "0.5"
