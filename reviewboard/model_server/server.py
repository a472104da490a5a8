"""The stand-in itself: one port for the wires, one for control, in one event loop."""

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reviewboard.model_server import control, wires
from reviewboard.model_server.conditions import Condition, Step
from reviewboard.model_server.http import Request, head, read_request, response

KEPT_CALLS = 20_000
#: Seconds between two bytes of a drip.
DRIP = 0.05
HUGE = 64 * 1024 * 1024
#: Longer than any call waits.
FOR_EVER = 3600.0
READ_LIMIT = 1024 * 1024

#: Faults that are a status, and what stands in the body.
STATUS: dict[str, tuple[int, str]] = {
    "overloaded": (429, "Too many requests."),
    "busy": (503, "Admission is full, try later."),
    "error": (500, "The server had an error."),
    "bad_gateway": (502, "Bad gateway."),
    "gateway_timeout": (504, "Gateway timeout."),
    "unauthorized": (401, "The key is not accepted."),
    "forbidden": (403, "This key may not use the model."),
    "not_found": (404, "The model does not exist."),
    "unsupported": (501, "The model cannot do it."),
    "limit": (400, "questions: at most 64 questions are supported by this server."),
}
WITH_RETRY_AFTER = ("overloaded", "busy")


@dataclass(frozen=True, slots=True)
class Received:
    """One call as it came in. No header but these: a key is none of a log's business."""

    number: int
    path: str
    idempotency_key: str
    fence: str
    had_key: bool
    body: Any = field(repr=False)
    fault: str = "up"


class ModelServer:
    """Serves until `close`. All of it runs in the loop that calls `start`."""

    def __init__(self, *, api_key: str = "", condition: Condition | None = None) -> None:
        self.condition = condition or Condition()
        self.calls: deque[Received] = deque(maxlen=KEPT_CALLS)
        self.received = 0
        self.at_once = 0
        self.most_at_once = 0
        self._api_key = api_key
        self._script: Iterator[Step] = iter(())
        self._step: Step | None = None
        self._step_calls = 0
        self._timer: asyncio.TimerHandle | None = None
        self._listener: asyncio.Server | None = None
        self._control: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._address = ("127.0.0.1", 0)
        self._relistening: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int, control_port: int) -> None:
        """Listen on both ports; 0 takes a free one."""
        self._address = (host, port)
        await self._listen()
        assert self._listener is not None
        self._address = (host, self._listener.sockets[0].getsockname()[1])
        self._control = await asyncio.start_server(self._serve_control, host, control_port)
        self.set(self.condition)

    @property
    def port(self) -> int:
        return self._address[1]

    @property
    def control_port(self) -> int:
        assert self._control is not None
        port: int = self._control.sockets[0].getsockname()[1]
        return port

    def set(self, condition: Condition) -> None:
        """Behave so from now on; whatever script runs is over."""
        self._end_step()
        self._script = iter(())
        self._behave(condition)

    def play(self, script: list[Step], *, repeat: bool = False) -> None:
        """Go through the steps, from the first, now."""
        self._end_step()
        self._script = itertools.cycle(script) if repeat else iter(script)
        self._next_step()

    async def settled(self) -> None:
        """Wait until the port is open again, if it was to be."""
        if self._relistening is not None:
            await self._relistening

    async def close(self) -> None:
        """Listen no more, and cut what is open."""
        self._end_step()
        await self.settled()
        for server in (self._listener, self._control):
            if server is not None:
                server.close()
        self._cut()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    # --- conditions -------------------------------------------------------------------------------------------------

    def _behave(self, condition: Condition) -> None:
        self.condition = condition
        if condition.fault == "down" and condition.share >= 1:
            if self._listener is not None:
                self._listener.close()
                self._listener = None
            self._cut()
        elif self._listener is None:
            self._relistening = asyncio.get_running_loop().create_task(self._listen())

    def _next_step(self) -> None:
        self._end_step()
        self._step = next(self._script, None)
        if self._step is None:
            return
        self._step_calls = 0
        self._behave(self._step.condition)
        if self._step.seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(self._step.seconds, self._next_step)

    def _end_step(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._step = None

    def _count_for_step(self) -> None:
        self._step_calls += 1
        if self._step is not None and self._step.calls is not None and self._step_calls >= self._step.calls:
            self._next_step()

    async def _listen(self) -> None:
        host, port = self._address
        self._listener = await asyncio.start_server(
            self._serve, host, port, limit=READ_LIMIT, backlog=1024, reuse_address=True
        )

    def _cut(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    # --- connections ------------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while (request := await read_request(reader)) is not None:
                if not await self._answer(request, writer):
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        condition = self.condition
        if request.method == "GET":
            return await self._act(condition, request, writer, is_call=False)
        self.received += 1
        fault = condition.fault if condition.is_met_by(self.received) else "up"
        condition = Condition(fault, condition.latency, retry_after=condition.retry_after)
        self.calls.append(_received(self.received, request, fault))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if fault == "hang":
            # It has no end to count at.
            self._count_for_step()
        try:
            goes_on = await self._act(condition, request, writer, is_call=True)
        finally:
            self.at_once -= 1
        if fault != "hang":
            self._count_for_step()
        return goes_on

    async def _act(
        self, condition: Condition, request: Request, writer: asyncio.StreamWriter, *, is_call: bool
    ) -> bool:
        fault = condition.fault
        if is_call and condition.latency:
            await asyncio.sleep(condition.latency)
        if fault in ("down", "reset"):
            writer.transport.abort()
            return False
        if fault == "hang":
            await asyncio.sleep(FOR_EVER)
            return False
        if fault in WHOLE:
            await WHOLE[fault](writer, self._said(request, condition, is_call=is_call))
            return False
        writer.write(self._said(request, condition, is_call=is_call))
        await writer.drain()
        return True

    def _said(self, request: Request, condition: Condition, *, is_call: bool) -> bytes:
        fault = condition.fault
        if fault in STATUS:
            status, message = STATUS[fault]
            headers = {"Retry-After": condition.retry_after} if fault in WITH_RETRY_AFTER else {}
            param = "questions" if fault == "limit" else None
            return response(status, _error(message, param=param), headers | {"x-request-id": f"req-{self.received}"})
        if fault == "quota":
            return response(429, _error("You exceeded your current quota.", code="insufficient_quota"))
        if fault == "redirect":
            return response(307, b"", {"Location": f"http://{self._address[0]}:{self.port}/elsewhere"})
        if self._api_key and request.headers.get("authorization") != f"Bearer {self._api_key}":
            return response(401, _error("The key is not accepted."))
        if not is_call:
            return response(200, {"object": "list", "data": [{"id": "stand-in", "object": "model"}]})
        return self._answered(request, fault)

    def _answered(self, request: Request, fault: str) -> bytes:
        headers = {"x-request-id": f"req-{self.received}"}
        if fault in BODIES:
            return response(200, BODIES[fault], headers)
        try:
            found = wires.spoiled(wires.answer(request.path, request.json(), fault=fault), fault)
        except wires.Refusal as refusal:
            return response(refusal.status, _error(str(refusal), param=refusal.param), headers)
        except (ValueError, KeyError, TypeError):
            return response(400, _error("The request could not be read.", param="input"), headers)
        return response(200, found, headers)

    async def _serve_control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await read_request(reader)) is not None:
                writer.write(control.answer(self, request))
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


BODIES: dict[str, bytes] = {
    "garbage": b"<html><body><h1>It works!</h1></body></html>",
    "empty": b"",
    "malformed": b'{"answers": [{"type": "predicate", "probab',
}


async def _truncate(writer: asyncio.StreamWriter, said: bytes) -> None:
    writer.write(said[: len(said) - 20])
    await writer.drain()


async def _drip(writer: asyncio.StreamWriter, said: bytes) -> None:
    start = said.index(b"\r\n\r\n") + 4
    writer.write(said[:start])
    await _drip_bytes(writer, said[start:])


async def _drip_bytes(writer: asyncio.StreamWriter, said: bytes) -> None:
    for byte in said:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(DRIP)


async def _huge(writer: asyncio.StreamWriter, _said: bytes) -> None:
    writer.write(head(200, HUGE))
    block = b" " * 65536
    with contextlib.suppress(ConnectionError):
        for _ in range(HUGE // len(block)):
            writer.write(block)
            await writer.drain()


WHOLE = {"truncated": _truncate, "drip": _drip, "drip_headers": _drip_bytes, "huge": _huge}


def _error(message: str, *, param: str | None = None, code: str | None = None) -> Mapping[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def _received(number: int, request: Request, fault: str) -> Received:
    try:
        body = request.json()
    except ValueError:
        body = None
    return Received(
        number=number,
        path=request.path,
        idempotency_key=request.headers.get("idempotency-key", ""),
        fence=request.headers.get("x-review-fence", ""),
        had_key="authorization" in request.headers,
        body=body,
        fault=fault,
    )
