"""What people do to jobs: requeue, move the deadline, pull, refuse running results."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest, Least

from queue_core import audit, tally
from queue_core.clock import Clock, is_instant
from queue_core.contract.deaths import CLOSE_OF_JOBS, close_expired, end_attempts, end_dead
from queue_core.contract.items import Need, close_open_item, open_item, open_items
from queue_core.contract.locks import lock_job, lock_lane, read_clock
from queue_core.contract.order import urgency
from queue_core.contract.rules import is_running
from queue_core.errors import InvalidRequest
from queue_core.models import Assignment, Attempt, Decision, Evidence, Item, Job, Lane, Ticket
from queue_core.states import (
    HANDLED_DEATHS,
    ActOutcome,
    AssignmentToken,
    AttemptOutcome,
    DeadReason,
    ItemEnd,
    ItemKind,
    JobState,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

LARGEST_BUDGET = 1000


@transaction.atomic
@tally.kept()
def requeue(
    job_id: int,
    *,
    deadline: datetime,
    max_attempts: int | None = None,
    clock: Clock,
    person: "AbstractUser",
    reason: str,
) -> ActOutcome:
    """Give a DEAD job a new deadline and a new budget. Fence, attempt rows and evidence go on; its item closes.

    NOT_ALLOWED_IN_STATE unless the job died by deadline or attempts, its revision is still current, nobody decided it
    and its content was not erased. Raises InvalidRequest for a deadline that is not after now or a budget out of
    bounds.
    """
    if max_attempts is not None and not (type(max_attempts) is int and 1 <= max_attempts <= LARGEST_BUDGET):
        raise InvalidRequest(f"A budget is from 1 to {LARGEST_BUDGET} attempts.", field="max_attempts")
    locked = lock_job(job_id)
    now = read_clock(clock, InvalidRequest)
    if locked is None:
        return ActOutcome.MISSING
    ticket, job = locked
    check_deadline(deadline, now)
    is_decided = Decision.objects.filter(ticket=ticket, revision=job.revision).exists()
    is_erased = Evidence.objects.filter(pk=job.evidence_id, erased_at__isnull=False).exists()
    if not may_requeue(ticket, job, is_decided=is_decided, is_erased=is_erased):
        return ActOutcome.NOT_ALLOWED_IN_STATE
    before = {"state": job.state, "dead_reason": job.dead_reason, "deadline": job.deadline.isoformat()}
    lane = Lane.objects.get(pk=job.lane_id)
    tally.leaves(job, now=now)
    job.state = JobState.WAITING
    job.dead_reason = job.finished_at = job.available_at = None
    job.attempts = job.backoff_steps = 0
    job.max_attempts = max_attempts or lane.max_attempts
    job.requeues += 1
    job.queued_at, job.deadline = now, deadline
    job.urgency = urgency(lane, queued_at=now, deadline=deadline, severity=job.severity)
    job.save()
    tally.enters(job, now=now)
    tally.count(lane.pk, tally.REQUEUED, now=now)
    close_open_item(job, closed_as=ItemEnd.REQUEUED, now=now)
    after = {"state": job.state, "deadline": deadline.isoformat(), "max_attempts": job.max_attempts}
    audit.record(
        "job.requeued", now=now, actor=person, subject=job, lane=lane, reason=reason, before=before, after=after
    )
    return ActOutcome.DONE


@transaction.atomic
@tally.kept()
def move_deadline(job_id: int, *, deadline: datetime, clock: Clock, person: "AbstractUser", reason: str) -> ActOutcome:
    """Move the deadline of a WAITING job. Raises InvalidRequest for one that is not after now."""
    locked = lock_job(job_id)
    now = read_clock(clock, InvalidRequest)
    if locked is None:
        return ActOutcome.MISSING
    _ticket, job = locked
    # A clock that was set back may have queued it later than now.
    check_deadline(deadline, max(now, job.queued_at))
    if job.state != JobState.WAITING or now >= job.deadline:
        return ActOutcome.NOT_ALLOWED_IN_STATE
    lane = Lane.objects.get(pk=job.lane_id)
    before = {"deadline": job.deadline.isoformat()}
    tally.leaves(job, now=now)
    job.deadline = deadline
    tally.enters(job, now=now)
    job.urgency = urgency(lane, queued_at=job.queued_at, deadline=deadline, severity=job.severity)
    job.save(update_fields=["deadline", "urgency"])
    audit.record(
        "job.deadline_moved",
        now=now,
        actor=person,
        subject=job,
        lane=lane,
        reason=reason,
        before=before,
        after={"deadline": deadline.isoformat()},
    )
    return ActOutcome.DONE


@transaction.atomic
@tally.kept()
def pull(
    job_id: int, *, person: "AbstractUser", until: datetime | None = None, clock: Clock, reason: str
) -> tuple[ActOutcome, AssignmentToken | None]:
    """Take a WAITING job, or one whose lease is over, out of the machine's hands: DEAD, with an item for the person.

    Works on hold. Counts neither as a death to look after nor as an attempt. `until` is the assignment's end, by
    default the lane's time for one item. Raises InvalidRequest for an end that is not after now.
    """
    locked = lock_job(job_id)
    now = read_clock(clock, InvalidRequest)
    if locked is None:
        return ActOutcome.MISSING, None
    ticket, job = locked
    if not _may_pull(job, now):
        return ActOutcome.NOT_ALLOWED_IN_STATE, None
    lane = Lane.objects.get(pk=job.lane_id)
    until = now + lane.assignment_time if until is None else until
    if not is_instant(until) or until <= now:
        raise InvalidRequest("The assignment's end is not after now.", field="until")
    item = _pulled(ticket, job, lane, person, reason, now)
    return ActOutcome.DONE, assign(item, person, now=now, until=until)


@transaction.atomic
@tally.kept()
def pull_for_desk(job_id: int, *, person: "AbstractUser", clock: Clock, reason: str) -> ActOutcome:
    """As `pull`, with an item that nobody has: for whoever takes it."""
    locked = lock_job(job_id)
    now = read_clock(clock, InvalidRequest)
    if locked is None:
        return ActOutcome.MISSING
    ticket, job = locked
    if not _may_pull(job, now):
        return ActOutcome.NOT_ALLOWED_IN_STATE
    _pulled(ticket, job, Lane.objects.get(pk=job.lane_id), person, reason, now)
    return ActOutcome.DONE


def _may_pull(job: Job, now: datetime) -> bool:
    is_free = job.state == JobState.WAITING or (job.state == JobState.LEASED and not is_running(job, now=now))
    return is_free and now < job.deadline


def _pulled(ticket: Ticket, job: Job, lane: Lane, person: "AbstractUser", reason: str, now: datetime) -> Item:
    _take_out([job], now)
    item = open_item(ticket, job, kind=ItemKind.PULLED, cause="pulled", now=now)
    audit.record("job.pulled", now=now, actor=person, subject=job, lane=lane, reason=reason)
    return item


def take_out_urgent(urgent: Sequence[tuple[Ticket, Job]], *, now: datetime) -> None:
    """At intake, under the tickets' locks: tickets that never wait for a ramp go to people at once."""
    _take_out([job for _ticket, job in urgent], now)
    open_items(
        [
            Need(ticket, job, ItemKind.URGENT, "urgent", {"source_kind": str(ticket.source_kind)})
            for ticket, job in urgent
        ],
        now=now,
    )


def assign(item: Item, person: "AbstractUser", *, now: datetime, until: datetime) -> AssignmentToken:
    """Give an item, whose lock the caller holds, to a person, under a fence of its own."""
    item.fence += 1
    item.taken_by_id, item.taken_until = person.pk, until
    item.save(update_fields=["fence", "taken_by", "taken_until"])
    assignment = Assignment.objects.create(
        item=item, person_id=person.pk, fence=item.fence, key=uuid4(), taken_at=now, until=until
    )
    return AssignmentToken(item.pk, assignment.fence, assignment.key)


@transaction.atomic
@tally.kept()
def refuse_running(lane_id: int, *, clock: Clock) -> int:
    """Raise the fence of every running job of a lane, so that what its holders report is stale. Returns how many.

    Part of "hold and refuse running results". The attempts are given back: nobody knows what the model did with them,
    and it was a person who let them end.
    """
    lock_lane(lane_id)
    # All that are LEASED, whatever a lease's end said before this lock: a renewal may have moved it meanwhile.
    jobs = Job.objects.select_for_update(no_key=True).filter(lane_id=lane_id, state=JobState.LEASED).order_by("pk")
    leased = list(jobs)
    now = read_clock(clock, InvalidRequest)
    running = [job for job in leased if is_running(job, now=now)]
    pks = [job.pk for job in running]
    Attempt.objects.filter(job__in=pks, ended_at__isnull=True).update(is_charged=False)
    end_attempts(CLOSE_OF_JOBS, pks, AttemptOutcome.REFUSED_BY_HOLD, now=now)
    tally.leave_all(running, now=now)
    raise_fences(running, now=now)
    # A claim's own terms may have gone beyond the job's budget; what waits always has a try left.
    Job.objects.filter(pk__in=pks).update(
        state=JobState.WAITING, fence=F("fence") + 1, attempts=Least("attempts", "max_attempts") - 1
    )
    for job in running:
        job.state, job.attempts = JobState.WAITING, min(job.attempts, job.max_attempts) - 1
    tally.enter_all(running, now=now)
    return len(running)


def raise_fences(jobs: Sequence[Job], *, now: datetime, outcome: AttemptOutcome = AttemptOutcome.FENCE_RAISED) -> None:
    """Raise, not save, locked jobs' fences without a claim. Closed, uncharged attempt rows mark it in the ledger."""
    for job in jobs:
        job.fence += 1
    Attempt.objects.bulk_create([_mark_of_raised_fence(job, outcome, now) for job in jobs])


def _mark_of_raised_fence(job: Job, outcome: AttemptOutcome, now: datetime) -> Attempt:
    return Attempt(
        job=job,
        lane_id=job.lane_id,
        fence=job.fence,
        key=uuid4(),
        worker="",
        number=job.attempts,
        is_charged=False,
        started_at=now,
        lease_until=now,
        ended_at=now,
        outcome=outcome,
    )


@transaction.atomic
@tally.kept()
def give_back_attempts(attempt_ids: Iterable[int]) -> int:
    """Give back the budget of ended, charged attempts whose jobs still wait; each once. Returns how many.

    The caller holds the lane's lock. Used for the trailing timeouts of a run that ended by automatic hold.
    """
    charged = Attempt.objects.filter(pk__in=list(attempt_ids), is_charged=True, ended_at__isnull=False)
    jobs = (
        Job.objects.select_for_update(no_key=True)
        .filter(pk__in=set(charged.values_list("job_id", flat=True)), state__in=[JobState.WAITING, JobState.LEASED])
        .order_by("pk")
        .in_bulk()
    )
    # Read again under the jobs' locks. A requeue since then began a new budget, to which it was never charged.
    given = [
        (attempt.pk, attempt.job_id, attempt.ended_at)
        for attempt in charged.filter(job__in=list(jobs))
        if attempt.started_at >= jobs[attempt.job_id].queued_at
    ]
    Attempt.objects.filter(pk__in=[attempt_id for attempt_id, _job, _end in given]).update(is_charged=False)
    per_job = Counter(job_id for _attempt, job_id, _end in given)
    _tally_given_back(jobs, per_job, [end for _attempt, _job, end in given if end is not None])
    for number in sorted(set(per_job.values())):
        pks = [job_id for job_id, count in per_job.items() if count == number]
        Job.objects.filter(pk__in=pks).update(attempts=Greatest(F("attempts") - number, 0))
    return len(given)


def _tally_given_back(jobs: dict[int, Job], per_job: Counter[int], ends: Sequence[datetime]) -> None:
    """Only what waits changes its standing, and nothing that is counted by the minute: any time will do."""
    for job_id, number in per_job.items():
        job = jobs[job_id]
        if job.state == JobState.WAITING:
            tally.leaves(job, now=max(ends))
            job.attempts = max(job.attempts - number, 0)
            tally.enters(job, now=max(ends))


def _take_out(jobs: Sequence[Job], now: datetime) -> None:
    close_expired(jobs, now=now)
    raise_fences(jobs, now=now)
    for job in jobs:
        end_dead(job, DeadReason.PULLED, now=now)
    Job.objects.filter(pk__in=[job.pk for job in jobs]).update(
        state=JobState.DEAD,
        dead_reason=DeadReason.PULLED,
        finished_at=now,
        available_at=None,
        fence=F("fence") + 1,
    )


def may_requeue(ticket: Ticket, job: Job, *, is_decided: bool, is_erased: bool) -> bool:
    """Whether a locked job died so that it may live again.

    `is_decided`: its revision has a decision. `is_erased`: nothing is left that a model could look at.
    """
    return (
        job.state == JobState.DEAD
        and job.dead_reason in HANDLED_DEATHS
        and ticket.current_revision == job.revision
        and ticket.withdrawn_at is None
        and not is_decided
        and not is_erased
    )


def check_deadline(deadline: datetime, now: datetime) -> None:
    if not is_instant(deadline) or deadline <= now:
        raise InvalidRequest("The new deadline is not after now.", field="deadline")
