import re
from datetime import timedelta

import pytest
from django.urls import reverse

from queue_core import hold
from queue_core.clock import DATABASE_CLOCK
from queue_core.forecast import reading
from queue_core.models import Hold, Lane, StageRun
from queue_core.states import HoldForm, HoldReason
from tests.board.scene import a_connection, a_lane, ago, break_down, fill, run_some, start, work, workers_seen

pytestmark = pytest.mark.django_db

POLL = {"HX-Request": "true", "X-Live-Poll": "1"}
HTMX = {"HX-Request": "true"}
WAITED = timedelta(hours=1)


def text(response) -> str:
    return " ".join(response.content.decode().split())


def page(client, lane, **headers):
    return client.get(reverse("lane", args=[lane.name]), headers=headers)


def raise_data(client, lane, **fields) -> dict[str, str]:
    """What the form of the page as it is now would send."""
    shown = page(client, lane).context
    return {"raise-figures_id": shown["figures_id"], "raise-reason": "the model answers again", **fields}


def post(client, act: str, lane, data: dict[str, object], **headers):
    return client.post(reverse(act, args=[lane.name]), data, headers=headers)


def fresh(lane) -> Lane:
    return Lane.objects.select_related("run", "hold").get(pk=lane.pk)


HOLD = {"hold-form": "hold", "hold-reason": "precaution", "hold-until": "", "hold-note": ""}


# --- Who sees what ----------------------------------------------------------------------------------------------------


def test_a_lane_sends_an_anonymous_reader_to_sign_in(client) -> None:
    assert client.get(reverse("lane", args=["posts"])).status_code == 302


def test_an_unknown_lane_and_a_forbidden_one_are_the_same_answer(client, vera, xavier) -> None:
    lane = a_lane("posts")
    client.force_login(vera)
    assert client.get(reverse("lane", args=["none"])).status_code == 404
    client.force_login(xavier)

    assert page(client, lane).status_code == 404


def test_a_viewer_sees_the_figures_and_no_act(client, vera) -> None:
    lane = a_lane("posts")
    client.force_login(vera)

    shown = page(client, lane)

    assert "Waiting for people" in text(shown)
    assert b"<form" not in shown.content.split(b"<main")[1].split(b"</main")[0]


@pytest.mark.parametrize(
    "act", ["lane_raise", "lane_hold", "lane_resume", "lane_step_down", "lane_cap", "lane_policy", "outage_close"]
)
def test_an_act_without_its_right_does_not_exist_and_changes_nothing(client, vera, act) -> None:
    lane = a_lane("posts")
    client.force_login(vera)

    assert post(client, act, lane, {}).status_code == 404
    assert client.get(reverse(act, args=[lane.name])).status_code == 405
    assert fresh(lane).is_on_hold


def test_a_reviewer_may_hold_but_not_raise(client, rita, leo) -> None:
    lane = a_lane("posts")
    start(lane, leo)
    client.force_login(rita)

    shown = page(client, lane)
    assert shown.context["hold_form"] is not None
    assert "raise_form" not in shown.context

    assert post(client, "lane_raise", lane, {"raise-reason": "I want to", "raise-figures_id": "x"}).status_code == 404
    assert post(client, "lane_hold", lane, HOLD).status_code == 302
    assert fresh(lane).is_on_hold


def test_a_poll_gets_the_live_part_alone_without_any_form(client, leo) -> None:
    lane = a_lane("posts")
    fill(lane, 5, waited=WAITED)
    start(lane, leo)
    run_some(lane, 2)
    client.force_login(leo)

    part = client.get(reverse("lane", args=[lane.name]), headers=POLL).content.decode()

    assert part.lstrip().startswith('<div id="live"')
    for forbidden in ("<form", "<input", "<details", "<textarea"):
        assert forbidden not in part


def test_the_page_takes_the_same_queries_however_much_waits(client, leo) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    lane = a_lane("posts")
    fill(lane, 3, waited=WAITED)
    start(lane, leo)
    client.force_login(leo)
    counts = []
    for seed in (2, 3):
        reading.forget()
        with CaptureQueriesContext(connection) as captured:
            assert page(client, lane).status_code == 200
        counts.append(len(captured))
        fill(lane, 40, waited=WAITED, seed=seed)
        run_some(lane, 2)

    assert counts[0] == counts[1]


def soaked(leo, waiting: int = 30, **fields) -> Lane:
    lane = a_lane("posts", **fields)
    fill(lane, waiting, waited=WAITED)
    start(lane, leo, since=2 * WAITED)
    work(lane, 30, result="MANUAL")
    workers_seen()
    return lane


def test_the_next_step_is_a_button_for_those_alone_who_may_take_it(client, leo, vera) -> None:
    lane = soaked(leo)
    for person, is_offered in ((leo, True), (vera, False)):
        client.force_login(person)

        for shown in (client.get("/"), page(client, lane)):
            assert re.search(r"[Rr]aise the stage\.", text(shown))
            assert ("Raise the stage<" in text(shown)) is is_offered


def test_a_raise_is_not_advised_while_the_model_fails_its_health_check(client, leo) -> None:
    lane = soaked(leo, connection=a_connection("gone", is_good=False))
    client.force_login(leo)

    for shown in (client.get("/"), page(client, lane)):
        assert "but the model does not answer its health check." in text(shown)
        assert "Raise the stage<" not in text(shown)


@pytest.mark.parametrize(("left", "least", "most"), [(0, 300, 360), (100, 1_400, 1_660)])
def test_no_more_is_said_to_come_to_people_than_waits_and_arrives_in_an_hour(client, leo, left, least, most) -> None:
    """All of it came in the five to six minutes that the flow is told of; what is decided waits no more."""
    lane = soaked(leo, 30 + left)
    Lane.objects.filter(pk=lane.pk).update(usual_call_time=timedelta(milliseconds=10))
    client.force_login(leo)

    said = re.search(r"About ([\d,]+) items an hour will come to people", text(page(client, lane)))

    assert said is not None
    assert least <= int(said[1].replace(",", "")) <= most


# --- Raise ------------------------------------------------------------------------------------------------------------


def test_a_lead_starts_the_probe_with_a_reason_and_the_figures_are_frozen(client, leo) -> None:
    lane = a_lane("posts")
    fill(lane, 5, waited=WAITED)
    client.force_login(leo)

    answer = post(client, "lane_raise", lane, raise_data(client, lane))

    assert (answer.status_code, answer.url) == (302, reverse("lane", args=["posts"]))
    run = fresh(lane).run
    assert (run.number, run.raised_by, run.reason) == (1, leo, "the model answers again")
    assert run.figures["load"]["waiting"] == 5
    assert "runs: at most 2 calls at once" in text(page(client, lane))


def test_htmx_is_told_to_load_the_page_after_a_raise(client, leo) -> None:
    lane = a_lane("posts")
    client.force_login(leo)

    answer = post(client, "lane_raise", lane, raise_data(client, lane), **HTMX)

    assert answer.headers["HX-Redirect"] == reverse("lane", args=["posts"])


def test_a_raise_without_a_reason_is_answered_with_the_form_and_nothing_runs(client, leo) -> None:
    lane = a_lane("posts")
    client.force_login(leo)

    for reason in ("", "ok"):
        answer = post(client, "lane_raise", lane, raise_data(client, lane, **{"raise-reason": reason}), **HTMX)

        assert answer.status_code == 422
        assert text(answer).startswith('<aside class="rail" id="action"')
        assert answer.context["raise_form"].errors["reason"]
        assert fresh(lane).run is None


def test_a_raise_by_a_forged_figures_id_is_refused(client, leo) -> None:
    lane = a_lane("posts")
    client.force_login(leo)

    answer = post(client, "lane_raise", lane, {"raise-figures_id": "made-up", "raise-reason": "because I say so"})

    assert answer.status_code == 422
    assert "Refresh them" in text(answer)
    assert fresh(lane).run is None


def test_a_second_raise_of_the_same_step_is_told_who_was_faster(client, leo, cast) -> None:
    """RMP-11: one transition; the second reader learns who made it."""
    from queue_core import roles

    lane = a_lane("posts")
    lina = cast("lina", roles.LEAD)
    client.force_login(lina)
    data = raise_data(client, lane)
    start(lane, leo)

    answer = post(client, "lane_raise", lane, data)

    assert answer.status_code == 409
    assert "Somebody was faster" in text(answer)
    assert "leo" in text(answer)
    assert StageRun.objects.filter(lane=lane).count() == 1
    # The reason was for another step: it is shown, and not put into the form of the next one.
    assert answer.context["raise_typed"]


def test_a_raise_against_a_hold_is_refused_and_says_who_held(client, leo, rita) -> None:
    lane = a_lane("posts")
    start(lane, leo)
    client.force_login(leo)
    data = raise_data(client, lane, **{"raise-override_reason": "watched closely"})
    hold.pull(lane.pk, person=rita, form="hold", reason=HoldReason.DESK_FULL, clock=DATABASE_CLOCK)

    answer = post(client, "lane_raise", lane, data, **HTMX)

    assert answer.status_code == 409
    assert "The lane was put on hold meanwhile." in text(answer)
    assert "rita" in text(answer)
    assert fresh(lane).is_on_hold


def test_figures_older_than_two_minutes_are_read_again_and_the_reason_is_kept(client, leo) -> None:
    from queue_core import gate

    lane = a_lane("posts")
    client.force_login(leo)
    old = gate.read(fresh(lane), now=ago(timedelta(minutes=3)).now()).sign()

    answer = post(client, "lane_raise", lane, {"raise-figures_id": old, "raise-reason": "the model answers"})

    assert answer.status_code == 409
    assert "older than two minutes" in text(answer)
    assert answer.context["raise_form"].initial["reason"] == "the model answers"
    again = {"raise-figures_id": answer.context["figures_id"], "raise-reason": "the model answers"}
    assert post(client, "lane_raise", lane, again).status_code == 302


def test_an_unmet_soak_is_said_and_needs_the_right_to_override(client, leo, cast) -> None:
    from queue_core import roles

    lane = a_lane("posts")
    fill(lane, 5, waited=WAITED)
    start(lane, leo)
    workers_seen()
    other = cast("lina", roles.REVIEWER)
    other.user_permissions.add(*_permission("raise_stage"))
    client.force_login(other)

    shown = page(client, lane)
    assert "The soak needs 10 completions; so far: 0." in text(shown)
    assert shown.context["raise_form"] is None
    data = {"raise-figures_id": shown.context["figures_id"], "raise-reason": "the model answers"}
    assert post(client, "lane_raise", lane, data).status_code == 409
    assert fresh(lane).run.number == 1

    client.force_login(leo)
    over = raise_data(client, lane, **{"raise-override_reason": "a small lane, watched closely"})
    assert post(client, "lane_raise", lane, over).status_code == 302
    assert fresh(lane).run.override_reason == "a small lane, watched closely"


def _permission(codename: str):
    from django.contrib.auth.models import Permission

    return Permission.objects.filter(content_type__app_label="queue_core", codename=codename)


def test_a_soaked_stage_offers_the_next_one_and_says_what_it_will_do(client, leo) -> None:
    lane = a_lane("posts")
    fill(lane, 60, waited=WAITED)
    start(lane, leo, since=timedelta(minutes=2))
    workers_seen()
    for _time in range(12):
        work(lane, 2)
    client.force_login(leo)

    shown = text(page(client, lane))

    assert "Raise to stage 2, trickle" in shown
    assert "Calls at once: from 2 to 10." in shown
    assert "Raise in spite of it" not in shown


# --- Hold -------------------------------------------------------------------------------------------------------------


def test_a_hold_stands_at_once_with_its_reason_its_form_and_its_end(client, leo) -> None:
    lane = a_lane("posts")
    fill(lane, 4, waited=WAITED)
    start(lane, leo)
    run_some(lane, 2)
    client.force_login(leo)

    data = HOLD | {"hold-form": "refuse", "hold-until": "1h", "hold-note": "see chat"}
    answer = post(client, "lane_hold", lane, data)

    assert answer.status_code == 302
    held = fresh(lane).hold
    assert (held.form, held.reason, held.note, held.by) == (HoldForm.REFUSE, HoldReason.PRECAUTION, "see chat", leo)
    assert timedelta(minutes=59) < held.until - DATABASE_CLOCK.now() <= timedelta(hours=1)
    assert "2 running results are refused" in text(page(client, lane))


def test_a_hold_without_one_of_the_four_reasons_is_answered_with_the_form(client, leo) -> None:
    lane = a_lane("posts")
    start(lane, leo)
    client.force_login(leo)

    for reason in ("", "auto_errors", "because"):
        answer = post(client, "lane_hold", lane, HOLD | {"hold-reason": reason}, **HTMX)

        assert answer.status_code == 422
        assert answer.context["hold_form"].errors["reason"]
        assert not fresh(lane).is_on_hold


def test_a_hold_on_a_lane_that_is_held_already_says_who_was_first(client, leo, rita) -> None:
    lane = a_lane("posts")
    start(lane, leo)
    hold.pull(lane.pk, person=rita, form="refuse", reason=HoldReason.DESK_FULL, clock=DATABASE_CLOCK)
    client.force_login(leo)

    answer = post(client, "lane_hold", lane, HOLD | {"hold-form": "refuse"})

    assert answer.status_code == 409
    assert "on hold already" in text(answer)
    assert Hold.objects.filter(lane=lane, reason=HoldReason.PRECAUTION).count() == 0


def test_of_two_who_hold_a_lane_at_once_the_second_is_told_who_was_first(client, leo, rita) -> None:
    """BRK: the page that still offers a plain hold is answered with what stands now, not with a choice that is gone."""
    lane = a_lane("posts")
    start(lane, leo)
    hold.pull(lane.pk, person=rita, form="hold", reason=HoldReason.DESK_FULL, clock=DATABASE_CLOCK)
    client.force_login(leo)

    answer = post(client, "lane_hold", lane, HOLD | {"hold-form": "hold"})

    assert answer.status_code == 409
    assert "on hold already" in text(answer)
    assert "rita" in text(answer)
    assert "Select a valid choice" not in text(answer)


def test_a_held_lane_offers_to_refuse_what_still_runs(client, leo, rita) -> None:
    lane = a_lane("posts")
    fill(lane, 4, waited=WAITED)
    start(lane, leo)
    run_some(lane, 2)
    hold.pull(lane.pk, person=rita, form="hold", reason=HoldReason.WRONG_ANSWERS, clock=DATABASE_CLOCK)
    client.force_login(leo)
    assert "Refuse running results" in text(page(client, lane))

    answer = post(client, "lane_hold", lane, {"hold-form": "refuse", "hold-reason": "wrong_answers"})

    assert answer.status_code == 302
    assert fresh(lane).hold.form == HoldForm.REFUSE


# --- Resume, step down, cap -------------------------------------------------------------------------------------------


def test_a_persons_hold_is_resumed_at_its_stage(client, leo, rita) -> None:
    lane = a_lane("posts")
    start(lane, leo, stages=2)
    hold.pull(lane.pk, person=rita, form="hold", reason=HoldReason.PRECAUTION, clock=DATABASE_CLOCK)
    client.force_login(leo)
    hold_id = fresh(lane).hold_id

    answer = post(client, "lane_resume", lane, {"resume-hold": hold_id, "resume-to": 2, "resume-reason": "false alarm"})

    assert answer.status_code == 302
    assert fresh(lane).run.number == 2


def test_an_automatic_hold_offers_no_resume_and_refuses_one(client, leo) -> None:
    lane = a_lane("posts")
    fill(lane, 20, waited=WAITED)
    start(lane, leo)
    break_down(lane)
    client.force_login(leo)
    assert "resume_form" not in page(client, lane).context

    answer = post(
        client,
        "lane_resume",
        lane,
        {"resume-hold": fresh(lane).hold_id, "resume-to": 1, "resume-reason": "it is fine"},
    )

    assert answer.status_code == 409
    assert "only the probe leads out" in text(answer)
    assert fresh(lane).is_on_hold


def test_stepping_down_runs_a_lower_stage_and_a_stale_form_is_refused(client, leo) -> None:
    lane = a_lane("posts")
    start(lane, leo, stages=3)
    client.force_login(leo)
    data = {"down-run": fresh(lane).run_id, "down-to": 1, "down-reason": "answers are slow"}

    assert post(client, "lane_step_down", lane, data).status_code == 302
    assert fresh(lane).run.number == 1
    again = post(client, "lane_step_down", lane, data)
    assert again.status_code == 409
    assert "Another stage or hold stands there" in text(again)


def test_the_cap_is_lowered_and_lifted_again_but_not_over_what_was_approved(client, leo) -> None:
    lane = a_lane("posts")
    start(lane, leo, stages=2)
    client.force_login(leo)
    data = {"cap-run": fresh(lane).run_id, "cap-reason": "the desk is full"}

    assert post(client, "lane_cap", lane, data | {"cap-cap": 3}).status_code == 302
    assert fresh(lane).cap == 3
    assert "Lowered by a lead; 10 were approved." in text(page(client, lane))
    assert post(client, "lane_cap", lane, data | {"cap-cap": 11}).status_code == 422
    assert post(client, "lane_cap", lane, data | {"cap-cap": 10}).status_code == 302
    assert fresh(lane).cap == 10


def test_an_act_on_a_run_that_ended_meanwhile_is_a_conflict(client, leo) -> None:
    lane = a_lane("posts")
    start(lane, leo, stages=2)
    client.force_login(leo)
    old = StageRun.objects.filter(lane=lane).order_by("pk").first()

    answer = post(client, "lane_cap", lane, {"cap-run": old.pk, "cap-cap": 1, "cap-reason": "the desk is full"}, **HTMX)

    assert answer.status_code == 409
    assert "Another stage or hold stands there" in text(answer)
    assert fresh(lane).cap == 10


def test_the_history_keeps_runs_holds_and_the_figures_of_then(client, leo, rita) -> None:
    lane = a_lane("posts")
    fill(lane, 7, waited=WAITED)
    start(lane, leo)
    hold.pull(lane.pk, person=rita, form="hold", reason=HoldReason.PRECAUTION, clock=DATABASE_CLOCK)
    client.force_login(leo)

    shown = page(client, lane)

    whats = [str(one.what) for one in shown.context["history"]]
    assert whats == ["on hold", "stage 1, probe", "on hold"]
    assert ("waiting", "7") in [(str(name), str(value)) for name, value in shown.context["history"][1].frozen]
    assert [str(one.what) for one in shown.context["acts"]][:2] == ["put the lane on hold", "raised the stage"]


def test_the_page_names_the_open_outage_of_the_connection(client, leo) -> None:
    lane = a_lane("posts")
    fill(lane, 20, waited=WAITED)
    start(lane, leo)
    break_down(lane)
    client.force_login(leo)

    assert "An outage of the model has been open since" in text(page(client, lane))
