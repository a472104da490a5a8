"""The background look at each connection. It writes down what it saw and moves no ticket and no stage."""

import logging
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from queue_core import wakeups
from queue_core.clock import Clock
from queue_core.connections import Health, build, look_at
from queue_core.connections.answers import bounded
from queue_core.errors import ConfigurationFault
from queue_core.models import ModelConnection

logger = logging.getLogger(__name__)

#: How old a look may be before another is taken. A little under the schedule's pace, which jitters.
EVERY = timedelta(seconds=8)
TIME_LIMIT = timedelta(seconds=5)


def ask_now(connections: QuerySet[ModelConnection]) -> None:
    """Have these connections looked at within a second or two, however lately they were. What was seen still stands."""
    connections.update(health_checked_at=None)
    wakeups.look_at_health()


def check_all(*, clock: Clock) -> int:
    """Look at every connection that is due. Returns at how many."""
    due = ModelConnection.objects.filter(_due(clock.now())).order_by("pk")
    return sum(_check(row, clock) for row in due)


def _check(row: ModelConnection, clock: Clock) -> bool:
    # Whoever moves the time looks: two schedulers send one look (CEL-11).
    now = clock.now()
    if not ModelConnection.objects.filter(_due(now), pk=row.pk).update(health_checked_at=now):
        return False
    found = _look(row)
    now = clock.now()
    since = row.health_since if row.health_is_good == found.is_good and row.health_since else now
    # A look at an address that was changed meanwhile says nothing about the present one.
    ModelConnection.objects.filter(pk=row.pk, version=row.version).update(
        health_checked_at=now, health_is_good=found.is_good, health_detail=found.detail, health_since=since
    )
    return True


def _look(row: ModelConnection) -> Health:
    try:
        adapter = build(row)
    except ConfigurationFault as fault:
        return Health(False, bounded(fault))
    return look_at(adapter, min(row.call_time_limit, TIME_LIMIT))


def _due(now: datetime) -> Q:
    return Q(health_checked_at__isnull=True) | Q(health_checked_at__lte=now - EVERY)
