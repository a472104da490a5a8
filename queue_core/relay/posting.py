"""One POST to somebody else's address, with a time limit on the whole of it, which is never an exception.

No redirect is followed: httpcore follows none. The connection is made to an address that was checked a moment before,
while TLS and the Host header keep the name. A new connection for each call: one that is kept open belongs to an address
that was checked long ago.
"""

import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import certifi
import httpcore
from django.utils.translation import gettext_noop

from queue_core.clock import LATEST
from queue_core.connections.retry_after import parse_retry_after
from queue_core.errors import InvalidRequest
from queue_core.models.endpoints import MAX_DETAIL
from queue_core.relay.addresses import AddressRefused, NameUnknown, Target, is_allowed_inside, parsed, resolved
from queue_core.states import TryOutcome

#: Bytes of an answer that are read. Nobody needs more than to see what went wrong.
MOST_READ = 2_000
AGENT = b"Reviewboard/1 (webhooks)"


@dataclass(frozen=True, slots=True)
class Answer:
    """How a POST ended. `detail` is short, printable, and empty where an inner address answered."""

    outcome: TryOutcome
    status: int | None = None
    length: int | None = None
    detail: str = ""
    retry_after: timedelta | None = None
    duration: timedelta = timedelta(0)


def post(
    url: str, content: bytes, headers: Mapping[str, str], *, time_limit: timedelta, now: datetime | None = None
) -> Answer:
    """POST `content` and say how it ended. Takes `time_limit` and, for the name, at most a few seconds more.

    `now` is the database's, for a Retry-After that is a date; without it such a date is passed over. Reads and writes
    no table, so that threads may call it.
    """
    began = time.monotonic()
    try:
        target = parsed(url)
        addresses = resolved(target)
    except (InvalidRequest, AddressRefused) as fault:
        return _ended(TryOutcome.FORBIDDEN_ADDRESS, began, detail=str(fault))
    except NameUnknown as fault:
        return _ended(TryOutcome.UNREACHABLE, began, detail=str(fault))
    network = _CheckedNetwork(addresses, end=time.monotonic() + time_limit.total_seconds())
    try:
        answer, wait = _posted(url, target, content, headers, network, began)
        return replace(answer, retry_after=parse_retry_after(wait, now or LATEST))
    except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
        return _ended(TryOutcome.UNREACHABLE, began, detail=_said(error))
    except httpcore.TimeoutException:
        return _ended(TryOutcome.TIMEOUT, began)
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        # The request was on its way: what became of it is not known, as after a time-out.
        return _ended(TryOutcome.FAILED, began, detail=_said(error))


def _posted(
    url: str, target: Target, content: bytes, headers: Mapping[str, str], network: "_CheckedNetwork", began: float
) -> tuple[Answer, str | None]:
    """The answer, and what its Retry-After says."""
    sent = [(b"User-Agent", AGENT), *((name.encode(), value.encode()) for name, value in headers.items())]
    tls = _tls() if target.scheme == "https" else None
    with (
        httpcore.ConnectionPool(ssl_context=tls, network_backend=network, max_connections=1, retries=0) as pool,
        pool.stream("POST", url, headers=sent, content=content) as response,
    ):
        outcome = _outcome_of(response.status)
        answered = {name.lower(): value.decode("latin-1") for name, value in response.headers}
        if outcome == TryOutcome.DELIVERED:
            # Its body says nothing that matters, and need not be waited for.
            return _ended(outcome, began, response.status, length=_length(answered.get(b"content-length"))), None
        body = _beginning(response.iter_stream())
        detail = "" if network.is_inside else _printable(body)
        ended = _ended(outcome, began, response.status, length=len(body), detail=detail)
        return ended, answered.get(b"retry-after")


def _outcome_of(status: int) -> TryOutcome:
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return TryOutcome.DELIVERED
    if status < HTTPStatus.BAD_REQUEST:
        return TryOutcome.REDIRECT
    if status == HTTPStatus.GONE:
        return TryOutcome.GONE
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        return TryOutcome.FAILED
    return TryOutcome.REFUSED


def _ended(outcome: TryOutcome, began: float, status: int | None = None, **told: Any) -> Answer:
    return Answer(outcome, status, duration=timedelta(seconds=time.monotonic() - began), **told)


def _beginning(chunks: Iterable[bytes]) -> bytes:
    """What came of the answer within the time and the limit. The status is known already and stands."""
    body = b""
    try:
        for chunk in chunks:
            body += chunk
            if len(body) >= MOST_READ:
                break
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, OSError):
        pass
    return body[:MOST_READ]


def _length(header: str | None) -> int | None:
    return min(int(header), 2**31 - 1) if header and header.isdigit() and len(header) < 20 else None


def _printable(body: bytes) -> str:
    text = body[: 4 * MAX_DETAIL].decode("utf-8", "replace")
    return "".join(character if character.isprintable() else " " for character in text).strip()[:MAX_DETAIL]


def _said(error: Exception) -> str:
    return _printable((str(error) or gettext_noop("the connection failed")).encode())


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """The system's authorities, and those that Python knows where a system has none."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


class _CheckedNetwork(httpcore.NetworkBackend):
    """Connects to the addresses that were checked, whatever the name says by now, and ends on time."""

    def __init__(self, addresses: list[str], *, end: float) -> None:
        self._addresses = addresses
        self._end = end
        self._inner = httpcore.SyncBackend()
        self.is_inside = any(is_allowed_inside(address) for address in addresses)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """The first address that answers. The caller's host is only a name for them."""
        fault: Exception = httpcore.ConnectError("no address")
        for address in self._addresses:
            try:
                stream = self._inner.connect_tcp(address, port, _left(self._end, httpcore.ConnectTimeout))
                return _LimitedStream(stream, self._end)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                fault = error
        raise fault


class _LimitedStream(httpcore.NetworkStream):
    """A stream whose every step has what is left of the whole call: one byte every few seconds is no way around it."""

    def __init__(self, stream: httpcore.NetworkStream, end: float) -> None:
        self._stream = stream
        self._end = end

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._end, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._end, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _left(self._end, httpcore.ConnectTimeout)
        return _LimitedStream(self._stream.start_tls(ssl_context, server_hostname, left), self._end)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(end: float, fault: type[Exception]) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise fault
    return left
