"""What goes over the wire: the same bytes at each try, and the same to a webhook as to whoever pages."""

import json
from typing import Any

from queue_core.models import Message


def envelope(message: Message) -> dict[str, Any]:
    """A message as consumers get it.

    `id` is the same at each delivery: whoever has handled it before leaves it alone. `number` rises from message to
    message: one with a lower `number` than the last one handled of its ticket says something older. `seq` counts the
    ticket's messages; after a restore of the database it may be given again, a number never.
    """
    return {
        "id": str(message.key),
        "number": message.number,
        "seq": message.seq,
        "type": message.kind,
        "timestamp": message.created_at.isoformat(),
        "data": message.body,
    }


def content(message: Message) -> bytes:
    """The bytes that are signed and sent. Keys in order, so that a later try sends the same."""
    text = json.dumps(envelope(message), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode()
