"""Whether wake-ups can be sent. For showing only: the work is in the database."""

import logging
import threading
import time

from celery import current_app

from queue_core.wakeups import impatient_options

logger = logging.getLogger(__name__)

#: One look serves every page for so many seconds: a page must not hang on a broker that does not answer.
LOOK_LASTS = 10.0
PATIENCE = 1

_lock = threading.Lock()
_looks: list[tuple[float, bool]] = []


def is_reachable() -> bool:
    """One page looks while the others show what was seen last."""
    if _is_due() and _lock.acquire(blocking=not _looks):
        try:
            if _is_due():
                found = _look()
                _looks[:] = [(time.monotonic(), found)]
        finally:
            _lock.release()
    return _looks[-1][1]


def _is_due() -> bool:
    return not _looks or time.monotonic() - _looks[-1][0] > LOOK_LASTS


def _look() -> bool:
    try:
        options = impatient_options()
        with current_app.connection_for_write(connect_timeout=PATIENCE, transport_options=options) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=PATIENCE)
    except Exception as error:  # noqa: BLE001  (whatever a broker's client raises, the answer is no)
        logger.warning("the broker cannot be reached: %s: %s", type(error).__name__, error)
        return False
    return True
