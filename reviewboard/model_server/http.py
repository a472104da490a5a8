"""As much of HTTP/1.1 as the stand-in needs, by hand: no server of a library lets an answer break off on purpose."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

MOST_BODY = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    """By lower-case name. In no repr: a key may be among them."""
    body: bytes = field(repr=False)

    def json(self) -> Any:
        """Raises ValueError for a body that is none."""
        return json.loads(self.body or b"null")


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection; None when the caller is gone or speaks no HTTP."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await _read_body(reader, headers)
    return None if body is None else Request(method, path, headers, body)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes | None:
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MOST_BODY:
        return None
    try:
        return await reader.readexactly(int(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def response(status: int, body: bytes | object = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """A whole answer. `body` as bytes, or anything that JSON can hold."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head(status, len(raw), headers) + raw


def head(status: int, length: int, headers: Mapping[str, str] | None = None) -> bytes:
    given = {"Content-Type": "application/json", "Content-Length": str(length)} | dict(headers or {})
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Status"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")
