"""`manage.py simulate`: plans against one night, quick, and the same for the same seed."""

import json
import time
import xml.etree.ElementTree as ET
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from queue_core.forecast.scenario import plan_of
from queue_core.forecast.terms import Step
from queue_core.models import Stage
from tests.factories import make_lane

NIGHT = ["--outage", "1h", "--hours", "4", "--step", "60s", "--arrivals", "300", "--errors", "0.02", "--call", "2s,5s"]


def simulate(*options: str) -> dict:
    out = StringIO()
    call_command("simulate", "--json", *options, stdout=out)
    return json.loads(out.getvalue())


def test_ten_million_tickets_are_played_within_a_minute_and_none_is_lost_from_sight() -> None:
    begun = time.process_time()

    [one] = simulate("--waiting", "10000000", "--plan", "2:60@3m,10000", "--weight", "0.5", "--timeouts", "0.01")[
        "played"
    ]

    assert time.process_time() - begun < 60
    dead = sum(one["lost"].values()) + sum(one["attempts_spent"].values())
    assert 10_000_000 + one["arrived"] == one["decided"] + dead + one["left"]
    assert one["wasted"] > 0


def test_the_same_seed_gives_the_same_answer_and_another_one_another() -> None:
    first, second = simulate(*NIGHT, "--seed", "7"), simulate(*NIGHT, "--seed", "7")

    assert first == second
    assert simulate(*NIGHT, "--seed", "8") != first


def test_each_plan_is_played_with_each_weight_and_more_seats_lose_less() -> None:
    played = simulate(*NIGHT, "--deadlines", "90m", "--plan", "5", "--plan", "hold@10m,40")["played"]

    assert [(one["plan"], one["weight"]) for one in played] == [
        (plan, weight) for plan in ("5", "hold@10m,40") for weight in (0.0, 0.5, 1.0)
    ]
    lost = [sum(one["lost"].values()) for one in played]
    assert max(lost[3:]) < min(lost[:3])


def test_severity_3_which_goes_to_people_at_once_is_lost_in_no_night_that_does_not_give_it_to_the_model() -> None:
    options = [*NIGHT, "--deadlines", "90m,60m,30m,10m", "--plan", "5", "--weight", "0"]

    [usual] = simulate(*options)["played"]
    [sees_it_first] = simulate(*options, "--severities", "70,20,8,2")["played"]

    assert usual["lost"].get("3", 0) == 0 < usual["lost"]["2"]
    assert sees_it_first["lost"]["3"] > 0


def test_the_table_names_what_is_lost_and_draws_a_line_for_each(tmp_path) -> None:
    out, drawing = StringIO(), tmp_path / "night.svg"

    call_command("simulate", *NIGHT, "--plan", "5", "--plan", "40", "--svg", str(drawing), stdout=out)

    text = out.getvalue()
    assert "Plan 2: 40" in text
    assert text.count("plan 1, w 0.5") == 1
    assert "█" in text
    root = ET.fromstring(drawing.read_text(encoding="utf-8"))
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 6


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--plan", "2:60"], None),
        (["--plan", "2:60@3m"], "--plan"),
        (["--plan", "0"], "--plan"),
        (["--plan", "five"], "--plan"),
        (["--plan", "2@5m,,7"], "--plan"),
        (["--weight", "1.5"], "--weight"),
        (["--errors", "2"], "--errors"),
        (["--severities", "a,b"], "--severities"),
        (["--severities", "0,0"], "--severities"),
        (["--deadlines", "soon"], "--deadlines"),
        (["--call", "3s,1s"], "--call"),
        (["--hours", "1000"], "--hours"),
        (["--step", "1s", "--hours", "300"], "--step"),
        (["--waiting", "-1"], "--waiting"),
    ],
)
def test_what_cannot_be_played_is_refused_by_the_name_of_its_option(options: list[str], named: str | None) -> None:
    if named is None:
        assert simulate(*options, "--hours", "1")
        return
    with pytest.raises(CommandError, match=named):
        simulate(*options)


def test_a_plan_is_read_stage_by_stage_and_the_first_of_several_is_the_probe() -> None:
    assert plan_of("hold@1h,2:60@90s,10@5m,50").steps == [
        Step(0.0, 0, None, False, "hold@1h"),
        Step(3600.0, 2, 60.0, True, "2:60@90s"),
        Step(3690.0, 10, None, False, "10@5m"),
        Step(3990.0, 50, None, False, "50"),
    ]


@pytest.mark.django_db
def test_a_lane_is_copied_with_its_plan_and_the_options_change_the_copy() -> None:
    lane = make_lane(cap=None, urgency_weight=0.25)
    soak = {"soak_time": timedelta(minutes=3), "soak_completions": 1}
    Stage.objects.create(lane=lane, number=1, name="probe", cap=2, rate=60, **soak)
    Stage.objects.create(lane=lane, number=2, name="steady", cap=50, **soak)

    [one] = simulate(
        "--lane", lane.name, "--waiting", "500", "--arrivals", "10", "--severities", "1", "--deadlines", "2h"
    )["played"]

    assert (one["plan"], one["weight"]) == ("2:60@180s,50", 0.25)
    assert one["decided"] > 500


@pytest.mark.django_db
def test_a_lane_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match="--lane: There is no lane"):
        simulate("--lane", "nowhere")
