"""The gate's second half: shares against the usual ones, and what is usual."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from queue_core.gate_lines import Figure, GateLine
from queue_core.gate_rightly import Answers, Basis, Checked, Usual, judge_rightly
from queue_core.gate_unasked import SHARE_SHIFT, WRONG_RATIO
from queue_core.gate_usual import usual
from queue_core.models import Hold, KnownAnswer, Lane, LaneMinute, Policy, Recall, StageRun
from queue_core.states import HoldReason, Result
from reviewboard.models import Person
from tests.factories import T0, make_lane, make_run
from tests.ramp.stories import PLAN, again, answer, new_lane, probing, raise_, read

A, R, M = Result.APPROVED, Result.REJECTED, Result.MANUAL
USUAL = Usual({A: 700, R: 200, M: 100}, Basis.SAME_HOURS)
LIMITS = replace(PLAN[0], least_sample=10, max_share_shift=0.2)


def shares(results: Mapping[Result, int], before: Usual | None = USUAL, **limits: float) -> dict[str, str]:
    lines = judge_rightly(replace(LIMITS, **limits), Answers(results=results, usual=before))
    return {line.figure.value: line.verdict.value for line in lines}


@pytest.mark.parametrize(
    ("results", "rejected"),
    [
        ({A: 70, R: 20, M: 10}, "good"),
        ({A: 62, R: 28, M: 10}, "good"),
        ({A: 20, R: 70, M: 10}, "bad"),
        # Beyond the limit, but not beyond doubt.
        ({A: 50, R: 43, M: 7}, "inconclusive"),
        # As usual, by a sample that could not tell.
        ({A: 7, R: 2, M: 0}, "inconclusive"),
        ({A: 7, R: 2, M: 1}, "inconclusive"),
        # Ten of ten: small, and yet beyond doubt.
        ({R: 12}, "bad"),
        ({}, "inconclusive"),
    ],
)
def test_a_share_is_bad_beyond_doubt_and_good_by_a_sample_that_can_tell(results, rejected) -> None:
    assert shares(results)["rejected"] == rejected


def test_a_small_sample_can_be_good_where_the_limit_is_wide() -> None:
    assert shares({A: 10, R: 3, M: 2}, max_share_shift=0.35) == dict.fromkeys(
        ("approved", "rejected", "manual"), "good"
    )


def test_with_nothing_usual_every_share_is_inconclusive_and_never_good() -> None:
    assert set(shares({A: 700, R: 200, M: 100}, None).values()) == {"inconclusive"}


@pytest.mark.parametrize(
    ("checked", "verdict"),
    [
        (Checked(0, 0, 1), "inconclusive"),
        (Checked(9, 0, 10), "inconclusive"),
        (Checked(10, 1, 10), "good"),
        (Checked(10, 2, 10), "bad"),
        (Checked(9, 9, 10), "inconclusive"),
    ],
)
def test_wrong_replies_and_disagreement_are_shares_of_a_least_number(checked, verdict) -> None:
    limits = replace(LIMITS, max_share_shift=None, max_wrong_ratio=0.1, max_disagreement=0.1)

    lines = judge_rightly(limits, Answers(known=checked, blind=checked))

    assert [(line.figure, line.verdict.value) for line in lines] == [
        (Figure.WRONG, verdict),
        (Figure.DISAGREEMENT, verdict),
    ]


def test_a_stage_without_limits_has_no_second_half() -> None:
    assert judge_rightly(replace(LIMITS, max_share_shift=None), Answers()) == []


NOW = T0 + timedelta(days=40)


def minutes(lane: Lane, start: datetime, number: int, **results: int) -> None:
    counts = {f"result.{name}": count for name, count in results.items()}
    LaneMinute.objects.bulk_create(
        [LaneMinute(lane=lane, minute=start + timedelta(minutes=i), counts=counts) for i in range(number)]
    )


@pytest.mark.django_db
class TestWhatIsUsual:
    def lane(self) -> tuple[Lane, StageRun]:
        """A lane that ran steadily for 39 days, and probes since an hour."""
        lane = make_lane(cap=None)
        self.steady = make_run(
            lane, number=4, is_last=True, started_at=T0, ended_at=NOW - timedelta(hours=2), ended_as="automatic_hold"
        )
        return lane, make_run(lane, number=1, started_at=NOW - timedelta(hours=1))

    def test_is_that_of_the_same_hours_of_the_last_weeks(self) -> None:
        lane, run = self.lane()
        minutes(lane, NOW - timedelta(days=7, minutes=30), 60, APPROVED=9, REJECTED=1)
        minutes(lane, NOW - timedelta(days=14, minutes=30), 60, APPROVED=9, REJECTED=1)
        minutes(lane, NOW - timedelta(days=3), 60, REJECTED=50)

        found = usual(run, now=NOW)

        assert found == Usual({A: 1080, R: 120, M: 0}, Basis.SAME_HOURS)

    def test_is_else_that_of_the_last_days(self) -> None:
        lane, run = self.lane()
        minutes(lane, NOW - timedelta(days=3), 60, APPROVED=3, MANUAL=1)
        minutes(lane, NOW - timedelta(days=9), 60, REJECTED=50)

        assert usual(run, now=NOW) == Usual({A: 180, R: 0, M: 60}, Basis.HEALTHY_DAYS)

    def test_is_nothing_where_there_is_too_little(self) -> None:
        lane, run = self.lane()
        minutes(lane, NOW - timedelta(days=3), 33, APPROVED=3)

        assert usual(run, now=NOW) is None

    def test_is_never_what_ran_on_lower_stages_or_after_the_steady_run(self) -> None:
        lane, run = self.lane()
        minutes(lane, NOW - timedelta(minutes=50), 40, REJECTED=50)
        minutes(lane, NOW - timedelta(minutes=115), 20, REJECTED=50)

        assert usual(run, now=NOW) is None

    def test_is_not_what_another_policy_made(self) -> None:
        lane, run = self.lane()
        minutes(lane, NOW - timedelta(days=3), 60, APPROVED=3)
        other = Policy.objects.create(lane=lane, version=2, rules={}, made_at=T0)
        run = make_run(lane, number=1, started_at=NOW, policy=other, ended_at=NOW, ended_as="held")

        assert usual(run, now=NOW) is None

    def test_is_not_the_last_hour_before_a_hold_for_wrong_answers(self) -> None:
        lane, run = self.lane()
        Hold.objects.create(
            lane=lane, run=self.steady, is_automatic=True, reason=HoldReason.AUTO_WRONG, started_at=NOW, ended_at=NOW
        )
        minutes(lane, NOW - timedelta(hours=2, minutes=50), 50, REJECTED=50)
        minutes(lane, NOW - timedelta(days=2), 50, APPROVED=5)

        assert usual(run, now=NOW) == Usual({A: 250, R: 0, M: 0}, Basis.HEALTHY_DAYS)

    def test_is_not_what_was_recalled(self, lead: Person) -> None:
        lane, run = self.lane()
        minutes(lane, NOW - timedelta(days=3), 60, APPROVED=3)
        Recall.objects.create(
            lane=lane, run=self.steady, selection={}, to="people", reason="all wrong", by=lead, started_at=NOW
        )

        assert usual(run, now=NOW) is None


def line_of(lane: Lane, figure: str, *, when: float) -> GateLine:
    return next(line for line in read(lane, when=when).lines if line.figure == figure)


def steady_before(lane: Lane) -> None:
    make_run(
        lane, number=3, is_last=True, policy=lane.policy, started_at=T0 - timedelta(days=5), ended_at=T0,
        ended_as="held",
    )  # fmt: skip
    minutes(lane, T0 - timedelta(days=4), 60, APPROVED=9, REJECTED=1)


@pytest.mark.django_db
class TestAtTheGate:
    STAGES = (replace(PLAN[0], cap=50, max_share_shift=0.3, least_sample=2), *PLAN[1:])

    def test_a_model_that_is_up_fast_and_wrong_is_not_raised(self, lead: Person) -> None:
        lane = probing(lead, stages=self.STAGES)
        steady_before(lane)
        for _number in range(12):
            answer(lane, when=60, result="REJECTED", took=0.01)

        raised = raise_(lane, lead, when=75)

        assert (raised.outcome, read(lane, when=75).verdict) == ("not_met", "bad")
        assert {one.params["figure"] for one in raised.missing if one.code == "guardrail_bad"} == {
            "approved",
            "rejected",
        }
        line = line_of(lane, "rejected", when=75)
        assert (line.measured, line.usual, line.sample, line.basis) == (1.0, 0.1, 12, "healthy_days")

    def test_a_model_that_answers_as_usual_is(self, lead: Person) -> None:
        lane = probing(lead, stages=self.STAGES)
        steady_before(lane)
        for result in ["APPROVED"] * 11 + ["REJECTED"]:
            answer(lane, when=60, result=result)

        raised = raise_(lane, lead, when=75)

        assert raised.outcome == "raised"
        frozen = {line["figure"]: line for line in raised.run.figures["lines"]}
        assert (frozen["approved"]["usual"], frozen["approved"]["verdict"]) == (0.9, "good")

    def test_only_answers_of_this_run_count(self, lead: Person) -> None:
        lane = probing(lead, stages=self.STAGES)
        steady_before(lane)
        for _number in range(12):
            answer(lane, when=60)
        raise_(lane, lead, when=75)

        assert {line.sample for line in read(lane, when=76).lines} == {0}


@pytest.mark.django_db
class TestWhereTheStageAsksForNothing:
    def test_shares_are_judged_as_soon_as_the_lane_has_usual_ones(self, lead: Person) -> None:
        lane = new_lane(stages=(replace(PLAN[0], cap=50, least_sample=10, soak_completions=10), *PLAN[1:]))
        steady_before(lane)
        raise_(lane, lead, when=10)
        for _number in range(10):
            answer(lane, when=60, result="REJECTED", took=0.01)

        raised = raise_(lane, lead, when=75)

        assert (again(lane).run.max_share_shift, raised.outcome) == (SHARE_SHIFT, "not_met")
        assert line_of(lane, "rejected", when=75).verdict == "bad"

    def test_ten_answers_as_usual_are_enough_for_a_probe_of_ten(self, lead: Person) -> None:
        lane = new_lane(stages=(replace(PLAN[0], cap=50, least_sample=10, soak_completions=10), *PLAN[1:]))
        steady_before(lane)
        raise_(lane, lead, when=10)
        for result in ["APPROVED"] * 8 + ["REJECTED"] * 2:
            answer(lane, when=60, result=result)

        assert raise_(lane, lead, when=75).outcome == "raised"

    def test_known_answers_that_the_lane_has_are_judged_and_a_lane_without_any_has_no_second_half(
        self, lead: Person
    ) -> None:
        lane, plain = new_lane(), new_lane()
        KnownAnswer.objects.create(lane=lane, title="one", text="you fool", expected="REJECTED")
        KnownAnswer.objects.create(lane=plain, title="old", text="you fool", expected="REJECTED", is_active=False)
        for one in (lane, plain):
            raise_(one, lead, when=10)

        assert (again(lane).run.max_wrong_ratio, again(plain).run.max_wrong_ratio) == (WRONG_RATIO, None)
        assert [line.figure for line in read(lane, when=11).lines if line.is_rightly] == [Figure.WRONG]

    def test_what_the_stage_asks_for_goes_before_also_where_nothing_can_be_known_yet(self, lead: Person) -> None:
        asks = (replace(PLAN[0], max_wrong_ratio=0.5, max_share_shift=1.0), *PLAN[1:])
        lane = new_lane(stages=asks)

        raise_(lane, lead, when=10)

        run = again(lane).run
        assert (run.max_wrong_ratio, run.max_share_shift) == (0.5, 1.0)
        assert line_of(lane, "wrong", when=11).verdict == "inconclusive"
