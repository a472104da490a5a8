"""Entries of the audit as rows of a page and as records of a file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.utils.translation import gettext as _

from queue_core.models import AuditEntry
from queue_core.states import AlertKind, HoldForm, HoldReason
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
#: Fields whose values are codes with a name, by act.
NAMED: dict[tuple[str, str], type[AlertKind | HoldForm | HoldReason]] = {
    ("alert.begun", "kind"): AlertKind,
    ("lane.held", "reason"): HoldReason,
    ("lane.held", "form"): HoldForm,
    ("lane.results_refused", "form"): HoldForm,
}


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
    changes: Sequence[Change]
    more: int


def act_row(entry: AuditEntry) -> ActRow:
    """Who, what, and field by field what changed, cut to what a page can hold."""
    before, after = entry.before or {}, entry.after or {}
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    changes = [
        Change(name, _named(entry.act, name, before), _named(entry.act, name, after)) for name in names[:MOST_CHANGES]
    ]
    is_system = entry.actor_id is None and entry.key_id is None
    who = _("the system") if is_system else entry.actor_name
    return ActRow(entry, who, act_name(entry.act), changes, len(names) - len(changes))


def _named(act: str, name: str, values: dict[str, Any]) -> str | None:
    """A code by its name where it has one, else what stands there."""
    code, named = values.get(name), NAMED.get((act, name))
    return str(named(code).label) if named is not None and code in named.values else _shown(values, name)


def _shown(values: dict[str, Any], name: str) -> str | None:
    if name not in values or values[name] is None:
        return None
    text = values[name] if isinstance(values[name], str) else _json(values[name])
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


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
