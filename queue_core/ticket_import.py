"""A file of tickets into the queue, in batches, with an account of every line.

Each batch is one transaction, so that a run that was killed is put right by running it again: what went in is known.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from django.utils.translation import gettext as _

from queue_core import wakeups
from queue_core.clock import Clock
from queue_core.contract import NewTicket, Received, receive_many, supersede
from queue_core.errors import InvalidJob, RevisionConflict
from queue_core.models import Lane, Ticket
from queue_core.states import AddOutcome
from queue_core.ticket_fields import TicketRecord
from queue_core.ticket_file import Line
from queue_core.ticket_refused import Refusal

BATCH_LINES = 500
#: A batch is also full when it holds so many bytes: 500 lines may be half a gigabyte.
BATCH_BYTES = 4 * 1024 * 1024
REFUSED = "refused"

#: The lane of a name, or InvalidJob that says why there is none.
type FindLane = Callable[[str], Lane]
type Answer = AddOutcome | InvalidJob | RevisionConflict


@dataclass(frozen=True, slots=True)
class Entry:
    """A line that holds a ticket."""

    line: int
    ticket: NewTicket
    replaces: str | None


class Parse(Protocol):
    """A line's record, its relative times counted from `now`. Raises InvalidJob."""

    def __call__(self, line: Line, *, now: datetime) -> TicketRecord: ...


class Intake(Protocol):
    """What is done with the tickets of a batch: they are received, or it is only foretold what receiving would do."""

    def take(self, entries: Sequence[Entry]) -> dict[int, Answer]:
        """An answer for each entry, by its line."""


@dataclass(slots=True)
class Account:
    """How many lines ended how. Every line that is not blank is in exactly one of the figures."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys([*AddOutcome, REFUSED], 0))

    @property
    def left_out(self) -> int:
        return self.counts[REFUSED] + self.counts[AddOutcome.REVISION_CONFLICT]

    @property
    def lines(self) -> int:
        return sum(self.counts.values())

    def add(self, outcome: str) -> None:
        self.counts[outcome] += 1


@dataclass(frozen=True, slots=True)
class Importer:
    """How lines are read, where they go, and whom to tell of those that do not."""

    parse: Parse
    find_lane: FindLane
    intake: Intake
    default_source: str
    clock: Clock
    refuse: Callable[[Refusal], None]
    account: Account = field(default_factory=Account)

    def take(self, lines: Iterable[Line]) -> Iterator[int]:
        """Take in all lines. Yields the line number reached after each batch, for whoever shows progress."""
        for batch in batches(lines):
            self.take_batch(batch)
            yield batch[-1].number

    def take_batch(self, batch: Sequence[Line]) -> None:
        """Take in one batch. In a transaction of the caller's it is whole or not at all, with what the caller adds."""
        # Relative times count from the batch's own moment: a long import must not date its last lines back.
        now = self.clock.now()
        entries: list[Entry] = []
        answers: dict[int, Answer] = {}
        for line in batch:
            try:
                record = self.parse(line, now=now)
                ticket = record.for_lane(self.find_lane(record.lane), default_source=self.default_source)
            except InvalidJob as fault:
                answers[line.number] = fault
            else:
                entries.append(Entry(line.number, ticket, record.replaces))
        answers |= self.intake.take(entries)
        for line in batch:
            self._note(line, answers[line.number])

    def _note(self, line: Line, answer: Answer) -> None:
        match answer:
            case InvalidJob():
                self.account.add(REFUSED)
                self.refuse(Refusal(line.number, answer.field, str(answer), REFUSED, line.raw))
            case RevisionConflict():
                self._note_conflict(line, answer.current)
            case AddOutcome():
                self.account.add(answer)

    def _note_conflict(self, line: Line, current: str) -> None:
        self.account.add(AddOutcome.REVISION_CONFLICT)
        reason = _("Revision “%(current)s” is the current one. To replace it, name it in the field replaces.")
        if not current:
            reason = _("There is no such ticket whose revision could be replaced.")
        text = reason % {"current": current}
        self.refuse(Refusal(line.number, "revision", text, AddOutcome.REVISION_CONFLICT, line.raw))


@dataclass(frozen=True, slots=True)
class Receiving:
    """The intake that stores, by the contract's verbs, and wakes the lanes."""

    clock: Clock

    def take(self, entries: Sequence[Entry]) -> dict[int, Answer]:
        answers: dict[int, Answer] = {}
        for group in _in_order(entries):
            answers |= self._receive(group)
        for lane_id in {entry.ticket.lane.pk for entry in entries}:
            wakeups.wake(lane_id)
        return answers

    def _receive(self, group: Sequence[Entry]) -> dict[int, Answer]:
        first = group[0]
        if first.replaces is not None:
            return {first.line: self._supersede(first.ticket, first.replaces)}
        received = receive_many([entry.ticket for entry in group], clock=self.clock)
        return {entry.line: _answer(one) for entry, one in zip(group, received, strict=True)}

    def _supersede(self, ticket: NewTicket, replaces: str) -> Answer:
        try:
            return _answer(supersede(ticket, replaces=replaces, clock=self.clock))
        except (InvalidJob, RevisionConflict) as fault:
            return fault


@dataclass(frozen=True, slots=True)
class Within:
    """An intake for whoever reaches some lanes only.

    Ids are unique in their source, whatever the lane: a line may name a ticket that its sender may not see. It is left
    as it is, and nothing is told of it but that its id is taken. One question a batch.
    """

    intake: Intake
    #: Whether a lane, by its id, is the sender's.
    reaches: Callable[[int], bool]

    def take(self, entries: Sequence[Entry]) -> dict[int, Answer]:
        beyond = self._beyond(entries)
        refused: dict[int, Answer] = {
            entry.line: _out_of_reach(entry) for entry in entries if entry.ticket.name in beyond
        }
        return refused | self.intake.take([entry for entry in entries if entry.line not in refused])

    def _beyond(self, entries: Sequence[Entry]) -> set[tuple[str, str]]:
        names = [entry.ticket.name for entry in entries]
        found = Ticket.objects.filter(
            source__in={source for source, _id in names},
            external_id__in=[external_id for _source, external_id in names],
        )
        rows = found.values_list("source", "external_id", "lane_id")
        return {(source, external_id) for source, external_id, lane_id in rows if not self.reaches(lane_id)}


def _out_of_reach(entry: Entry) -> InvalidJob:
    if entry.replaces is not None:
        return InvalidJob(_("There is no such ticket whose revision could be replaced."), field="replaces")
    return InvalidJob(_("Another lane, which is not yours, has a ticket of this source and id."), field="ticket")


def _answer(received: Received | InvalidJob) -> Answer:
    if isinstance(received, InvalidJob):
        return received
    if received.outcome == AddOutcome.REVISION_CONFLICT:
        return RevisionConflict("Another revision is current.", current=received.current_revision)
    return received.outcome


def batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines in batches, each bounded in lines and in bytes. Reads no line ahead of the batch it gives."""
    batch: list[Line] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line.raw or b"")
        if len(batch) >= BATCH_LINES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _in_order(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Groups that may be received together. A line that names the same ticket again, or replaces, begins another.

    So each line is judged by what the lines before it left, and a bad first line takes no good one with it.
    """
    group: list[Entry] = []
    names: set[tuple[str, str]] = set()
    for entry in entries:
        if group and (entry.replaces is not None or entry.ticket.name in names or group[-1].replaces is not None):
            yield group
            group, names = [], set()
        group.append(entry)
        names.add(entry.ticket.name)
    if group:
        yield group
