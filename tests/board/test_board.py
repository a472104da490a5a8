import re
from datetime import timedelta

import pytest
from django.db import connection
from django.urls import reverse

from queue_core import alerts, figures, where
from queue_core.clock import DATABASE_CLOCK
from queue_core.figures.board import EXPOSURE_SAMPLE
from queue_core.gate_lines import Figure as GateFigure
from queue_core.gate_lines import GateLine, GateVerdict
from queue_core.gate_told import GateTold
from queue_core.lanes import StagePlan
from queue_core.models import AlertEpisode, AlertSettings, Lane
from reviewboard import gate_told_text
from tests.board.scene import a_lane, break_down, fill, judged, run_some, start, work, workers_seen

pytestmark = pytest.mark.django_db

HOURS = timedelta(hours=3)
POLL = {"HX-Request": "true", "X-Live-Poll": "1"}


def text(response) -> str:
    return " ".join(response.content.decode().split())


def test_the_board_sends_an_anonymous_reader_to_sign_in(client) -> None:
    answer = client.get("/")

    assert answer.status_code == 302
    assert answer.url.startswith(reverse("sign_in"))


def test_the_board_does_not_exist_for_who_may_not_see_it(client, xavier) -> None:
    client.force_login(xavier)

    assert client.get("/").status_code == 404


def test_a_board_without_lanes_says_how_to_make_one(client, vera) -> None:
    client.force_login(vera)

    assert "There is no lane yet" in text(client.get("/"))


def test_a_lane_that_held_itself_is_a_card_with_its_cause_and_the_probe_as_next_step(client, leo) -> None:
    lane = a_lane("posts", title="Posts")
    fill(lane, 20, waited=HOURS)
    start(lane, leo)
    break_down(lane)
    client.force_login(leo)

    page = text(client.get("/"))

    assert "on hold" in page
    assert "automatically: the model was unavailable" in page
    assert "Start the probe" in page
    assert "You may do this." in page
    assert "data-alarm" in page


def test_a_viewer_reads_who_may_take_the_next_step(client, vera) -> None:
    a_lane("posts")
    client.force_login(vera)

    page = text(client.get("/"))

    assert "A lead may do this." in page
    assert "You may do this." not in page


def test_a_healthy_lane_is_one_line(client, vera, leo) -> None:
    lane = a_lane("reviews", title="Reviews")
    fill(lane, 30, waited=timedelta(minutes=2))
    start(lane, leo, stages=4)
    work(lane, 28)
    workers_seen()
    client.force_login(vera)

    answer = client.get("/")

    assert [one.pk for one in answer.context["lines"]] == [lane.pk]
    assert answer.context["cards"] == []
    assert "every lane runs by itself" in text(answer)


def test_work_that_nobody_fetches_has_a_headline_of_its_own(client, vera, leo) -> None:
    lane = a_lane("reviews")
    fill(lane, 5, waited=timedelta(minutes=2))
    start(lane, leo, stages=4)
    client.force_login(vera)

    assert "nobody is working" in text(client.get("/"))


def test_a_lane_that_nobody_judges_has_a_headline_of_its_own(client, vera, leo) -> None:
    lane = a_lane("reviews")
    fill(lane, 5, waited=timedelta(minutes=2))
    start(lane, leo, stages=4)
    workers_seen()
    Lane.objects.filter(pk=lane.pk).update(judged_at=None)
    client.force_login(vera)

    assert "nobody judges the guardrails" in text(client.get("/"))


def test_a_queue_that_grows_says_by_how_much(client, vera, leo) -> None:
    lane = a_lane("reviews")
    start(lane, leo, stages=4)
    workers_seen()
    fill(lane, 50, waited=timedelta(seconds=10))
    judged(lane)
    client.force_login(vera)

    # Fifty in five whole minutes and what has passed of the present one.
    assert re.search(r"GROWING by (?:8\.\d|9\.\d|10)/min", text(client.get("/")))


def test_a_lane_on_its_way_up_says_what_its_stage_has_to_show(client, vera, leo) -> None:
    lane = a_lane("reviews")
    fill(lane, 30, waited=timedelta(seconds=10))
    start(lane, leo, stages=2)
    workers_seen()
    work(lane, 12)
    run_some(lane, 18)
    client.force_login(vera)

    page = text(client.get("/"))

    assert "stage 2 proves itself, 12 of 20 completions" in page or "GROWING" in page


def test_a_stage_that_has_run_its_time_says_what_its_gate_says(client, leo) -> None:
    """Told from what the watchers of alerts saw: the board itself measures no gate."""
    soon = {"soak_completions": 3, "soak_time": timedelta(0)}
    for name, least in [("known", 3), ("unknown", 40)]:
        lane = a_lane(
            name, stages=(StagePlan(1, "probe", cap=5, least_sample=least, **soon), StagePlan(2, "all", cap=50))
        )
        start(lane, leo)
        fill(lane, 4, waited=timedelta(minutes=40))
        work(lane, 3)
    workers_seen()
    client.force_login(leo)
    unread = text(client.get("/"))

    alerts.watch(clock=DATABASE_CLOCK)
    page = text(client.get("/"))

    assert unread.count("Look at the gate; then raise the stage.") == 2
    assert "Stage 1 has run its time, and its gate passes. Raise the stage." in page
    assert "its gate cannot tell yet. Too few calls to judge errors: 3 of at least 40." in page
    assert "there are never so many in 5 min." in page
    assert "has run its time and its gate passes. A lead may raise the stage." in page


def test_a_lane_that_wants_no_alert_of_a_soak_has_its_gate_on_the_board_still(client, leo) -> None:
    soon = {"soak_completions": 3, "soak_time": timedelta(0)}
    lane = a_lane("quiet", stages=(StagePlan(1, "probe", cap=5, least_sample=40, **soon), StagePlan(2, "all", cap=50)))
    AlertSettings.objects.create(lane=lane, kinds=["passing"])
    start(lane, leo)
    fill(lane, 4, waited=timedelta(minutes=40))
    work(lane, 3)
    workers_seen()
    alerts.watch(clock=DATABASE_CLOCK)
    client.force_login(leo)

    page = text(client.get("/"))

    assert "its gate cannot tell yet. Too few calls to judge errors: 3 of at least 40." in page
    assert "Look at the gate; then raise the stage." not in page
    assert not AlertEpisode.objects.exclude(kind="passing").exists()


def test_a_gate_that_does_not_pass_says_which_figure_and_what_to_do(leo) -> None:
    lane = start(a_lane("reviews"), leo)
    with figures.snapshot() as now:
        [found] = figures.board(list(where.lanes_to_read()), now=now)
    bad = GateLine(GateFigure.REJECTED, 0.5, 0.2, 40, 10, GateVerdict.BAD, 0.1, "same_hours")

    told = gate_told_text.not_passed(GateTold.of([bad]), found, lane.run)

    assert told == (
        "Stage 1 has run its time, but its gate does not pass. The answers are not as usual: the share of REJECTED is "
        "at 50.0 %, usually at 10.0 %, and 20.0 % away is the limit. Hold the lane or step down."
    )


def test_the_models_own_queries_of_a_refresh_are_planned_once(client, vera) -> None:
    a_lane("reviews")
    client.force_login(vera)
    client.get("/")

    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        statements = " ".join(statement for (statement,) in cursor.fetchall())

    for table in ("lane", "alertepisode"):
        assert f'FROM "queue_core_{table}"' in statements
    assert "SAVEPOINT" not in statements


def test_the_worst_lane_stands_first_and_stays_where_it_is_while_polled(client, vera, leo) -> None:
    calm, worse = a_lane("a-calm"), a_lane("b-worse")
    start(calm, leo, stages=4)
    workers_seen()
    client.force_login(vera)
    first = client.get("/")
    assert first.context["order"] == [worse.pk, calm.pk]

    kept = client.get("/", headers=POLL | {"X-Live-Order": f"{calm.pk},{worse.pk}"})

    assert kept.context["order"] == [calm.pk, worse.pk]
    assert "The order has changed." in text(kept)


def test_a_poll_gets_the_live_part_alone_without_any_form(client, leo) -> None:
    fill(a_lane("posts"), 5, waited=HOURS)
    client.force_login(leo)

    part = client.get("/", headers=POLL).content.decode()

    assert part.lstrip().startswith('<div id="live"')
    for forbidden in ("<form", "<input", "<details", "<textarea"):
        assert forbidden not in part


def test_the_board_takes_the_same_queries_for_any_number_of_lanes(client, vera, leo) -> None:
    def queries() -> int:
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as captured:
            assert client.get("/").status_code == 200
        return len(captured)

    client.force_login(vera)
    fill(a_lane("one"), 3, waited=HOURS)
    start(a_lane("running"), leo)
    few = queries()
    for number in range(4):
        fill(a_lane(f"more-{number}"), 3, waited=HOURS)

    assert queries() == few


def test_content_that_is_live_while_it_waits_is_said_loudly(client, vera) -> None:
    fill(a_lane("posts"), 3, waited=HOURS, exposure="live")
    client.force_login(vera)

    assert "LIVE while it waits" in text(client.get("/"))


def test_what_was_not_looked_at_is_not_said_to_be_hidden(client, vera) -> None:
    """Only the oldest are asked what their content does: what is LIVE deeper in a backlog is not called hidden."""
    lane = a_lane("posts")
    fill(lane, EXPOSURE_SAMPLE, waited=HOURS, exposure="hidden")
    client.force_login(vera)
    assert "Waiting content is" in text(client.get("/"))
    fill(lane, 1, waited=timedelta(0), seed=2, exposure="live")
    said = "The 25 that wait longest (more wait, and were not looked at) are"

    for page in ("/", reverse("lane", args=[lane.name])):
        answer = text(client.get(page))
        assert said in answer
        assert "Waiting content is" not in answer
    fill(lane, 1, waited=100 * HOURS, seed=3, exposure="live")

    loud = text(client.get("/"))

    assert "Waiting content is" in loud
    assert "LIVE while it waits" in loud


def test_a_layer_that_cannot_be_read_in_time_is_never_a_zero(client, vera, monkeypatch) -> None:
    from django.db import OperationalError

    from queue_core import at_once

    def too_slow(*_args, **_kwargs):
        raise OperationalError("canceling statement due to statement timeout")

    fill(a_lane("posts"), 3, waited=HOURS)
    client.force_login(vera)
    assert "figures from" not in text(client.get("/"))
    monkeypatch.setattr(at_once, "tell", too_slow)

    page = text(client.get("/"))

    assert "figures from" in page
