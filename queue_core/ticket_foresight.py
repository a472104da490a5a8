"""A dry run: what an import would answer to each line, with nothing of it written.

It judges by intake's own rules on the rows as they stand, and remembers what the lines before would have stored. A file
of millions of tickets has more names than memory has room, so that what is remembered is kept outside of it.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

from django.db.models import Q

from queue_core.clock import Clock
from queue_core.contract.intake import judge, name_fault
from queue_core.errors import InvalidJob, RevisionConflict
from queue_core.models import Job, Ticket
from queue_core.states import AddOutcome
from queue_core.ticket_import import Answer, Entry

type Name = tuple[str, str]


@dataclass(slots=True)
class Foreseen:
    """A ticket as the lines before would have left it: its current revision, and those that they stored."""

    current: str
    revisions: list[str]


class Memory(Protocol):
    """Where a dry run keeps what it foresaw."""

    def recall(self, names: Iterable[Name]) -> dict[Name, Foreseen]:
        """What is remembered of these names."""

    def keep(self, foreseen: Mapping[Name, Foreseen]) -> None:
        """Remember these, in place of what was remembered of them."""


@dataclass(frozen=True, slots=True)
class Foreseeing:
    """The intake of a dry run."""

    clock: Clock
    memory: Memory

    def take(self, entries: Sequence[Entry]) -> dict[int, Answer]:
        names = {entry.ticket.name for entry in entries if name_fault(entry.ticket) is None}
        standing = _standing(names) | self.memory.recall(names)
        changed: dict[Name, Foreseen] = {}
        now = self.clock.now()
        answers = {entry.line: _answer(entry, standing, changed, now) for entry in entries}
        self.memory.keep(changed)
        return answers


def _answer(entry: Entry, standing: dict[Name, Foreseen], changed: dict[Name, Foreseen], now: datetime) -> Answer:
    ticket = entry.ticket
    fault = name_fault(ticket)
    if fault is not None:
        return fault
    found = standing.get(ticket.name)
    if found is not None and ticket.revision in found.revisions:
        return AddOutcome.KNOWN if found.current == ticket.revision else AddOutcome.SUPERSEDED
    current = found.current if found is not None else None
    if current != entry.replaces:
        return RevisionConflict("Another revision is current.", current=current or "")
    judged = judge(ticket, now)
    if isinstance(judged, InvalidJob):
        return judged
    revisions = [*(found.revisions if found is not None else []), ticket.revision]
    standing[ticket.name] = changed[ticket.name] = Foreseen(ticket.revision, revisions)
    return AddOutcome.STORED


def _standing(names: set[Name]) -> dict[Name, Foreseen]:
    """The tickets of these names as the database has them."""
    wanted = Q(pk__in=[])
    for source in {source for source, _id in names}:
        wanted |= Q(source=source, external_id__in=[external for name, external in names if name == source])
    rows = {row.pk: row for row in Ticket.objects.filter(wanted)}
    found = {pk: Foreseen(row.current_revision, []) for pk, row in rows.items()}
    for pk, revision in Job.objects.filter(ticket__in=rows).values_list("ticket_id", "revision"):
        found[pk].revisions.append(revision)
    return {(rows[pk].source, rows[pk].external_id): one for pk, one in found.items()}


class FileMemory:
    """A memory in a file of this process alone, which SQLite makes, keeps nameless and removes."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)
        self._file.execute("CREATE TABLE seen (name TEXT PRIMARY KEY, current TEXT, revisions TEXT) WITHOUT ROWID")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_fault: object) -> None:
        self._file.close()

    def recall(self, names: Iterable[Name]) -> dict[Name, Foreseen]:
        found: dict[Name, Foreseen] = {}
        for name in names:
            query = "SELECT current, revisions FROM seen WHERE name = ?"
            for current, revisions in self._file.execute(query, [json.dumps(name)]):
                found[name] = Foreseen(current, json.loads(revisions))
        return found

    def keep(self, foreseen: Mapping[Name, Foreseen]) -> None:
        rows = [(json.dumps(name), one.current, json.dumps(one.revisions)) for name, one in foreseen.items()]
        self._file.execute("BEGIN")
        self._file.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", rows)
        self._file.execute("COMMIT")
