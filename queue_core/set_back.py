"""PostgreSQL's clock set back: by a step of NTP, by hand, or by a failover to a machine whose clock is behind.

What was to be over by then would hold up the queue for as long as the clock lost: no tick would have its turn, no task
a place. So such marks are set back with it. Leases are not: they end by the clock, and at worst that much later.
"""

import logging
from datetime import datetime, timedelta

from django.db import models, transaction
from django.db.models import F, Q

from queue_core import audit, contract
from queue_core.clock import Clock
from queue_core.models import (
    AlertNotice,
    AlertWatch,
    Delivery,
    Drainer,
    Endpoint,
    ImportRun,
    Lane,
    ModelConnection,
    Presence,
    StageRun,
)
from queue_core.states import DeliveryState

logger = logging.getLogger(__name__)

ACT = "clock.set_back"
#: Of the record's `before` and `after`: what the clock had said, and what it said when that was noticed.
AT = "at"
#: Marks that keep something from being done before their time, or say when it was done last; and in which rows.
MARKS: tuple[tuple[type[models.Model], str, Q], ...] = (
    (Presence, "seen_at", Q()),
    (Drainer, "until", Q()),
    (Lane, "judged_at", Q()),
    (Lane, "claims_not_before", Q()),
    (ModelConnection, "health_checked_at", Q()),
    (StageRun, "known_asked_at", Q(ended_at__isnull=True)),
    (ImportRun, "held_until", Q(ended_at__isnull=True)),
    (Endpoint, "sender_until", Q()),
    (Endpoint, "open_until", Q()),
    (Delivery, "due_at", Q(state=DeliveryState.PENDING)),
    (AlertWatch, "watched_at", Q()),
    (AlertNotice, "due_at", Q(sent_at__isnull=True, given_up_at__isnull=True)),
)


def notice(scheduler: str, *, clock: Clock) -> timedelta:
    """By how much the clock was set back since this scheduler was last seen; zero, nearly always. On record then."""
    if not _is_ahead(Presence.objects.filter(name=scheduler), clock):
        return timedelta(0)
    with transaction.atomic():
        seen = Presence.objects.select_for_update(no_key=True).get(kind=Presence.Kind.SCHEDULER, name=scheduler)
        now = clock.now()
        by = seen.seen_at - now
        if by <= timedelta(0):
            return timedelta(0)
        audit.record(
            ACT,
            now=now,
            actor=None,
            subject=seen,
            before={AT: seen.seen_at.isoformat()},
            after={AT: now.isoformat()},
        )
        _set_back(by, now)
    logger.error("the database's clock was set back by %s: it had said %s", by, seen.seen_at.isoformat())
    return by


def _is_ahead(seen: models.QuerySet[Presence], clock: Clock) -> bool:
    """Read before the clock is: whoever was seen since is not ahead of it."""
    last = seen.filter(kind=Presence.Kind.SCHEDULER).values_list("seen_at", flat=True).first()
    return last is not None and last > clock.now()


def _set_back(by: timedelta, now: datetime) -> None:
    for model, name, rows in MARKS:
        model._default_manager.filter(rows, **{f"{name}__gt": now}).update(**{name: F(name) - by})
    contract.shorten_rests(by=by, now=now)
