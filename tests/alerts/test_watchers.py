"""Who looks when the scheduler does not: a web process by itself, and a worker as it drains."""

import pytest
from django.db import OperationalError

from queue_core import alerts, tasks
from queue_core.models import AlertEpisode, AlertNotice
from reviewboard import alert_watch
from tests.factories import make_lane

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _keep_the_tests_connection(monkeypatch):
    monkeypatch.setattr(alert_watch.connections, "close_all", lambda: None)
    monkeypatch.setattr(alert_watch, "close_old_connections", lambda: None)


def test_a_web_process_says_that_the_scheduler_is_dead_and_sends_the_mail(lead, mailoutbox):
    make_lane(cap=None)

    alert_watch.look()

    assert AlertEpisode.objects.get(kind="scheduler_dead").over_at is None
    assert AlertNotice.objects.get(episode__kind="scheduler_dead").sent_at is not None
    assert "the scheduler is dead" in "".join(message.subject for message in mailoutbox)


def test_a_worker_that_drains_says_so_when_nobody_looks():
    lane = make_lane(cap=None)

    tasks.drain.apply(args=[lane.pk])

    assert AlertEpisode.objects.filter(kind="scheduler_dead").exists()


def test_a_worker_leaves_the_look_to_those_whose_work_it_is():
    lane = make_lane(cap=None)
    alerts.watch_if_due(clock=alert_watch.DATABASE_CLOCK)
    before = AlertEpisode.objects.count()

    tasks.drain.apply(args=[lane.pk])

    assert AlertEpisode.objects.count() == before


@pytest.mark.parametrize("fault", [OperationalError("gone"), RuntimeError("a bug")])
def test_a_look_that_fails_is_logged_and_ends_no_watch(monkeypatch, caplog, fault):
    def fail(**_arguments):
        raise fault

    monkeypatch.setattr(alerts, "watch_if_due", fail)

    alert_watch.look()

    assert any("alerts" in record.getMessage() for record in caplog.records)
