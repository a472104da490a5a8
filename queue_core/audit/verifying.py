"""Does the chain still say what it said? Read link by link, in bounded memory and short transactions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from queue_core.audit.sealing import Head, seal_of
from queue_core.models import AuditEntry

CHUNK = 2_000


class Break(StrEnum):
    """What is wrong with the first link that is."""

    MISSING = "missing"
    CHANGED = "changed"
    CUT = "cut"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`intact` is the last link up to which all is well.

    `broken_at` is the number of the first one that is not: an entry is missing there, it or its seal was changed, the
    chain is cut off before an expected head, or stands there with another seal than the expected one.
    `unsealed` entries are in no chain yet; `oldest_unsealed` tells whether the sealer runs.
    """

    intact: Head
    intact_at: datetime | None
    broken_at: int | None
    how: Break | None
    unsealed: int
    oldest_unsealed: datetime | None


def verify(
    *, expected: Head | None = None, chunk: int = CHUNK, on_step: Callable[[int], None] = lambda _number: None
) -> Verdict:
    """Walk the chain from its beginning. `expected` is a head noted elsewhere, which must still be a link of it.

    `on_step` is told the number that was reached, after each chunk.
    """
    last, at = Head(), None
    wrong: tuple[int, Break] | None = None
    for entry in _in_order(chunk, on_step):
        wrong = _judge(last, entry, expected)
        if wrong is not None:
            break
        assert entry.number is not None
        last, at = Head(entry.number, entry.seal), entry.at
    if wrong is None and expected is not None and last.number < expected.number:
        wrong = last.number + 1, Break.CUT
    unsealed = AuditEntry.objects.filter(number__isnull=True)
    broken_at, how = wrong or (None, None)
    oldest = unsealed.order_by("pk").values_list("at", flat=True).first()
    return Verdict(last, at, broken_at, how, unsealed.count(), oldest)


def _in_order(chunk: int, on_step: Callable[[int], None]) -> Iterator[AuditEntry]:
    reached = 0
    while entries := list(AuditEntry.objects.filter(number__gt=reached).order_by("number")[:chunk]):
        yield from entries
        assert entries[-1].number is not None
        reached = entries[-1].number
        on_step(reached)


def _judge(last: Head, entry: AuditEntry, expected: Head | None) -> tuple[int, Break] | None:
    number = last.number + 1
    if entry.number != number:
        return number, Break.MISSING
    if entry.seal != seal_of(last.seal, entry, number):
        return number, Break.CHANGED
    if expected is not None and number == expected.number and entry.seal != expected.seal:
        return number, Break.OTHER
    return None
