"""Models behind one interface. See `base` for what an adapter keeps, `calling` for what the queue holds it to."""

from queue_core.connections.answers import (
    Answer,
    InputRejected,
    InvalidAnswer,
    Misconfigured,
    MisconfiguredKind,
    Overloaded,
    Refused,
    TimedOut,
    Unavailable,
    Verdict,
)
from queue_core.connections.base import Call, Connection, Health, idempotency_key
from queue_core.connections.calling import Flight, call_all, look_at
from queue_core.connections.registry import build, kinds
from queue_core.connections.retry_after import parse_retry_after

__all__ = [
    "Answer",
    "Call",
    "Connection",
    "Flight",
    "Health",
    "InputRejected",
    "InvalidAnswer",
    "Misconfigured",
    "MisconfiguredKind",
    "Overloaded",
    "Refused",
    "TimedOut",
    "Unavailable",
    "Verdict",
    "build",
    "call_all",
    "idempotency_key",
    "kinds",
    "look_at",
    "parse_retry_after",
]
