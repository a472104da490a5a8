"""One task drains one lane: what it claims, what it makes of each answer, and when it goes."""

from datetime import timedelta

import pytest

from queue_core import contract, drainers, wakeups
from queue_core.clock import DATABASE_CLOCK
from queue_core.drain import Drained, Stop, drain
from queue_core.models import Attempt, Decision, Drainer, Item, Job, Lane, LateAnswer, Policy, ReasonCode
from tests.factories import make_ground
from tests.workers.conftest import make_staged_lane, receive

pytestmark = pytest.mark.django_db


def run(lane: Lane, *, is_stopping=lambda: False, task: str = "task-1") -> Drained:
    return drain(lane.pk, task=task, worker="w1", clock=DATABASE_CLOCK, is_stopping=is_stopping)


def fresh(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def lapse(*jobs: Job) -> None:
    """Let the leases of running jobs be over, as if their worker had died a while ago."""
    for job in jobs:
        token = contract.claim(job.pk, clock=DATABASE_CLOCK, worker="gone", lease=timedelta(milliseconds=1)).token
        assert token is not None


def test_drain_gives_each_ticket_what_the_policy_makes_of_its_score(staged_lane):
    fine, bad, grey = receive(staged_lane, "fine", "bad", "grey")

    drained = run(staged_lane)

    assert (drained.stop, drained.claims) == (Stop.NOTHING, 3)
    assert [fresh(job).result for job in (fine, bad, grey)] == ["APPROVED", "REJECTED", "MANUAL"]
    assert {d.ticket_id: d.verdict for d in Decision.objects.all()} == {
        fine.ticket_id: "APPROVED",
        bad.ticket_id: "REJECTED",
    }
    assert [(item.job_id, item.cause) for item in Item.objects.all()] == [(grey.pk, "grey_zone")]


def test_drain_keeps_with_the_attempt_what_the_model_said(staged_lane):
    receive(staged_lane, "bad")

    run(staged_lane)

    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.is_committed, attempt.worker) == ("verdict", True, "w1")
    assert (attempt.scores, attempt.model, attempt.usage) == ({"offensive": 0.95}, "staged", {"tokens": 3})
    assert attempt.latency is not None


def test_drain_goes_on_until_nothing_is_left_in_batches_of_what_can_be_called_at_once(staged_lane, stage):
    receive(staged_lane, *["fine"] * 25)

    drained = run(staged_lane)

    assert drained.claims == 25
    assert Job.objects.filter(state="DONE").count() == 25
    assert max(len(call["together"]) for call in stage.calls()) == 10


@pytest.mark.parametrize(
    ("condition", "cause", "outcome"),
    [("refuses", "refused", "refused"), ("rejects", "input_rejected", "input_rejected")],
)
def test_an_answer_that_judges_nothing_is_for_people(staged_lane, stage, condition, cause, outcome):
    [job] = receive(staged_lane, "fine")
    stage.set(condition)

    run(staged_lane)

    assert (fresh(job).state, fresh(job).result) == ("DONE", "MANUAL")
    assert Item.objects.get().cause == cause
    assert Attempt.objects.get().outcome == outcome


def test_restricted_evidence_never_reaches_a_model_that_may_not_see_it(staged_lane, stage):
    [job] = receive(staged_lane, "fine", is_restricted=True)

    run(staged_lane)

    assert stage.calls() == []
    assert (fresh(job).state, fresh(job).result) == ("DONE", "MANUAL")
    assert Item.objects.get().cause == "restricted"
    assert not Decision.objects.exists()


def test_restricted_evidence_reaches_a_model_that_is_marked_for_it(stage, staged_lane):
    staged_lane.connection.allow_restricted = True
    staged_lane.connection.save()
    [job] = receive(staged_lane, "fine", is_restricted=True)

    run(staged_lane)

    assert fresh(job).result == "APPROVED"


def test_an_unavailable_model_leaves_tickets_waiting_with_their_budget(staged_lane, stage):
    """BRK-08"""
    jobs = receive(staged_lane, "fine", "bad")
    stage.set("down")

    run(staged_lane)

    for job in map(fresh, jobs):
        assert (job.state, job.attempts, job.result) == ("WAITING", 0, None)
        assert job.available_at is not None
    assert set(Attempt.objects.values_list("outcome", "is_charged")) == {("unavailable", False)}
    assert not Decision.objects.exists()


def test_a_model_that_refuses_the_key_holds_the_lane_at_once(staged_lane, stage):
    """BRK-04"""
    [job] = receive(staged_lane, "fine")
    stage.set("locked")

    run(staged_lane)

    staged_lane.refresh_from_db()
    assert staged_lane.run is None
    assert staged_lane.hold is not None
    assert staged_lane.hold.reason == "auto_misconfigured"
    assert (fresh(job).state, fresh(job).attempts) == ("WAITING", 0)


def test_a_busy_model_is_left_alone_until_it_said(staged_lane, stage):
    """BRK-04"""
    [job] = receive(staged_lane, "fine")
    stage.set("busy")

    run(staged_lane)

    staged_lane.refresh_from_db()
    assert staged_lane.claims_not_before is not None
    assert staged_lane.claims_not_before > DATABASE_CLOCK.now() + timedelta(seconds=60)
    assert (fresh(job).state, fresh(job).attempts) == ("WAITING", 0)


@pytest.mark.parametrize(("condition", "outcome"), [("timeout", "timeout"), ("invalid", "invalid_answer")])
def test_an_answer_of_unknown_or_no_worth_is_charged_and_rests(staged_lane, stage, condition, outcome):
    [job] = receive(staged_lane, "fine")
    stage.set(condition)

    run(staged_lane)

    assert (fresh(job).state, fresh(job).attempts) == ("WAITING", 1)
    assert fresh(job).available_at is not None
    assert Attempt.objects.get().outcome == outcome


def test_an_adapter_that_cannot_be_prepared_costs_no_budget(staged_lane, stage):
    [job] = receive(staged_lane, "fine")
    stage.set("unprepared")

    run(staged_lane)

    assert (fresh(job).state, fresh(job).attempts) == ("WAITING", 0)
    assert Attempt.objects.get().outcome == "unavailable"


def test_a_connection_of_an_unknown_kind_holds_the_lane_with_a_sentence(staged_lane):
    staged_lane.connection.kind = "telepathy"
    staged_lane.connection.save()
    [job] = receive(staged_lane, "fine")

    run(staged_lane)

    staged_lane.refresh_from_db()
    assert staged_lane.run is None
    assert (fresh(job).state, fresh(job).attempts) == ("WAITING", 0)
    assert "telepathy" in Attempt.objects.get().detail


def test_a_policy_that_cannot_be_read_holds_the_lane_and_calls_nothing(staged_lane, stage):
    Policy.objects.filter(pk=staged_lane.policy_id).update(rules=[])
    [job] = receive(staged_lane, "fine")

    run(staged_lane)

    staged_lane.refresh_from_db()
    assert staged_lane.run is None
    assert stage.calls() == []
    assert fresh(job).state == "WAITING"


@pytest.mark.parametrize("fields", [{"is_active": False}, {"is_for_rejection": False}, {"lanes": [0]}])
def test_a_reason_code_that_is_no_ground_in_this_lane_rejects_nothing(staged_lane, fields):
    """As for people: one retired, one for approving, one of other lanes."""
    make_ground()
    ReasonCode.objects.update(**fields)
    [job] = receive(staged_lane, "bad")

    run(staged_lane)

    assert fresh(job).result == "MANUAL"
    assert Item.objects.get().cause == "no_reason_code"


def test_a_lane_on_hold_is_left_alone(stage, staged_lane):
    lane = make_staged_lane(stage, cap=None)
    [job] = receive(lane, "fine")

    drained = run(lane)

    assert (drained.claims, drained.refusal) == (0, "on_hold")
    assert (fresh(job).state, fresh(job).fence) == ("WAITING", 0)
    assert stage.calls() == []


def test_a_full_stage_is_not_overrun(stage, staged_lane):
    lane = make_staged_lane(stage, cap=3)
    receive(lane, *["fine"] * 8)

    run(lane)

    assert Job.objects.filter(state="DONE").count() == 8
    assert max(len(call["together"]) for call in stage.calls()) == 3


def test_a_job_with_too_little_time_for_a_call_is_not_called(stage, staged_lane):
    """LSE-08: no model call starts that could not end before the deadline."""
    soon = DATABASE_CLOCK.now() + timedelta(seconds=1)
    lane = make_staged_lane(stage, least_call_time=timedelta(seconds=1))
    [job] = receive(lane, "fine", deadline=soon)

    drained = run(lane)

    assert drained.claims == 0
    assert stage.calls() == []
    assert fresh(job).state == "WAITING"


def test_a_calls_time_limit_ends_before_its_lease(stage, staged_lane):
    lane = make_staged_lane(stage, lease=timedelta(seconds=2), connection={"call_time_limit": timedelta(seconds=1)})
    receive(lane, "fine")

    run(lane)

    assert [call["limit"] for call in stage.calls()] == [1.0]


def test_a_lease_that_is_shorter_than_a_call_is_lengthened_before_it(stage, staged_lane):
    lane = make_staged_lane(stage, lease=timedelta(seconds=1), connection={"call_time_limit": timedelta(seconds=3)})
    receive(lane, "fine")

    run(lane)

    assert [call["limit"] for call in stage.calls()] == [3.0]


def test_a_job_whose_lease_is_over_is_taken_over_alone_and_before_the_rest(staged_lane, stage):
    lapsed = receive(staged_lane, "fine", "fine")
    lapse(*lapsed)
    receive(staged_lane, "bad", "bad", "bad")

    run(staged_lane)

    assert Job.objects.filter(state="DONE").count() == 5
    alone = [call for call in stage.calls() if call["fence"] == 2]
    assert [len(call["together"]) for call in alone] == [1, 1]
    assert set(Attempt.objects.filter(fence=1, worker="gone").values_list("outcome", flat=True)) == {"lease_expired"}


def test_the_rest_of_the_lane_goes_on_while_another_task_takes_over_alone(staged_lane, stage):
    [lapsed] = receive(staged_lane, "fine")
    lapse(lapsed)
    [other] = receive(staged_lane, "bad")
    elsewhere = drainers.take(staged_lane, task="task-0", worker="w0", clock=DATABASE_CLOCK)
    assert elsewhere is not None
    assert drainers.go_alone(elsewhere, staged_lane, clock=DATABASE_CLOCK)

    run(staged_lane)

    assert fresh(other).state == "DONE"
    assert (fresh(lapsed).state, fresh(lapsed).fence) == ("LEASED", 1)


def test_the_idempotency_key_stays_until_an_answer_was_received(staged_lane, stage):
    [job] = receive(staged_lane, "fine")
    for condition in ("timeout", "invalid", "up"):
        stage.set(condition)
        Job.objects.filter(pk=job.pk).update(available_at=None)
        run(staged_lane)

    keys = [call["key"] for call in stage.calls()]
    assert keys[0] == keys[1]
    assert keys[1] != keys[2]
    assert fresh(job).state == "DONE"


def test_a_worker_that_stops_gives_back_what_it_has_not_called(staged_lane, stage):
    jobs = receive(staged_lane, *["fine"] * 3)
    asked = iter([False, True, True, True, True, True])

    drained = run(staged_lane, is_stopping=lambda: next(asked, True))

    assert drained.stop == Stop.STOPPING
    assert stage.calls() == []
    for job in map(fresh, jobs):
        assert (job.state, job.attempts) == ("WAITING", 0)
    assert not Attempt.objects.filter(ended_at__isnull=True).exists()


def test_a_worker_that_is_stopping_claims_nothing(staged_lane):
    receive(staged_lane, "fine")

    drained = run(staged_lane, is_stopping=lambda: True)

    assert (drained.stop, drained.claims) == (Stop.STOPPING, 0)


def test_a_slice_that_is_over_wakes_the_lane_again(staged_lane, settings, monkeypatch):
    woken = _woken(monkeypatch)
    settings.QUEUE_CORE_DRAIN_SLICE = timedelta(0)
    receive(staged_lane, "fine")

    drained = run(staged_lane)

    assert drained.stop == Stop.SLICE_OVER
    assert woken == [staged_lane.pk]


def test_a_lane_with_all_its_drainers_turns_a_task_away(staged_lane):
    receive(staged_lane, "fine")
    for number in range(staged_lane.drainers):
        assert drainers.take(staged_lane, task=f"t{number}", worker="w", clock=DATABASE_CLOCK) is not None

    assert run(staged_lane).stop == Stop.NO_PLACE


def test_a_dead_tasks_place_is_free_when_its_time_is_over(staged_lane):
    for number in range(staged_lane.drainers):
        drainers.take(staged_lane, task=f"t{number}", worker="w", clock=DATABASE_CLOCK)
    Drainer.objects.filter(place=1).update(until=DATABASE_CLOCK.now())

    assert drainers.take(staged_lane, task="new", worker="w", clock=DATABASE_CLOCK) is not None


def test_a_second_drainer_waits_while_another_lane_with_work_has_none(staged_lane, stage, monkeypatch):
    woken = _woken(monkeypatch)
    other = make_staged_lane(stage)
    receive(other, "fine")
    assert drainers.take(staged_lane, task="first", worker="w", clock=DATABASE_CLOCK) is not None

    assert run(staged_lane).stop == Stop.NO_PLACE
    assert woken == [other.pk]


def test_the_only_drainer_of_a_lane_stays_though_another_lane_waits(staged_lane, stage):
    other = make_staged_lane(stage)
    receive(other, "fine")
    receive(staged_lane, "fine")

    assert run(staged_lane).claims == 1


def test_a_drainer_yields_after_a_while_to_a_lane_that_has_none(staged_lane, stage, monkeypatch):
    woken = _woken(monkeypatch)
    monkeypatch.setattr("queue_core.drain.LOOK_ROUND", 0.0)
    other = make_staged_lane(stage)
    receive(other, "fine")
    receive(staged_lane, "fine")

    assert run(staged_lane).stop == Stop.YIELDED
    assert woken == [other.pk, staged_lane.pk]


def test_a_late_answer_is_kept_and_changes_nothing(staged_lane, stage):
    [job] = receive(staged_lane, "fine")
    first = contract.claim(job.pk, clock=DATABASE_CLOCK, worker="slow", lease=timedelta(milliseconds=1)).token
    assert first is not None
    run(staged_lane)

    outcome = contract.complete(first, contract.Ending(result="REJECTED", reason_code="insult"), clock=DATABASE_CLOCK)

    assert outcome == "stale"
    assert fresh(job).result == "APPROVED"
    assert LateAnswer.objects.get().result == "REJECTED"


def _woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    woken: list[int] = []
    monkeypatch.setattr(wakeups, "wake", woken.append)
    return woken
