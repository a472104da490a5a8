"""What the tick does for imports: wakes a worker for what waits, and forgets what nobody needs any more."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from queue_core import wakeups
from queue_core.clock import Clock
from queue_core.imports.acts import end
from queue_core.models import ImportRun
from queue_core.states import ImportState

#: Refused lines are kept this long after the run has ended, to be mended and sent again.
KEPT_FOR = timedelta(days=7)
#: A file that nobody imported is discarded after this long.
LEFT_ALONE = timedelta(hours=24)
AT_ONCE = 20
AT_WORK = (ImportState.CHECKING, ImportState.IMPORTING)


def wake_waiting(*, clock: Clock) -> None:
    """Wake a worker for each run that nobody has: its message was lost, or its worker died."""
    free = Q(held_until__isnull=True) | Q(held_until__lte=clock.now())
    open_runs = ImportRun.objects.filter(free, ended_at__isnull=True, state__in=AT_WORK)
    for run_id in open_runs.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]:
        wakeups.wake_import(run_id)


def forget_old(*, clock: Clock) -> None:
    """Discard files that were left alone, and blank refused lines that were kept long enough. Bounded."""
    now = clock.now()
    left = ImportRun.objects.filter(ended_at__isnull=True, asked_at__lte=now - LEFT_ALONE).exclude(state__in=AT_WORK)
    for run_id in left.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]:
        _discard(run_id, clock)
    old = ImportRun.objects.filter(is_emptied=False, ended_at__lte=now - KEPT_FOR)
    for run in old.order_by("pk")[:AT_ONCE]:
        with transaction.atomic():
            run.refusals.all().delete()
            ImportRun.objects.filter(pk=run.pk).update(is_emptied=True)


@transaction.atomic
def _discard(run_id: int, clock: Clock) -> None:
    run = ImportRun.objects.select_for_update(no_key=True).get(pk=run_id)
    now = clock.now()
    # Somebody may have gone on with it between the list and the lock.
    if run.ended_at is None and run.state not in AT_WORK and run.asked_at <= now - LEFT_ALONE:
        end(run, ImportState.DISCARDED, now=now)
