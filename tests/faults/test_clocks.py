"""Workers and web servers whose clocks are minutes off: only PostgreSQL's decides anything."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from queue_core import contract
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Attempt, Job
from tests.factories import without_guards
from tests.faults.servers import own_broker
from tests.workers.conftest import make_staged_lane, receive
from tests.workers.processes import ROOT, all_ended, assert_sound, environment_for, wait_for, workers_at
from tests.workers.staged import Stage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes, pytest.mark.timeout(180)]

FAST, SLOW = "300", "-300"
SHIFTED = os.pathsep.join([str(Path(__file__).parent / "shifted"), str(ROOT)])

CLAIM = """
import sys
from datetime import UTC, datetime
import django
django.setup()
from queue_core import contract
from queue_core.clock import DATABASE_CLOCK
answer = contract.claim(int(sys.argv[1]), clock=DATABASE_CLOCK, worker="shifted")
print(answer.outcome, round((datetime.now(UTC) - DATABASE_CLOCK.now()).total_seconds() / 60))
"""


def claim_elsewhere(job: Job, shift: str) -> tuple[str, int]:
    """What a claim answers in a process whose clock is shifted, and how many minutes off that clock is."""
    said = subprocess.run(
        [sys.executable, "-c", CLAIM, str(job.pk)],
        cwd=ROOT,
        env=environment_for(broker_url="redis://127.0.0.1:1/0") | {"PYTHONPATH": SHIFTED, "TEST_CLOCK_SHIFT": shift},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    outcome, off = said.stdout.split()
    return outcome, int(off)


def test_a_clock_five_minutes_off_ends_no_lease_and_no_ticket(staged_settings: None, stage: Stage) -> None:
    """LSE-01: a fast clock sees no running lease as over, nor a deadline as passed; a slow one opens none again."""
    lane = make_staged_lane(stage, lease=timedelta(seconds=180))
    now = DATABASE_CLOCK.now()
    held, ready, late = receive(lane, "fine", "fine", "fine")
    assert contract.claim(held.pk, clock=DATABASE_CLOCK, worker="a").token is not None
    Job.objects.filter(pk=ready.pk).update(deadline=now + timedelta(minutes=4))
    with without_guards():
        Job.objects.filter(pk=late.pk).update(queued_at=now - timedelta(hours=1), deadline=now - timedelta(minutes=1))

    assert claim_elsewhere(held, FAST) == ("held", 5)
    assert claim_elsewhere(ready, FAST) == ("claimed", 5)
    assert claim_elsewhere(late, SLOW) == ("died_deadline", -5)

    attempt = Attempt.objects.get(job=ready)
    assert timedelta(0) <= attempt.started_at - now < timedelta(seconds=60)
    assert attempt.lease_until - attempt.started_at == timedelta(seconds=180)
    held.refresh_from_db()
    assert (held.state, held.fence) == ("LEASED", 1)


@pytest.mark.long
def test_workers_whose_clocks_are_ten_minutes_apart_work_on_one_lane(
    staged_settings: None, stage: Stage, tmp_path: Path
) -> None:
    """LSE-01: the scheduler's clock is slow and a worker's fast, so that every message looks old to that worker."""
    lane = make_staged_lane(stage, cap=4, lease=timedelta(seconds=5))
    stage.pause(0.3)
    folder = tmp_path / "workers"
    folder.mkdir()
    with own_broker() as broker, workers_at(broker.url(), folder) as workers:
        # The fast one alone drains; the slow one sends the ticks, and runs none.
        slow = {"PYTHONPATH": SHIFTED, "TEST_CLOCK_SHIFT": SLOW}
        fast = {"PYTHONPATH": SHIFTED, "TEST_CLOCK_SHIFT": FAST}
        workers.start_scheduler(**slow)
        workers.start(scheduler=False, **fast)
        receive(lane, *["slow"] * 8, *["fine"] * 20)
        wait_for(workers, lambda: all_ended(lane), "all tickets ended", limit=90)

    assert Job.objects.filter(state="DONE", fence=1, attempts=1).count() == 28
    assert_sound(lane)
