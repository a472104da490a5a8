"""The stand-in in a thread of the caller's process: how tests run it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reviewboard.model_server.conditions import Condition, Step
from reviewboard.model_server.server import ModelServer, Received

PATIENCE = 10.0


class RunningServer:
    """A stand-in that serves in another thread. Every method may be called from any thread."""

    def __init__(self, server: ModelServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server, self._loop = server, loop
        self.url = f"http://127.0.0.1:{server.port}"
        self.control_url = f"http://127.0.0.1:{server.control_port}"

    def set(self, fault: str = "up", **fields: Any) -> None:
        """Behave so from now on: `set("overloaded", retry_after="120")`, `set(latency=1.0)`."""
        condition = Condition.read({"fault": fault, **fields})
        self._in_loop(lambda: self._server.set(condition))

    def play(self, script: list[Step], *, repeat: bool = False) -> None:
        self._in_loop(lambda: self._server.play(script, repeat=repeat))

    @property
    def calls(self) -> list[Received]:
        return list(self._server.calls)

    @property
    def most_at_once(self) -> int:
        return self._server.most_at_once

    def forget(self) -> None:
        """Forget the calls so far."""
        self._server.calls.clear()
        self._server.most_at_once = 0

    def _in_loop(self, act: Callable[[], None]) -> None:
        async def run() -> None:
            act()
            # Listening again takes a turn of the loop; nobody is told before it is so.
            await self._server.settled()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(PATIENCE)


@contextmanager
def running(*, api_key: str = "", port: int = 0, control_port: int = 0) -> Iterator[RunningServer]:
    """A stand-in on free ports of the loopback, for as long as the block lasts."""
    loop = asyncio.new_event_loop()
    server = ModelServer(api_key=api_key)
    thread = threading.Thread(target=loop.run_forever, name="model-server", daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start("127.0.0.1", port, control_port), loop).result(PATIENCE)
    try:
        yield RunningServer(server, loop)
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()
