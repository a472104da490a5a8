"""Messages that only say "look": lost, doubled or late they change nothing, since the rows are the truth."""

import logging
import threading
import time
from typing import Any

from celery import current_app
from django.db import transaction
from kombu import pools

from queue_core.models import Endpoint
from queue_core.states import EndpointState

logger = logging.getLogger(__name__)

#: By name: this module stands below the tasks.
DRAIN = "queue_core.tasks.drain"
HEALTH = "queue_core.tasks.health"
RELAY = "queue_core.tasks.relay"
DELIVER = "queue_core.tasks.deliver"
IMPORT = "queue_core.tasks.take_in"
BULK = "queue_core.tasks.bulk"
#: A process sends a lane, or an endpoint, no more than one in this time; the tick makes up for what was left out.
LEAST_PAUSE = 0.2
#: An unread message is dropped after this many seconds, so that a broker without workers does not fill for ever. The
#: worker compares by its own clock: this has to be longer than clocks are apart, or one that is five minutes fast
#: throws every wake-up and every tick away.
EXPIRES_AFTER = 900

#: Seconds for a free connection: the caller's own work is done and must not wait for a message about it.
LONGEST_WAIT = 1.0

_lock = threading.Lock()
_sent_at: dict[int | str, float] = {}


def wake(lane_id: int) -> None:
    """Wake a worker for a lane, once the caller's transaction is committed. Never an error for the caller."""
    transaction.on_commit(lambda: _send_if_due(lane_id, DRAIN, lane_id), robust=True)


def wake_relay() -> None:
    """Wake the relay for a message of the caller's transaction, where an endpoint may want it."""
    transaction.on_commit(_wake_relay, robust=True)


def wake_sender(endpoint_id: int) -> None:
    """Wake a sender for an endpoint with something due."""
    transaction.on_commit(lambda: _send_if_due(f"endpoint {endpoint_id}", DELIVER, endpoint_id), robust=True)


def wake_bulk(act_id: int) -> None:
    """Wake a worker for a bulk act, once the caller's transaction is committed."""
    transaction.on_commit(lambda: _send_if_due(f"bulk {act_id}", BULK, act_id), robust=True)


def wake_import(run_id: int) -> None:
    """Wake a worker for an uploaded file, once the caller's transaction is committed."""
    transaction.on_commit(lambda: _send_if_due(f"import {run_id}", IMPORT, run_id), robust=True)


def look_at_health() -> None:
    """Have somebody look at the connections that are due, once the caller's transaction is committed."""
    transaction.on_commit(lambda: _send_if_due("health", HEALTH), robust=True)


def _wake_relay() -> None:
    if _is_due(RELAY) and Endpoint.objects.filter(state=EndpointState.ENABLED).exists():
        _send(RELAY)


def _send_if_due(key: int | str, task: str, *args: int) -> None:
    if _is_due(key):
        _send(task, *args)


def _is_due(key: int | str) -> bool:
    moment = time.monotonic()
    with _lock:
        last = _sent_at.get(key)
        if last is not None and moment - last < LEAST_PAUSE:
            return False
        _sent_at[key] = moment
        return True


def _send(task: str, *args: int) -> None:
    try:
        with pools.producers[_connection()].acquire(block=True, timeout=LONGEST_WAIT) as producer:
            current_app.send_task(
                task, args=list(args), producer=producer, retry=False, expires=EXPIRES_AFTER, ignore_result=True
            )
    except Exception as error:  # noqa: BLE001  A broker's client raises whatever its library does.
        # The work is in the database, and the tick wakes again when the broker is back.
        logger.warning("no wake-up could be sent: %s%s: %s: %s", task, args, type(error).__name__, error)


def _connection() -> Any:
    """A connection that gives up at once. `retry=False` only spares the sending: connecting is tried for seconds."""
    return current_app.connection_for_write(transport_options=impatient_options())


def impatient_options() -> dict[str, Any]:
    """The transport's options for a sender who must not wait, not even for a broker that accepts and never answers.

    Redis's own time-outs are long, since workers wait for messages with them; a transport that has none gets none.
    """
    options = {**current_app.conf.broker_transport_options, "max_retries": 0}
    return options | {name: LONGEST_WAIT for name in ("socket_timeout", "socket_connect_timeout") if name in options}
