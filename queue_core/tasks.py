"""Celery tasks. A message only wakes: what there is to do is in the rows, so that any number of them is right."""

import logging
import os
from typing import Any

from celery import shared_task

from queue_core import alerts, known_answers, stopping, worker_steps
from queue_core import bulk as bulk_acts
from queue_core import health as connections_health
from queue_core import imports as importing
from queue_core import relay as relaying
from queue_core import tick as ticking
from queue_core.clock import DATABASE_CLOCK
from queue_core.drain import drain as drain_lane

__all__ = ["ask_known", "bulk", "deliver", "drain", "health", "relay", "take_in", "tick", "watch", "worker_steps"]

logger = logging.getLogger(__name__)


@shared_task(bind=True, name="queue_core.tasks.drain")
def drain(self: Any, lane_id: int) -> None:
    worker = f"{self.request.hostname or 'inline'}/{os.getpid()}"
    drained = drain_lane(
        lane_id, task=self.request.id or worker, worker=worker, clock=DATABASE_CLOCK, is_stopping=stopping.is_stopping
    )
    # Where no scheduler sends `watch` any more, those who work say so.
    alerts.watch_if_late(clock=DATABASE_CLOCK)
    logger.info("drained lane %d: %d claims, %s %s", lane_id, drained.claims, drained.stop, drained.refusal or "")


@shared_task(name="queue_core.tasks.tick")
def tick() -> None:
    ticking.tick_in_turn(clock=DATABASE_CLOCK)


@shared_task(name="queue_core.tasks.relay")
def relay() -> None:
    relaying.step(clock=DATABASE_CLOCK)


@shared_task(name="queue_core.tasks.deliver")
def deliver(endpoint_id: int) -> None:
    sent = relaying.send_due(endpoint_id, clock=DATABASE_CLOCK, is_stopping=stopping.is_stopping)
    if sent.delivered or sent.failed:
        logger.info("endpoint %d: %d delivered, %d failed, %s", endpoint_id, sent.delivered, sent.failed, sent.stop)


@shared_task(name="queue_core.tasks.bulk")
def bulk(act_id: int) -> None:
    handled = bulk_acts.work(act_id, clock=DATABASE_CLOCK, is_stopping=stopping.is_stopping)
    logger.info("bulk act %d: %d entries", act_id, handled)


@shared_task(bind=True, name="queue_core.tasks.take_in")
def take_in(self: Any, run_id: int) -> None:
    # By the message and the process: one that is delivered twice is two workers.
    task = f"{self.request.id or 'inline'}/{self.request.hostname}/{os.getpid()}"
    importing.work(run_id, task=task[:200], clock=DATABASE_CLOCK, is_stopping=stopping.is_stopping)


@shared_task(name="queue_core.tasks.health")
def health() -> None:
    connections_health.check_all(clock=DATABASE_CLOCK)


@shared_task(name="queue_core.tasks.ask_known")
def ask_known() -> None:
    known_answers.ask_due(clock=DATABASE_CLOCK, is_stopping=stopping.is_stopping)


@shared_task(name="queue_core.tasks.watch")
def watch() -> None:
    alerts.watch_if_due(clock=DATABASE_CLOCK)
    alerts.send_due(clock=DATABASE_CLOCK)
