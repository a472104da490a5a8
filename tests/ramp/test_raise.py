"""Raising: who may, by which figures, and what is frozen."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from queue_core import contract, ramp, roles
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import AuditEntry, Lane, Message, Stage, StageRun
from queue_core.ramp import Raised
from reviewboard.models import Person
from tests.factories import at, clock, waiting_job
from tests.ramp.stories import (
    PLAN,
    WHY,
    again,
    answer,
    fail,
    leased,
    new_lane,
    probing,
    pull,
    raise_,
    read,
    running,
    soaked,
)

pytestmark = pytest.mark.django_db


def missing(raised: Raised) -> list[str]:
    return [unmet.code.value for unmet in raised.missing]


def test_a_lead_starts_the_probe_and_the_lane_runs_stage_1_with_its_cap(lead: Person) -> None:
    lane = new_lane()
    hold = lane.hold

    raised = raise_(lane, lead, when=10)

    lane = again(lane)
    assert (raised.outcome, raised.run, raised.by, raised.at) == ("raised", lane.run, lead, at(10))
    assert (lane.run.number, lane.run.raised_by, lane.run.reason, lane.cap, lane.hold) == (1, lead, WHY, 2, None)
    assert (lane.judged_at, lane.run.is_last) == (at(10), False)
    hold.refresh_from_db()
    assert (hold.ended_at, hold.ended_by) == (at(10), lead)


def test_a_raise_freezes_what_was_measured_and_what_was_approved(lead: Person) -> None:
    lane = new_lane()
    waiting_job(lane, added=4)

    run = raise_(lane, lead, when=10).run

    assert run.figures["load"]["oldest_held"] == at(4).isoformat()
    assert run.figures["hold"] == lane.hold_id
    assert run.connection_snapshot["kind"] == "test"
    assert (run.policy, run.lease, run.connection) == (lane.policy, lane.lease, lane.connection)


def test_a_raise_writes_its_audit_row_and_its_message(lead: Person) -> None:
    lane = new_lane()

    raise_(lane, lead, when=10)

    entry = AuditEntry.objects.get(act="stage.raised")
    assert (entry.actor, entry.lane, entry.reason, entry.after["stage"]) == (lead, lane, WHY, 1)
    message = Message.objects.get(kind="stage.raised")
    assert (message.lane, message.body["stage"], message.body["cap"], message.state) == (lane, 1, 2, "ready")


def test_a_soaked_stage_is_raised_to_the_next_and_the_run_before_is_ended_and_accepted(lead: Person) -> None:
    lane = soaked(lead)
    before = lane.run

    raised = raise_(lane, lead, when=70)

    lane = again(lane)
    before.refresh_from_db()
    assert (raised.outcome, lane.run.number, lane.cap) == ("raised", 2, 10)
    assert (before.ended_at, before.ended_as, before.ended_by, before.accepted_at) == (at(70), "raised", lead, at(70))
    assert lane.run.figures["soak"] == {
        "completions": 2,
        "completions_needed": 2,
        "seconds": 60.0,
        "seconds_needed": 60.0,
        "is_met": True,
    }


def test_the_last_stage_is_steady_and_nothing_is_above_it(lead: Person) -> None:
    lane = running(lead, stage=3)

    raised = raise_(lane, lead, when=150)

    assert lane.run.is_last
    assert (raised.outcome, missing(raised)[0]) == ("not_met", "stage")
    assert again(lane).run == lane.run


@pytest.mark.parametrize(("when", "completions", "code"), [(69, 2, "soak_time"), (70, 1, "soak_completions")])
def test_an_unmet_soak_is_refused_and_changes_nothing(lead: Person, when: int, completions: int, code: str) -> None:
    lane = probing(lead)
    for _number in range(completions):
        answer(lane, when=50)

    raised = raise_(lane, lead, when=when)

    assert (raised.outcome, code in missing(raised)) == ("not_met", True)
    assert again(lane).run == lane.run
    assert StageRun.objects.filter(lane=lane).count() == 1


def test_a_stage_with_too_small_a_sample_is_inconclusive_and_says_what_is_missing(lead: Person) -> None:
    """RMP-06: three answers where more are asked for are no reason to go on, however long the stage runs."""
    lane = probing(lead, stages=(replace(PLAN[0], least_sample=20), *PLAN[1:]))
    for _number in range(3):
        answer(lane, when=3000)

    raised = raise_(lane, lead, when=3010)

    assert read(lane, when=3010).verdict == "inconclusive"
    assert missing(raised) == ["guardrail_inconclusive"] * 3
    assert (raised.missing[0].params["sample"], raised.missing[0].params["least_sample"]) == (3, 20)
    assert again(lane).run == lane.run


def test_an_override_with_its_right_and_reason_moves_exactly_one_stage_once(lead: Person) -> None:
    """RMP-07: the next stage asks anew, and the old verdict does not pause it again."""
    lane = probing(lead)

    first = raise_(lane, lead, when=20, override_reason="nothing comes in at night")
    second = raise_(lane, lead, when=30)

    lane = again(lane)
    assert (first.outcome, first.run.number, first.run.override_reason) == ("raised", 2, "nothing comes in at night")
    assert (second.outcome, lane.run) == ("not_met", first.run)
    assert ramp.judge(lane.pk, clock=clock(31)) == "inconclusive"


def test_an_override_is_kept_only_where_something_was_overridden(lead: Person) -> None:
    lane = new_lane()

    run = raise_(lane, lead, when=10, override_reason="to be safe").run

    assert run.override_reason == ""


def test_an_override_without_the_right_is_refused(person: Callable[..., Person], lead: Person) -> None:
    from django.contrib.auth.models import Permission

    lane = probing(lead)
    raiser = person(None)
    raiser.user_permissions.add(Permission.objects.get(codename="raise_stage"))

    with pytest.raises(NotPermitted):
        raise_(lane, raiser, when=20, override_reason="nothing comes in at night")

    assert again(lane).run == lane.run


@pytest.mark.parametrize("role", [None, roles.VIEWER, roles.REVIEWER])
def test_who_may_not_raise_is_refused_and_nothing_is_written(person: Callable[..., Person], role: str | None) -> None:
    lane, somebody = new_lane(), person(role)

    with pytest.raises(NotPermitted):
        raise_(lane, somebody, when=10)

    assert again(lane).run is None
    assert "permission" in [unmet.code for unmet in ramp.may_raise(again(lane), somebody, read(lane, when=10))]


@pytest.mark.parametrize("reason", ["", "  why  ", "x" * 501, "nul\x00nul"])
def test_a_reason_that_is_none_is_refused(lead: Person, reason: str) -> None:
    lane = new_lane()

    with pytest.raises(InvalidRequest) as refused:
        raise_(lane, lead, when=10, reason=reason)

    assert refused.value.field == "reason"
    assert again(lane).run is None


def test_a_second_press_of_the_same_button_is_told_who_raised_and_when(lead: Person, other_lead: Person) -> None:
    """RMP-11: the stage goes from 1 to 2, never to 3."""
    lane = soaked(lead)
    shown = read(lane, when=70).sign()
    raise_(lane, lead, when=71, shown=shown)

    again_by_other = raise_(lane, other_lead, when=72, shown=shown)

    assert (again_by_other.outcome, again_by_other.by, again_by_other.at) == ("already_raised", lead, at(71))
    assert again(lane).run.number == 2
    assert AuditEntry.objects.filter(act="stage.raised", lane=lane).count() == 2


def test_a_raise_of_a_held_lane_by_figures_from_before_the_hold_is_refused(lead: Person, reviewer: Person) -> None:
    """RMP-01: nothing is stored, and the next run begins at the probe."""
    lane = running(lead)
    shown = read(lane, when=200).sign()
    pull(lane, reviewer, when=201)

    refused = raise_(lane, lead, when=202, shown=shown)

    lane = again(lane)
    assert (refused.outcome, refused.by, refused.at) == ("on_hold", reviewer, at(201))
    assert (lane.run, StageRun.objects.filter(lane=lane).count()) == (None, 2)
    assert raise_(lane, lead, when=203).run.number == 1


def test_an_approval_does_not_outlive_its_run(lead: Person, reviewer: Person) -> None:
    """RMP-02: the old form, sent again when the next run has got as far, is refused."""
    lane = soaked(lead)
    shown = read(lane, when=70).sign()
    pull(lane, reviewer, when=71)
    raise_(lane, lead, when=72)
    for _number in range(2):
        answer(lane, when=133)

    replayed = raise_(lane, lead, when=135, shown=shown)

    assert (replayed.outcome, again(lane).run.number) == ("run_differs", 1)


def test_a_hold_is_bound_to_itself_not_to_being_on_hold(lead: Person, reviewer: Person) -> None:
    lane = new_lane()
    shown = read(lane, when=5).sign()
    raise_(lane, lead, when=10)
    pull(lane, reviewer, when=20)

    assert raise_(lane, lead, when=21, shown=shown).outcome == "on_hold"
    assert again(lane).run is None


@pytest.mark.parametrize(("age", "outcome"), [(119, "raised"), (120, "raised"), (121, "figures_old")])
def test_figures_hold_for_two_minutes(lead: Person, age: int, outcome: str) -> None:
    lane = new_lane()
    shown = read(lane, when=5).sign()

    assert raise_(lane, lead, when=5 + age, shown=shown).outcome == outcome


def test_figures_from_a_time_that_is_yet_to_come_are_refused(lead: Person) -> None:
    lane = new_lane()
    shown = read(lane, when=50).sign()

    assert raise_(lane, lead, when=49, shown=shown).outcome == "figures_old"


def test_a_verdict_that_is_worse_than_shown_is_refused_even_with_an_override(lead: Person) -> None:
    lane = running(lead)
    for _number in range(20):
        answer(lane, when=140)
    shown = read(lane, when=150).sign()
    # Left to its lease, so that nobody judges the lane before the raise does.
    for _number in range(5):
        leased(lane, when=140)
    Lane.objects.filter(pk=lane.pk).update(judged_at=at(241))
    contract.sweep(clock=clock(241))

    refused = raise_(lane, lead, when=245, shown=shown, override_reason="we go on anyway")

    assert (refused.outcome, refused.worse) == ("figures_worse", ("timeouts",))
    assert again(lane).run == lane.run


def test_figures_that_moved_but_whose_verdicts_did_not_are_no_conflict(lead: Person) -> None:
    lane = soaked(lead)
    shown = read(lane, when=70).sign()
    answer(lane, when=71)
    waiting_job(lane, added=71)

    assert raise_(lane, lead, when=72, shown=shown).outcome == "raised"


def test_a_next_stage_that_was_edited_since_is_refused(lead: Person) -> None:
    """RMP-02: an approval is bound to the proposed cap too."""
    lane = soaked(lead)
    shown = read(lane, when=70).sign()
    Stage.objects.filter(lane=lane, number=2).update(cap=500)

    refused = raise_(lane, lead, when=71, shown=shown)

    assert (refused.outcome, again(lane).cap) == ("plan_differs", 2)


def test_editing_the_plan_never_lifts_a_live_cap(lead: Person) -> None:
    lane = probing(lead)

    Stage.objects.filter(lane=lane, number=1).update(cap=500, max_error_ratio=1.0)

    lane = again(lane)
    assert (lane.cap, lane.run.cap, lane.run.max_error_ratio) == (2, 2, 0.1)


def test_a_lane_without_a_policy_cannot_be_raised(lead: Person) -> None:
    lane = new_lane()
    Lane.objects.filter(pk=lane.pk).update(policy=None)

    raised = raise_(lane, lead, when=10)

    assert (raised.outcome, missing(raised)) == ("not_met", ["policy"])


class TestTwoPersonRule:
    def test_whoever_raised_the_stage_before_needs_somebody_else(self, lead: Person, other_lead: Person) -> None:
        lane = soaked(lead, two_person_rule=True)

        own = raise_(lane, lead, when=70)
        others = raise_(lane, other_lead, when=71)

        assert (own.outcome, missing(own), own.missing[0].params) == ("not_met", ["second_person"], {"others": 1})
        assert others.outcome == "raised"

    def test_where_nobody_else_may_that_is_said(self, lead: Person, reviewer: Person) -> None:
        lane = soaked(lead, two_person_rule=True)

        own = raise_(lane, lead, when=70, override_reason="nobody else is there")

        assert (own.outcome, missing(own)) == ("not_met", ["nobody_else"])

    def test_a_lead_who_is_no_longer_active_is_nobody(self, lead: Person, other_lead: Person) -> None:
        lane = soaked(lead, two_person_rule=True)
        Person.objects.filter(pk=other_lead.pk).update(is_active=False)

        assert missing(raise_(lane, lead, when=70)) == ["nobody_else"]

    def test_a_resume_does_not_make_the_first_raiser_forgotten(self, lead: Person, other_lead: Person) -> None:
        lane = probing(lead, two_person_rule=True)
        pull(lane, lead, when=20)
        ramp.resume(lane.pk, person=other_lead, reason=WHY, clock=clock(30))
        for _number in range(2):
            answer(lane, when=80)

        assert missing(raise_(lane, lead, when=95)) == ["nobody_else"]

    def test_the_probe_has_no_stage_before_it(self, lead: Person) -> None:
        lane = running(lead)
        Lane.objects.filter(pk=lane.pk).update(two_person_rule=True)
        pull(lane, lead, when=200)

        assert raise_(lane, lead, when=201).outcome == "raised"


class TestKeptBack:
    STAGES = (replace(PLAN[0], keeps_back=True), *PLAN[1:])

    def states(self, lane: Lane) -> list[str]:
        decisions = Message.objects.filter(lane=lane, kind="decision").order_by("pk")
        return list(decisions.values_list("state", flat=True))

    def test_decisions_wait_for_the_run_to_be_accepted_by_raising(self, lead: Person) -> None:
        lane = soaked(lead, stages=self.STAGES)
        assert self.states(lane) == ["kept_back", "kept_back"]
        assert read(lane, when=70).load.kept_back == 2

        raise_(lane, lead, when=70)

        assert self.states(lane) == ["ready", "ready"]
        assert AuditEntry.objects.filter(act="stage.raised").latest("pk").after["released_messages"] == 2

    def test_a_call_that_was_out_when_the_run_was_accepted_is_not_kept_back(self, lead: Person) -> None:
        lane = probing(lead, stages=self.STAGES)
        for _number in range(2):
            answer(lane, when=50)
        token = leased(lane, when=60)

        raise_(lane, lead, when=70)
        contract.complete(token, contract.Ending(result="APPROVED"), clock=clock(71))

        assert self.states(lane) == ["ready"] * 3

    def test_a_run_that_resumed_another_is_accepted_with_it(self, lead: Person) -> None:
        lane = soaked(lead, stages=self.STAGES)
        pull(lane, lead, when=70)
        ramp.resume(lane.pk, person=lead, reason=WHY, clock=clock(71))
        for _number in range(2):
            answer(lane, when=120)

        raise_(lane, lead, when=140)

        assert self.states(lane) == ["ready"] * 4

    def test_a_hold_accepts_nothing(self, lead: Person) -> None:
        lane = soaked(lead, stages=self.STAGES)

        pull(lane, lead, when=70)
        raise_(lane, lead, when=80)

        assert self.states(lane) == ["kept_back", "kept_back"]


def test_a_retry_after_that_is_not_over_stands_across_the_raise(lead: Person) -> None:
    """BRK-04: what the model asked for is not forgotten by a raise."""
    lane = probing(lead)
    for _number in range(2):
        answer(lane, when=50)
    fail(lane, "overloaded", when=60, retry_after=timedelta(seconds=120))

    raise_(lane, lead, when=72, override_reason="one 429 among three")

    assert again(lane).claims_not_before == at(180)
