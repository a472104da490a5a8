"""The model goes down in a run and comes back: nothing passes by waiting, and nothing starts by itself."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from queue_core import contract, lanes, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract import NewTicket
from queue_core.lanes import StagePlan
from queue_core.models import Attempt, Decision, Item, Job, Lane, ModelConnection, Presence
from tests.endtoend.acts import assert_every_ticket_has_its_place, nothing_waits, raise_by_page, sealed, wait_for
from tests.workers.staged import RULES

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(400)]

# So many errors that the calls running without an answer are what holds the lane, however many fail while the last one
# that began before is still out.
SHORT = {"soak_completions": 3, "soak_time": timedelta(seconds=1), "least_sample": 3, "max_error_ratio": 0.9}
PLAN = (StagePlan(1, "probe", cap=2, **SHORT), StagePlan(2, "steady", cap=20, soak_completions=0))
TICKETS = 60


def test_a_model_that_goes_down_turns_nothing_and_coming_back_it_starts_nothing(workers, somebody, browse, stage):
    """BRK-08"""
    lane = _lane_at(stage)
    evidence = sealed()
    stage.pause(0.2)
    workers.start(processes=3)
    page = browse(somebody("lena", roles.LEAD))
    raise_by_page(page, lane.name, "Start the probe", workers)
    wait_for(workers, lambda: Decision.objects.count() >= 5, "the first tickets are decided")

    stage.set("down")
    wait_for(workers, lambda: _fresh(lane).is_on_hold, "the lane held itself")
    wait_for(workers, lambda: not Job.objects.filter(state="LEASED").exists(), "the running calls ended")

    down = _standing()
    assert 0 < down["waiting"] == TICKETS - down["decisions"]
    assert _fresh(lane).hold.reason == "auto_unavailable"
    assert set(Job.objects.filter(state="WAITING").values_list("attempts", "result")) == {(0, None)}
    assert set(Attempt.objects.filter(outcome="unavailable").values_list("is_charged", flat=True)) == {False}
    assert sealed() == evidence
    page.goto("/")
    expect(page.get_by_role("main")).to_contain_text("on hold")
    expect(page.get_by_role("main")).to_contain_text("automatically")

    stage.set("up")
    looks = stage.looks()
    wait_for(workers, lambda: stage.looks() > looks, "a health check saw the model answer")
    wait_for(workers, lambda: ModelConnection.objects.get().health_is_good is True, "and that is on record")
    _wait_for_ticks(workers, 3)

    assert _standing() == down
    assert _fresh(lane).is_on_hold
    assert sealed() == evidence

    stage.pause(0.01)
    raise_by_page(page, lane.name, "Start the probe", workers)
    raise_by_page(page, lane.name, "Raise to stage 2, steady", workers)
    wait_for(workers, nothing_waits, "every ticket was reviewed")

    assert Job.objects.filter(state="DONE", result="APPROVED", attempts=1).count() == TICKETS
    assert_every_ticket_has_its_place()
    assert sealed() == evidence


def _lane_at(stage) -> Lane:
    connection = ModelConnection.objects.create(
        name="staged", kind="staged", address=str(stage.folder), call_time_limit=timedelta(seconds=5)
    )
    lane = lanes.create_lane(
        "posts", connection, policy_rules=RULES, stages=PLAN, clock=DATABASE_CLOCK, lease=timedelta(seconds=10)
    )
    tickets = [
        NewTicket(source="forum", external_id=f"post-{n}", revision="1", lane=lane, evidence={"text": f"slow é {n}"})
        for n in range(TICKETS)
    ]
    contract.receive_many(tickets, clock=DATABASE_CLOCK)
    return lane


def _fresh(lane: Lane) -> Lane:
    return Lane.objects.select_related("hold").get(pk=lane.pk)


def _standing() -> dict[str, int]:
    return {
        "waiting": Job.objects.filter(state="WAITING").count(),
        "decisions": Decision.objects.count(),
        "items": Item.objects.count(),
        "attempts": Attempt.objects.count(),
        "runs": Lane.objects.filter(run__isnull=False).count(),
    }


def _wait_for_ticks(workers, number: int) -> None:
    until = Presence.objects.get(kind="scheduler").seen_at + timedelta(seconds=number)
    wait_for(workers, lambda: Presence.objects.get(kind="scheduler").seen_at > until, f"{number} more ticks")
