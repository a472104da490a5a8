"""From what happened to a call to its row of the outcome table. The same for every wire."""

import asyncio
import json
import re
import socket
import ssl
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import httpx2
from django.utils.translation import gettext_noop

from queue_core.connections.answers import (
    Answer,
    InputRejected,
    InvalidAnswer,
    Misconfigured,
    MisconfiguredKind,
    Overloaded,
    TimedOut,
    Unavailable,
)
from queue_core.connections.network.secret import Secret
from queue_core.connections.network.transport import AnswerEncoded, AnswerTooLarge, Trail
from queue_core.connections.retry_after import parse_retry_after

#: The package that reads HTTP below the client's own exceptions.
PARSER = "h11"
DEEPEST = 10
#: Stored with the attempt and its lane's hold as they are; marked so that pages may translate them.
SENTENCES: dict[MisconfiguredKind, str] = {
    MisconfiguredKind.NO_KEY: gettext_noop(
        "The key of this connection is not set on this worker. Set the environment variable that the connection names, "
        "then restart the worker."
    ),
    MisconfiguredKind.KEY_MALFORMED: gettext_noop(
        "The key of this connection holds a space, a line break or another character that no key may have. Set the "
        "environment variable to the key alone, then restart the worker."
    ),
    MisconfiguredKind.KEY_REFUSED: gettext_noop(
        "The model server does not accept the key (401). Set another key for this connection."
    ),
    MisconfiguredKind.QUOTA: gettext_noop("The account's quota at the model server is used up. Top it up."),
    MisconfiguredKind.FORBIDDEN: gettext_noop(
        "The model server forbids this key to use this model (403). Allow it there, or name another model or key."
    ),
    MisconfiguredKind.NOT_FOUND: gettext_noop(
        "The model server has nothing at this address, or no model of this name (404). Correct the address "
        "or the model."
    ),
    MisconfiguredKind.ADDRESS: gettext_noop(
        "The address leads elsewhere by a redirect, which is not followed. Write the final address."
    ),
    MisconfiguredKind.UNSUPPORTED: gettext_noop(
        "The model server cannot do what this connection asks of it. Choose another kind of connection, "
        "or another model."
    ),
    MisconfiguredKind.LIMIT: gettext_noop(
        "The model server refuses the questions of the policy or the connection's settings, not this ticket. Its own "
        "words stand with the attempt. Make a policy version or settings that it takes."
    ),
}

OF_STATUS: dict[int, MisconfiguredKind] = {
    401: MisconfiguredKind.KEY_REFUSED,
    402: MisconfiguredKind.QUOTA,
    403: MisconfiguredKind.FORBIDDEN,
    404: MisconfiguredKind.NOT_FOUND,
    410: MisconfiguredKind.NOT_FOUND,
} | dict.fromkeys((405, 406, 415, 421, 426, 501, 505), MisconfiguredKind.UNSUPPORTED)
OVERLOADED = frozenset({425, 429, 503, 529})
#: A server before the model gave up on it, or another call under the same key still runs: the effect is unknown.
UNKNOWN_EFFECT = frozenset({408, 409, 502, 504, 522, 524})

_QUESTIONS = re.compile(r"\b(questions?|choices?|options?|levels?|criteria|schema|response_format)\b", re.IGNORECASE)
_MODEL = re.compile(r"\bmodel\b", re.IGNORECASE)
_LIMIT = re.compile(
    r"at most|up to|limit|maximum|max\b|exceed|too many|more than|only supports?|not support|unsupported|between \d"
    r"|unknown|invalid|required|must",
    re.IGNORECASE,
)
_SIZE = re.compile(
    r"\b(bytes?|[km]i?b|body|payload|request)\b.*(large|limit|exceed|maximum|at most|max\b)|too large", re.IGNORECASE
)
#: A limit of the model's that the ticket's own text is measured by, as in "this model's maximum context length".
_LENGTH = re.compile(r"\bcontext[ _](length|window|size)\b|\btokens?\b|\bcharacters?\b|\btoo long\b", re.IGNORECASE)
_OUR_PARAMS = ("questions", "model", "tools", "prompt_cache")


def answer_of_status(trail: Trail, body: bytes, *, secret: Secret, now: datetime, share_of_ours: float = 0.0) -> Answer:
    """The answer to a call that was answered with another status than success.

    `share_of_ours` is how much of the request was not the ticket's own: who is to blame for a request too large.
    """
    status = trail.status or 0
    error = _error_of(body)
    said = secret.scrub(error.get("message", "")) or f"HTTP {status}"
    common: dict[str, Any] = {"request_id": trail.headers.get("x-request-id", "")}
    if status in OF_STATUS:
        return misconfigured(OF_STATUS[status], said, **common)
    if 300 <= status < 400:
        return misconfigured(MisconfiguredKind.ADDRESS, said, **common)
    if status in OVERLOADED:
        if error.get("code") == "insufficient_quota":
            return misconfigured(MisconfiguredKind.QUOTA, said, **common)
        wait = parse_retry_after(trail.headers.get("retry-after"), now)
        return Overloaded(said, wait, **common)
    if status in UNKNOWN_EFFECT:
        return TimedOut(f"{status}: {said}", **common)
    if 400 <= status < 500:
        if _is_about_us(status, error, share_of_ours):
            return misconfigured(MisconfiguredKind.LIMIT, said, **common)
        return InputRejected(said, **common)
    return InvalidAnswer(f"{status}: {said}", **common)


def answer_of_failure(error: BaseException, trail: Trail, *, limit: timedelta) -> Answer:
    """The answer to a call that ended in an exception. Its message is never used: it may quote evidence or a key."""
    name = type(error).__name__
    if isinstance(error, AnswerTooLarge):
        return InvalidAnswer("The answer is larger than any answer may be.")
    if isinstance(error, AnswerEncoded):
        return InvalidAnswer("The answer is packed, which was not asked for.")
    # Headers that no request may have are found while they are put together.
    if not trail.is_sent or isinstance(error, httpx2.LocalProtocolError):
        return Unavailable(_why_not_sent(error))
    if trail.status is not None:
        if isinstance(error, TimeoutError | httpx2.TimeoutException | asyncio.TimeoutError):
            return InvalidAnswer("The answer did not end within the time limit.")
        return InvalidAnswer(f"The answer broke off: {name}")
    if _is_no_http(error):
        return InvalidAnswer("What came is no answer of HTTP.")
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return TimedOut("No answer within the time limit.", after=limit)
    return TimedOut(f"The connection broke after the request was sent: {name}", after=limit)


#: Why no connection was made, the first that fits. Told at the lane and at the connection: each wants another act.
NOT_SENT: tuple[tuple[type[BaseException], str], ...] = (
    (ConnectionRefusedError, gettext_noop("Nothing listens at the model's address: the connection was refused.")),
    (socket.gaierror, gettext_noop("The host in the model's address is not known.")),
    (ssl.SSLCertVerificationError, gettext_noop("The certificate of the model server is not accepted.")),
    (ssl.SSLError, gettext_noop("No secure connection could be made: does the model server speak https?")),
    (TimeoutError, gettext_noop("The model's host does not answer: no connection within the time limit.")),
    (httpx2.TimeoutException, gettext_noop("The model's host does not answer: no connection within the time limit.")),
)


def _why_not_sent(error: BaseException) -> str:
    causes = _causes(error)
    for kind, sentence in NOT_SENT:
        if any(isinstance(cause, kind) for cause in causes):
            return sentence
    return f"The request was not sent: {type(error).__name__}"


def _causes(error: BaseException) -> list[BaseException]:
    """The error and what it rose from, whether that was said or not."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(found) < DEEPEST:
        found.append(cause)
        cause = cause.__cause__ or cause.__context__
    return found


def _is_no_http(error: BaseException) -> bool:
    """Whether bytes came that the parser refused. A connection that ended without an answer is the same exception."""
    parts = [part for cause in _causes(error) for part in cause.args]
    return any(type(part).__module__.partition(".")[0] == PARSER for part in parts)


def misconfigured(kind: MisconfiguredKind, said: str = "", **common: Any) -> Misconfigured:
    """The plain sentence for this kind, with the server's own words for the attempt."""
    return Misconfigured(kind, SENTENCES[kind], said=said, **common)


def _is_about_us(status: int, error: Mapping[str, str], share_of_ours: float) -> bool:
    """Whether a 400 is about the questions or the settings, so that every ticket would meet it."""
    param, message = error.get("param", ""), error.get("message", "")
    if param.startswith(_OUR_PARAMS):
        return True
    if param:
        return False
    is_of_length = _LENGTH.search(message) and not _QUESTIONS.search(message)
    if status == 413 or is_of_length or _SIZE.search(message):
        return share_of_ours > 0.5
    return bool((_QUESTIONS.search(message) or _MODEL.search(message)) and _LIMIT.search(message))


def _error_of(body: bytes) -> dict[str, str]:
    """{"error": "text"}, {"error": {"message", "param", "code"}}, {"detail": ...}, or a text: servers differ."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        text = body[:2000].decode("utf-8", "replace").strip()
        return {} if text.startswith("<") else {"message": text}
    return error_in(data)


def error_in(data: object) -> dict[str, str]:
    """What a server says of its error, in one of the shapes that servers use; empty where it says nothing."""
    error = data.get("error", data) if isinstance(data, dict) else data
    if isinstance(error, str):
        return {"message": error}
    if not isinstance(error, dict):
        return {}
    found = {name: str(error[name]) for name in ("message", "param", "code") if error.get(name)}
    if "message" not in found and error.get("detail"):
        found["message"] = str(error["detail"])
    return found
