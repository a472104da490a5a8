"""What a Celery worker's main process does for the queue: it says that it is here, and tells its children to stop.

Connected by signals, so that a project's Celery app needs no line about it.
"""

from typing import Any

from celery import bootsteps
from celery.signals import worker_init, worker_shutting_down

from queue_core import presence, stopping


class PresenceStep(bootsteps.StartStopStep):
    """A timer of the consumer, not of the worker: a lost broker clears all timers, and restarts only its steps.

    So a worker that lost its broker is not seen either, which is the truth: it fetches nothing (CEL-06).
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        self._timer: Any = None

    def start(self, consumer: Any) -> None:
        # A worker for ticks alone drains nothing: it must not pass for one that does.
        if consumer.app.conf.task_default_queue not in consumer.app.amqp.queues.consume_from:
            return
        presence.worker_seen(consumer.hostname, starts=True)
        self._timer = consumer.timer.call_repeatedly(presence.EVERY, presence.worker_seen, (consumer.hostname,))

    def stop(self, consumer: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@worker_init.connect
def _begin(sender: Any, **_details: Any) -> None:
    stopping.reset()
    sender.app.steps["consumer"].add(PresenceStep)


@worker_shutting_down.connect
def _stop(**_details: Any) -> None:
    stopping.begin()
