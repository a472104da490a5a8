"""Answers without the key, wherever in them a server has put what it was sent."""

from collections.abc import Mapping
from dataclasses import fields, replace
from enum import Enum
from typing import Any

from queue_core.connections.answers import Answer, Verdict
from queue_core.connections.network.secret import Secret


def scrubbed(answer: Answer, secret: Secret) -> Answer:
    """The answer as it may be kept: in no text and no name of it stands the key."""
    if not secret:
        return answer
    changes: dict[str, Any] = {}
    for field in fields(answer):
        value = getattr(answer, field.name)
        if isinstance(value, str) and not isinstance(value, Enum):
            changes[field.name] = secret.scrub(value)
    # Policies know scores by their names: a short key may stand in one by chance.
    if isinstance(answer, Verdict) and secret.is_long:
        changes |= {"scores": _names(answer.scores, secret), "usage": _names(answer.usage, secret)}
    return replace(answer, **changes)


def _names[V](values: Mapping[str, V], secret: Secret) -> dict[str, V]:
    return {secret.scrub(name): value for name, value in values.items()}
