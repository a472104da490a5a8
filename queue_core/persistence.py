"""Doing a database act again when the connection broke under it."""

import logging
import time
from collections.abc import Callable

from django.db import InterfaceError, OperationalError, connection

logger = logging.getLogger(__name__)

#: Seconds between tries. Short in all: a lease runs meanwhile, and its end puts right what stays undone.
PAUSES = (0.1, 0.3, 1.0, 2.0)


def persistently[T](act: Callable[[], T], *, pauses: tuple[float, ...] = PAUSES) -> T:
    """The value of `act`, which is run again on a fresh connection when the database could not be reached.

    For acts that may be repeated: whether the first try was committed before its connection broke is not known.
    """
    for pause in pauses:
        try:
            return act()
        except (OperationalError, InterfaceError) as error:
            if connection.in_atomic_block:
                raise
            logger.warning("the database could not be reached, trying again in %g s: %s", pause, type(error).__name__)
            connection.close()
            time.sleep(pause)
    return act()
