"""Decisions in the order lane, time: read in short transactions, so that a long export is no old snapshot."""

from collections.abc import Collection, Iterator, Sequence

from django.db.models import Q, QuerySet

from queue_core.exports.periods import Period
from queue_core.models import Decision, Lane

BATCH = 1_000


def batches(
    period: Period, *, lanes: Collection[Lane], only: Q | None = None, size: int = BATCH
) -> Iterator[Sequence[Decision]]:
    """Decisions of the period in these lanes, a batch at a time, each with its rows around it."""
    for lane in sorted(lanes, key=lambda one: one.name):
        yield from _of_lane(_rows(only).filter(lane=lane, decided_at__lt=period.until), period, size)


def _of_lane(rows: QuerySet[Decision], period: Period, size: int) -> Iterator[Sequence[Decision]]:
    beyond = Q(decided_at__gte=period.since)
    while True:
        found = list(rows.filter(beyond).order_by("decided_at", "pk")[:size])
        if found:
            yield found
        if len(found) < size:
            return
        last = found[-1]
        # The first bound is the index's; the second breaks ties.
        beyond = Q(decided_at__gte=last.decided_at) & (Q(decided_at__gt=last.decided_at) | Q(pk__gt=last.pk))


def _rows(only: Q | None) -> QuerySet[Decision]:
    rows = Decision.objects.select_related(
        "ticket", "job__evidence", "lane", "reason_code", "attempt", "policy", "run", "replaced_by"
    ).defer("job__evidence__body")
    return rows.filter(only) if only is not None else rows
