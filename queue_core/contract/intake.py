"""Tickets in: receive, add, supersede, withdraw.

One path stores: `receive_many`. `add` is the oracle's verb on top of it; intake from outside calls `receive`, which
knows again what it accepted before, even when the deadline is over by then.
"""

import json
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from queue_core import prepared, tally
from queue_core.clock import Clock, is_instant
from queue_core.contract import intake_sql
from queue_core.contract.acts import take_out_urgent
from queue_core.contract.deaths import end_dead
from queue_core.contract.items import close_open_item
from queue_core.contract.locks import own_instant, read_clock
from queue_core.contract.storing import store_new, store_revision
from queue_core.errors import InvalidJob, RevisionConflict
from queue_core.models import Job, Lane, Ticket
from queue_core.models.tickets import MAX_ID, MAX_SOURCE
from queue_core.states import ActOutcome, AddOutcome, DeadReason, ItemEnd, JobState, SourceKind

type Name = tuple[str, str]

MOST_SEVERE = 3
#: What PostgreSQL's text cannot hold: NUL, and half of a surrogate pair.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class NewTicket:
    """One ticket to take in. What is None comes from its lane; `submitted_at` is when it began to wait at the source.

    `evidence` is any JSON value; it is stored as the text it is sealed as.
    """

    source: str
    external_id: str
    revision: str
    lane: Lane
    evidence: Any
    deadline: datetime | None = None
    submitted_at: datetime | None = None
    severity: int | None = None
    category: str = ""
    source_kind: str | None = None
    exposure: str | None = None
    deadline_kind: str | None = None
    is_restricted: bool = False

    @property
    def name(self) -> Name:
        return (self.source, self.external_id)


@dataclass(frozen=True, slots=True)
class Received:
    """What intake answered, with the job of the revision it was asked for (of the current one on a conflict)."""

    outcome: AddOutcome
    job: Job
    current_revision: str


def receive(ticket: NewTicket, *, clock: Clock) -> Received:
    """Take in one ticket, or know it again. Raises InvalidJob."""
    answer = receive_many([ticket], clock=clock)[0]
    if isinstance(answer, InvalidJob):
        raise answer
    return answer


def add(ticket: NewTicket, *, clock: Clock) -> Job:
    """The contract's add: the job of this revision, new or as it stands.

    Raises InvalidJob for an empty id or revision, a clock that is none, or a deadline that is not after now (even for
    a revision that is stored); RevisionConflict if the ticket has another current revision. Neither changes anything.
    """
    judged = name_fault(ticket) or judge(ticket, read_clock(clock, InvalidJob))
    if isinstance(judged, InvalidJob):
        raise judged
    answer = receive(ticket, clock=clock)
    if answer.outcome in (AddOutcome.REVISION_CONFLICT, AddOutcome.SUPERSEDED):
        raise RevisionConflict("revision conflict", current=answer.current_revision)
    return answer.job


@transaction.atomic
@tally.kept()
def receive_many(tickets: Sequence[NewTicket], *, clock: Clock) -> list[Received | InvalidJob]:
    """Take in tickets in order, an answer for each; one that is refused leaves the others alone.

    A revision that was accepted before is `known`, or `superseded` if it is no longer current. Only what is new is
    judged against the clock and stored.

    New names are inserted, in the order of names, before any row is locked, and all are locked afterwards, in the
    order of keys. Locked first, two calls could wait for each other: one for a name that the other had inserted, that
    one for a row that the first held.
    """
    unnamed = {place: fault for place, ticket in enumerate(tickets) if (fault := name_fault(ticket)) is not None}
    names = {ticket.name for place, ticket in enumerate(tickets) if place not in unnamed}
    now, stored_before = _look_up(names, clock)
    new, refused = _judge_new(tickets, set(unnamed), stored_before, now)
    # Where another call was first, its row counts, and its job once it has committed (PGQ-12).
    stored = store_new(list(new.values()), now)
    shelf = _Shelf(names - {(row.source, row.external_id) for row, _job in stored})
    shelf.take(stored, now)
    return [unnamed.get(place) or shelf.answer(ticket, refused.get(place)) for place, ticket in enumerate(tickets)]


def _look_up(names: Set[Name], clock: Clock) -> tuple[datetime, set[Name]]:
    """The time of an intake, and which of these names are stored."""
    named = list(names)
    values = {
        "sources": [source for source, _id in named],
        "ids": [external_id for _source, external_id in named],
        "now": own_instant(clock, InvalidJob),
    }
    now, places = prepared.run(intake_sql.KNOWN, values).fetchall()[0]
    return now, {named[place - 1] for place in places}


def _judge_new(
    tickets: Sequence[NewTicket], skipped: set[int], stored: set[Name], now: datetime
) -> tuple[dict[Name, "Sealed"], dict[int, InvalidJob]]:
    """The first good ticket of each new name, and by their places those before it that are refused."""
    new: dict[Name, Sealed] = {}
    refused: dict[int, InvalidJob] = {}
    for place, ticket in enumerate(tickets):
        if place in skipped or ticket.name in stored or ticket.name in new:
            continue
        sealed = judge(ticket, now)
        if isinstance(sealed, InvalidJob):
            refused[place] = sealed
        else:
            new[ticket.name] = sealed
    return new, refused


@transaction.atomic
@tally.kept()
def supersede(ticket: NewTicket, *, replaces: str, clock: Clock) -> Received:
    """Take in a newer revision in place of the one it names.

    Raises RevisionConflict, and changes nothing, unless `replaces` is the current revision. An open job of the old
    revision ends DEAD and is nobody's work; what was decided stays with its revision; an open item closes.
    """
    fault = name_fault(ticket)
    if fault is not None:
        raise fault
    shelf = _Shelf({ticket.name})
    now = read_clock(clock, InvalidJob)
    row = shelf.tickets.get(ticket.name)
    if row is None:
        raise RevisionConflict("There is no such ticket to supersede.", current="")
    known = shelf.known(ticket)
    if known is not None:
        return known
    if row.current_revision != replaces:
        raise RevisionConflict("Another revision is current.", current=row.current_revision)
    sealed = judge(ticket, now)
    if isinstance(sealed, InvalidJob):
        raise sealed
    _end_open_jobs(row, DeadReason.SUPERSEDED, ItemEnd.SUPERSEDED, now)
    _take_over(row, ticket)
    shelf.take([(row, store_revision(row, sealed, now))], now)
    return Received(AddOutcome.STORED, shelf.jobs[row.pk, ticket.revision], row.current_revision)


@transaction.atomic
@tally.kept()
def withdraw(*, source: str, external_id: str, clock: Clock) -> ActOutcome:
    """The content is gone at the source: an open job ends DEAD, an open item closes, nothing is decided."""
    row = _lock_tickets({(source, external_id)}).get((source, external_id))
    now = read_clock(clock, InvalidJob)
    if row is None:
        return ActOutcome.MISSING
    _end_open_jobs(row, DeadReason.WITHDRAWN, ItemEnd.WITHDRAWN, now)
    if row.withdrawn_at is None:
        row.withdrawn_at = now
        row.save(update_fields=["withdrawn_at"])
    return ActOutcome.DONE


@dataclass(frozen=True, slots=True)
class Sealed:
    """A ticket that was judged good, with its evidence as the text that is stored."""

    ticket: NewTicket
    body: str


class _Shelf:
    """The tickets of one call under their locks, with the jobs they have. Holds no rule but how rows are found."""

    def __init__(self, names: set[Name]) -> None:
        self.tickets = _lock_tickets(names)
        self.jobs: dict[tuple[int, str], Job] = {}
        self._stored: set[tuple[int, str]] = set()
        for job in Job.objects.filter(ticket__in=[row.pk for row in self.tickets.values()]).order_by("round"):
            self.jobs[job.ticket_id, job.revision] = job

    def known(self, ticket: NewTicket) -> Received | None:
        row = self.tickets.get(ticket.name)
        job = self.jobs.get((row.pk, ticket.revision)) if row else None
        if row is None or job is None:
            return None
        is_current = row.current_revision == ticket.revision
        return Received(AddOutcome.KNOWN if is_current else AddOutcome.SUPERSEDED, job, row.current_revision)

    def answer(self, ticket: NewTicket, refusal: InvalidJob | None) -> Received | InvalidJob:
        """`refusal` stands unless another call stored the ticket meanwhile: what is known is not judged."""
        if refusal is not None and not self._had(ticket.name):
            return refusal
        row = self.tickets[ticket.name]
        if (row.pk, ticket.revision) in self._stored:
            self._stored.discard((row.pk, ticket.revision))
            return Received(AddOutcome.STORED, self.jobs[row.pk, ticket.revision], row.current_revision)
        current = self.jobs[row.pk, row.current_revision]
        return self.known(ticket) or Received(AddOutcome.REVISION_CONFLICT, current, row.current_revision)

    def _had(self, name: Name) -> bool:
        row = self.tickets.get(name)
        return row is not None and (row.pk, row.current_revision) not in self._stored

    def take(self, stored: Sequence[tuple[Ticket, Job]], now: datetime) -> None:
        """What this very call stored. People have the urgent of it at once."""
        for row, job in stored:
            self.tickets[row.source, row.external_id] = row
            self.jobs[row.pk, job.revision] = job
            self._stored.add((row.pk, job.revision))
        urgent = [(row, job) for row, job in stored if is_urgent(row, row.lane)]
        if urgent:
            take_out_urgent(urgent, now=now)


def is_urgent(ticket: Ticket, lane: Lane) -> bool:
    """Whether people have the ticket at intake: danger to life, children or terror, or an authority's order."""
    if lane.model_sees_urgent_first:
        return False
    return ticket.severity >= MOST_SEVERE or ticket.source_kind == SourceKind.AUTHORITY_ORDER


def _named(names: set[Name]) -> QuerySet[Ticket]:
    wanted = Q(pk__in=[])
    for source in {source for source, _id in names}:
        wanted |= Q(source=source, external_id__in=[external for name, external in names if name == source])
    return Ticket.objects.filter(wanted)


def _lock_tickets(names: set[Name]) -> dict[Name, Ticket]:
    rows = _named(names).select_for_update(no_key=True).order_by("pk")
    return {(row.source, row.external_id): row for row in rows}


def judge(ticket: NewTicket, now: datetime) -> Sealed | InvalidJob:
    """What is new is sealed if it can be stored. Its names are good (`name_fault`)."""
    if ticket.deadline is not None and not (is_instant(ticket.deadline) and ticket.deadline > now):
        return InvalidJob("The deadline is not after now.", field="deadline")
    if ticket.submitted_at is not None and not is_instant(ticket.submitted_at):
        return InvalidJob("The time of submission is not an instant from 1970 on.", field="submitted_at")
    try:
        body = json.dumps(ticket.evidence, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        body.encode()
    except (TypeError, ValueError) as error:
        return InvalidJob(f"The evidence is no JSON that can be stored: {type(error).__name__}.", field="evidence")
    return Sealed(ticket, body)


def name_fault(ticket: NewTicket) -> InvalidJob | None:
    """What is wrong with a ticket's source, id or revision, whatever the database holds; None if nothing is."""
    named = {"source": ticket.source, "ticket": ticket.external_id, "revision": ticket.revision}
    for name, value in named.items():
        limit = MAX_SOURCE if name == "source" else MAX_ID
        if not value:
            return InvalidJob(f"The {name} is empty.", field=name)
        if len(value) > limit:
            return InvalidJob(f"The {name} is longer than {limit} characters.", field=name)
        if UNSTORABLE.search(value):
            return InvalidJob(f"The {name} holds a character that cannot be stored.", field=name)
    return None


def _take_over(row: Ticket, ticket: NewTicket) -> None:
    """Make a newer revision the current one. What it says of the ticket replaces what was said before."""
    row.current_revision = ticket.revision
    row.lane = ticket.lane
    row.withdrawn_at = None
    if ticket.severity is not None:
        row.severity = ticket.severity
    row.category = ticket.category or row.category
    row.source_kind = ticket.source_kind or row.source_kind
    row.exposure = ticket.exposure or row.exposure
    row.deadline_kind = ticket.deadline_kind or row.deadline_kind
    row.save()


def _end_open_jobs(row: Ticket, reason: DeadReason, closed_as: ItemEnd, now: datetime) -> None:
    """End the open jobs of a locked ticket. A token that is out becomes stale; its attempt keeps its seat meanwhile."""
    jobs = Job.objects.select_for_update(no_key=True).filter(ticket=row).order_by("pk")
    for job in jobs:
        if job.state in (JobState.WAITING, JobState.LEASED):
            end_dead(job, reason, now=now)
            job.save(update_fields=["state", "dead_reason", "finished_at", "available_at"])
        close_open_item(job, closed_as=closed_as, now=now)
