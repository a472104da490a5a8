"""What a reading of the gate measures, and what its figures id binds."""

import json
from datetime import timedelta

import pytest

from queue_core import contract, gate, gate_measure
from queue_core.contract import Ending
from queue_core.errors import InvalidRequest
from queue_core.models import Job, Lane
from reviewboard.models import Person
from tests.factories import at, clock, waiting_job
from tests.ramp.stories import answer, end, fail, leased, new_lane, probing, read, running, soaked

pytestmark = pytest.mark.django_db


def line_of(lane: Lane, figure: str, *, when: float) -> gate.GateLine:
    return next(line for line in read(lane, when=when).lines if line.figure == figure)


def test_on_hold_there_are_no_lines_and_the_next_stage_is_the_probe() -> None:
    lane = new_lane()

    reading = read(lane, when=5)

    assert (reading.run, reading.hold, reading.lines, reading.soak) == (None, lane.hold_id, (), None)
    assert reading.next is not None
    assert reading.next.number == 1


def test_only_attempts_of_the_run_count(lead: Person) -> None:
    lane = soaked(lead)
    assert line_of(lane, "errors", when=60).sample == 2

    lane = running(lead)

    assert line_of(lane, "errors", when=81).sample == 0
    assert read(lane, when=81).soak.completions == 0


def test_only_attempts_ended_in_the_window_count_for_guardrails_and_all_for_the_soak(lead: Person) -> None:
    lane = soaked(lead)

    inside, outside = read(lane, when=60 + 299), read(lane, when=60 + 300)

    assert [line.sample for line in inside.lines] == [2, 2, 2]
    assert [line.sample for line in outside.lines] == [0, 0, 0]
    assert outside.soak.completions == 2


def test_what_was_given_back_uncalled_or_ended_from_outside_says_nothing_of_the_model(lead: Person) -> None:
    lane = probing(lead, unavailable_limit=100)
    fail(lane, "released", when=20)
    token = leased(lane, when=20)
    ticket = Job.objects.select_related("ticket").get(pk=token.job).ticket
    contract.withdraw(source=ticket.source, external_id=ticket.external_id, clock=clock(21))
    contract.complete(token, Ending(result="APPROVED"), clock=clock(22))

    assert line_of(lane, "errors", when=30).sample == 0
    assert line_of(lane, "stale", when=30).measured is None


def test_errors_timeouts_and_stale_answers_are_shares_of_the_calls_that_ended(lead: Person) -> None:
    lane = running(lead, unavailable_limit=100)
    for _number in range(17):
        answer(lane, when=100)
    fail(lane, "unavailable", when=101)
    late = leased(lane, when=101)
    fail(lane, "timeout", when=102)
    contract.sweep(clock=clock(201))
    contract.complete(late, Ending(result="APPROVED"), clock=clock(202))

    reading = read(lane, when=210)

    assert {line.figure.value: line.measured for line in reading.lines} == {
        "errors": 1 / 20,
        "timeouts": 2 / 20,
        "stale": 1 / 20,
    }


def test_late_reports_that_are_no_answers_are_not_stale_answers(lead: Person) -> None:
    lane = running(lead)
    late = leased(lane, when=90)

    end(late, "timeout", when=195)

    assert line_of(lane, "stale", when=200).measured in (None, 0.0)


def test_a_refused_connection_does_not_make_the_model_look_quick(lead: Person) -> None:
    lane = running(lead)
    answer(lane, when=100, took=4)
    for token in [leased(lane, when=100) for _number in range(5)]:
        end(token, "unavailable", when=101, latency=timedelta(milliseconds=1))

    counts = gate_measure.count_calls(lane.run, since=at(0), now=at(110))

    assert (counts.ended, counts.timed, counts.usual) == (6, 1, timedelta(seconds=4))


def test_the_load_says_what_waits_by_time_and_attempts_left(lead: Person) -> None:
    lane = running(lead, max_attempts=2)
    waiting_job(lane, added=90, deadline=700, severity=2)
    waiting_job(lane, added=95, deadline=2000)
    charged = leased(lane, when=95)
    end(charged, "invalid_answer", when=96)

    load = read(lane, when=100).load

    assert (load.waiting, load.last_attempt) == (3, 1)
    assert load.by_time_left == {"over": 0, "under_15_min": 1, "under_1_h": 1, "under_4_h": 1, "more": 0}
    assert load.by_attempts_left == {"2": 2, "1": 1}
    assert load.by_severity == {"2": 1, "1": 2}
    assert (load.oldest_ready, load.oldest_held) == (at(90), None)


def test_on_hold_the_oldest_is_held_and_none_is_ready() -> None:
    lane = new_lane()
    waiting_job(lane, added=3)

    load = read(lane, when=100).load

    assert (load.oldest_ready, load.oldest_held) == (None, at(3))


def test_the_load_says_what_became_of_the_runs_claims(lead: Person) -> None:
    lane = running(lead, max_attempts=1, unavailable_limit=100)
    answer(lane, when=100)
    answer(lane, when=100, result="REJECTED")
    answer(lane, when=100, result="MANUAL")
    leased(lane, when=100)
    fail(lane, "invalid_answer", when=100)

    load = read(lane, when=102).load

    assert (load.claims, load.running, load.budgets_spent, load.people_waiting) == (5, 1, 1, 2)
    assert load.results == {"APPROVED": 1, "REJECTED": 1, "MANUAL": 1}


def test_a_reading_is_frozen_as_plain_json(lead: Person) -> None:
    frozen = read(running(lead), when=90).frozen()

    assert json.loads(json.dumps(frozen)) == frozen
    assert frozen["next"] == {"number": 3, "cap": 50, "rate": None}


def test_a_figures_id_that_was_changed_or_is_of_another_lane_is_refused(lead: Person) -> None:
    lane, other = new_lane(), new_lane()
    figures_id = read(lane, when=5).sign()

    for wrong in ("", "x", figures_id[:-1] + ("a" if figures_id[-1] != "a" else "b")):
        with pytest.raises(InvalidRequest) as refused:
            gate.open_figures(wrong, lane_id=lane.pk)
        assert refused.value.field == "figures_id"
    with pytest.raises(InvalidRequest):
        gate.open_figures(figures_id, lane_id=other.pk)
