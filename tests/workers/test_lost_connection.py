"""The database goes away between the model's answer and its commit."""

import pytest
from django.db import OperationalError, connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper

from queue_core import batch
from queue_core.clock import DATABASE_CLOCK
from queue_core.drain import drain
from queue_core.models import Attempt, Decision, Job
from reviewboard import settings as site_settings
from tests.workers.conftest import receive

pytestmark = pytest.mark.django_db(transaction=True)


def kill_our_session() -> None:
    """End this process's own session from another one, as an administrator or a failover would."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [pid] = cursor.fetchone()
    other = connections["default"].copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    finally:
        other.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_session_that_dies_at_the_commit_loses_no_answer_and_commits_none_twice(staged_lane, monkeypatch, when):
    """PGQ-15"""
    [job] = receive(staged_lane, "fine")
    complete_many = batch.complete_many
    deaths = iter([True])

    def complete_and_die(endings, **options):
        if not next(deaths, False):
            return complete_many(endings, **options)
        if when == "after":
            complete_many(endings, **options)
        kill_our_session()
        return complete_many(endings, **options)

    monkeypatch.setattr(batch, "complete_many", complete_and_die)

    drain(staged_lane.pk, task="t", worker="w", clock=DATABASE_CLOCK)

    job.refresh_from_db()
    assert (job.state, job.result, job.fence) == ("DONE", "APPROVED", 1)
    assert Decision.objects.count() == 1
    assert Attempt.objects.get().is_committed


def test_answers_that_cannot_be_written_are_left_to_their_leases(staged_lane, monkeypatch):
    [job] = receive(staged_lane, "fine")
    monkeypatch.setattr("queue_core.calls.persistently", _always_lost)

    drain(staged_lane.pk, task="t", worker="w", clock=DATABASE_CLOCK)

    job = Job.objects.get(pk=job.pk)
    assert (job.state, job.result) == ("LEASED", None)


def _always_lost(_act):
    raise OperationalError("the server closed the connection")


def test_a_session_that_died_in_the_pool_is_given_to_nobody():
    """After a failover no page meets one of those that the pool kept."""
    kept = site_settings._database()
    pool = {"pool": kept["OPTIONS"]["pool"]}
    named = connection.settings_dict | {"OPTIONS": connection.settings_dict["OPTIONS"] | pool}
    pooled = DatabaseWrapper(named | {"CONN_HEALTH_CHECKS": kept["CONN_HEALTH_CHECKS"]}, alias="pooled")
    try:
        with pooled.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            [pid] = cursor.fetchone()
        pooled.close()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        with pooled.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            assert cursor.fetchone() != (pid,)
        pooled.close()
    finally:
        pooled.close_pool()
