"""One request and its answer: a time limit over the whole, and every way to fail turned into its outcome."""

import asyncio
import json
import logging
import ssl
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import anyio
import httpx2

from queue_core.connections.answers import Answer, InvalidAnswer
from queue_core.connections.network.outcomes import answer_of_failure, answer_of_status
from queue_core.connections.network.secret import Secret
from queue_core.connections.network.transport import AnswerEncoded, AnswerTooLarge, begin_trail

logger = logging.getLogger(__name__)

#: A server that cannot be reached is known to be away before a call's whole time is spent on it.
LONGEST_CONNECT = 5.0

#: What the network may raise. Some failures of TLS come through as they are.
NETWORK_ERRORS = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    AnswerTooLarge,
    AnswerEncoded,
    TimeoutError,
    ssl.SSLError,
    anyio.EndOfStream,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    OSError,
)


class BadStatus(Exception):
    """An answer with another status than success; the trail has the status and headers."""

    def __init__(self, body: bytes) -> None:
        super().__init__("bad status")
        self.body = body


class Unreadable(Exception):
    """An answer arrived and is none. The message says why, and quotes nothing of it."""


class BrokenBy(Exception):
    """A failure below a package that wraps what it meets."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(type(cause).__name__)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Terms:
    """How one request is made: within `limit`, at `now` by the database's clock, with what must not be shown."""

    limit: timedelta
    now: datetime
    secret: Secret
    share_of_ours: float = 0.0
    """How much of the request is the same for every ticket."""

    @property
    def timeout(self) -> httpx2.Timeout:
        seconds = self.limit.total_seconds()
        return httpx2.Timeout(seconds, connect=min(seconds, LONGEST_CONNECT))


async def exchange[T](ask: Callable[[], Awaitable[T]], terms: Terms) -> T | Answer:
    """What `ask` returns, or the answer that its failure is."""
    trail = begin_trail()
    try:
        async with asyncio.timeout(terms.limit.total_seconds()):
            return await ask()
    except BadStatus as refused:
        return answer_of_status(
            trail, refused.body, secret=terms.secret, now=terms.now, share_of_ours=terms.share_of_ours
        )
    except Unreadable as fault:
        return InvalidAnswer(str(fault), request_id=trail.headers.get("x-request-id", ""))
    except BrokenBy as wrapped:
        return answer_of_failure(wrapped.cause, trail, limit=terms.limit)
    except NETWORK_ERRORS as error:
        return answer_of_failure(error, trail, limit=terms.limit)
    except Exception as error:  # noqa: BLE001 - a fault of ours or of a package: one call's answer, never the worker's end
        # Without its message, which may quote evidence or a key.
        frames = "".join(traceback.format_tb(error.__traceback__))
        logger.error("a model call raised %s\n%s", type(error).__name__, frames)
        return answer_of_failure(error, trail, limit=terms.limit)


async def post_json(
    client: httpx2.AsyncClient, url: str, body: object, *, headers: dict[str, str], terms: Terms, method: str = "POST"
) -> tuple[object, httpx2.Headers]:
    """Send JSON, and read JSON. Raises BadStatus, Unreadable and what the network raises."""
    response = await client.request(method, url, json=body, headers=headers, timeout=terms.timeout)
    if not 200 <= response.status_code < 300:
        raise BadStatus(response.content)
    return parsed(response.content), response.headers


def parsed(content: bytes) -> object:
    """JSON, or Unreadable."""
    if not content.strip():
        raise Unreadable("The answer is empty.")
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Unreadable("The answer is no JSON.") from error
    return found
