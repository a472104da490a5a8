"""The dry run names what a claim would then take, and takes nothing."""

from datetime import timedelta
from random import Random

import pytest

from queue_core import batch
from queue_core.forecast.dry_run import dry_run
from queue_core.models import Attempt, Job, Lane, Stage
from queue_core.ramp_runs import begin_run, end_run, terms_of
from queue_core.states import RunEnd
from tests.factories import at, clock, make_lane, waiting_job, without_guards

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("number", [1, 3])
def test_the_next_stage_takes_what_the_dry_run_named(number: int, django_user_model) -> None:
    chance, lane = Random(number), make_lane(cap=None if number == 1 else 1, number=2, max_attempts=2)
    stage = Stage.objects.create(lane=lane, number=number, name="next", cap=5)
    for _number in range(20):
        waiting_job(
            lane,
            added=chance.uniform(0, 50),
            deadline=chance.choice([61, 300, 900, 5000]),
            severity=chance.choice([0, 1, 2]),
        )
    with without_guards():
        Job.objects.filter(pk=Job.objects.order_by("-deadline").values("pk")[:1]).update(max_attempts=1, attempts=0)

    found = dry_run(Lane.objects.get(pk=lane.pk), now=at(100))

    assert (found.stage, found.number, len(found.first)) == (stage, 5, 5)
    assert not Attempt.objects.exists()
    lead = django_user_model.objects.create_user("lead")
    end_run(lane, ended_as=RunEnd.RAISED, person=lead, now=at(100))
    begin_run(lane, terms_of(stage), person=lead, reason="test", figures={}, now=at(100))
    taken = batch.claim_next(lane.pk, 50, clock=clock(100), worker="w").claims
    assert [one.job for one in found.first] == [claim.token.job for claim in taken]
    assert sum(found.by_severity.values()) == len(taken)


def test_it_names_ten_and_sums_all_that_the_stage_would_take_at_once_by_severity() -> None:
    lane = make_lane(cap=1, lease=timedelta(seconds=30))
    Stage.objects.create(lane=lane, number=3, name="next", cap=50, rate=14)
    for number in range(20):
        waiting_job(lane, severity=number % 2, deadline=1000 + number)

    found = dry_run(lane, now=at(100))

    assert (len(found.first), found.number) == (10, 14)
    assert list(found.by_severity) == [1, 0]


def test_the_last_stage_has_no_dry_run() -> None:
    assert dry_run(make_lane(), now=at(1)) is None
