"""A worker's turn at an uploaded file: batch after batch, each one transaction, until its time is over.

The run's row says where the next batch begins. It moves in the transaction that stores the batch, and only for the
worker that holds the run: one that was slow, stopped or taken for dead rolls back what it had in hand.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, BinaryIO

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.utils import translation
from django.utils.translation import gettext as _

from queue_core import wakeups
from queue_core.clock import Clock
from queue_core.errors import ConfigurationFault, InvalidJob
from queue_core.import_lanes import LaneFinder
from queue_core.imports.acts import RIGHT, end
from queue_core.imports.reading import format_of, opened
from queue_core.imports.refusing import keep_refused
from queue_core.models import ImportForeseen, ImportRun, Lane
from queue_core.models.imports import digest_of
from queue_core.rights import may
from queue_core.states import AddOutcome, ImportState
from queue_core.ticket_file import Line
from queue_core.ticket_foresight import Foreseeing, Foreseen, Name
from queue_core.ticket_formats import TicketFormat
from queue_core.ticket_import import REFUSED, Account, FindLane, Importer, Intake, Receiving, Within, batches
from queue_core.ticket_refused import Refusal

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

logger = logging.getLogger(__name__)

#: Seconds of one turn: a file stands in nobody's way for longer.
TURN = 5.0
#: After this long without a sign of life a run is another worker's.
HELD_FOR = timedelta(seconds=60)
#: Workers that took the run and moved nothing. After so many it is the file that kills them.
MOST_TAKES = 5
#: More refused lines than these are counted, and not kept: the file is not one of tickets.
MOST_REFUSALS = 100_000
#: A batch holds the tickets of many lines in their order, not in that of their keys: two may wait for each other.
TRIES = 3
#: PostgreSQL's deadlock_detected.
DEADLOCK = "40P01"
#: Counts of the lines that are.
LEFT_OUT = (REFUSED, AddOutcome.REVISION_CONFLICT.value)


class _Lost(Exception):
    """The run is stopped, or another worker's. What is at hand is rolled back."""


def work(run_id: int, *, task: str, clock: Clock, is_stopping: Callable[[], bool]) -> None:
    """Take one turn at a run, unless it has ended or somebody has it. Safe to call any number of times."""
    run = _take(run_id, task, clock)
    if run is None:
        return
    try:
        # Reasons are kept as they are told now: in the language of whoever sent the file, where the project knows it.
        with translation.override(getattr(run.by, "language", "") or settings.LANGUAGE_CODE):
            is_over = _go_on(run, task, clock, is_stopping)
    except _Lost:
        logger.info("import %d was stopped, or went to another worker", run_id)
        return
    except ConfigurationFault as fault:
        _fail(run_id, task, str(fault), clock)
        return
    if not is_over:
        _held(run_id, task).update(held_until=clock.now(), held_by="")
        wakeups.wake_import(run_id)


@transaction.atomic
def _take(run_id: int, task: str, clock: Clock) -> ImportRun | None:
    run = ImportRun.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=run_id).first()
    now = clock.now()
    if run is None or not run.is_at_work or (run.held_until is not None and run.held_until > now):
        return None
    run.takes += 1
    if run.takes > MOST_TAKES:
        reason = _("%(count)d workers took the file and none got beyond line %(line)d.")
        end(run, ImportState.FAILED, now=now, fault=reason % {"count": MOST_TAKES, "line": max(run.line, 1)})
        return None
    run.held_by, run.held_until, run.taken_at = task, now + HELD_FOR, run.taken_at or now
    run.save(update_fields=["takes", "held_by", "held_until", "taken_at"])
    return ImportRun.objects.select_related("by", "lane").get(pk=run_id)


def _go_on(run: ImportRun, task: str, clock: Clock, is_stopping: Callable[[], bool]) -> bool:
    """Whether the file is at its end."""
    format_ = format_of(run)
    stream = opened(run, run.place)
    found = format_.lines_from(stream, first=run.line) if run.line else format_.lines(_after_header(stream, run))
    turn = _Turn(run, task, format_, clock)
    until = time.monotonic() + TURN
    for batch in batches(found):
        _take_in(turn, batch, place=stream.tell())
        if is_stopping() or time.monotonic() > until:
            return False
    turn.finish()
    return True


def _take_in(turn: "_Turn", batch: Sequence[Line], *, place: int) -> None:
    """One batch; again where it and somebody who has the same tickets in hand waited for each other."""
    for tries_left in reversed(range(TRIES)):
        try:
            turn.take(batch, place=place)
        except OperationalError as error:
            if not tries_left or getattr(error.__cause__, "sqlstate", None) != DEADLOCK:
                raise
        else:
            return


def _after_header(stream: BinaryIO, run: ImportRun) -> BinaryIO:
    """A file of CSV behind its header, NDJSON as it is."""
    for _line in range(run.header["next_line"] - 1 if run.header else 0):
        stream.readline()
    return stream


@dataclass(slots=True)
class _Turn:
    """One worker's batches of one run."""

    run: ImportRun
    task: str
    format: TicketFormat
    clock: Clock

    @transaction.atomic
    def take(self, batch: Sequence[Line], *, place: int) -> None:
        refused: list[Refusal] = []
        account = Account()
        importer = Importer(
            self.format.parse, _finder(self.run.by), self._intake(), self.run.source, self.clock, refused.append,
            account,
        )  # fmt: skip
        importer.take_batch(batch)
        counts = {name: self.run.counts.get(name, 0) + number for name, number in account.counts.items()}
        self._keep(refused)
        last = batch[-1]
        self._move(place=place, line=last.number + last.ends, counts=counts)
        self.run.counts = counts

    def _intake(self) -> Intake:
        intake: Intake = Receiving(self.clock)
        if self.run.state == ImportState.CHECKING:
            intake = Foreseeing(self.clock, RowMemory(self.run))
        if may(self.run.by, RIGHT):
            return intake
        # A ticket of a lane that is not the person's is not theirs to replace, nor to hear of.
        return Within(intake, lambda lane_id: may(self.run.by, RIGHT, lane_id))

    def _keep(self, refused: Sequence[Refusal]) -> None:
        room = MOST_REFUSALS - sum(self.run.counts.get(name, 0) for name in LEFT_OUT)
        keep_refused(self.run, self.format, refused[: max(room, 0)])

    def _move(self, **fields: Any) -> None:
        now = self.clock.now()
        moved = _held(self.run.pk, self.task).update(held_until=now + HELD_FOR, moved_at=now, takes=0, **fields)
        if not moved:
            raise _Lost

    @transaction.atomic
    def finish(self) -> None:
        run = _held(self.run.pk, self.task).select_for_update(no_key=True).first()
        if run is None:
            raise _Lost
        now = self.clock.now()
        if run.state == ImportState.IMPORTING:
            end(run, ImportState.DONE, now=now)
            return
        run.foreseen.all().delete()
        run.state, run.foretold, run.place = ImportState.CHECKED, run.counts, run.size
        run.moved_at, run.held_by, run.held_until = now, "", None
        run.save()


class RowMemory:
    """The memory of a run's dry run: rows, since its next batch may be another worker's. Names stand as digests."""

    def __init__(self, run: ImportRun) -> None:
        self._run = run

    def recall(self, names: Iterable[Name]) -> dict[Name, Foreseen]:
        by_digest = {digest_of(*name): name for name in names}
        rows = ImportForeseen.objects.filter(run=self._run, name__in=by_digest)
        return {by_digest[row.name]: Foreseen(row.current, row.revisions) for row in rows}

    def keep(self, foreseen: Mapping[Name, Foreseen]) -> None:
        rows = [
            ImportForeseen(run=self._run, name=digest_of(*name), current=one.current, revisions=one.revisions)
            for name, one in foreseen.items()
        ]
        ImportForeseen.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["run", "name"], update_fields=["current", "revisions"]
        )


def _finder(person: "AbstractUser") -> FindLane:
    """Lanes that the person may import into. To them the others do not exist."""
    lanes = LaneFinder()

    def find(name: str) -> Lane:
        lane = lanes(name)
        if not may(person, RIGHT, lane):
            raise InvalidJob(_("There is no such lane."), field="lane")
        return lane

    return find


def _held(run_id: int, task: str) -> QuerySet[ImportRun]:
    return ImportRun.objects.filter(pk=run_id, held_by=task, ended_at__isnull=True)


@transaction.atomic
def _fail(run_id: int, task: str, fault: str, clock: Clock) -> None:
    run = _held(run_id, task).select_for_update(no_key=True).first()
    if run is not None:
        end(run, ImportState.FAILED, now=clock.now(), fault=fault)
