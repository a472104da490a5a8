"""Decisions of the model taken back: a link without a verdict on the chain, and the ticket looked at once more."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import Max

from queue_core import outbox, tally
from queue_core.clock import Clock
from queue_core.contract.intake import is_urgent
from queue_core.contract.items import Need, close_open_item, open_items
from queue_core.contract.locks import read_clock
from queue_core.contract.order import urgency
from queue_core.errors import InvalidRequest
from queue_core.models import Decision, Evidence, Item, Job, Lane, Message, Ticket
from queue_core.states import (
    Automation,
    DeadlineKind,
    DecisionWhy,
    ItemEnd,
    ItemKind,
    MessageKind,
    RecallOutcome,
    RecallTo,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: Of messages, those that somebody may have seen. The others are withdrawn when it returns.
type Withdraw = Callable[[Collection[int]], Collection[int]]


@dataclass(frozen=True, slots=True)
class RecallTerms:
    """Who recalls and why, and what becomes of the tickets. `deadline_after` is the new round's, from its start on."""

    lane: Lane
    person: "AbstractUser"
    reason: str
    to: RecallTo
    deadline_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """What became of one decision, and the job that now asks for its ticket; None where nobody has to look again."""

    outcome: RecallOutcome
    job: Job | None = None


@dataclass(slots=True)
class _Taken:
    """One decision in force with its rows locked."""

    decision: Decision
    ticket: Ticket
    job: Job

    @property
    def is_current(self) -> bool:
        return self.ticket.current_revision == self.decision.revision and self.ticket.withdrawn_at is None


@tally.kept()
def recall_decisions(
    decision_ids: Collection[int], terms: RecallTerms, *, withdraw: Withdraw, clock: Clock
) -> dict[int, Recalled]:
    """Take back decisions of one lane, all in the caller's transaction. The caller holds the lane's lock.

    Each decision that is still in force gets a recall as the next link of its chain. A message that nobody has seen is
    withdrawn; where somebody may have, a `decision.recalled` follows it. A ticket whose revision is still current gets
    an item, or a new review round of the same revision: the machine decides at most once in each round. What may not
    wait for a model (severity 3, an authority's order, a hard deadline that is over), or was erased so that none has
    anything to look at, gets an item in either case.
    PASSED_OVER for a decision that was replaced meanwhile.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("Decisions are recalled in the caller's transaction.")
    rows = list(Decision.objects.filter(pk__in=decision_ids, lane=terms.lane, verdict__isnull=False).order_by("pk"))
    tickets = _locked_tickets(rows)
    jobs = Job.objects.select_for_update(no_key=True).filter(pk__in={row.job_id for row in rows}).order_by("pk")
    jobs_by_id = jobs.in_bulk()
    now = read_clock(clock, InvalidRequest)
    replaced = set(Decision.objects.filter(replaces__in=rows).values_list("replaces_id", flat=True))
    taken = [_Taken(row, tickets[row.ticket_id], jobs_by_id[row.job_id]) for row in rows if row.pk not in replaced]
    announced = _take_back(taken, terms, withdraw, now)
    _close_blind_items(taken, now)
    work = _reopen([one for one in taken if one.is_current], terms, now)
    done = {pk: Recalled(RecallOutcome.PASSED_OVER) for pk in decision_ids}
    for one in taken:
        outcome = RecallOutcome.ANNOUNCED if one.decision.pk in announced else RecallOutcome.WITHDRAWN
        done[one.decision.pk] = Recalled(outcome, work.get(one.decision.pk))
    return done


def _locked_tickets(rows: Iterable[Decision]) -> dict[int, Ticket]:
    ids = {row.ticket_id for row in rows}
    return Ticket.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk").in_bulk()


def _take_back(taken: Sequence[_Taken], terms: RecallTerms, withdraw: Withdraw, now: datetime) -> set[int]:
    """Write the links and their messages; which decisions somebody may have read of."""
    messages = Message.objects.filter(decision__in=[one.decision.pk for one in taken], kind=MessageKind.DECISION)
    message_of = dict(messages.values_list("decision_id", "pk"))
    seen = set(withdraw(list(message_of.values())))
    links = Decision.objects.bulk_create([_link(one, terms, now) for one in taken])
    told = [(one, link) for one, link in zip(taken, links, strict=True) if message_of.get(one.decision.pk) in seen]
    outbox.record_many([_fact(one, link, terms) for one, link in told], now=now)
    return {one.decision.pk for one, _link_ in told}


def _link(one: _Taken, terms: RecallTerms, now: datetime) -> Decision:
    return Decision(
        ticket=one.ticket,
        revision=one.decision.revision,
        job=one.job,
        lane_id=one.decision.lane_id,
        verdict=None,
        why=DecisionWhy.RECALL,
        replaces=one.decision,
        person_id=terms.person.pk,
        note=terms.reason,
        source_kind=one.decision.source_kind,
        automation=Automation.NONE,
        policy_id=one.decision.policy_id,
        run_id=one.decision.run_id,
        decided_at=now,
    )


def _fact(one: _Taken, link: Decision, terms: RecallTerms) -> outbox.Fact:
    return outbox.Fact(
        kind=MessageKind.DECISION_RECALLED,
        ticket=one.ticket,
        lane=one.decision.lane_id,
        decision=link,
        body={
            "source": one.ticket.source,
            "ticket": one.ticket.external_id,
            "revision": one.decision.revision,
            "decision": one.decision.pk,
            "verdict": one.decision.verdict,
            "recalled_at": link.decided_at.isoformat(),
            "again": terms.to.value if one.is_current else None,
        },
    )


def _close_blind_items(taken: Iterable[_Taken], now: datetime) -> None:
    """A job has one open item at most, and a check of what is no longer in force checks nothing."""
    jobs = {one.job.pk: one.job for one in taken}
    with_item = Item.objects.filter(job__in=list(jobs), closed_at__isnull=True).order_by("job_id")
    for job_id in with_item.values_list("job_id", flat=True):
        close_open_item(jobs[job_id], closed_as=ItemEnd.RECALLED, now=now)


def _reopen(taken: Sequence[_Taken], terms: RecallTerms, now: datetime) -> dict[int, Job]:
    """The job through which each ticket is looked at again, by its decision."""
    evidence = Evidence.objects.filter(pk__in=[one.job.evidence_id for one in taken], erased_at__isnull=False)
    erased = set(evidence.values_list("pk", flat=True))
    reviewed = [one for one in taken if terms.to == RecallTo.REVIEW and one.job.evidence_id not in erased]
    to_model = [one for one in reviewed if _may_wait(one, terms.lane, now)]
    chosen = {one.decision.pk for one in to_model}
    to_people = [one for one in taken if one.decision.pk not in chosen]
    open_items([_need(one) for one in to_people], now=now)
    rounds = _last_rounds(to_model)
    jobs = Job.objects.bulk_create([_next_round(one, rounds, terms, now) for one in to_model])
    tally.enter_all(jobs, now=now)
    # No revision came in: one is back in the queue.
    tally.count(terms.lane.pk, tally.REQUEUED, now=now, number=len(jobs))
    work = {one.decision.pk: one.job for one in to_people}
    return work | {one.decision.pk: job for one, job in zip(to_model, jobs, strict=True)}


def _may_wait(one: _Taken, lane: Lane, now: datetime) -> bool:
    is_over = one.ticket.deadline_kind == DeadlineKind.HARD and one.job.deadline <= now
    return not is_over and not is_urgent(one.ticket, lane)


def _need(one: _Taken) -> Need:
    params = {"verdict": one.decision.verdict, "decision": one.decision.pk}
    return Need(one.ticket, one.job, ItemKind.RECALLED, "recalled", params)


def _last_rounds(taken: Sequence[_Taken]) -> dict[tuple[int, str], int]:
    jobs = Job.objects.filter(ticket__in=[one.ticket.pk for one in taken]).values_list("ticket_id", "revision")
    return {(ticket, revision): last for ticket, revision, last in jobs.annotate(last=Max("round"))}


def _next_round(one: _Taken, rounds: dict[tuple[int, str], int], terms: RecallTerms, now: datetime) -> Job:
    # A hard deadline is nobody's to move; the old time of a service deadline is mostly over by now.
    is_hard = one.ticket.deadline_kind == DeadlineKind.HARD or terms.deadline_after is None
    deadline = one.job.deadline if is_hard else now + (terms.deadline_after or timedelta(0))
    return Job(
        lane=terms.lane,
        ticket=one.ticket,
        evidence_id=one.job.evidence_id,
        revision=one.decision.revision,
        round=rounds[one.ticket.pk, one.decision.revision] + 1,
        severity=one.ticket.severity,
        added_at=now,
        queued_at=now,
        deadline=deadline,
        urgency=urgency(terms.lane, queued_at=now, deadline=deadline, severity=one.ticket.severity),
        max_attempts=terms.lane.max_attempts,
    )
