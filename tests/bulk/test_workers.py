"""Workers of one act: two at once, one killed in the middle, one that waits for a person's hand."""

import subprocess
import sys

import pytest
from django.db import connection

from queue_core import bulk, people
from queue_core.models import AuditEntry, Job
from tests.bulk.acts import confirmed, lola, outcomes
from tests.factories import clock, dead_job, make_lane
from tests.locking import LIMIT, holding, started, together, wait_for, wait_until_blocked
from tests.people.cast import item_of, rita
from tests.workers.processes import ROOT, environment_for

pytestmark = pytest.mark.django_db(transaction=True)

#: A worker that has done its act to the second job, and has not committed it, when it is killed.
HANGING = """
import django, sys, time
django.setup()
from queue_core import bulk, contract
from queue_core.clock import FixedClock
from tests.factories import at
done, requeue = [], contract.requeue
def hang(job_id, **terms):
    outcome = requeue(job_id, **terms)
    done.append(job_id)
    if len(done) == 2:
        print("hangs", flush=True)
        time.sleep(60)
    return outcome
contract.requeue = hang
bulk.work(int(sys.argv[1]), clock=FixedClock(at(30)), slice_=60.0)
"""


def work(act):
    return lambda: bulk.work(act.pk, clock=clock(30), slice_=LIMIT)


def test_two_workers_at_once_handle_each_job_once():
    lane = make_lane()
    jobs = [dead_job(lane) for _ in range(12)]
    act = confirmed("requeue", lola())

    handled = together([work(act), work(act)])

    assert sum(handled) == 12
    assert set(outcomes(act).values()) == {"done"}
    assert AuditEntry.objects.filter(act="job.requeued").count() == len(jobs)
    assert AuditEntry.objects.filter(act="bulk.ended").count() == 1


@pytest.mark.processes
def test_a_worker_killed_in_the_middle_leaves_its_job_to_the_next_one():
    lane = make_lane()
    jobs = [dead_job(lane) for _ in range(4)]
    act = confirmed("requeue", lola())
    environment = environment_for(broker_url="redis://127.0.0.1:1/0")
    command = [sys.executable, "-c", HANGING, str(act.pk)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "hangs\n"
        worker.kill()
    wait_for(lambda: not bulk_locks(), "the server noticed that its client is gone")
    assert sorted(map(str, outcomes(act).values())) == ["None", "None", "None", "done"]
    assert Job.objects.filter(state="WAITING").count() == 1

    assert work(act)() == 3

    assert set(outcomes(act).values()) == {"done"}
    assert sorted(Job.objects.values_list("requeues", flat=True)) == [1] * len(jobs)
    assert AuditEntry.objects.filter(act="job.requeued").count() == len(jobs)


def bulk_locks():
    """Whether somebody still holds an entry."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
        )
        return cursor.fetchone()[0]


def test_a_person_who_takes_an_item_first_keeps_it():
    """MOD-01: a bulk act that waits for somebody's hand comes second and changes nothing."""
    lane, who = make_lane(), rita()
    job = dead_job(lane)
    act = confirmed("requeue", lola())

    with holding(lambda: people.take(item_of(job).pk, person=who, clock=clock(29))):
        worker = started("worker", work(act))
        wait_until_blocked(worker)

    assert worker.outcome() == 1
    assert outcomes(act) == {job.pk: "taken"}
    assert item_of(job).taken_by == who
