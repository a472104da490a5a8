"""The record of an outage: one open for each connection, its lanes named by the entries of its log."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext as _

from queue_core import audit, outbox
from queue_core.clock import Clock
from queue_core.contract import lock_lane
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import Lane, ModelConnection, Outage, OutageEntry
from queue_core.ramp_checks import checked_reason, checked_text
from queue_core.rights import may_on_each, require_somewhere
from queue_core.states import PERSONS_HOLD_REASONS, HoldReason, MessageKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

RIGHT = "manage_outage"
MOST_NOTE = 1000
MOST_HANDOVER = 4000


class EntryCode(StrEnum):
    OPENED = "opened"
    HELD = "held"
    RAISED = "raised"
    RESUMED = "resumed"
    STEPPED_DOWN = "stepped_down"
    CAP_SET = "cap_set"
    POLICY_FORCED = "policy_forced"
    RECALLED = "recalled"
    RUN_ACCEPTED = "run_accepted"
    NOTE = "note"
    HANDED_OVER = "handed_over"
    CLOSED = "closed"


class OutageOutcome(StrEnum):
    OPENED = "opened"
    ALREADY_OPEN = "already_open"
    CLOSED = "closed"
    ALREADY_CLOSED = "already_closed"
    #: A lane of it does not run its last stage yet.
    NOT_STEADY = "not_steady"
    NOTED = "noted"
    HANDED_OVER = "handed_over"
    #: Another lead is on duty than the one that the form was shown with.
    OTHER_LEAD = "other_lead"


@dataclass(frozen=True, slots=True)
class OutageActed:
    outcome: OutageOutcome
    outage: Outage
    lanes: tuple[Lane, ...] = ()
    """For NOT_STEADY: the lanes that do not run their last stage."""


def open_one(connection: ModelConnection) -> Outage | None:
    return Outage.objects.filter(connection=connection, closed_at__isnull=True).first()


def last_outage(connection: ModelConnection) -> Outage | None:
    """The connection's newest outage, open or closed."""
    return Outage.objects.filter(connection=connection).order_by("-opened_at").first()


def open_for(lane: Lane, cause: HoldReason, *, now: datetime) -> Outage:
    """The open outage of a lane's connection, opened now if there is none. Two lanes at once open one."""
    return _open(lane.connection, cause, person=None, now=now)[0]


def lanes_of(outage_ids: Iterable[int]) -> dict[int, tuple[Lane, ...]]:
    """The lanes of each outage with their runs, by the outage's id: those that its log names."""
    found: dict[int, tuple[Lane, ...]] = dict.fromkeys(outage_ids, ())
    if found:
        named = OutageEntry.objects.filter(outage__in=found, lane__isnull=False).select_related("lane__run")
        named = named.prefetch_related("lane__stages")
        for entry in named.order_by("outage", "lane__name").distinct("outage", "lane__name"):
            if entry.lane is not None:
                found[entry.outage_id] = (*found[entry.outage_id], entry.lane)
    return found


def lanes_of_connection(connection_id: int) -> frozenset[int]:
    """The ids of the lanes that an outage of this connection is about. Whoever may not see one does not see it."""
    return frozenset(Lane.objects.filter(connection_id=connection_id).values_list("pk", flat=True))


def is_steady(lane: Lane) -> bool:
    """Whether the lane runs its last stage, as all lanes of an outage have to before it is closed.

    A plan that was cut short meanwhile counts as it is now: no raise would lead to a stage that it no longer has.
    """
    run = lane.run
    return run is not None and (run.is_last or all(stage.number <= run.number for stage in lane.stages.all()))


def write_entry(
    lane: Lane,
    code: EntryCode,
    *,
    now: datetime,
    person: "AbstractUser | None" = None,
    text: str = "",
    **params: Any,
) -> OutageEntry | None:
    """A line in the open outage's log, if one is open for the lane's connection."""
    outage = open_one(lane.connection)
    if outage is None:
        return None
    return _entry(outage, code, lane=lane, now=now, person=person, text=text, params={"lane": lane.name, **params})


@transaction.atomic
def open_outage(connection_id: int, *, person: "AbstractUser", cause: str, reason: str, clock: Clock) -> OutageActed:
    """Open the record of an outage by hand. It holds no lane: that is an act of its own."""
    _require(person, connection_id)
    reason = checked_reason(reason)
    if cause not in PERSONS_HOLD_REASONS:
        raise InvalidRequest("A person's outage has one of the four reasons of a hold.", field="cause")
    connection = ModelConnection.objects.get(pk=connection_id)
    now = clock.now()
    outage, is_new = _open(connection, HoldReason(cause), person=person, now=now, text=reason)
    if not is_new:
        return OutageActed(OutageOutcome.ALREADY_OPEN, outage)
    audit.record("outage.opened", now=now, actor=person, subject=outage, reason=reason)
    return OutageActed(OutageOutcome.OPENED, outage)


@transaction.atomic
def close_outage(outage_id: int, *, person: "AbstractUser", reason: str, clock: Clock) -> OutageActed:
    """A lead declares steady running. NOT_STEADY while a lane of the outage does not run its last stage."""
    _require_for(person, outage_id)
    reason = checked_reason(reason)
    lanes = _lock_lanes(outage_id)
    outage = Outage.objects.select_for_update(no_key=True).get(pk=outage_id)
    now = clock.now()
    if outage.closed_at is not None:
        return OutageActed(OutageOutcome.ALREADY_CLOSED, outage)
    unsteady = tuple(lane for lane in lanes if not is_steady(lane))
    if unsteady:
        return OutageActed(OutageOutcome.NOT_STEADY, outage, unsteady)
    # Never before it was opened, though the server's clock was set back since.
    outage.closed_at, outage.closed_by_id = max(now, outage.opened_at), person.pk
    outage.save(update_fields=["closed_at", "closed_by"])
    _entry(outage, EntryCode.CLOSED, now=now, person=person, text=reason)
    audit.record("outage.closed", now=now, actor=person, subject=outage, reason=reason)
    outbox.record(MessageKind.OUTAGE_CLOSED, _body(outage, lanes), now=now)
    return OutageActed(OutageOutcome.CLOSED, outage)


@transaction.atomic
def write_note(outage_id: int, *, person: "AbstractUser", text: str, clock: Clock) -> OutageActed:
    """A line of a person's own in the log, also when the outage is closed: what is found out later belongs there."""
    _require_for(person, outage_id)
    text = _checked_note(text, field="text", most=MOST_NOTE)
    outage = Outage.objects.select_for_update(no_key=True).get(pk=outage_id)
    now = clock.now()
    entry = _entry(outage, EntryCode.NOTE, now=now, person=person, text=text)
    audit.record("outage.noted", now=now, actor=person, subject=outage, after={"entry": entry.pk})
    return OutageActed(OutageOutcome.NOTED, outage)


@transaction.atomic
def hand_over(
    outage_id: int, *, to: "AbstractUser", shown: int | None, note: str, person: "AbstractUser", clock: Clock
) -> OutageActed:
    """Put another lead on duty, or oneself, with a note of what they have to know.

    OTHER_LEAD if not the one is on duty that was `shown` (a primary key, or None for nobody): two who take over at
    once do not pass each other by. Raises InvalidRequest where `to` may not keep outages.
    """
    connection_id = _require_for(person, outage_id)
    note = _checked_note(note, field="note", most=MOST_HANDOVER)
    if not (to.is_active and may_on_each(to, RIGHT, lanes_of_connection(connection_id))):
        raise InvalidRequest(_("This person may not keep the record of an outage."), field="to")
    outage = Outage.objects.select_for_update(no_key=True).get(pk=outage_id)
    now = clock.now()
    if outage.closed_at is not None:
        return OutageActed(OutageOutcome.ALREADY_CLOSED, outage)
    if outage.lead_on_duty_id != shown:
        return OutageActed(OutageOutcome.OTHER_LEAD, outage)
    outage.lead_on_duty_id, outage.handover_note = to.pk, note
    outage.save(update_fields=["lead_on_duty", "handover_note"])
    name = to.get_username()
    _entry(outage, EntryCode.HANDED_OVER, now=now, person=person, text=note[:MOST_NOTE], params={"to": name})
    audit.record(
        "outage.handed_over",
        now=now,
        actor=person,
        subject=outage,
        reason=note,
        before={"lead_on_duty": shown},
        after={"lead_on_duty": to.pk},
    )
    return OutageActed(OutageOutcome.HANDED_OVER, outage)


def _require_for(person: "AbstractUser", outage_id: int) -> int:
    """The outage's connection, for one who may keep its record; else NotPermitted. Raises DoesNotExist."""
    require_somewhere(person, RIGHT)
    connection_id = Outage.objects.values_list("connection_id", flat=True).get(pk=outage_id)
    _require(person, connection_id)
    return connection_id


def _require(person: "AbstractUser", connection_id: int) -> None:
    if not may_on_each(person, RIGHT, lanes_of_connection(connection_id)):
        raise NotPermitted(_("This needs a right that you do not have."))


def _checked_note(text: str, *, field: str, most: int) -> str:
    note = checked_text(text, field=field, most=most)
    if not note:
        raise InvalidRequest(_("Write what the next person has to know."), field=field)
    return note


def _open(
    connection: ModelConnection, cause: HoldReason, *, person: "AbstractUser | None", now: datetime, text: str = ""
) -> tuple[Outage, bool]:
    found = open_one(connection)
    if found is not None:
        return found, False
    opened_by = person.pk if person else None
    wanted = Outage(
        connection=connection, cause=cause, opened_at=now, opened_by_id=opened_by, lead_on_duty_id=opened_by
    )
    # Where another lane of this connection is opening it, the insert waits for that transaction and then does nothing.
    Outage.objects.bulk_create([wanted], ignore_conflicts=True)
    outage = open_one(connection)
    if outage is None:
        return _open(connection, cause, person=person, now=now, text=text)
    is_new = (outage.opened_at, outage.cause, outage.opened_by_id) == (now, cause, opened_by)
    if is_new:
        _entry(outage, EntryCode.OPENED, now=now, person=person, text=text, params={"cause": cause.value})
        outbox.record(MessageKind.OUTAGE_OPENED, _body(outage, connection.lanes.all()), now=now)
    return outage, is_new


def _entry(
    outage: Outage,
    code: EntryCode,
    *,
    now: datetime,
    lane: Lane | None = None,
    person: "AbstractUser | None" = None,
    text: str = "",
    params: dict[str, Any] | None = None,
) -> OutageEntry:
    return OutageEntry.objects.create(
        outage=outage, at=now, by_id=person.pk if person else None, lane=lane, code=code, params=params or {}, text=text
    )


def _lock_lanes(outage_id: int) -> list[Lane]:
    """The outage's lanes under their locks, which come before the outage's: a hold takes them in this order too."""
    named = OutageEntry.objects.filter(outage=outage_id, lane__isnull=False).values("lane")
    lanes = Lane.objects.filter(pk__in=named).order_by("pk")
    return [lock_lane(pk) for pk in lanes.values_list("pk", flat=True)]


def _body(outage: Outage, lanes: Iterable[Lane]) -> dict[str, Any]:
    return {
        "outage": outage.pk,
        "connection": outage.connection.name,
        "cause": outage.cause,
        "opened_at": outage.opened_at.isoformat(),
        "closed_at": outage.closed_at.isoformat() if outage.closed_at else None,
        "lanes": sorted(lane.name for lane in lanes),
    }
