"""Changes of configuration: one door for the admin, with an audit row that holds only what changed."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import F

from queue_core import audit
from queue_core.models import Lane, ModelConnection

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: What a stage run was approved with. A change of it puts the lane on hold.
APPROVED_WITH = {
    Lane: ("connection", "lease"),
    ModelConnection: ("kind", "address", "model", "call_time_limit", "options", "key_env"),
}


def values_of(row: models.Model, fields: Iterable[str]) -> dict[str, Any]:
    """The named fields of a row, as plain JSON."""
    return {name: _plain(getattr(row, name)) for name in fields}


def save_changed(
    row: models.Model,
    fields: list[str],
    *,
    before: dict[str, Any],
    person: "AbstractUser",
    now: datetime,
    lane: Lane | None = None,
    reason: str = "",
    address: str | None = None,
) -> None:
    """Write the changed fields of a row that the caller holds locked, and nothing else, with its audit row.

    A row with a version gets the next one, so that a form loaded before is told.
    """
    written = list(fields)
    if any(field.name == "version" for field in row._meta.concrete_fields):
        row.version = F("version") + 1  # type: ignore[attr-defined]
        written.append("version")
    row.save(update_fields=written)
    row.refresh_from_db(fields=written)
    audit.record(
        f"{row._meta.model_name}.changed",
        now=now,
        actor=person,
        subject=row,
        lane=lane,
        reason=reason,
        before={name: before[name] for name in fields},
        after=values_of(row, fields),
        address=address,
    )


def save_plan(
    lane: Lane, *, before: list[dict[str, Any]], after: list[dict[str, Any]], person: "AbstractUser", now: datetime
) -> None:
    """Record a change of a lane's stages, which were written in this transaction, as a change of the lane."""
    Lane.objects.filter(pk=lane.pk).update(version=F("version") + 1)
    audit.record(
        "lane.plan_changed",
        now=now,
        actor=person,
        subject=lane,
        lane=lane,
        before={"stages": before},
        after={"stages": after},
    )


def lanes_to_hold(row: models.Model, fields: Iterable[str]) -> list[int]:
    """The lanes whose running stage was approved with what these fields said before."""
    if not set(fields) & set(APPROVED_WITH.get(type(row), ())):
        return []
    lanes = Lane.objects.filter(run__isnull=False).order_by("pk")
    found = lanes.filter(pk=row.pk) if isinstance(row, Lane) else lanes.filter(connection_id=row.pk)
    return list(found.values_list("pk", flat=True))


def _plain(value: Any) -> Any:
    if isinstance(value, models.Model):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.isoformat()
    return value
