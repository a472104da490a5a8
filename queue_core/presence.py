"""Who was last seen working. For showing only: leases alone decide what is held."""

import logging
from datetime import timedelta
from typing import Any, cast

from django.db import Error, connection, connections

from queue_core.clock import Clock
from queue_core.models import Presence

logger = logging.getLogger(__name__)

#: Seconds between two signs of life of an idle worker.
EVERY = 10.0
FORGOTTEN_AFTER = timedelta(days=1)
CONNECT_TIMEOUT = 3

SEEN = """
INSERT INTO queue_core_presence AS p (kind, name, started_at, seen_at)
VALUES (%(kind)s, %(name)s, clock_timestamp(), clock_timestamp())
ON CONFLICT (kind, name) DO UPDATE SET
    seen_at = excluded.seen_at,
    started_at = CASE WHEN %(starts)s THEN excluded.started_at ELSE p.started_at END
"""


#: A tick's turn: none where another one was seen less than `apart` ago. Two at once wait for each other's row.
TURN = """
INSERT INTO queue_core_presence AS p (kind, name, started_at, seen_at)
VALUES (%(kind)s, %(name)s, clock_timestamp(), clock_timestamp())
ON CONFLICT (kind, name) DO UPDATE SET seen_at = excluded.seen_at
WHERE p.seen_at <= clock_timestamp() - make_interval(secs => %(apart)s)
"""


def scheduler_has_turn(name: str, *, apart: timedelta) -> bool:
    """Whether a tick is due: messages that piled up, or came from a second scheduler, have little left to do."""
    with connection.cursor() as cursor:
        cursor.execute(TURN, {"kind": Presence.Kind.SCHEDULER, "name": name[:200], "apart": apart.total_seconds()})
        return bool(cursor.rowcount == 1)


def scheduler_seen(name: str, *, clock: Clock) -> None:
    """Said by each tick: a scheduler sent it and a worker ran it. Rows nobody renewed for a day are dropped."""
    with connection.cursor() as cursor:
        cursor.execute(SEEN, {"kind": Presence.Kind.SCHEDULER, "name": name[:200], "starts": False})
    Presence.objects.filter(seen_at__lt=clock.now() - FORGOTTEN_AFTER).delete()


def worker_seen(name: str, *, starts: bool = False) -> None:
    """Said by a worker's main process, also when it has nothing to do.

    Over a connection of its own that is closed at once: the main process forks children, and a connection or a pool's
    threads open at that moment would be theirs too. Never an error: a worker that cannot say so still works.
    """
    own = _lone_connection()
    try:
        with own.cursor() as cursor:
            cursor.execute(SEEN, {"kind": Presence.Kind.WORKER, "name": name[:200], "starts": starts})
    except Error as error:
        logger.warning("worker %s could not say that it is here: %s", name, error)
    finally:
        own.close()


def _lone_connection() -> Any:
    own = connections["default"].copy()
    options = cast("dict[str, Any]", own.settings_dict["OPTIONS"])
    options.pop("pool", None)
    options["connect_timeout"] = CONNECT_TIMEOUT
    return own
