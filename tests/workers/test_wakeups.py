"""Wake-ups go out after the commit, seldom, and never trouble who sends them."""

import logging
import socket
import time

import pytest
from celery import current_app
from django.db import transaction

from queue_core import wakeups
from queue_core.persistence import persistently
from reviewboard import broker

LANE = 7


@pytest.fixture
def sent(monkeypatch):
    messages: list[list[int]] = []
    monkeypatch.setattr(current_app, "send_task", lambda _name, args, **_options: messages.append(args))
    monkeypatch.setattr(wakeups, "_sent_at", {})
    return messages


@pytest.mark.django_db(transaction=True)
def test_a_wake_up_goes_out_after_the_commit(sent):
    """CEL-12"""
    with transaction.atomic():
        wakeups.wake(LANE)
        assert sent == []

    assert sent == [[LANE]]


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_is_rolled_back_wakes_nobody(sent):
    """CEL-12"""
    with transaction.atomic():
        wakeups.wake(LANE)
        transaction.set_rollback(True)

    assert sent == []


@pytest.mark.django_db(transaction=True)
def test_a_lane_is_woken_once_in_a_moment_and_another_lane_for_itself(sent):
    wakeups.wake(LANE)
    wakeups.wake(LANE)
    wakeups.wake(LANE + 1)
    assert sent == [[LANE], [LANE + 1]]

    wakeups._sent_at[LANE] -= wakeups.LEAST_PAUSE
    wakeups.wake(LANE)
    assert sent[2:] == [[LANE]]


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_down_is_logged_and_no_error_for_the_caller(sent, monkeypatch, caplog):
    def fail(*_arguments, **_options):
        raise ConnectionError("no broker")

    monkeypatch.setattr(current_app, "send_task", fail)

    with caplog.at_level(logging.WARNING):
        wakeups.wake(LANE)

    assert "no wake-up could be sent" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_refuses_connections_keeps_no_caller_waiting(monkeypatch, caplog):
    """A page that wakes a worker while the broker is down: tried, it took six seconds with `retry=False` alone."""
    monkeypatch.setattr(wakeups, "_sent_at", {})
    monkeypatch.setattr(current_app.conf, "broker_url", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(current_app.conf, "broker_write_url", "redis://127.0.0.1:1/0")
    started = time.monotonic()

    with caplog.at_level(logging.WARNING):
        wakeups.wake(LANE)

    assert "no wake-up could be sent" in caplog.text
    assert time.monotonic() - started < 5


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_accepts_and_never_answers_keeps_neither_caller_nor_page_waiting(monkeypatch, caplog):
    """CEL-06: its process stands still. The page with the brake on it took thirty seconds, and so did every wake-up."""
    monkeypatch.setattr(wakeups, "_sent_at", {})
    monkeypatch.setattr(broker, "_looks", [])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        monkeypatch.setattr(current_app.conf, "broker_url", url)
        monkeypatch.setattr(current_app.conf, "broker_write_url", url)
        started = time.monotonic()

        with caplog.at_level(logging.WARNING):
            wakeups.wake(LANE)
            is_there = broker.is_reachable()

    assert "no wake-up could be sent" in caplog.text
    assert not is_there
    assert time.monotonic() - started < 15


def test_a_lost_connection_is_tried_again_and_its_last_error_is_the_callers(db):
    tries = []

    def fail() -> None:
        tries.append(1)
        raise ValueError("not the connection's fault")

    with pytest.raises(ValueError, match="fault"):
        persistently(fail, pauses=(0.0, 0.0))
    assert len(tries) == 1
