"""Who is told of an alert: people by mail, and webhooks. Chosen when it begins; its end goes to the same ones."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from django.db.models import Q

from queue_core.alerts.sending import is_mail_set_up
from queue_core.models import AlertEpisode, AlertHook, AlertNotice, AlertSubscription
from queue_core.rights import people_who_may
from queue_core.states import AlertChannel, AlertKind, AlertPhase

#: Without a row of their own, whoever keeps outages hears of everything.
EVERYTHING_FOR = "manage_outage"
READERS = "view_board"


@dataclass(frozen=True, slots=True)
class Receivers:
    """Primary keys."""

    people: tuple[int, ...] = ()
    hooks: tuple[int, ...] = ()


def receivers_of(kind: AlertKind, lane_ids: Collection[int]) -> Receivers:
    """Who wants to hear of this kind in these lanes. Without lanes: in what belongs to none."""
    people = tuple(sorted(_people(kind, lane_ids))) if is_mail_set_up() else ()
    wanted = Q(lane__isnull=True) | Q(lane__in=lane_ids)
    hooks = AlertHook.objects.filter(wanted, is_enabled=True).order_by("pk")
    return Receivers(people, tuple(hook.pk for hook in hooks if kind in hook.kinds))


def notices_of_begin(episode: AlertEpisode, lane_ids: Collection[int], *, now: datetime) -> list[AlertNotice]:
    found = receivers_of(AlertKind(episode.kind), lane_ids)
    return [
        *(_notice(episode, AlertPhase.BEGUN, now, person=pk) for pk in found.people),
        *(_notice(episode, AlertPhase.BEGUN, now, hook=pk) for pk in found.hooks),
    ]


def notices_of_end(episode: AlertEpisode, *, now: datetime) -> list[AlertNotice]:
    told: Iterable[AlertNotice] = episode.notices.filter(phase=AlertPhase.BEGUN).order_by("pk")
    return [_notice(episode, AlertPhase.OVER, now, person=one.person_id, hook=one.hook_id) for one in told]


def _notice(
    episode: AlertEpisode, phase: AlertPhase, now: datetime, *, person: int | None = None, hook: int | None = None
) -> AlertNotice:
    return AlertNotice(
        episode=episode,
        phase=phase,
        channel=AlertChannel.MAIL if person is not None else AlertChannel.HOOK,
        person_id=person,
        hook_id=hook,
        key=uuid4(),
        due_at=now,
    )


def _people(kind: AlertKind, lane_ids: Collection[int]) -> set[int]:
    """People with an address who chose it, or who chose nothing and keep outages. Nobody who may not see the board."""
    chosen: dict[int, list[AlertSubscription]] = {}
    for row in AlertSubscription.objects.all():
        chosen.setdefault(row.person_id, []).append(row)
    readers, keepers = _may(READERS, lane_ids), _may(EVERYTHING_FOR, lane_ids)
    return {
        pk
        for pk in readers
        if (any(_wants(row, kind, lane_ids) for row in chosen[pk]) if pk in chosen else pk in keepers)
    }


def _wants(row: AlertSubscription, kind: AlertKind, lane_ids: Collection[int]) -> bool:
    return kind in row.kinds and (row.lane_id is None or row.lane_id in lane_ids)


def _may(right: str, lane_ids: Collection[int]) -> set[int]:
    """People with an address and the right everywhere, or on one of these lanes."""
    found = [people_who_may(right, lane_id) for lane_id in lane_ids] or [people_who_may(right)]
    return {pk for people in found for pk in people.exclude(email="").values_list("pk", flat=True)}
