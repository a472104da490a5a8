"""What the forecast reads of a lane's rows and kept figures, and what it says of a real drain."""

import re
from datetime import timedelta
from random import Random

import pytest
from django.db import connection

from queue_core import batch, contract, figures, where
from queue_core.contract import Ending
from queue_core.forecast import reading
from queue_core.forecast.backlog import read_backlog
from queue_core.forecast.dry_run import dry_run
from queue_core.forecast.outlook import Basis, LineState
from queue_core.forecast.reading import Course, order_of, read_forecast
from queue_core.models import Hold, Job, Lane, LaneTotal, Stage, WaitingDue
from queue_core.states import JobState
from tests.factories import at, clock, make_lane, waiting_job, without_guards
from tests.where.test_figures import explained, fill

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_kept():
    reading.forget()
    yield
    reading.forget()


def read(lane: Lane, seconds: float, **how):
    return read_forecast(where.lanes_to_read().get(pk=lane.pk), now=at(seconds), **how)


def test_the_backlog_is_counted_whole_and_its_order_and_attempts_are_those_of_the_jobs() -> None:
    lane = make_lane()
    for number in range(12):
        waiting_job(lane, added=number, deadline=600 + 300 * number, severity=number % 3)
    far = waiting_job(lane, added=20, deadline=400_000)
    with without_guards():
        Job.objects.filter(pk=far.pk).update(max_attempts=1)

    found = read_backlog(lane, order_of(lane), now=at(100))

    assert (found.number, round(sum(one.count for one in found.cohorts))) == (13, 13)
    assert sum(number for _minute, _severity, number in found.due) == 12
    jobs = sorted(Job.objects.filter(severity=1), key=lambda job: job.urgency)[:4]
    cohorts = sorted(
        (one for one in found.cohorts if one.severity == 1 and one.deadline < 1e5), key=lambda c: c.urgency
    )
    for job, cohort in zip(jobs, cohorts, strict=False):
        assert cohort.urgency == pytest.approx((job.urgency - at(100)).total_seconds(), abs=31)
        assert cohort.deadline == pytest.approx((job.deadline - at(100)).total_seconds(), abs=31)
    assert {one.tries for one in found.cohorts if one.deadline > 1e5} == {1}


def test_on_hold_it_says_how_many_pass_by_when_and_needs_no_pace() -> None:
    lane = make_lane(cap=None)
    for deadline in (400, 500, 2000, 9000, 90_000):
        waiting_job(lane, deadline=deadline)

    found = read(lane, 60)

    assert found.passing == [(at(60 + 900), 2), (at(60 + 3600), 3), (at(60 + 14_400), 4)]
    held = found.column(Course.NOTHING_STARTS).outlook
    assert (held.model.state, held.model.leaving) == (LineState.HELD, None)
    assert held.missed == {3: (0, 0), 2: (0, 0), 1: (4, 4), 0: (0, 0)}
    assert found.column(Course.AS_BEFORE) is None, "nothing was measured, so nothing is made up"


def test_a_run_with_too_few_calls_says_that_it_does_not_know() -> None:
    lane = make_lane()
    waiting_job(lane)

    [column] = read(lane, 900).columns

    assert (column.course, column.outlook.model.state) == (Course.AS_NOW, LineState.UNKNOWN)
    assert column.outlook.model.basis == Basis.TOO_FEW


def test_a_drain_of_real_jobs_goes_as_was_forecast_and_a_hold_remembers_the_pace() -> None:
    chance, lane = Random(5), make_lane(cap=8, run={"started_at": at(-60)}, lease=timedelta(seconds=100))
    Stage.objects.create(lane=lane, number=1, name="probe", cap=2)
    Stage.objects.create(lane=lane, number=3, name="more", cap=20)
    # A backlog of before, and two a minute since.
    for added in [*range(-3000, -2400, 10), *range(-1800, 1200, 30)]:
        given = chance.choice([3300, 3700, 9000]) if added < -1800 else 9000
        waiting_job(lane, added=added, deadline=added + given, severity=chance.choice([0, 1]))
    play(lane, since=0, until=480)
    before = read(lane, 480)

    end = play(lane, since=480, until=2400)

    column = before.column(Course.AS_NOW)
    assert (column.outlook.model.state, column.outlook.model.basis) == (LineState.EMPTIES, Basis.RUN)
    empty = column.outlook.model.empty
    assert empty.low <= end - 480 <= (empty.high or 8 * 3600)
    dead = Job.objects.filter(state=JobState.DEAD, dead_reason="deadline", finished_at__gt=at(480))
    for severity, (low, high) in column.outlook.missed.items():
        assert low <= dead.filter(severity=severity).count() <= high, severity
    assert before.column(Course.NEXT_STAGE).stage.number == 3

    hold = Hold.objects.create(lane=lane, is_automatic=True, reason="auto_errors", started_at=at(2400), run=lane.run)
    Lane.objects.filter(pk=lane.pk).update(run=None, cap=None, hold=hold)
    waiting_job(lane, added=2400, deadline=9000)

    healthy = read(lane, 2500).column(Course.AS_BEFORE)
    assert healthy.outlook.model.basis == Basis.HEALTHY
    assert healthy.is_estimate
    assert healthy.until <= at(2400)


def test_a_forecast_is_kept_a_quarter_of_a_minute_and_not_beyond_a_raise() -> None:
    lane = where.lanes_to_read().get(pk=make_lane(cap=None).pk)

    first = reading.forecast(lane, now=at(100))

    assert reading.forecast(lane, now=at(114.9)) is first
    assert reading.forecast(lane, now=at(115)) is not first
    lane.cap = 1
    assert reading.forecast(lane, now=at(115)).as_of == at(115)


def test_a_big_backlog_is_read_by_indexes_alone_as_a_few_hundred_cohorts() -> None:
    """PGQ-21: whatever the tables hold, a forecast reads kept figures and a bounded number of jobs."""
    lane = make_lane(cap=None)
    Stage.objects.create(lane=lane, number=1, name="probe", cap=2)
    fill(lane, done=2_000, waiting=4_000)
    # `fill` goes past the verbs, which keep the figures.
    LaneTotal.objects.update_or_create(lane=lane, code="WAITING", defaults={"number": 1_000_000})
    due = [WaitingDue(lane=lane, minute=at(60 * n), severity=n % 3, number=1_000) for n in range(20, 1020)]
    WaitingDue.objects.bulk_create(due)
    read_lane, plans = where.lanes_to_read().get(pk=lane.pk), list[str]()

    with figures.snapshot(), connection.execute_wrapper(explained(plans)):
        found = read_forecast(read_lane, now=at(1000))
        assert dry_run(read_lane, now=at(1000)).number == 2
        where.make_up(read_lane, now=at(1000))

    assert found.columns[0].outlook.model.waiting == 1_000_000
    assert len(read_backlog(read_lane, order_of(lane), now=at(1000)).cohorts) <= 600
    for plan in plans:
        assert not re.search(r"Seq Scan on queue_core_(job|attempt|ticket|evidence)", plan), plan
        assert "Bitmap Heap Scan on queue_core_job" not in plan, plan


def play(lane: Lane, *, since: int, until: int) -> float:
    """Four calls each twenty seconds, until nothing is left to claim. Gives the time of that."""
    for moment in range(since, until, 20):
        found = batch.claim_next(lane.pk, 4, clock=clock(moment), worker="w")
        contract.sweep(clock=clock(moment))
        endings = [(claim.token, Ending(result="APPROVED")) for claim in found.claims]
        batch.complete_many(endings, clock=clock(moment + 10))
        if len(found.claims) < 4:
            return float(moment)
    return float(until)
