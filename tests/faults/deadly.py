"""A staged model whose process is killed, once, where the file `kill` in its folder says.

before    claimed, not called yet
during    while the first call is out
inside    answered, in the transaction that writes it down, not committed yet
after     committed, and Celery's message not acknowledged yet
"""

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from queue_core import signals
from queue_core.connections import Answer, Call
from queue_core.models import Attempt, ModelConnection
from tests.workers.staged import StagedConnection

PLACES = ("before", "during", "inside", "after")


def die_once(folder: Path, place: str) -> None:
    """As the kernel's memory killer would, with no word to anybody."""
    order = folder / "kill"
    try:
        if order.read_text() != place:
            return
        order.rename(folder / "killed")
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(slots=True)
class DeadlyConnection(StagedConnection):
    def review(self, calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
        die_once(self.folder, "before")
        for call, answer in self._answers(list(calls)):
            die_once(self.folder, "during")
            yield call, answer


def build(row: ModelConnection) -> DeadlyConnection:
    folder, connection_id = Path(row.address), row.pk

    def at_completion(attempt: Attempt, **_details: Any) -> None:
        if attempt.connection_id == connection_id:
            die_once(folder, "inside")
            transaction.on_commit(lambda: die_once(folder, "after"))

    signals.job_completed.connect(at_completion, weak=False, dispatch_uid=f"deadly-{connection_id}")
    return DeadlyConnection(folder, row.options.get("at_once", 10), row.allow_restricted)
