"""Resume, step down, cap and policy: what a lead does to a flow that was approved. Never more than was approved."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from queue_core import ramp, roles
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import AuditEntry, Lane, ModelConnection, Policy, Stage
from queue_core.ramp import Acted
from reviewboard.models import Person
from tests.factories import at, claim, clock, waiting_job
from tests.ramp.stories import PLAN, RULES, WHY, again, answer, end, fail, leased, new_lane, pull, raise_, running

pytestmark = pytest.mark.django_db


def resume(lane: Lane, person: Person, *, when: float, **words: object) -> Acted:
    return ramp.resume(lane.pk, person=person, clock=clock(when), **({"reason": WHY} | words))


class TestResume:
    def test_a_persons_hold_is_resumed_at_the_same_stage_and_cap(self, lead: Person, reviewer: Person) -> None:
        lane = running(lead)
        pull(lane, reviewer, when=100)

        resumed = resume(lane, lead, when=200)

        now = again(lane)
        assert (resumed.outcome, resumed.run) == ("done", now.run)
        assert (now.run.number, now.cap, now.run.resumes, now.run.raised_by) == (2, 10, lane.run, lead)
        assert (now.hold, now.judged_at) == (None, at(200))
        assert AuditEntry.objects.get(act="lane.resumed").actor == lead

    def test_a_resumed_run_is_soaked_again(self, lead: Person) -> None:
        lane = running(lead)
        for _number in range(3):
            answer(lane, when=120)
        pull(lane, lead, when=150)
        resume(lane, lead, when=160)

        assert raise_(lane, lead, when=170).outcome == "not_met"

    @pytest.mark.parametrize(("after", "outcome"), [(899, "done"), (900, "too_late"), (901, "too_late")])
    def test_only_within_15_minutes(self, lead: Person, after: int, outcome: str) -> None:
        lane = running(lead)
        pull(lane, lead, when=100)

        assert resume(lane, lead, when=100 + after).outcome == outcome
        assert (again(lane).run is not None) == (outcome == "done")

    def test_an_automatic_hold_restarts_at_the_probe_only(self, lead: Person) -> None:
        lane = running(lead, unavailable_limit=1)
        fail(lane, "unavailable", when=90)

        assert resume(lane, lead, when=91).outcome == "not_a_persons_hold"
        assert resume(new_lane(), lead, when=91).outcome == "not_a_persons_hold"
        assert raise_(lane, lead, when=92).run.number == 1

    def test_not_with_a_guardrail_broken_by_calls_that_ended_after_the_hold(self, lead: Person) -> None:
        lane = running(lead)
        tokens = [leased(lane, when=90) for _number in range(3)]
        pull(lane, lead, when=100)
        for token in tokens:
            end(token, "timeout", when=105)

        refused = resume(lane, lead, when=500)

        assert (refused.outcome, refused.figure) == ("guardrail_broken", "timeouts")
        assert again(lane).run is None

    def test_not_after_unavailable_answers_running(self, lead: Person) -> None:
        lane = running(lead, stages=(PLAN[0], replace(PLAN[1], least_sample=50), PLAN[2]), unavailable_limit=2)
        tokens = [leased(lane, when=90) for _number in range(2)]
        pull(lane, lead, when=100)
        for token in tokens:
            end(token, "unavailable", when=105)

        assert resume(lane, lead, when=110).outcome == "guardrail_broken"

    def test_not_when_the_connection_is_not_the_one_approved(self, lead: Person) -> None:
        lane = running(lead)
        pull(lane, lead, when=100)
        ModelConnection.objects.filter(pk=lane.connection_id).update(model="another")

        assert resume(lane, lead, when=110).outcome == "connection_differs"

    def test_a_plan_edited_meanwhile_lifts_nothing(self, lead: Person) -> None:
        lane = running(lead)
        pull(lane, lead, when=100)
        Stage.objects.filter(lane=lane).update(cap=500)

        resume(lane, lead, when=110)

        assert again(lane).cap == 10

    def test_at_a_lower_stage_with_no_more_than_the_held_cap(self, lead: Person) -> None:
        lane = running(lead)
        pull(lane, lead, when=100)
        Stage.objects.filter(lane=lane, number=1).update(cap=500)

        resume(lane, lead, when=110, to=1)

        now = again(lane)
        assert (now.run.number, now.cap, now.run.resumes) == (1, 10, None)

    def test_not_at_a_higher_stage(self, lead: Person) -> None:
        lane = running(lead)
        pull(lane, lead, when=100)

        assert resume(lane, lead, when=110, to=3).outcome == "not_lower"
        with pytest.raises(InvalidRequest):
            resume(lane, lead, when=110, to=0)
        assert again(lane).run is None

    def test_of_a_running_lane_names_who_started_it(self, lead: Person, other_lead: Person) -> None:
        lane = running(lead)
        hold = pull(lane, lead, when=100).hold
        resume(lane, other_lead, when=110)

        second = resume(lane, lead, when=111, hold_id=hold.pk)

        assert (second.outcome, second.by, second.at) == ("running", other_lead, at(110))

    def test_of_another_hold_than_was_shown_is_refused(self, lead: Person, reviewer: Person) -> None:
        lane = running(lead)
        shown = pull(lane, lead, when=100).hold
        resume(lane, lead, when=110)
        pull(lane, reviewer, when=120)

        refused = resume(lane, lead, when=121, hold_id=shown.pk)

        assert (refused.outcome, refused.by) == ("differs", reviewer)

    def test_a_reviewer_may_not(self, lead: Person, reviewer: Person) -> None:
        lane = running(lead)
        pull(lane, reviewer, when=100)

        with pytest.raises(NotPermitted):
            resume(lane, reviewer, when=110)


class TestStepDown:
    def down(self, lane: Lane, person: Person, *, to: int, when: float = 200, **words: object) -> Acted:
        return ramp.step_down(lane.pk, person=person, to=to, clock=clock(when), **({"reason": WHY} | words))

    def test_runs_the_lower_stage_at_once(self, lead: Person) -> None:
        lane = running(lead, stage=3)

        done = self.down(lane, lead, to=2)

        now = again(lane)
        lane.run.refresh_from_db()
        assert (done.outcome, now.run.number, now.cap) == ("done", 2, 10)
        assert (lane.run.ended_as, lane.run.accepted_at) == ("stepped_down", None)
        assert AuditEntry.objects.get(act="stage.stepped_down").before["stage"] == 3

    def test_never_with_more_than_flows_now(self, lead: Person) -> None:
        lane = running(lead, stage=3)
        ramp.set_cap(lane.pk, person=lead, cap=5, reason=WHY, clock=clock(190))
        Stage.objects.filter(lane=lane, number=2).update(cap=40)

        self.down(lane, lead, to=2)

        assert (again(lane).cap, again(lane).run.cap) == (5, 5)

    def test_keeps_the_smaller_rate(self, lead: Person) -> None:
        lane = running(lead, stage=3, stages=(PLAN[0], PLAN[1], replace(PLAN[2], rate=60)))

        self.down(lane, lead, to=2)

        assert again(lane).run.rate == 60

    def test_not_to_the_same_or_a_higher_stage(self, lead: Person) -> None:
        lane = running(lead)

        assert self.down(lane, lead, to=2).outcome == "not_lower"
        assert self.down(lane, lead, to=3).outcome == "not_lower"
        assert again(lane).run == lane.run

    def test_not_to_a_stage_that_the_plan_has_not(self, lead: Person) -> None:
        lane = running(lead)

        with pytest.raises(InvalidRequest) as refused:
            self.down(lane, lead, to=0)
        assert refused.value.field == "to"

    def test_not_on_hold_nor_of_another_run_than_was_shown(self, lead: Person, reviewer: Person) -> None:
        lane = running(lead, stage=3)
        shown = lane.run_id
        self.down(lane, lead, to=2)

        second = self.down(lane, lead, to=1, run_id=shown)
        pull(lane, reviewer, when=201)
        on_hold = self.down(lane, lead, to=1)

        assert (second.outcome, second.by) == ("differs", lead)
        assert (on_hold.outcome, on_hold.by, on_hold.at) == ("on_hold", reviewer, at(201))


class TestCap:
    def set(self, lane: Lane, person: Person, cap: int, **words: object) -> Acted:
        return ramp.set_cap(lane.pk, person=person, cap=cap, clock=clock(200), **({"reason": WHY} | words))

    def test_a_lowered_cap_is_obeyed_by_the_next_claim(self, lead: Person) -> None:
        lane = running(lead)
        leased(lane, when=195)
        job = waiting_job(lane, added=195)

        assert self.set(lane, lead, 1).outcome == "done"

        with pytest.raises(AssertionError, match="stage_full"):
            claim(job, when=201)
        entry = AuditEntry.objects.get(act="lane.cap_set")
        assert (entry.before, entry.after["cap"]) == ({"cap": 10}, 1)

    def test_back_up_only_to_what_was_approved(self, lead: Person) -> None:
        lane = running(lead)
        self.set(lane, lead, 1)

        assert self.set(lane, lead, 10).outcome == "done"
        for cap in (11, 0, -1):
            with pytest.raises(InvalidRequest) as refused:
                self.set(lane, lead, cap)
            assert refused.value.field == "cap"
        assert again(lane).cap == 10

    def test_the_same_cap_is_unchanged_and_leaves_no_audit_row(self, lead: Person) -> None:
        lane = running(lead)

        assert self.set(lane, lead, 10).outcome == "unchanged"
        assert not AuditEntry.objects.filter(act="lane.cap_set").exists()

    def test_on_hold_there_is_no_cap(self, lead: Person) -> None:
        assert self.set(new_lane(), lead, 1).outcome == "on_hold"

    def test_a_reviewer_may_not(self, lead: Person, reviewer: Person) -> None:
        with pytest.raises(NotPermitted):
            self.set(running(lead), reviewer, 1)


class TestPolicy:
    def version(self, lane: Lane, number: int = 2, rules: object = RULES) -> Policy:
        return Policy.objects.create(lane=lane, version=number, rules=rules, made_at=at(150))

    def force(self, lane: Lane, policy: Policy, person: Person) -> Acted:
        return ramp.force_policy(lane.pk, policy.pk, person=person, reason=WHY, clock=clock(200))

    def test_a_new_run_begins_at_the_same_stage_and_the_same_cap(self, lead: Person) -> None:
        lane = running(lead)
        ramp.set_cap(lane.pk, person=lead, cap=4, reason=WHY, clock=clock(190))
        policy = self.version(lane)

        forced = self.force(lane, policy, lead)

        now = again(lane)
        lane.run.refresh_from_db()
        assert (forced.outcome, now.policy, now.run.policy) == ("done", policy, policy)
        assert (now.run.number, now.run.cap, now.cap, lane.run.ended_as) == (2, 10, 4, "policy")
        assert now.run != lane.run

    def test_on_hold_it_is_in_force_from_the_next_run_on(self, lead: Person) -> None:
        lane = new_lane()
        policy = self.version(lane)

        assert self.force(lane, policy, lead).run is None
        assert raise_(lane, lead, when=210).run.policy == policy

    def test_the_policy_in_force_is_unchanged(self, lead: Person) -> None:
        lane = running(lead)

        assert self.force(lane, lane.policy, lead).outcome == "unchanged"
        assert again(lane).run == lane.run

    def test_another_version_than_the_one_shown_as_in_force_changes_nothing_and_says_who_put_it_there(
        self, lead: Person
    ) -> None:
        lane = running(lead)
        shown, second, third = lane.policy, self.version(lane, 2), self.version(lane, 3)
        words = {"person": lead, "reason": WHY, "replaces": shown.pk}
        ramp.force_policy(lane.pk, second.pk, clock=clock(200), **words)

        late = ramp.force_policy(lane.pk, third.pk, clock=clock(210), **words)
        same = ramp.force_policy(lane.pk, second.pk, clock=clock(220), **words)

        assert (late.outcome, late.by, late.at) == ("policy_differs", lead, at(200))
        assert (same.outcome, same.by, same.at) == ("unchanged", lead, at(200))
        assert again(lane).policy == second

    def test_a_policy_of_another_lane_or_with_broken_rules_is_refused(self, lead: Person) -> None:
        lane, other = running(lead), new_lane()
        broken = [{"category": "offensive", "reject_at": 0.1, "approve_below": 0.9}]
        unknown_code = [RULES[0] | {"reason_code": "no-such-code"}]

        for policy in (other.policy, self.version(lane, 2, broken), self.version(lane, 3, unknown_code)):
            with pytest.raises(InvalidRequest) as refused:
                self.force(lane, policy, lead)
            assert refused.value.field == "policy"
        assert again(lane).policy == lane.policy

    def test_a_reviewer_may_not(self, lead: Person, person: Callable[..., Person]) -> None:
        lane = running(lead)

        with pytest.raises(NotPermitted):
            self.force(lane, self.version(lane), person(roles.REVIEWER))


def test_no_way_down_lifts_the_latency_limit_or_the_window_of_the_snapshot(lead: Person) -> None:
    stages = (PLAN[0], replace(PLAN[1], max_latency=timedelta(seconds=3)), PLAN[2])
    lane = running(lead, stages=stages)
    pull(lane, lead, when=100)
    Stage.objects.filter(lane=lane).update(max_latency=None, max_error_ratio=1.0)

    resume(lane, lead, when=110)

    run = again(lane).run
    assert (run.max_latency, run.max_error_ratio) == (timedelta(seconds=3), 0.1)
