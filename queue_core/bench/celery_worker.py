"""The bench's own Celery worker, in a process that reads this module before it has set Django up."""

import os
from typing import Any

from celery import Celery
from celery.app import app_or_default
from kombu import Queue

QUEUE = "reviewboard-bench"
QUEUE_SETTINGS = ("task_queues", "task_default_queue", "task_default_routing_key")
PROCESSES = 2


def use_own_queue(app: Celery) -> None:
    """Send to the bench's queue: workers of the site, at the same broker, never see its messages."""
    likeness = app.conf.task_queues[0]
    queue = Queue(QUEUE, likeness.exchange, routing_key=QUEUE, queue_arguments=likeness.queue_arguments)
    app.conf.update(task_queues=[queue], task_default_queue=QUEUE, task_default_routing_key=QUEUE)
    app.amqp.__dict__.pop("queues", None)


def serve(database: dict[str, Any], kind: str, factory: str) -> None:
    """Work at that database until told to end, with the connection kind that the bench's lanes have."""
    os.setsid()
    # What a worker says to its terminal is no part of the bench's report.
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    import django
    from django.conf import settings

    django.setup()
    settings.QUEUE_CORE_CONNECTIONS = {kind: factory}
    from queue_core.bench import celery_path, ground

    assert celery_path.end_row.name, "its task is known to the worker"
    ground.stand_on(database)
    app = app_or_default()
    use_own_queue(app)
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR")
    app.worker_main(["worker", "-Q", QUEUE, "-c", str(PROCESSES), "-n", "bench@%h", "-P", "prefork", *quiet])
