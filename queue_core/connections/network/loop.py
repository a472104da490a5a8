"""One event loop for each process, in a thread of its own: two hundred calls at once need no two hundred threads.

Made when first needed, so that a worker's children, which are forked, each have their own.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from queue_core.connections.network.transport import Clients, tls


@dataclass(slots=True)
class CallLoop:
    """The loop and what belongs to it."""

    loop: asyncio.AbstractEventLoop
    clients: Clients = field(default_factory=Clients)

    def submit(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        return asyncio.run_coroutine_threadsafe(work, self.loop)


_starting = threading.Lock()
_running: CallLoop | None = None


def call_loop() -> CallLoop:
    """This process's loop."""
    global _running
    with _starting:
        if _running is None:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="model-call-loop", daemon=True).start()
            _running = CallLoop(loop)
        return _running


def warm() -> None:
    """Load what the first call would load: in the loop it would keep every other call waiting."""
    for name in ("httpcore2", "anyio._backends._asyncio"):
        import_module(name)
    for name in ("httpx2", "httpcore2"):
        # At DEBUG they log the headers of answers, in which a server may quote the key; at INFO a line for each call.
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.WARNING))
    tls()
    call_loop()


def _forget() -> None:
    """In a forked child: the parent's thread is not here, and its lock may have been held."""
    global _running, _starting
    _running, _starting = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
