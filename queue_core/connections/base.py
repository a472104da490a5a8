"""The one interface between the queue and any model. An adapter is a class that keeps it and a factory that builds it.

An adapter never writes to the database, never judges (the policy does) and never retries: one call, one attempt.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, runtime_checkable

from queue_core.connections.answers import Answer, bounded
from queue_core.questions import Question


@dataclass(frozen=True, slots=True)
class Call:
    """One claim with its evidence, as an adapter sees it. The evidence is in no repr, so that it is in no log."""

    attempt: int
    source: str
    ticket: str
    revision: str
    policy_version: int
    fence: int
    idempotency_key: str
    evidence: str = field(repr=False)
    """The sealed JSON text, byte for byte as it was accepted."""
    time_limit: timedelta
    is_restricted: bool = False
    questions: tuple[Question, ...] = field(default=(), repr=False)
    """What the policy asks, for models that are asked; others ask themselves."""


@dataclass(frozen=True, slots=True)
class Health:
    """What a look at the model showed. Good health says that it can be called, never that it answers rightly."""

    is_good: bool
    detail: str = ""
    latency: timedelta | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", bounded(self.detail))


@runtime_checkable
class Connection(Protocol):
    """What every adapter offers. Use it through `calling.call_all` and `calling.look_at`, which bound and guard it."""

    @property
    def at_once(self) -> int:
        """How many calls may be in flight together. A worker claims no more than this."""
        ...

    @property
    def allow_restricted(self) -> bool:
        """Whether restricted evidence may be handed to this model."""
        ...

    def prepare(self) -> None:
        """Make ready what calls need (weights, a client, settings). In the worker's thread: it may read the database.

        Runs before each batch and each look. The first time may be slow, so a worker runs it before it claims: no
        lease should run meanwhile.
        """
        ...

    def review(self, calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
        """Answer each call once, as each ends, within its own time limit.

        The method itself runs in the worker's thread and sends nothing: a failure here counts as surely not executed.
        The iterator it returns runs in another thread, sends, and must not touch the database. It is closed when
        nobody waits for it any more.
        """
        ...

    def check_health(self, time_limit: timedelta) -> Health:
        """One small look that moves no ticket and costs next to nothing. In another thread: no database."""
        ...


def idempotency_key(*, source: str, ticket: str, revision: str, policy_version: int, answered: int) -> str:
    """The key of DESIGN.md as a header may carry it. `answered` counts the answers received so far for this job.

    Hashed over JSON, not joined: ids hold any character, and two tickets must never share a key by their separators.
    """
    named = json.dumps([source, ticket, revision, policy_version, answered])
    return "review-" + hashlib.sha256(named.encode()).hexdigest()
