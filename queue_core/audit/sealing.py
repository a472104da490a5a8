"""The chain: each committed entry gets the next number, and a hash over itself and the hash before.

Numbers are given after the commit, by whoever holds the one lock, so that an entry that commits late is chained late
and none is passed over. Changing, removing or slipping in an entry breaks every hash from there on. Whoever can write
to the database could compute a whole new chain: note a head elsewhere now and then, and `audit_verify --expect` tells.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC

from django.db import connection, transaction

from queue_core.models import AuditEntry

#: Any two sealers exclude each other by it, in this database.
LOCK = 7_203_115
MOST_AT_ONCE = 2_000
#: What the first entry is chained to.
BEGINNING = "0" * 64

SEAL = """
UPDATE queue_core_auditentry e SET number = s.number, seal = s.seal
FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS s (id, number, seal)
WHERE e.id = s.id
"""


@dataclass(frozen=True, slots=True)
class Head:
    """The last link of the chain; number 0 before the first."""

    number: int = 0
    seal: str = BEGINNING


def seal_committed(*, most: int = MOST_AT_ONCE) -> int:
    """Chain entries that are committed and not sealed yet, at most `most`. How many were.

    Safe when two run: the second waits for the first, and then sees what it did.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        # In a statement of its own: the next one's snapshot has to be taken after the lock.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        entries = list(AuditEntry.objects.filter(number__isnull=True).order_by("pk")[:most])
        if not entries:
            return 0
        last = head()
        numbers = range(last.number + 1, last.number + 1 + len(entries))
        cursor.execute(SEAL, [[entry.pk for entry in entries], list(numbers), _seals(last.seal, entries, numbers)])
    return len(entries)


def head() -> Head:
    """The chain's last link."""
    newest = AuditEntry.objects.filter(number__isnull=False).order_by("-number").values_list("number", "seal").first()
    return Head(newest[0] or 0, newest[1]) if newest is not None else Head()


def seal_of(before: str, entry: AuditEntry, number: int) -> str:
    """SHA-256, in hexadecimal, over the seal before and every field of the entry as it is read back."""
    fields = [
        number,
        entry.pk,
        entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        entry.actor_id,
        entry.actor_name,
        entry.address,
        entry.act,
        entry.lane_id,
        entry.subject_type,
        entry.subject_id,
        entry.subject,
        entry.reason,
        entry.before,
        entry.after,
    ]
    if entry.key_id is not None:
        # Not always: the seals of entries that are older than keys must come out as they did.
        fields.append(entry.key_id)
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()


def _seals(before: str, entries: Sequence[AuditEntry], numbers: Sequence[int]) -> list[str]:
    seals = []
    for entry, number in zip(entries, numbers, strict=True):
        before = seal_of(before, entry, number)
        seals.append(before)
    return seals
