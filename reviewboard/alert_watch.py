"""A web process watches too: when scheduler and workers are dead it is the only one left to say so."""

import logging
import threading
import time

from django.db import Error, close_old_connections, connections

from queue_core import alerts
from queue_core.clock import DATABASE_CLOCK

logger = logging.getLogger(__name__)

#: A site that starts has its first tick by then: a scheduler that only starts later than the pages is not dead.
FIRST_AFTER = 25.0


def start() -> threading.Thread:
    """Begin to watch in the background of this process, for as long as it lives."""
    thread = threading.Thread(target=_watch_for_ever, name="alert-watch", daemon=True)
    thread.start()
    return thread


def look() -> None:
    """One turn: look if it is due, send what is due. A database that is away is logged and asked again."""
    close_old_connections()
    try:
        alerts.watch_if_due(clock=DATABASE_CLOCK)
        alerts.send_due(clock=DATABASE_CLOCK)
    except Error as error:
        logger.warning("alerts could not be watched: %s", type(error).__name__)
    except Exception:
        logger.exception("watching for alerts failed")
    finally:
        # Back to the pool: a look every few seconds needs no connection of its own in between.
        connections.close_all()


def _watch_for_ever() -> None:
    time.sleep(FIRST_AFTER)
    while True:
        look()
        time.sleep(alerts.PACE.total_seconds())
