"""Entries of the audit as rows of a page and as records of a file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.utils.translation import gettext as _

from queue_core.models import AuditEntry
from reviewboard import audit_words
from reviewboard.act_names import ACTS, act_name
from reviewboard.shapes import Text

CODES = ACTS
COLUMNS = (
    "number", "at", "actor", "address", "act", "lane", "subject_type", "subject_id", "subject", "reason", "before",
    "after", "seal",
)  # fmt: skip
#: Longer values are in the export.
MOST_SHOWN = 200
MOST_CHANGES = 20


@dataclass(frozen=True, slots=True)
class Change:
    """One field; None where there was, or is, nothing of it."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ActRow:
    entry: AuditEntry
    who: str
    what: Text
    target: Text
    changes: Sequence[Change]
    more: int


def act_row(entry: AuditEntry, lanes: Mapping[int, str] | None = None) -> ActRow:
    """Who, what, to what, and field by field what changed, cut to what a page can hold. `lanes` names lanes by id."""
    changes = list(_changes(entry, lanes or {}))
    is_system = entry.actor_id is None and entry.key_id is None
    who = _("the system") if is_system else entry.actor_name
    more = max(len(changes) - MOST_CHANGES, 0)
    return ActRow(entry, who, act_name(entry.act), audit_words.target(entry), changes[:MOST_CHANGES], more)


def _changes(entry: AuditEntry, lanes: Mapping[int, str]) -> Iterator[Change]:
    kind, before, after = entry.subject_type, entry.before or {}, entry.after or {}
    names = (name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    for label, name in sorted((audit_words.field_name(kind, name), name) for name in names):
        if name == "stages":
            stages = audit_words.changed_stages(before.get(name) or (), after.get(name) or ())
            yield from (Change(told, _cut(old), _cut(new)) for told, (old, new) in stages.items())
        else:
            old, new = (_told(kind, name, values.get(name), lanes) for values in (before, after))
            yield Change(label, old, new)


def _told(kind: str, name: str, stored: Any, lanes: Mapping[int, str]) -> str | None:
    return None if stored is None else _cut(audit_words.value(kind, name, stored, lanes=lanes))


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…"


def as_record(entry: AuditEntry) -> dict[str, Any]:
    """Every field, for a file. `number` and `seal` are its place in the chain, null and empty before it is sealed."""
    return {
        "number": entry.number,
        "at": entry.at.astimezone(UTC).isoformat(),
        "actor": entry.actor_name,
        "address": entry.address,
        "act": entry.act,
        "lane": entry.lane.name if entry.lane is not None else None,
        "subject_type": entry.subject_type,
        "subject_id": entry.subject_id,
        "subject": entry.subject,
        "reason": entry.reason,
        "before": entry.before,
        "after": entry.after,
        "seal": entry.seal,
    }
