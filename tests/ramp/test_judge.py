"""The brake: lanes judged by whoever ends an attempt, in that transaction."""

from dataclasses import replace
from datetime import timedelta

import pytest

from queue_core import contract, ramp
from queue_core.batch import claim_next
from queue_core.contract import Ending
from queue_core.models import Attempt, AuditEntry, Item, Job, Lane, Message, Outage
from queue_core.states import AttemptOutcome, LeaseToken
from reviewboard.models import Person
from tests.factories import at, clock, waiting_job
from tests.ramp.stories import (
    PLAN,
    again,
    answer,
    attempt_of,
    end,
    fail,
    judged,
    leased,
    new_lane,
    probing,
    pull,
    raise_,
    running,
)

pytestmark = pytest.mark.django_db

#: A plan whose shares are never conclusive, so that only what runs in a row counts.
ROWS_ONLY = tuple(replace(stage, least_sample=1000) for stage in PLAN)


def attempts_of(lane: Lane) -> set[int]:
    return set(Job.objects.filter(lane=lane, state="WAITING").values_list("attempts", flat=True))


class TestUnavailable:
    def test_so_many_running_put_the_lane_on_hold_in_the_same_transaction(self, lead: Person) -> None:
        lane = self.lane(lead, limit=3)

        outcomes = [fail(lane, "unavailable", when=90 + n, detail="connection refused") for n in range(3)]

        lane.refresh_from_db()
        assert outcomes == ["released"] * 3
        assert (lane.run, lane.hold.is_automatic, lane.hold.reason) == (None, True, "auto_unavailable")
        assert lane.hold.params == {"running": 3, "detail": "connection refused"}
        assert (lane.hold.started_at, lane.hold.by) == (at(92), None)

    def lane(self, lead: Person, *, limit: int) -> Lane:
        lane = new_lane(stages=ROWS_ONLY, unavailable_limit=limit, max_attempts=2)
        raise_(lane, lead, when=10)
        raise_(lane, lead, when=20, override_reason="the sample is never large enough")
        return again(lane)

    def test_one_answer_between_them_breaks_the_row(self, lead: Person) -> None:
        lane = self.lane(lead, limit=3)
        for when, outcome in [(30, "unavailable"), (31, "overloaded")]:
            fail(lane, outcome, when=when)
        answer(lane, when=32)
        for when in (33, 34):
            fail(lane, "unavailable", when=when)

        assert again(lane).run == lane.run

    def test_what_was_given_back_uncalled_does_not_break_the_row(self, lead: Person) -> None:
        lane = self.lane(lead, limit=2)
        fail(lane, "unavailable", when=30)
        contract.release(leased(lane, when=31), outcome=AttemptOutcome.RELEASED, clock=clock(31))
        fail(lane, "unavailable", when=32)

        assert again(lane).hold.reason == "auto_unavailable"

    def test_only_the_calls_of_this_run_count(self, lead: Person) -> None:
        lane = self.lane(lead, limit=2)
        fail(lane, "unavailable", when=30)
        raise_(lane, lead, when=40, override_reason="the sample is never large enough")
        fail(lane, "unavailable", when=50)

        assert again(lane).run.number == 3

    def test_all_of_them_overloaded_is_said_so(self, lead: Person) -> None:
        lane = self.lane(lead, limit=2)
        for when in (30, 31):
            fail(lane, "overloaded", when=when)

        assert again(lane).hold.reason == "auto_overloaded"

    def test_an_outage_costs_no_ticket_its_budget(self, lead: Person) -> None:
        """BRK-08: with several holds and probes, nothing dies of attempts, and all wait with their budget whole."""
        lane = self.lane(lead, limit=3)
        for _number in range(20):
            waiting_job(lane, added=25, deadline=9000)
        evidence = set(Job.objects.values_list("evidence__digest", flat=True))
        for start in (100, 200, 300):
            self.drain_down(lane, when=start)
            assert again(lane).hold.reason == "auto_unavailable"
            raise_(lane, lead, when=start + 50)

        assert attempts_of(lane) == {0}
        assert not Job.objects.filter(lane=lane).exclude(state="WAITING").exists()
        assert not Item.objects.filter(lane=lane).exists()
        assert set(Job.objects.values_list("evidence__digest", flat=True)) == evidence

    def drain_down(self, lane: Lane, *, when: float) -> None:
        contract.wake_due(clock=clock(when))
        judged(lane, when=when)
        for _round in range(6):
            for claim in claim_next(lane.pk, 10, clock=clock(when), worker="w1").claims:
                end(claim.token, "unavailable", when=when)

    def test_the_hold_opens_the_connections_outage_and_tells_consumers(self, lead: Person) -> None:
        lane = self.lane(lead, limit=1)

        fail(lane, "unavailable", when=30)

        outage = Outage.objects.get(connection=lane.connection)
        assert (outage.cause, outage.opened_at, outage.opened_by, outage.closed_at) == (
            "auto_unavailable",
            at(30),
            None,
            None,
        )
        assert Message.objects.filter(lane=lane, kind="lane.on_hold").count() == 1
        assert Message.objects.filter(kind="outage.opened").count() == 1
        assert AuditEntry.objects.get(act="lane.held").actor_name == "system"


class TestMisconfigured:
    def test_one_is_enough_and_its_sentence_is_kept(self, lead: Person) -> None:
        """BRK-04: 401 is an error of configuration, for a person, and closes nothing."""
        lane = running(lead)

        fail(lane, "misconfigured", when=90, detail="The key was refused: check MODEL_KEY.")

        hold = again(lane).hold
        assert (hold.reason, hold.params) == ("auto_misconfigured", {"detail": "The key was refused: check MODEL_KEY."})
        assert attempts_of(lane) == {0}


class TestOverloaded:
    def test_the_lane_claims_nothing_before_the_time_the_model_asked_for(self, lead: Person) -> None:
        """BRK-04: the next call is not before 120 s are over."""
        lane = probing(lead)
        fail(lane, "overloaded", when=20, retry_after=timedelta(seconds=120))
        job = waiting_job(lane, added=21, deadline=9000)
        judged(lane, when=140)

        assert contract.claim(job.pk, clock=clock(139.999), worker="w1").outcome == "retry_after"
        assert contract.claim(job.pk, clock=clock(140), worker="w1").outcome == "claimed"

    def test_a_shorter_wait_does_not_shorten_a_longer_one(self, lead: Person) -> None:
        lane = probing(lead)
        first, second = leased(lane, when=20), leased(lane, when=20)
        end(first, "overloaded", when=21, retry_after=timedelta(seconds=120))
        end(second, "overloaded", when=22, retry_after=timedelta(seconds=5))

        assert Lane.objects.get(pk=lane.pk).claims_not_before == at(141)

    def test_beyond_tolerance_the_lane_goes_on_hold(self, lead: Person) -> None:
        lane = probing(lead)

        fail(lane, "overloaded", when=20, retry_after=timedelta(minutes=15, seconds=1))

        lane = again(lane)
        assert (lane.hold.reason, lane.hold.params) == ("auto_overloaded", {"retry_after": 901.0})
        assert lane.claims_not_before is None

    @pytest.mark.parametrize("retry_after", [None, timedelta(0), timedelta(seconds=-5)])
    def test_a_wait_that_is_none_is_none(self, lead: Person, retry_after: timedelta | None) -> None:
        """BRK-04: an absurd Retry-After does no harm."""
        lane = probing(lead)

        assert fail(lane, "overloaded", when=20, retry_after=retry_after) == "released"

        assert (again(lane).claims_not_before, again(lane).run) == (None, lane.run)


class TestGuardrails:
    def test_too_many_errors_hold_and_say_what_was_measured(self, lead: Person) -> None:
        lane = running(lead)
        answer(lane, when=90)

        fail(lane, "invalid_answer", when=91)

        hold = again(lane).hold
        assert hold.reason == "auto_errors"
        assert hold.params == {
            "figure": "errors",
            "measured": 0.5,
            "limit": 0.1,
            "sample": 2,
            "least_sample": 2,
            "verdict": "bad",
        }

    def test_an_inconclusive_sample_holds_nothing(self, lead: Person) -> None:
        lane = running(lead)

        fail(lane, "invalid_answer", when=91)

        assert again(lane).run == lane.run

    def test_answers_that_come_too_late_hold(self, lead: Person) -> None:
        lane = running(lead, stages=tuple(replace(stage, max_timeout_ratio=1.0) for stage in PLAN))
        late = leased(lane, when=85)
        answer(lane, when=186)
        contract.sweep(clock=clock(186))
        assert ramp.judge(lane.pk, clock=clock(187)) == "good"

        contract.complete(late, Ending(result="APPROVED"), clock=clock(188))

        assert ramp.judge(lane.pk, clock=clock(189)) == "held"
        assert again(lane).hold.reason == "auto_stale"

    def test_slow_calls_hold_where_the_stage_has_a_limit(self, lead: Person) -> None:
        lane = running(lead, stages=(PLAN[0], replace(PLAN[1], max_latency=timedelta(seconds=2)), PLAN[2]))
        for _number in range(2):
            answer(lane, when=90, took=2.5)

        assert ramp.judge(lane.pk, clock=clock(91)) == "held"
        assert again(lane).hold.reason == "auto_slow"

    def test_expired_leases_are_timeouts_though_no_worker_reports_them(self, lead: Person) -> None:
        lane = running(lead)
        for _number in range(2):
            leased(lane, when=90)
        contract.sweep(clock=clock(190))

        assert ramp.judge(lane.pk, clock=clock(190)) == "held"
        assert again(lane).hold.reason == "auto_timeouts"

    def test_calls_of_an_earlier_run_do_not_hold_this_one(self, lead: Person) -> None:
        lane = probing(lead)
        tokens = [leased(lane, when=20) for _number in range(2)]
        raise_(lane, lead, when=30, override_reason="we want to see more")

        for token in tokens:
            end(token, "invalid_answer", when=31)
        misconfigured = leased(lane, when=32)
        pull(lane, lead, when=33)
        raise_(lane, lead, when=34)
        end(misconfigured, "misconfigured", when=35)

        assert again(lane).run.number == 1

    def test_a_late_report_judges_nothing(self, lead: Person) -> None:
        lane = running(lead)
        token = leased(lane, when=85)

        assert end(token, "misconfigured", when=185) == "stale"

        assert again(lane).run == lane.run

    def test_a_token_that_never_was_is_stale(self, lead: Person) -> None:
        lane = running(lead)
        token = replace(leased(lane, when=85), attempt=10**9)

        assert end(token, "misconfigured", when=86) == "stale"
        assert again(lane).run == lane.run


class TestTimeouts:
    def test_of_the_probe_are_not_charged(self, lead: Person) -> None:
        lane = probing(lead, max_attempts=1, stages=ROWS_ONLY)
        token = leased(lane, when=20)

        assert end(token, "timeout", when=30) == "released"

        attempt = attempt_of(token)
        assert (attempt.outcome, attempt.is_charged, attempt.job.attempts) == ("timeout", False, 0)
        assert attempt.job.state == "WAITING"

    def test_of_a_later_stage_are_charged(self, lead: Person) -> None:
        lane = running(lead)
        answer(lane, when=85)
        token = leased(lane, when=86)
        for _number in range(10):
            answer(lane, when=86)

        end(token, "timeout", when=90)

        assert (attempt_of(token).is_charged, attempt_of(token).job.attempts) == (True, 1)
        assert again(lane).run == lane.run

    def test_the_trailing_ones_are_given_back_when_the_run_is_held_for_them(self, lead: Person) -> None:
        lane = running(lead, stages=(PLAN[0], replace(PLAN[1], least_sample=4, max_timeout_ratio=0.5), PLAN[2]))
        early = leased(lane, when=85)
        tokens = [leased(lane, when=85) for _number in range(3)]
        end(early, "timeout", when=86)
        answer(lane, when=87)
        for token in tokens:
            end(token, "timeout", when=90)

        assert again(lane).hold.reason == "auto_timeouts"
        assert [attempt_of(token).is_charged for token in (early, *tokens)] == [True, False, False, False]
        assert [attempt_of(token).job.attempts for token in (early, *tokens)] == [1, 0, 0, 0]

    def test_the_one_that_breaks_the_guardrail_does_not_end_its_job(self, lead: Person) -> None:
        lane = running(lead, max_attempts=1)
        tokens = [leased(lane, when=85) for _number in range(2)]

        first = end(tokens[0], "timeout", when=90)
        second = end(tokens[1], "timeout", when=90)

        assert (first, second) == ("died", "released")
        assert again(lane).hold.reason == "auto_timeouts"
        assert attempt_of(tokens[1]).job.state == "WAITING"

    def test_those_still_out_when_a_run_is_held_for_timeouts_are_not_charged(self, lead: Person) -> None:
        lane = running(lead, max_attempts=2)
        tokens = [leased(lane, when=85) for _number in range(4)]
        for token in tokens:
            end(token, "timeout", when=90)

        assert again(lane).hold.reason == "auto_timeouts"
        assert attempts_of(lane) == {0}

    def test_the_budget_is_given_back_once(self, lead: Person) -> None:
        lane = running(lead)
        tokens = [leased(lane, when=85) for _number in range(2)]
        for token in tokens:
            end(token, "timeout", when=90)
        raise_(lane, lead, when=100)
        judged(lane, when=200)
        contract.wake_due(clock=clock(200))
        contract.claim(tokens[0].job, clock=clock(200), worker="w1")

        contract.give_back_attempts(Attempt.objects.values_list("pk", flat=True))

        assert Job.objects.get(pk=tokens[0].job).attempts == 1


class TestJudging:
    def test_keeps_when_it_judged_and_how_long_a_call_usually_takes(self, lead: Person) -> None:
        lane = running(lead)
        for took in (1, 1, 1, 1, 3):
            answer(lane, when=90, took=took)

        assert ramp.judge(lane.pk, clock=clock(95)) == "good"

        lane.refresh_from_db()
        assert (lane.judged_at, lane.usual_call_time) == (at(95), timedelta(seconds=3))

    def test_a_few_calls_do_not_change_the_usual_call_time(self, lead: Person) -> None:
        lane = running(lead)
        Lane.objects.filter(pk=lane.pk).update(usual_call_time=timedelta(seconds=2))
        answer(lane, when=90, took=50)

        ramp.judge(lane.pk, clock=clock(95))

        lane.refresh_from_db()
        assert lane.usual_call_time == timedelta(seconds=2)

    @pytest.mark.parametrize(("after", "outcome"), [(4.999, "not_due"), (5, "inconclusive"), (6, "inconclusive")])
    def test_is_due_every_5_seconds(self, lead: Person, after: float, outcome: str) -> None:
        lane = running(lead)
        judged(lane, when=100)

        assert ramp.judge_if_due(lane.pk, clock=clock(100 + after)) == outcome

    def test_of_a_lane_on_hold_does_nothing(self) -> None:
        lane = new_lane()

        assert ramp.judge_if_due(lane.pk, clock=clock(50)) == "on_hold"
        assert again(lane).judged_at is None

    def test_a_claim_gives_nothing_when_nobody_has_judged_for_30_seconds(self, lead: Person) -> None:
        lane = running(lead)
        job = waiting_job(lane, added=80, deadline=9000)

        assert contract.claim(job.pk, clock=clock(110.001), worker="w1").outcome == "not_judged"
        ramp.judge_if_due(lane.pk, clock=clock(111))
        assert contract.claim(job.pk, clock=clock(111), worker="w1").outcome == "claimed"


def test_a_model_that_accepts_and_hangs_never_has_more_calls_than_the_stage_allows(lead: Person) -> None:
    """BRK-05: never above the probe's cap, then the stage's, and leases do not expire in heaps."""
    lane = new_lane(stages=ROWS_ONLY)
    for _number in range(30):
        waiting_job(lane, added=5, deadline=9000)
    for stage, cap in ((1, 2), (2, 10)):
        raise_(lane, lead, when=stage * 100, override_reason="we watch it hang")
        claims = [
            claim
            for _worker in range(6)
            for claim in claim_next(lane.pk, 10, clock=clock(stage * 100 + 1), worker="w1").claims
        ]
        running_now = contract.running_leases([lane.pk], now=at(stage * 100 + 1))
        assert (len(claims), running_now) == (cap, cap)
        for claim in claims:
            end(claim.token, "timeout", when=stage * 100 + 31)


def test_a_rate_and_a_cap_are_two_limits(lead: Person) -> None:
    """RMP-12: with slow calls the cap bounds what runs, and the rate what begins in any 60 s."""
    lane = new_lane(stages=(replace(PLAN[0], cap=3, rate=4), *PLAN[1:]), lease=timedelta(seconds=1000))
    raise_(lane, lead, when=10)
    for _number in range(20):
        waiting_job(lane, added=5, deadline=9000)
    begun: list[float] = []
    for when in range(10, 200):
        judged(lane, when=when)
        batch = claim_next(lane.pk, 10, clock=clock(when), worker="w1")
        begun += [when] * len(batch.claims)
        if when % 40 == 0:
            oldest = Attempt.objects.filter(lane=lane, ended_at__isnull=True).earliest("pk")
            contract.release(token_of(oldest), outcome=AttemptOutcome.RELEASED, clock=clock(when))
        assert contract.running_leases([lane.pk], now=at(when)) <= 3
        assert sum(1 for start in begun if when - 60 < start <= when) <= 4
    assert len(begun) > 4


def token_of(attempt: Attempt) -> LeaseToken:
    return LeaseToken(attempt.job_id, attempt.fence, attempt.job.revision, attempt.pk, attempt.key)
