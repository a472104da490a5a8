"""A dry run: what an import would answer to each line, with nothing written.

It judges by intake's own rules on the rows as they stand, and remembers what the lines before would have stored. That
memory is a file of this process alone, gone with it: a file of millions of tickets has more names than memory has room.
"""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Self

from django.db.models import Q

from queue_core.clock import Clock
from queue_core.contract.intake import judge, name_fault
from queue_core.errors import InvalidJob, RevisionConflict
from queue_core.models import Job, Ticket
from queue_core.states import AddOutcome
from queue_core.ticket_import import Answer, Entry

type Name = tuple[str, str]

TABLES = """
CREATE TABLE current (source TEXT, ticket TEXT, revision TEXT, PRIMARY KEY (source, ticket)) WITHOUT ROWID;
CREATE TABLE stored (source TEXT, ticket TEXT, revision TEXT, PRIMARY KEY (source, ticket, revision)) WITHOUT ROWID;
"""


class Foreseeing:
    """The intake of a dry run. To be closed, or used as a context."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # "" is a file that SQLite makes, keeps nameless and removes.
        self._memory = sqlite3.connect("", isolation_level=None)
        self._memory.executescript(f"PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF; {TABLES}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_fault: object) -> None:
        self._memory.close()

    def take(self, entries: Sequence[Entry]) -> dict[int, Answer]:
        rows = _Rows({entry.ticket.name for entry in entries})
        now = self._clock.now()
        return {entry.line: self._answer(entry, rows, now) for entry in entries}

    def _answer(self, entry: Entry, rows: "_Rows", now: datetime) -> Answer:
        ticket = entry.ticket
        fault = name_fault(ticket)
        if fault is not None:
            return fault
        current = self._current(ticket.name) or rows.current.get(ticket.name)
        if current is not None and self._is_stored(ticket.name, ticket.revision, rows):
            return AddOutcome.KNOWN if current == ticket.revision else AddOutcome.SUPERSEDED
        if current != entry.replaces:
            return RevisionConflict("Another revision is current.", current=current or "")
        judged = judge(ticket, now)
        if isinstance(judged, InvalidJob):
            return judged
        self._store(ticket.name, ticket.revision)
        return AddOutcome.STORED

    def _current(self, name: Name) -> str | None:
        found = self._memory.execute("SELECT revision FROM current WHERE source = ? AND ticket = ?", name).fetchone()
        return str(found[0]) if found else None

    def _is_stored(self, name: Name, revision: str, rows: "_Rows") -> bool:
        if (*name, revision) in rows.revisions:
            return True
        query = "SELECT 1 FROM stored WHERE source = ? AND ticket = ? AND revision = ?"
        return self._memory.execute(query, (*name, revision)).fetchone() is not None

    def _store(self, name: Name, revision: str) -> None:
        self._memory.execute("INSERT OR REPLACE INTO current VALUES (?, ?, ?)", (*name, revision))
        self._memory.execute("INSERT INTO stored VALUES (?, ?, ?)", (*name, revision))


class _Rows:
    """The tickets of some names as the database has them: the current revision, and all that are stored."""

    def __init__(self, names: set[Name]) -> None:
        wanted = Q(pk__in=[])
        for source in {source for source, _id in names}:
            wanted |= Q(source=source, external_id__in=[external for name, external in names if name == source])
        found = {row.pk: row for row in Ticket.objects.filter(wanted)}
        self.current = {(row.source, row.external_id): row.current_revision for row in found.values()}
        stored = Job.objects.filter(ticket__in=found).values_list("ticket_id", "revision")
        self.revisions = {(found[pk].source, found[pk].external_id, revision) for pk, revision in stored}
