import logging
import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from queue_core.clock import DATABASE_CLOCK

logger = logging.getLogger(__name__)

#: Seconds before it is tried again when the database is away.
PAUSE = 5.0


class Command(BaseCommand):
    help = "Brings posts and reviews into the demo's lanes until it is ended. `manage.py demo` starts it."
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        from reviewboard.demo import arrivals

        if not settings.REVIEWBOARD_DEMO:
            raise CommandError("Tickets are only made up in the demo: start it with manage.py demo.")
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_details: stopping.set())
        while not stopping.is_set():
            try:
                arrivals.arrive(stopping, clock=DATABASE_CLOCK)
            except Error as error:
                logger.warning("no ticket could be brought: %s", type(error).__name__)
                stopping.wait(PAUSE)
