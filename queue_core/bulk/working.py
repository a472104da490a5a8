"""Acts carried out: one job a transaction, any number of workers, each entry once whatever dies in between.

An entry's row is locked, its job acted on and its outcome written in one transaction. A worker that vanishes leaves
nothing half done, and its entry to the next one; two at once pass each other's rows over.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice

from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from queue_core import audit, wakeups
from queue_core.bulk.carrying import Turn, carry_out
from queue_core.bulk.progress import progress
from queue_core.clock import Clock
from queue_core.errors import CallerError, NotPermitted
from queue_core.models import BulkAct, BulkEntry
from queue_core.models.bulk import MAX_FAULT
from queue_core.states import BulkKind, BulkOutcome

logger = logging.getLogger(__name__)

#: Seconds of one message's work. Then the next message's turn: what else waits on its queue waits no longer than this.
SLICE = 3.0
#: Entries read ahead, without a lock.
CHUNK = 50
#: An act at which nobody worked for so long has lost its message, or its worker.
IDLE = timedelta(seconds=10)
#: Acts that one tick wakes workers for.
MOST_WOKEN = 20


def work(act_id: int, *, clock: Clock, is_stopping: Callable[[], bool] = lambda: False, slice_: float = SLICE) -> int:
    """Carry an act on for a slice of time. Returns how many entries got their outcome here.

    Safe to run twice at once and any number of times. Raises what the database raises when its connection is gone.
    """
    began, handled = time.monotonic(), 0
    while time.monotonic() - began < slice_ and not is_stopping():
        act = _begin(act_id, clock)
        if act is None:
            return handled
        pending = list(act.entries.filter(outcome__isnull=True).order_by("place").values_list("pk", flat=True)[:CHUNK])
        if not pending:
            end_if_done(act.pk, now=clock.now())
            return handled
        for entry_id in pending:
            if time.monotonic() - began >= slice_ or is_stopping() or _is_stopped(act_id):
                break
            handled += _take_turn(act, entry_id, clock)
    wakeups.wake_bulk(act_id)
    return handled


def wake_waiting(*, clock: Clock) -> int:
    """Wake a worker for each act that waits for one, as after a lost message. Returns for how many."""
    last = Coalesce(F("worked_at"), F("seconded_at"), F("confirmed_at"))
    waiting = _under_way().annotate(last=last).filter(last__lt=clock.now() - IDLE)
    ids = list(islice(waiting.order_by("pk").values_list("pk", flat=True), MOST_WOKEN))
    for pk in ids:
        wakeups.wake_bulk(pk)
    return len(ids)


def end_if_done(act_id: int, *, now: datetime) -> bool:
    """End an act none of whose entries is pending. Whether it ended here; of two workers at once one does it."""
    if BulkEntry.objects.filter(act=act_id, outcome__isnull=True).exists():
        return False
    with transaction.atomic():
        if not BulkAct.objects.filter(pk=act_id, ended_at__isnull=True).update(ended_at=now):
            return False
        act = BulkAct.objects.get(pk=act_id)
        found = progress(act)
        after = {outcome.value: number for outcome, number in found.by_outcome.items()}
        audit.record("bulk.ended", now=now, actor=None, subject=act, reason=act.reason, after=after)
    return True


def _under_way() -> QuerySet[BulkAct]:
    seconded = ~Q(kind=BulkKind.REJECT) | Q(seconded_at__isnull=False)
    return BulkAct.objects.filter(seconded, confirmed_at__isnull=False, ended_at__isnull=True)


def _begin(act_id: int, clock: Clock) -> BulkAct | None:
    """The act, marked as being worked at; None if it is over, or not to begin."""
    now = clock.now()
    acts = _under_way().filter(pk=act_id)
    if not acts.update(worked_at=now, begun_at=Coalesce(F("begun_at"), Value(now))):
        return None
    return acts.first()


def _is_stopped(act_id: int) -> bool:
    return BulkAct.objects.filter(pk=act_id, stopped_at__isnull=False).exists()


def _take_turn(act: BulkAct, entry_id: int, clock: Clock) -> int:
    """One entry's whole transaction. 0 where another worker has it or had it."""
    try:
        with transaction.atomic():
            entry = _lock(entry_id)
            if entry is None:
                return 0
            # Read anew: a right that was taken away meanwhile is gone for the rest of the act.
            person = get_user_model().objects.get(pk=act.by_id)
            _write(entry, carry_out(Turn(act, entry, person, clock)), clock)
            return 1
    except NotPermitted:
        return _write_apart(entry_id, BulkOutcome.NO_RIGHT, "", clock)
    except CallerError as mistake:
        return _write_apart(entry_id, BulkOutcome.FAILED, str(mistake), clock)
    except DatabaseError as fault:
        if not connection.is_usable():
            # A fresh message finds the entry pending.
            raise
        logger.exception("bulk act %d: entry %d failed", act.pk, entry_id)
        return _write_apart(entry_id, BulkOutcome.FAILED, type(fault).__name__, clock)
    except Exception as fault:
        # A receiver of somebody else's raised: this job stays as it was, and the others go on.
        logger.exception("bulk act %d: entry %d failed", act.pk, entry_id)
        return _write_apart(entry_id, BulkOutcome.FAILED, type(fault).__name__, clock)


def _lock(entry_id: int) -> BulkEntry | None:
    rows = BulkEntry.objects.select_for_update(skip_locked=True).filter(pk=entry_id, outcome__isnull=True)
    return rows.first()


def _write_apart(entry_id: int, outcome: BulkOutcome, fault: str, clock: Clock) -> int:
    """After its own transaction was rolled back."""
    with transaction.atomic():
        entry = _lock(entry_id)
        if entry is None:
            return 0
        _write(entry, outcome, clock, fault)
        return 1


def _write(entry: BulkEntry, outcome: BulkOutcome, clock: Clock, fault: str = "") -> None:
    entry.outcome, entry.fault, entry.at = outcome, fault[:MAX_FAULT], clock.now()
    entry.save(update_fields=["outcome", "fault", "at"])
