"""Twenty claimers in four processes, let go in the same instant, again and again."""

import subprocess
import sys

import pytest
from django.db import connection

from queue_core import contract
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Attempt, Job, Lane
from queue_core.states import AttemptOutcome, LeaseToken
from tests.factories import make_lane
from tests.workers.conftest import receive
from tests.workers.processes import ROOT, environment_for, wait_until

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True), pytest.mark.timeout(170)]

PROCESSES, THREADS = 4, 5
#: The cap of each round: a probe of one, five, and five that is two by the time the claimers come.
CAPS = (1, 1, 5, 5, 2)


def test_of_twenty_that_ask_at_once_no_more_claim_than_the_cap_lets_and_the_rest_leave_no_trace():
    """BRK-01, PGQ-03"""
    lane = make_lane(cap=max(CAPS))
    receive(lane, *[f"text {number}" for number in range(200)])
    command = [sys.executable, "-m", "tests.brake.claimers", str(lane.pk), str(THREADS), str(len(CAPS))]
    environment = environment_for(broker_url="redis://127.0.0.1:1/0") | {"DATABASE_POOL": "20"}
    for number in range(1, len(CAPS) + 1):
        _hold(number)
    claimers = [subprocess.Popen(command, cwd=ROOT, env=environment) for _process in range(PROCESSES)]
    try:
        for number, cap in enumerate(CAPS, start=1):
            Lane.objects.filter(pk=lane.pk).update(cap=cap)
            wait_until(lambda: _waiting() == PROCESSES * THREADS, f"all claimers stand at the barrier of {number}")
            _let_go(number)
            wait_until(lambda number=number: _asked(number), f"all have asked in round {number}")

            leased = Job.objects.filter(state="LEASED")
            assert leased.count() == cap
            assert Attempt.objects.filter(ended_at__isnull=True).count() == cap
            assert not Job.objects.filter(state="WAITING").exclude(fence=0, attempts=0).exclude(pk__in=_gone()).exists()
            _give_back()
        assert [one.wait(60) for one in claimers] == [0] * PROCESSES
    finally:
        for one in claimers:
            one.kill()
            one.wait()
    assert Attempt.objects.count() == sum(CAPS)


def _hold(number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [number])


def _let_go(number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [number])


def _waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return cursor.fetchone()[0]


def _asked(number: int) -> bool:
    """Nobody holds this round's lock any more: each gives it up after its claim."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = %s"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
            [number],
        )
        return cursor.fetchone()[0]


def _gone() -> list[int]:
    return list(Attempt.objects.values_list("job", flat=True))


def _give_back() -> None:
    for row in Attempt.objects.filter(ended_at__isnull=True).select_related("job"):
        token = LeaseToken(row.job_id, row.fence, row.job.revision, row.pk, row.key)
        assert contract.release(token, outcome=AttemptOutcome.RELEASED, clock=DATABASE_CLOCK) == "released"
