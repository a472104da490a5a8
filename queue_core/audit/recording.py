"""Acts of people, of keys and of the system, each a plain row in the act's own transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models

from queue_core.audit import origin
from queue_core.models import ApiKey, AuditEntry, Lane

if TYPE_CHECKING:
    from queue_core.models.api_keys import Actor

SYSTEM = "system"


def record(
    act: str,
    *,
    now: datetime,
    actor: "Actor | None",
    subject: models.Model,
    lane: Lane | None = None,
    reason: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    address: str | None = None,
) -> AuditEntry:
    """Write one act. `actor` None is the system itself; `before` and `after` hold only what the act changed.

    `address` is the client's, and that of the request at hand where none is given (`acting_from`).
    """
    act_of_one = Act(act, subject, lane=lane, reason=reason, before=before, after=after)
    return record_many([act_of_one], now=now, actor=actor, address=address)[0]


@dataclass(frozen=True, slots=True)
class Act:
    """What was done to one subject. `before` and `after` hold only what the act changed."""

    act: str
    subject: models.Model
    lane: Lane | None = None
    reason: str = ""
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


def record_many(
    acts: Sequence[Act], *, now: datetime, actor: "Actor | None", address: str | None = None
) -> list[AuditEntry]:
    """Write what one actor did to many subjects at once, a row for each, in order."""
    key_id = actor.pk if isinstance(actor, ApiKey) else None
    actor_id = actor.pk if actor is not None and key_id is None else None
    actor_name = actor.get_username() if actor is not None else SYSTEM
    entries = [
        AuditEntry(
            at=now,
            actor_id=actor_id,
            key_id=key_id,
            actor_name=actor_name,
            address=address or origin.address(),
            act=act.act,
            lane=act.lane,
            subject_type=act.subject._meta.model_name or "",
            subject_id=str(act.subject.pk),
            subject=str(act.subject)[:200],
            reason=act.reason,
            before=act.before,
            after=act.after,
        )
        for act in acts
    ]
    return AuditEntry.objects.bulk_create(entries)
