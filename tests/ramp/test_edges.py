"""The ramp where somebody changes something in the middle, or there is hardly anything to measure."""

from dataclasses import replace
from datetime import timedelta

import pytest

from queue_core import contract, figures, ramp, where
from queue_core.errors import InvalidRequest
from queue_core.forecast.dry_run import dry_run
from queue_core.forecast.reading import forecast as forecast_of
from queue_core.models import Lane, Policy, Stage
from reviewboard.models import Person
from tests.factories import at, claim, clock, waiting_job
from tests.ramp.stories import (
    PLAN,
    RULES,
    WHY,
    again,
    answer,
    fail,
    judged,
    new_lane,
    probing,
    pull,
    raise_,
    read,
    running,
)
from tests.ramp.test_rightly import steady_before

pytestmark = pytest.mark.django_db


def board_of(lane: Lane, when: float) -> figures.LaneFigures:
    [found] = figures.board(list(where.lanes_to_read(Lane.objects.filter(pk=lane.pk))), now=at(when))
    return found


class TestAtTheEdgeOfTheSoak:
    @pytest.mark.parametrize(("early", "outcome"), [(0, "raised"), (0.001, "not_met")])
    def test_the_time_is_over_at_its_last_instant_and_not_a_millisecond_before(self, lead, early, outcome) -> None:
        lane = probing(lead, when=10)
        for _number in range(2):
            answer(lane, when=30)

        assert raise_(lane, lead, when=70 - early).outcome == outcome

    @pytest.mark.parametrize(("age", "outcome"), [(120, "raised"), (120.001, "figures_old")])
    def test_figures_are_good_for_two_minutes_to_the_instant_rmp_02(self, lead, age, outcome) -> None:
        lane = probing(lead, when=10)
        for _number in range(2):
            answer(lane, when=30)
        shown = read(lane, when=80).sign()

        assert raise_(lane, lead, when=80 + age, shown=shown).outcome == outcome


class TestWithHardlyAnything:
    def test_a_lane_without_a_ticket_is_inconclusive_everywhere_and_nothing_of_it_fails_rmp_06(self, lead) -> None:
        lane = probing(lead, when=10)
        judged(lane, when=200)

        found = read(lane, when=200)

        assert {line.verdict.value for line in found.lines} == {"inconclusive"}
        assert raise_(lane, lead, when=200).outcome == "not_met"
        assert board_of(lane, 200).layers.value.total == 0
        assert dry_run(again(lane), now=at(200)) is not None
        assert forecast_of(again(lane), now=at(200)) is not None

    def test_one_ticket_alone_soaks_no_stage_of_two_and_the_raise_says_how_many_are_missing(self, lead) -> None:
        lane = probing(lead, when=10)
        answer(lane, when=30)

        raised = raise_(lane, lead, when=200)

        missing = {one.code.value: one.params for one in raised.missing}
        assert missing["soak_completions"] == {"done": 1, "needed": 2}
        assert raise_(lane, lead, when=200, override_reason="there is only this one").outcome == "raised"

    def test_a_cap_of_one_lets_one_through_and_cannot_be_lowered(self, lead) -> None:
        lane = probing(lead, stages=(replace(PLAN[0], cap=1), *PLAN[1:]))
        judged(lane, when=20)
        claim(waiting_job(lane, added=11, deadline=9_000), when=20)

        assert read(lane, when=21).load.running == 1
        with pytest.raises(InvalidRequest, match="from 1 to 1"):
            ramp.set_cap(lane.pk, person=lead, cap=2, reason=WHY, clock=clock(21))


class TestAPlanThatIsEditedInTheMiddle:
    def test_a_stage_that_became_the_highest_runs_steadily_and_its_outage_can_be_closed(self, lead) -> None:
        lane = running(lead, unavailable_limit=1)
        fail(lane, "unavailable", when=90)
        outage = again(lane).connection.outages.get()
        raise_(lane, lead, when=95)
        for _number in range(2):
            answer(lane, when=100)
        assert raise_(lane, lead, when=160).outcome == "raised"

        Stage.objects.filter(lane=lane, number=3).delete()
        judged(lane, when=170)

        found = board_of(lane, 170)
        assert (figures.state_of(found), read(lane, when=170).next) == ("steady", None)
        assert found.outage_unsteady == ()
        closed = ramp.close_outage(outage.pk, person=lead, reason="it is the last stage now", clock=clock(171))
        assert closed.outcome == "closed"

    def test_a_run_whose_stage_was_taken_out_of_the_plan_goes_on_and_is_raised_to_the_next(self, lead) -> None:
        lane = running(lead)
        Stage.objects.filter(lane=lane, number=2).delete()
        for _number in range(3):
            answer(lane, when=130)

        assert raise_(lane, lead, when=145).run.number == 3

    def test_a_plan_without_any_stage_starts_nothing_and_says_so(self, lead) -> None:
        lane = new_lane()
        Stage.objects.filter(lane=lane).delete()

        assert [one.code.value for one in raise_(lane, lead, when=10).missing] == ["stage"]
        assert dry_run(again(lane), now=at(10)) is None


class TestACapThatALeadLowered:
    def test_is_not_lifted_by_a_hold_and_its_resume_rmp_10(self, lead) -> None:
        lane = running(lead)
        ramp.set_cap(lane.pk, person=lead, cap=4, reason=WHY, clock=clock(90))
        pull(lane, lead, when=100)

        ramp.resume(lane.pk, person=lead, reason=WHY, clock=clock(110))

        now = again(lane)
        assert (now.cap, now.run.cap) == (4, 10)
        assert ramp.set_cap(lane.pk, person=lead, cap=10, reason=WHY, clock=clock(120)).outcome == "done"

    def test_bounds_the_lower_stage_that_it_is_resumed_at(self, lead) -> None:
        lane = running(lead)
        ramp.set_cap(lane.pk, person=lead, cap=1, reason=WHY, clock=clock(90))
        pull(lane, lead, when=100)

        ramp.resume(lane.pk, person=lead, reason=WHY, to=1, clock=clock(110))

        assert (again(lane).run.number, again(lane).cap) == (1, 1)


def test_another_policy_is_not_judged_by_what_was_usual_under_the_one_before(lead: Person) -> None:
    lane = new_lane()
    steady_before(lane)
    raise_(lane, lead, when=10)
    other = Policy.objects.create(lane=lane, version=2, rules=RULES, made_at=at(0))
    before = again(lane).run.max_share_shift

    ramp.force_policy(lane.pk, other.pk, person=lead, reason=WHY, clock=clock(20))

    assert (before, again(lane).run.max_share_shift) == (0.3, None)


def test_what_a_plan_asks_of_shares_is_asked_under_any_policy(lead: Person) -> None:
    lane = new_lane(stages=(replace(PLAN[0], max_share_shift=0.2), *PLAN[1:]))
    raise_(lane, lead, when=10)
    other = Policy.objects.create(lane=lane, version=2, rules=RULES, made_at=at(0))

    ramp.force_policy(lane.pk, other.pk, person=lead, reason=WHY, clock=clock(20))

    assert again(lane).run.max_share_shift == 0.2


def test_a_scheduler_that_comes_back_after_an_hour_judges_before_anything_is_claimed(lead: Person) -> None:
    lane = running(lead)
    job = waiting_job(lane, added=100, deadline=90_000)
    judged(lane, when=100)

    refused = contract.claim(job.pk, clock=clock(3_700), worker="w")
    ramp.judge(lane.pk, clock=clock(3_701))
    granted = contract.claim(job.pk, clock=clock(3_702), worker="w")

    assert (refused.outcome, granted.outcome) == ("not_judged", "claimed")


def test_a_retry_after_of_a_year_holds_the_lane_and_leaves_no_pause_of_a_year(lead: Person) -> None:
    lane = running(lead)
    fail(lane, "overloaded", when=90, retry_after=timedelta(days=365))

    held = again(lane)

    assert (held.run, held.hold.reason) == (None, "auto_overloaded")
    assert held.claims_not_before is None or held.claims_not_before <= at(90) + held.retry_after_limit


def test_an_outage_is_not_closed_while_a_lane_of_it_is_held(lead: Person) -> None:
    lane = running(lead, unavailable_limit=1)
    fail(lane, "unavailable", when=90)
    outage = again(lane).connection.outages.get()

    closed = ramp.close_outage(outage.pk, person=lead, reason="it looks well", clock=clock(95))

    assert (closed.outcome, [one.pk for one in closed.lanes]) == ("not_steady", [lane.pk])
