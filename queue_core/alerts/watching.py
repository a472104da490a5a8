"""Looks at the lanes, taken in turns by everybody who is alive."""

import logging
from datetime import timedelta

from queue_core import figures
from queue_core.alerts.conditions import read
from queue_core.alerts.episodes import apply
from queue_core.clock import EPOCH, Clock
from queue_core.models import AlertWatch

logger = logging.getLogger(__name__)

#: How often somebody looks.
PACE = timedelta(seconds=5)
#: Nobody has looked for so long: whoever comes by looks, though it is not their work.
LATE = timedelta(seconds=20)


def watch_if_due(*, clock: Clock) -> bool:
    """Look, unless somebody did within the pace. Whether this one looked and wrote down what it saw."""
    return _watch(PACE, clock)


def watch_if_late(*, clock: Clock) -> bool:
    """For workers: look when the usual watchers do not. Cheap when they do."""
    return _watch(LATE, clock)


def watch(*, clock: Clock) -> bool:
    """Look now, whoever looked before."""
    return _watch(timedelta(0), clock)


def _watch(unless_within: timedelta, clock: Clock) -> bool:
    now = clock.now()
    due = AlertWatch.objects.filter(watched_at__lte=now - unless_within)
    if not due.update(watched_at=now):
        if AlertWatch.objects.exists():
            return False
        # The first look ever, or after the tables were emptied.
        AlertWatch.objects.bulk_create([AlertWatch(pk=1, watched_at=EPOCH)], ignore_conflicts=True)
        if not due.update(watched_at=now):
            return False
    with figures.snapshot():
        reading = read(now=now)
    return apply(reading, turn=now, now=now)
