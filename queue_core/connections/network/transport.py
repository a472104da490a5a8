"""The last step before the network: the key goes in here and nowhere else, and what comes back is bounded.

It also notes how far a call got, since whether a call was surely not executed is a fact and no guess.
"""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle
from typing import Any

import httpx2

from queue_core.connections.network.secret import Secret

#: More than the widest answer of a known wire (400 questions of some hundred options would be about as much).
MAX_ANSWER = 4 * 1024 * 1024
LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=500, keepalive_expiry=10.0)
#: A pool looks through all its connections at each call and each end: one pool of two hundred took a third of the time.
POOLS = 8
PLACEHOLDER = "put-in-by-the-transport"


class AnswerTooLarge(Exception):
    """An answer longer than MAX_ANSWER; the rest was not read."""


class AnswerEncoded(Exception):
    """An answer in a content encoding that was not asked for: its true size is unknown."""


@dataclass(slots=True)
class Trail:
    """How far one call got. `is_sent`: something of the request went out. `status`: the answer's head came in."""

    is_sent: bool = False
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


_trail: ContextVar[Trail | None] = ContextVar("trail", default=None)


def begin_trail() -> Trail:
    """A trail for the calls of this task."""
    trail = Trail()
    _trail.set(trail)
    return trail


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """In which header a key goes, and after which word."""

    header: str = "Authorization"
    prefix: str = "Bearer "


BEARER = KeyPlace()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport that adds the key, follows no hidden way, and reads no more than it should."""

    def __init__(self, secret: Secret, place: KeyPlace, inner: httpx2.AsyncBaseTransport | None = None) -> None:
        self._secret, self._place = secret, place
        pools = [inner] if inner else [httpx2.AsyncHTTPTransport(tls(), retries=0, limits=LIMITS) for _ in range(POOLS)]
        self._pools = pools
        self._turn = cycle(pools)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        # A compressed answer's size is known only after it was unpacked.
        request.headers["Accept-Encoding"] = "identity"
        request.headers.pop("Authorization", None)
        if self._secret:
            request.headers[self._place.header] = self._place.prefix + self._secret.reveal()
        trail = _trail.get() or Trail()
        request.extensions = {**request.extensions, "trace": _tracer(trail)}
        response = await next(self._turn).handle_async_request(request)
        trail.status, trail.headers = response.status_code, response.headers
        await _refuse_early(response)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream)
        return response

    async def aclose(self) -> None:
        for pool in self._pools:
            await pool.aclose()


@cache
def tls() -> ssl.SSLContext:
    """Certificates are checked. Read once a process: that takes a while."""
    return httpx2.create_ssl_context()


def _tracer(trail: Trail) -> Any:
    async def note(event: str, info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            sent = info.get("request")
            # What asks a proxy for a way is not the call.
            trail.is_sent = trail.is_sent or getattr(sent, "method", b"") != b"CONNECT"

    return note


async def _refuse_early(response: httpx2.Response) -> None:
    fault: Exception | None = None
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        fault = AnswerEncoded()
    length = response.headers.get("content-length", "")
    if length.isdigit() and int(length) > MAX_ANSWER:
        fault = AnswerTooLarge()
    if fault is not None:
        await response.aclose()
        raise fault


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_ANSWER:
                raise AnswerTooLarge
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class Clients:
    """The HTTP clients of one event loop: one for each key and place. Connections are kept from call to call."""

    MOST = 32

    def __init__(self) -> None:
        self._clients: dict[tuple[str, KeyPlace], httpx2.AsyncClient] = {}

    def get(self, secret: Secret, place: KeyPlace) -> httpx2.AsyncClient:
        """Only from the loop's own thread."""
        name = (secret.digest, place)
        client = self._clients.pop(name, None)
        if client is None:
            client = httpx2.AsyncClient(transport=GuardedTransport(secret, place), follow_redirects=False)
        # The last used stands last. One that is dropped ends with its last call.
        self._clients[name] = client
        while len(self._clients) > self.MOST:
            del self._clients[next(iter(self._clients))]
        return client
