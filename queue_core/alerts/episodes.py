"""Alerts as episodes: begun once however many see it, acknowledged once by name, over once."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import QuerySet

from queue_core import audit, rights
from queue_core.alerts.conditions import Condition, Key, Reading
from queue_core.alerts.receivers import notices_of_begin, notices_of_end
from queue_core.clock import Clock
from queue_core.gate_told import GateTold
from queue_core.models import AlertEpisode, AlertNotice, AlertWatch, Lane
from queue_core.states import AlertKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: Whoever may put a lane on hold may say that they look after an alert.
RIGHT = "hold_lane"
#: An episode is over when its cause was not seen for so long; else one that comes and goes would be told many times.
QUIET = timedelta(minutes=1)
QUIET_OF = {
    AlertKind.GROWING: timedelta(minutes=10),
    # A model that is hardly up answers some looks and not others all night: told once. A raise ends it at once.
    AlertKind.MODEL_BACK: timedelta(minutes=5),
    AlertKind.SOAK_MET: timedelta(0),
    AlertKind.AUTOMATIC_HOLD: timedelta(0),
}


#: What was seen of a gate tells of the present no longer than this.
TOLD_FOR = timedelta(seconds=30)


class AckOutcome(StrEnum):
    ACKNOWLEDGED = "acknowledged"
    #: Somebody did before; the episode names them.
    ALREADY = "already"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Acknowledged:
    outcome: AckOutcome
    episode: AlertEpisode


def open_episodes(lane_ids: Collection[int] | None = None) -> list[AlertEpisode]:
    """The alerts that stand, the worst kind first, then the oldest. Bounded by lanes and kinds.

    `lane_ids` leaves out those of other lanes, and those of none; None is all.
    """
    order = {kind: place for place, kind in enumerate(AlertKind.values)}
    rows = _of(lane_ids).filter(over_at__isnull=True).select_related("lane", "connection", "acknowledged_by")
    return sorted(rows, key=lambda row: (row.acknowledged_at is not None, order.get(row.kind, 0), row.begun_at))


def gates_told(episodes: Iterable[AlertEpisode], *, now: datetime) -> dict[str, GateTold]:
    """What is told of the gates of soaked runs, by `run_subject`. Only of what was looked at lately."""
    return {
        row.subject: GateTold.thawed(row.params["gate"])
        for row in episodes
        if row.kind == AlertKind.SOAK_MET and row.params.get("gate") and now - row.seen_at <= TOLD_FOR
    }


def newest(number: int, lane_ids: Collection[int] | None = None) -> list[AlertEpisode]:
    """The last episodes that are over, the newest first. `lane_ids` as in `open_episodes`."""
    rows = _of(lane_ids).filter(over_at__isnull=False).order_by("-begun_at", "-pk")
    return list(rows.select_related("lane", "connection", "acknowledged_by")[:number])


def _of(lane_ids: Collection[int] | None) -> QuerySet[AlertEpisode]:
    rows = AlertEpisode.objects.all()
    return rows if lane_ids is None else rows.filter(lane_id__in=lane_ids)


@transaction.atomic
def apply(reading: Reading, *, turn: datetime, now: datetime) -> bool:
    """Begin and end episodes by a look that was taken at `turn`. False: somebody looked since, and writes instead."""
    watch = AlertWatch.objects.select_for_update(no_key=True).order_by("pk").first()
    if watch is None or watch.watched_at != turn:
        return False
    found = {condition.key: condition for condition in reading.found}
    standing = {
        (AlertKind(row.kind), row.subject): row
        for row in AlertEpisode.objects.select_for_update(no_key=True).filter(over_at__isnull=True).order_by("pk")
    }
    seen = [row for key, row in standing.items() if key in found or key in reading.lasting]
    _keep(seen, found, now)
    _end([row for key, row in standing.items() if row not in seen and _is_over(key, row, reading, now)], now)
    _begin([condition for key, condition in found.items() if key not in standing], now)
    return True


@transaction.atomic
def acknowledge(episode_id: int, *, person: "AbstractUser", clock: Clock) -> Acknowledged:
    """Say by name that somebody looks after an alert. It goes on until its cause is over."""
    rights.require_somewhere(person, RIGHT)
    row = AlertEpisode.objects.select_for_update(no_key=True, of=("self",)).get(pk=episode_id)
    rights.require(person, RIGHT, row.lane_id)
    if row.acknowledged_at is not None:
        return Acknowledged(AckOutcome.ALREADY, row)
    if row.over_at is not None:
        return Acknowledged(AckOutcome.OVER, row)
    now = clock.now()
    row.acknowledged_at, row.acknowledged_by_id = now, person.pk
    row.save(update_fields=["acknowledged_at", "acknowledged_by"])
    audit.record("alert.acknowledged", now=now, actor=person, subject=row, lane=row.lane)
    return Acknowledged(AckOutcome.ACKNOWLEDGED, row)


def _keep(rows: Iterable[AlertEpisode], found: dict[Key, Condition], now: datetime) -> None:
    """What stands, with what is known of it by now."""
    kept = []
    for row in rows:
        condition = found.get((AlertKind(row.kind), row.subject))
        row.seen_at = now
        row.params = _known(condition.params, row.params) if condition else row.params
        kept.append(row)
    AlertEpisode.objects.bulk_update(kept, ["seen_at", "params"])


def _known(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What is known now. Since when it lasts, nobody may see any more who looks back half an hour: then as was seen."""
    lost = "since" in now and now["since"] is None and before.get("since")
    return now | {"since": before["since"]} if lost else now


def _is_over(key: Key, row: AlertEpisode, reading: Reading, now: datetime) -> bool:
    kind = key[0]
    if key in reading.settled:
        return True
    if row.lane_id is not None and (kind, row.lane_id) in reading.unknown:
        return False
    return now - row.seen_at >= QUIET_OF.get(kind, QUIET)


def _end(rows: Iterable[AlertEpisode], now: datetime) -> None:
    for row in rows:
        row.over_at = now
        row.save(update_fields=["over_at"])
        AlertNotice.objects.bulk_create(notices_of_end(row, now=now))
        audit.record("alert.over", now=now, actor=None, subject=row, lane=row.lane)


def _begin(conditions: Iterable[Condition], now: datetime) -> None:
    for condition in conditions:
        lane = condition.lanes[0] if len(condition.lanes) == 1 and condition.connection is None else None
        row = AlertEpisode.objects.create(
            kind=condition.kind,
            subject=condition.subject,
            lane_id=lane,
            connection_id=condition.connection,
            params=condition.params,
            begun_at=now,
            seen_at=now,
        )
        AlertNotice.objects.bulk_create(notices_of_begin(row, condition.lanes, now=now))
        audit.record(
            "alert.begun",
            now=now,
            actor=None,
            subject=row,
            lane=Lane.objects.filter(pk=lane).first() if lane else None,
            after={"kind": row.kind, "params": row.params},
        )
