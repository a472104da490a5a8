from datetime import timedelta

import pytest

from queue_core import contract, where
from queue_core.models import Hold, Lane, Presence, Stage
from queue_core.states import AttemptOutcome
from queue_core.where import Cause, Layer, Moves, Prospect, Standing
from tests.factories import (
    at,
    claim,
    clock,
    dead_job,
    done_job,
    leased_job,
    make_connection,
    make_lane,
    make_run,
    new_ticket,
    waiting_job,
)

pytestmark = pytest.mark.django_db


def planned_lane() -> Lane:
    """On hold, with a probe that a lead may start."""
    lane = make_lane(cap=None)
    Stage.objects.create(lane=lane, number=1, name="probe", cap=1)
    return lane


def worker_seen(seconds: float) -> None:
    Presence.objects.create(kind="worker", name="w1", started_at=at(0), seen_at=at(seconds))


def said(job, seconds: float) -> tuple[Layer | None, Cause, Moves]:
    job.refresh_from_db()
    standing: Standing = where.locate(job, now=at(seconds))
    return standing.layer, standing.cause, standing.moves


def test_locate_a_job_whose_turn_is_next() -> None:
    job = waiting_job(make_lane())
    worker_seen(0)

    assert said(job, 30) == (Layer.READY, Cause.NEXT, Moves.TURN)


def test_locate_with_no_worker_seen_for_over_thirty_seconds_is_no_workers() -> None:
    job = waiting_job(make_lane())
    worker_seen(0)

    assert said(job, 30.5) == (Layer.NO_WORKERS, Cause.NOBODY_FETCHES, Moves.WORKERS)


def test_locate_in_a_lane_that_nobody_judged_for_thirty_seconds_blames_the_scheduler() -> None:
    lane = make_lane()
    job = waiting_job(lane)
    worker_seen(30)
    Lane.objects.filter(pk=lane.pk).update(judged_at=at(0))

    assert said(job, 30)[0] == Layer.READY
    assert said(job, 30.001) == (Layer.NO_WORKERS, Cause.NOT_JUDGED, Moves.SCHEDULER)


def test_locate_in_the_probe_says_that_it_draws_only_a_few() -> None:
    job = waiting_job(make_lane(number=1))
    worker_seen(0)

    assert said(job, 1) == (Layer.READY, Cause.PROBE_DRAWS, Moves.NEXT_STAGE)


def test_locate_behind_a_full_cap_names_the_cap_and_when_a_lease_ends_at_the_latest() -> None:
    lane = make_lane(cap=1)
    leased_job(lane, claimed=1)
    job = waiting_job(lane)
    worker_seen(0)

    assert said(job, 2) == (Layer.STAGE_FULL, Cause.CAP, Moves.SEAT)
    standing = where.locate(job, now=at(2))
    assert (standing.params["value"], standing.params["at"]) == (1, at(101))


def test_locate_behind_a_spent_rate_names_when_the_window_gives_room() -> None:
    lane = make_lane(run={"rate": 1})
    leased_job(lane, claimed=5)
    job = waiting_job(lane)
    worker_seen(0)

    assert where.locate(job, now=at(10)).params == {"value": 1, "at": at(65), "stage": 2}


def test_locate_on_an_automatic_hold_waits_for_a_lead_to_start_the_probe() -> None:
    job = waiting_job(planned_lane())

    assert said(job, 5) == (Layer.HELD, Cause.HELD_AUTOMATICALLY, Moves.LEAD_STARTS_PROBE)


def test_locate_on_a_persons_hold_says_who_and_offers_to_resume_for_fifteen_minutes(django_user_model) -> None:
    olga = django_user_model.objects.create_user("olga")
    lane = planned_lane()
    run = make_run(lane, ended_at=at(0), ended_as="held")
    Hold.objects.filter(lane=lane).update(ended_at=at(0))
    lane.hold = Hold.objects.create(lane=lane, by=olga, reason="desk_full", started_at=at(0), run=run)
    lane.save()
    job = waiting_job(lane, deadline=5000)

    assert said(job, 899.999) == (Layer.HELD, Cause.HELD_BY_PERSON, Moves.LEAD_RESUMES)
    assert said(job, 900) == (Layer.HELD, Cause.HELD_BY_PERSON, Moves.LEAD_STARTS_PROBE)
    assert where.locate(job, now=at(1)).params["by"] == "olga"


def test_locate_on_hold_with_less_time_left_than_a_call_takes_leaves_it_to_people() -> None:
    job = waiting_job(planned_lane(), deadline=10)

    assert said(job, 9.4) == (Layer.HELD, Cause.HELD_AUTOMATICALLY, Moves.LEAD_STARTS_PROBE)
    assert said(job, 9.5) == (Layer.HELD, Cause.HELD_TOO_LONG, Moves.PERSON_TAKES)
    assert where.locate(job, now=at(9.5)).prospect == Prospect.TOO_LATE


@pytest.mark.parametrize(
    ("broken", "cause"),
    [
        ({"policy": None}, Cause.NO_POLICY),
        ({"lease": timedelta(milliseconds=800), "least_call_time": timedelta(seconds=1)}, Cause.LEASE_TOO_SHORT),
    ],
)
def test_locate_what_can_never_run_as_its_lane_is_set_up(broken, cause) -> None:
    lane = make_lane(
        connection=make_connection(call_time_limit=timedelta(seconds=9)), max_hold=timedelta(milliseconds=500)
    )
    job = waiting_job(lane)
    worker_seen(0)
    assert where.locate(job, now=at(1)).prospect == Prospect.NOT_YET

    Lane.objects.filter(pk=lane.pk).update(**broken)

    assert said(job, 1) == (Layer.READY, cause, Moves.ADMINISTRATOR)
    assert where.locate(job, now=at(1)).prospect == Prospect.NEVER


@pytest.mark.parametrize("filled", ["rate", "connection"])
def test_locate_behind_room_for_no_call_at_all_is_never_and_not_full_for_now(filled: str) -> None:
    lane = make_lane(run={"rate": 0}) if filled == "rate" else make_lane(connection=make_connection(total_cap=0))

    assert said(waiting_job(lane), 1) == (Layer.STAGE_FULL, Cause.NO_ROOM_EVER, Moves.ADMINISTRATOR)


def test_locate_on_hold_without_a_plan_is_never_but_an_item_is_still_peoples() -> None:
    lane = make_lane(cap=None)
    item = waiting_job(lane, severity=3)

    assert said(waiting_job(lane), 1) == (Layer.HELD, Cause.NO_PLAN, Moves.ADMINISTRATOR)
    assert said(item, 1)[0] == Layer.PEOPLE


def test_locate_a_rest_that_ends_too_near_the_deadline_is_too_late_and_not_only_resting() -> None:
    job, token = leased_job(make_lane(backoff_base=timedelta(seconds=50)), claimed=1, deadline=52.5)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(2))
    job.refresh_from_db()

    assert said(job, 3) == (Layer.BACK_OFF, Cause.RESTS_TOO_LONG, Moves.PERSON_TAKES)
    assert where.locate(job, now=at(3)).prospect == Prospect.TOO_LATE


def test_locate_a_lapsed_lease_while_the_probe_runs_waits_for_the_next_stage() -> None:
    job, _token = leased_job(make_lane(number=1), claimed=1)
    worker_seen(100)

    assert said(job, 101) == (Layer.LEASE_OVER, Cause.NOT_TAKEN_OVER, Moves.NEXT_STAGE)


def test_locate_in_back_off_names_its_end_and_then_the_tick() -> None:
    lane = make_lane()
    job, token = leased_job(lane, claimed=1)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(2))
    job.refresh_from_db()
    rests_until = (job.available_at - at(0)).total_seconds()

    assert said(job, rests_until - 0.001) == (Layer.BACK_OFF, Cause.RESTS, Moves.TIME)
    assert said(job, rests_until) == (Layer.BACK_OFF, Cause.REST_IS_OVER, Moves.NEXT_TICK)


def test_locate_while_the_model_asked_for_a_pause_is_back_off_of_the_whole_lane() -> None:
    lane = make_lane()
    job = waiting_job(lane)
    Lane.objects.filter(pk=lane.pk).update(claims_not_before=at(60))

    assert said(job, 59) == (Layer.BACK_OFF, Cause.RETRY_AFTER, Moves.TIME)


def test_locate_with_less_time_left_than_a_call_takes_is_too_late_for_the_model() -> None:
    job = waiting_job(make_lane(least_call_time=timedelta(seconds=3)), deadline=100)
    worker_seen(90)

    assert said(job, 96.4)[0] == Layer.READY
    assert said(job, 96.5) == (Layer.TOO_LATE, Cause.TOO_LITTLE_TIME, Moves.PERSON_TAKES)
    assert said(job, 100) == (Layer.TOO_LATE, Cause.DEADLINE_PASSED, Moves.SWEEP)


def test_locate_a_lease_until_its_last_instant_and_after_it() -> None:
    job, _token = leased_job(make_lane(), claimed=1)
    worker_seen(100)

    assert said(job, 100.999) == (Layer.RUNNING, Cause.LEASE_RUNS, Moves.ANSWER)
    assert said(job, 101) == (Layer.LEASE_OVER, Cause.NOT_TAKEN_OVER, Moves.TAKEOVER)


def test_locate_a_lapsed_lease_with_the_budget_spent_waits_for_the_sweep() -> None:
    job = waiting_job(make_lane(max_attempts=1))
    claim(job, when=1)

    assert said(job, 101) == (Layer.LEASE_OVER, Cause.BUDGET_SPENT, Moves.SWEEP)


def test_locate_what_people_have() -> None:
    job = dead_job(make_lane())

    assert said(job, 20) == (Layer.PEOPLE, Cause.ITEM_FREE, Moves.PERSON_DECIDES)


def test_locate_an_item_that_somebody_took_until_the_time_is_over(django_user_model) -> None:
    rita = django_user_model.objects.create_user("rita")
    job = dead_job(make_lane())
    contract.assign(job.items.get(), rita, now=at(50), until=at(60))

    assert said(job, 59) == (Layer.PEOPLE, Cause.ITEM_TAKEN, Moves.PERSON_DECIDES)
    assert said(job, 60) == (Layer.PEOPLE, Cause.ITEM_FREE, Moves.PERSON_DECIDES)


def test_locate_a_decided_job_is_in_no_layer() -> None:
    assert said(done_job(make_lane()), 20) == (None, Cause.DECIDED, Moves.NOTHING)


def test_locate_a_superseded_and_a_withdrawn_job_are_in_no_layer() -> None:
    lane = make_lane()
    old, gone = waiting_job(lane), waiting_job(lane)
    newer = new_ticket(lane, external_id=old.ticket.external_id, revision="v2")
    contract.supersede(newer, replaces="v1", clock=clock(5))
    contract.withdraw(source=gone.ticket.source, external_id=gone.ticket.external_id, clock=clock(5))

    assert said(old, 20) == (None, Cause.SUPERSEDED, Moves.NOTHING)
    assert said(gone, 20) == (None, Cause.WITHDRAWN, Moves.NOTHING)


def test_locate_a_manual_job_whose_ticket_was_withdrawn_is_withdrawn() -> None:
    job = done_job(make_lane(), result="MANUAL")
    contract.withdraw(source=job.ticket.source, external_id=job.ticket.external_id, clock=clock(5))

    assert said(job, 20) == (None, Cause.WITHDRAWN, Moves.NOTHING)
