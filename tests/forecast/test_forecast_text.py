"""The forecast in words: each state of a line has a whole sentence, and nothing is said that was not found."""

from datetime import timedelta

import pytest

from queue_core.forecast.outlook import Basis, Line, LineState, Outlook, Pace, Span
from queue_core.forecast.reading import Column, Course, Forecast
from queue_core.models import Stage
from reviewboard import forecast_text
from tests.factories import at

IDLE = Line(LineState.EMPTY, 0)


def shown(line: Line, *, course: Course = Course.AS_NOW, **outlook) -> forecast_text.ForecastTable:
    column = Column(course, Outlook(line, IDLE, IDLE, **outlook), Stage(number=3, name="half"), at(0), at(900), 1240)
    return forecast_text.table(Forecast(at(900), timedelta(hours=8), [column], [(at(5340), 310), (at(8040), 2940)]))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (Line(LineState.GROWS, 9, grows=Pace(182, 214)), "grows by 180 to 210 a minute"),
        (Line(LineState.EMPTIES, 9, empty=Span(1800, 5400)), "empty between 2026-01-01 00:45 and 2026-01-01 01:45"),
        (Line(LineState.EMPTIES, 9, empty=Span(1800, None)), "empty after 2026-01-01 00:45, perhaps not within 8 h"),
        (Line(LineState.EMPTIES, 9, empty=Span(None, None)), "not empty within 8 h"),
        (Line(LineState.HELD, 1), "1 waits, held"),
        (Line(LineState.HELD, 2300), "2,300 wait, held"),
        (Line(LineState.STALLED, 7), "7 wait, nothing moves"),
        (Line(LineState.UNKNOWN, 7, basis=Basis.TOO_FEW), "7 wait; too little was measured to say more"),
        (Line(LineState.EMPTY, 0), "keeps up"),
    ],
)
def test_each_state_of_a_line_is_said(line: Line, said: str) -> None:
    assert shown(line).lines[0].cells[0].text.replace("\xa0", " ") == said


def test_paces_are_ranges_of_two_digits_and_what_is_not_known_is_called_so() -> None:
    line = Line(LineState.EMPTIES, 9, Pace(58.2, 61.9), Pace(140.0, 147.0), Span(60, 60))

    assert shown(line).lines[0].cells[0].note == "in 58 to 62, out 140 to 150 a minute"
    assert shown(Line(LineState.GROWS, 9, None, Pace(1.0, 1.0))).lines[0].cells[0].note == (
        "in not known, out 1 a minute"
    )


def test_on_hold_the_deadlines_are_told_by_their_times() -> None:
    assert (
        shown(IDLE).passing
        == "Deadlines that pass if nothing starts: 310 by 2026-01-01 01:29, 2,940 by 2026-01-01 02:14."
    )


def test_deaths_stand_by_severity_as_ranges_or_not_at_all() -> None:
    some = shown(IDLE, missed={3: (0, 0), 2: (0, 4), 1: (12, 12), 0: (310, 1240)}, fresh=(0, 9))

    assert [row.cells[0].text for row in some.missed] == ["0", "0 to 4", "12", "310 to 1,240", "0 to 9"]
    assert shown(IDLE).missed == []


@pytest.mark.parametrize("basis", Basis)
def test_every_basis_is_a_sentence(basis: Basis) -> None:
    [text] = shown(Line(LineState.EMPTIES, 9, basis=basis)).basis

    assert text.endswith(".")
    assert "%" not in text


@pytest.mark.parametrize("course", Course)
def test_every_supposition_has_a_head_and_only_reckoned_ones_are_estimates(course: Course) -> None:
    [head] = shown(Line(LineState.EMPTIES, 9, basis=Basis.CALLS), course=course).heads

    assert head.name
    assert head.is_estimate
    assert not shown(Line(LineState.EMPTIES, 9, basis=Basis.RUN), course=course).heads[0].is_estimate
