"""Where an act comes from: the client's address, set for the length of a request and read when acts are recorded."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_address: ContextVar[str | None] = ContextVar("queue_core_audit_address", default=None)


@contextmanager
def acting_from(address: str | None) -> Iterator[None]:
    """Acts recorded inside carry this address, unless they name one themselves. None: not known."""
    token = _address.set(address)
    try:
        yield
    finally:
        _address.reset(token)


def address() -> str | None:
    return _address.get()
