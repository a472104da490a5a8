import pytest

from queue_core import contract, figures
from queue_core.contract import Ending
from queue_core.figures import Effects
from queue_core.models import StageRun
from queue_core.states import AttemptOutcome
from reviewboard import effect_text
from tests.factories import at, claim, clock, leased_job, make_lane, make_run

pytestmark = pytest.mark.django_db


def test_what_nobody_knows_and_what_was_refused_are_counted_apart_and_per_run() -> None:
    """Unknown is not failed: a timeout, an expired lease. Refused: late by time alone, or stale in other hands."""
    lane = make_lane(max_attempts=9)
    job, old = leased_job(lane, claimed=1)
    contract.sweep(clock=clock(200))
    second = claim(job, when=201)
    contract.complete(old, Ending(result="APPROVED"), clock=clock(202))
    contract.release(second, outcome=AttemptOutcome.TIMEOUT, clock=clock(203))
    third = claim(job, when=204)
    contract.complete(third, Ending(result="APPROVED"), clock=clock(400))
    contract.release(third, outcome=AttemptOutcome.RELEASED, clock=clock(401))

    counted = Effects(unknown=2, late=1, stale=1)
    assert figures.effects_of_job(job) == counted
    assert figures.running_leases(lane, now=at(402)).effects == counted
    assert len(effect_text.of_run(counted)) == len(effect_text.of_job(counted)) == 3

    assert lane.run is not None
    StageRun.objects.filter(pk=lane.run.pk).update(ended_at=at(403), ended_as="raised")
    lane.run = make_run(lane, started_at=at(403))
    assert figures.running_leases(lane, now=at(404)).effects == Effects()


def test_a_quiet_run_says_so_and_a_quiet_job_says_nothing() -> None:
    assert len(effect_text.of_run(Effects())) == 1
    assert effect_text.of_job(Effects()) == ()
