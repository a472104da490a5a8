"""Acts of people and of the system, each a plain row in the act's own transaction."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models

from queue_core.audit import origin
from queue_core.models import AuditEntry, Lane

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

SYSTEM = "system"


def record(
    act: str,
    *,
    now: datetime,
    actor: "AbstractUser | None",
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
    return AuditEntry.objects.create(
        at=now,
        actor_id=actor.pk if actor is not None else None,
        actor_name=actor.get_username() if actor is not None else SYSTEM,
        address=address or origin.address(),
        act=act,
        lane=lane,
        subject_type=subject._meta.model_name or "",
        subject_id=str(subject.pk),
        subject=str(subject)[:200],
        reason=reason,
        before=before,
        after=after,
    )
