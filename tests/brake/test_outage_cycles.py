"""Ten minutes of a model that is down, hangs or is overloaded, by the test's clock: it costs no ticket its budget."""

from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

import pytest

from queue_core import alerts, batch, calls, contract, ramp
from queue_core.clock import FixedClock
from queue_core.connections import Health, InvalidAnswer, Overloaded, TimedOut, Unavailable, Verdict
from queue_core.lanes import StagePlan
from queue_core.models import AlertEpisode, Attempt, AuditEntry, Decision, Item, Job, Lane, ModelConnection, Outage
from tests.factories import at, make_ground, waiting_job
from tests.ramp.stories import again, new_lane, raise_

pytestmark = pytest.mark.django_db

TEN_MINUTES = 600
#: So often something happens: ticks, drains, and the lead's look.
STEP = timedelta(seconds=10)
SHORT = {"soak_completions": 3, "soak_time": timedelta(seconds=5), "least_sample": 20, "max_error_ratio": 0.2}
PLAN = (
    StagePlan(1, "probe", cap=2, **SHORT),
    StagePlan(2, "half", cap=10, **SHORT),
    StagePlan(3, "steady", cap=50, soak_completions=0, least_sample=20),
)


@dataclass(slots=True)
class StagedModel:
    """Answers each call as its condition says; a call that hangs lets the clock run to its limit."""

    clock: FixedClock
    condition: str = "up"
    at_once: int = 10
    allow_restricted: bool = False
    most_at_once: int = 0
    called_at: list[float] = field(default_factory=list)
    _mixed: tuple[InvalidAnswer | TimedOut | Unavailable, ...] = (
        InvalidAnswer("500: HTTP 500"),
        InvalidAnswer("The answer is no JSON."),
        InvalidAnswer("The answer broke off: ReadError"),
        TimedOut("502: HTTP 502"),
        Unavailable("connection refused"),
    )

    def prepare(self) -> None:
        """Nothing to load."""

    def check_health(self, _time_limit: timedelta) -> Health:
        return Health(self.condition == "up")

    def review(self, asked):
        self.most_at_once = max(self.most_at_once, len(asked))
        self.called_at += [(self.clock.moment - at(0)).total_seconds()] * len(asked)
        return [(call, self._answer(call)) for call in asked]

    def _answer(self, call):
        match self.condition:
            case "down":
                return Unavailable("connection refused")
            case "hanging":
                return TimedOut(after=call.time_limit, latency=call.time_limit)
            case "overloaded":
                return Overloaded("too many requests", retry_after=timedelta(seconds=20))
            case "failing":
                return InvalidAnswer("500: HTTP 500")
            case "mixed":
                # One behind another: a server error, a page of HTML, a body cut off, a proxy's timeout, a refusal.
                return self._mixed[len(self.called_at) % len(self._mixed)]
        return Verdict({"offensive": 0.1}, latency=timedelta(seconds=0.5))


@dataclass(slots=True)
class Night:
    """A lane and whoever works on it, second by second."""

    lane: Lane
    lead: object
    clock: FixedClock
    model: StagedModel
    raised: int = 0

    @classmethod
    def begin(cls, lead, *, tickets: int, **settings) -> "Night":
        make_ground()
        lane = new_lane(stages=PLAN, max_attempts=2, wait_target=timedelta(hours=9), **settings)
        for _number in range(tickets):
            waiting_job(lane, added=0, deadline=7200)
        clock = FixedClock(at(1))
        return cls(lane, lead, clock, StagedModel(clock))

    @property
    def second(self) -> float:
        return (self.clock.moment - at(0)).total_seconds()

    def work(self, *, until: float, raises: bool = True) -> None:
        """Ticks, drains, and a lead who starts the probe whenever the lane is on hold for half a minute."""
        while self.second < until:
            lane = again(self.lane)
            if lane.run is None:
                self._wait_and_raise(lane, raises)
            contract.sweep(clock=self.clock)
            contract.wake_due(clock=self.clock)
            ramp.judge_if_due(self.lane.pk, clock=self.clock)
            self._drain()
            self.clock.moment += STEP

    def _wait_and_raise(self, lane: Lane, raises: bool) -> None:
        alerts.watch_if_late(clock=self.clock)
        since = (lane.hold.started_at - at(0)).total_seconds()
        if raises and (self.second - since >= 30 or self.raised == 0):
            assert raise_(self.lane, self.lead, when=self.second).outcome == "raised"
            alerts.watch(clock=self.clock)
            self.raised += 1

    def _drain(self) -> None:
        found = batch.claim_next(self.lane.pk, self.model.at_once, clock=self.clock, worker="w1")
        lane = Lane.objects.select_related("connection", "run").get(pk=self.lane.pk)
        if found.claims:
            calls.work_on(found.claims, calls.Desk(lane, self.model, self.clock, "w1", lambda: False))
            if self.model.condition == "hanging":
                self.clock.moment += lane.connection.call_time_limit

    def work_off(self) -> None:
        """Until nothing waits, within ten minutes."""
        end = self.second + TEN_MINUTES
        while Job.objects.filter(state__in=("WAITING", "LEASED")).exists() and self.second < end:
            self.work(until=self.second + 1)

    def climb(self) -> None:
        """Up to the last stage, with a model that answers."""
        for _stage in PLAN:
            self.work(until=self.second + 10)
            if not again(self.lane).run.is_last:
                raised = raise_(self.lane, self.lead, when=self.second, override_reason="few tickets are left")
                assert raised.outcome == "raised", raised


@pytest.mark.parametrize(
    ("condition", "tickets", "stage"),
    [
        ("down", 24, 1),
        pytest.param("overloaded", 12, 3, marks=pytest.mark.long),
        pytest.param("hanging", 12, 3, marks=pytest.mark.long),
        ("hanging", 3, 3),
        ("failing", 3, 3),
        pytest.param("failing", 12, 3, marks=pytest.mark.long),
        pytest.param("mixed", 4, 3, marks=pytest.mark.long),
    ],
)
def test_ten_minutes_without_a_model_cost_no_ticket_its_budget(lead, condition, tickets, stage):
    """BRK-08: whatever stage it breaks in, over several cycles of hold and probe."""
    night = Night.begin(lead, tickets=0)
    if stage > 1:
        for _number in range(12):
            waiting_job(night.lane, added=0, deadline=7200)
        night.climb()
        night.work_off()
    begun = night.second
    for _number in range(tickets):
        waiting_job(night.lane, added=begun, deadline=begun + 7200)
    decided = Decision.objects.count()

    night.model.condition = condition
    night.work(until=begun + TEN_MINUTES)

    cycles = AuditEntry.objects.filter(act="lane.held").count()
    assert cycles >= (3 if tickets > 4 else 1), cycles
    assert not Job.objects.filter(state="DEAD").exists()
    assert not Item.objects.exists()
    assert Decision.objects.count() == decided
    assert Outage.objects.count() == 1
    assert AlertEpisode.objects.filter(kind="automatic_hold").count() == 1

    night.model.condition = "up"
    night.work(until=night.second + 60)
    night.climb()
    night.work_off()

    assert set(Job.objects.values_list("state", flat=True)) == {"DONE"}
    assert Decision.objects.count() == Job.objects.count()


def test_a_probe_at_a_hanging_model_never_has_more_calls_out_than_its_cap(lead):
    """BRK-05"""
    night = Night.begin(lead, tickets=24)
    night.model.condition = "hanging"
    night.work(until=TEN_MINUTES / 2)

    assert night.model.most_at_once == PLAN[0].cap
    assert set(Attempt.objects.values_list("is_charged", flat=True)) == {False}
    drawn = Attempt.objects.filter(started_at__gt=Outage.objects.get().opened_at).values_list("job", flat=True)
    assert len(drawn) == len(set(drawn)), "each ticket at most once an outage"


def test_overload_stops_the_whole_lane_until_the_time_that_the_model_asked_for(lead):
    """BRK-04: with every ticket waiting, nobody calls before retry-after is over."""
    night = Night.begin(lead, tickets=50, unavailable_limit=50)
    night.model.condition = "overloaded"
    night.work(until=130)

    rounds = sorted(set(night.model.called_at))
    assert len(rounds) >= 4
    assert all(later - earlier >= 20 for earlier, later in pairwise(rounds))
    assert again(night.lane).run is not None


def test_when_nobody_judges_claims_stop_after_half_a_minute_and_go_on_when_somebody_does(lead):
    night = Night.begin(lead, tickets=10)
    raise_(night.lane, lead, when=10)

    answers = {
        when: batch.claim_next(night.lane.pk, 1, clock=FixedClock(at(when)), worker="w1").refusal
        for when in (40, 40.001, 41)
    }
    ramp.judge_if_due(night.lane.pk, clock=FixedClock(at(42)))
    after = batch.claim_next(night.lane.pk, 1, clock=FixedClock(at(42)), worker="w1")

    assert answers == {40: None, 40.001: "not_judged", 41: "not_judged"}
    assert len(after.claims) == 1


@pytest.mark.parametrize("condition", ["hanging", "failing"])
def test_a_ticket_alone_that_no_model_answers_still_dies_of_it(lead, condition):
    """Its budget is what tells a ticket that no model survives from a model that is away."""
    night = Night.begin(lead, tickets=12)
    night.climb()
    night.work_off()
    assert not Job.objects.exclude(state="DONE").exists()
    job = waiting_job(night.lane, added=night.second, deadline=night.second + 7200)

    night.model.condition = condition
    night.work(until=night.second + 120)

    job.refresh_from_db()
    assert (job.state, job.dead_reason) == ("DEAD", "attempts")
    assert again(night.lane).run is not None


def test_a_ticket_alone_lives_where_the_health_check_fails_too(lead):
    """Then it is the model: the lane goes on hold by the call that would have ended the ticket."""
    night = Night.begin(lead, tickets=12)
    night.climb()
    night.work_off()
    job = waiting_job(night.lane, added=night.second, deadline=night.second + 7200)
    look = {"health_is_good": False, "health_checked_at": night.clock.moment + timedelta(seconds=30)}
    ModelConnection.objects.filter(pk=night.lane.connection_id).update(**look)

    night.model.condition = "failing"
    night.work(until=night.second + 60, raises=False)

    job.refresh_from_db()
    assert (job.state, job.attempts) == ("WAITING", 0)
    hold = again(night.lane).hold
    assert (hold.reason, hold.params) == ("auto_errors", {"running": 5, "detail": "500: HTTP 500"})
