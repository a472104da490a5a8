"""The contract's batch forms for workers: the same judgements (`contract.rules`), many rows a statement.

Together with `contract` the only writer of the contract fields. Held equal to the single verbs by the same traces.
"""

import json
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F

from queue_core import batch_sql, tally
from queue_core.clock import Clock
from queue_core.contract.claim import check_terms
from queue_core.contract.complete import (
    CLOSING_FIELDS,
    Completion,
    Ending,
    check_ending,
    close_attempt,
    complete,
    end_done,
    hold_back,
    identity_of,
    keep_late_answer,
    write_consequences,
)
from queue_core.contract.deaths import bury
from queue_core.contract.locks import lock_lane, read_clock
from queue_core.contract.release import release
from queue_core.contract.room import measure_room
from queue_core.contract.rules import CALL_MARGIN, PROBE, judge_claim, judge_completion
from queue_core.errors import InvalidClaim, InvalidCompletion
from queue_core.models import Attempt, Job, Lane, Outage, Ticket
from queue_core.states import AttemptOutcome, ClaimOutcome, CompleteOutcome, JobState, LeaseOutcome, LeaseToken

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 500
MOST_BURIED_AT_ONCE = 500
#: Ends after every deadline that a row can hold, and within the dates of PostgreSQL.
LONGEST_LEASE = timedelta(days=3_000_000)
MOST_SEVERE_FOR_THE_PROBE = 1

type EndOfToken = CompleteOutcome | LeaseOutcome


@dataclass(frozen=True, slots=True)
class Claimed:
    """One granted claim with what a worker needs to call the model."""

    token: LeaseToken
    lease_until: datetime
    deadline: datetime
    source: str
    external_id: str
    severity: int
    number: int
    max_attempts: int
    evidence: str
    is_restricted: bool
    policy: int | None
    run: int | None

    @property
    def is_last_attempt(self) -> bool:
        return self.number >= self.max_attempts


@dataclass(frozen=True, slots=True)
class Batch:
    """Claims, or none and why. No claims and no refusal: nothing in the lane could be claimed."""

    claims: list[Claimed]
    refusal: ClaimOutcome | None = None
    buried: int = 0


@transaction.atomic
@tally.kept()
def claim_next(lane_id: int, limit: int, *, clock: Clock, worker: str) -> Batch:
    """Claim up to `limit` (at most 500) of a lane's WAITING jobs, most urgent first.

    Obeys hold, cap, rate and retry-after. Passes over jobs in back-off and jobs with too little time left for the
    lane's usual call. Passed deadlines turn DEAD as it goes, at most 500, and take no seat. While the probe runs, its
    own choice of tickets stands instead of urgency.
    """
    limit = _checked(limit)
    lane = lock_lane(lane_id)
    now = read_clock(clock, InvalidClaim)
    room = measure_room(lane, now=now)
    if room.refusal is not None:
        return Batch([], room.refusal)
    buried = bury(_ids(batch_sql.PICK_PASSED_DEADLINES, lane=lane_id, now=now, limit=MOST_BURIED_AT_ONCE), now=now)
    picked = _pick(lane, min(limit, room.grants), now)
    return Batch(_lease(lane, picked, worker, now), buried=len(buried))


@transaction.atomic
@tally.kept()
def claim_expired(lane_id: int, *, clock: Clock, worker: str) -> Batch:
    """Take over one job whose last lease is over. It is the caller's only work in its process until it ends.

    Nothing while the probe runs: each ticket is drawn for it at most once, and one that may have killed its worker is
    no harmless ticket.
    """
    lane = lock_lane(lane_id)
    now = read_clock(clock, InvalidClaim)
    room = measure_room(lane, now=now)
    if room.refusal is not None:
        return Batch([], room.refusal)
    if lane.run is not None and lane.run.number == PROBE:
        return Batch([])
    picked = _ids(batch_sql.PICK_EXPIRED, lane=lane_id, now=now, needs_until=now + usual_call(lane))
    return Batch(_lease(lane, picked, worker, now, taken_over=set(picked)))


@transaction.atomic
@tally.kept()
def claim_rows(
    job_ids: Sequence[int],
    *,
    clock: Clock,
    worker: str,
    lease: timedelta | None = None,
    max_attempts: int | None = None,
) -> dict[int, LeaseToken]:
    """The batch core by ids: what the traces are played through. As `contract.claim`, for the jobs of one lane.

    Returns the token of each job that could be claimed. Deaths are judged and written as in `claim_next`.
    """
    check_terms(lease, max_attempts)
    lane_id = Job.objects.filter(pk__in=job_ids).values_list("lane_id", flat=True).first()
    lane = lock_lane(lane_id) if lane_id is not None else None
    now = read_clock(clock, InvalidClaim)
    if lane is None:
        return {}
    bury(job_ids, now=now, max_attempts=max_attempts)
    jobs = Job.objects.select_for_update(no_key=True, skip_locked=True).filter(pk__in=job_ids, lane=lane).order_by("pk")
    free = [job for job in jobs if judge_claim(job, now=now, max_attempts=max_attempts) == ClaimOutcome.CLAIMED]
    grants = [job.pk for job in free[: measure_room(lane, now=now).grants]]
    taken_over = {job.pk for job in free if job.state == JobState.LEASED}
    rested = {job.pk for job in free if job.available_at is not None}
    claims = _lease(lane, grants, worker, now, lease, taken_over=taken_over, rested=rested)
    return {claim.token.job: claim.token for claim in claims}


def complete_many(endings: Sequence[tuple[LeaseToken, Ending]], *, clock: Clock, worker: str = "") -> list[EndOfToken]:
    """Hand in many results: an outcome per token, in order; the same rules as `contract.complete`.

    If anything raises in the batch (a receiver, a constraint, an unknown result), nothing of it is written; it runs
    again one token at a time, and only the guilty ones are given back, charged, as invalid answers.
    """
    if len(endings) > MOST_AT_ONCE:
        raise InvalidCompletion(f"At most {MOST_AT_ONCE} tokens at once.", field="tokens")
    try:
        return list(complete_together(endings, clock=clock, worker=worker))
    except Exception as fault:
        if _is_lost(fault):
            raise
        logger.exception("completing %d tokens together failed; completing them one by one", len(endings))
        return [_complete_alone(token, ending, clock, worker) for token, ending in endings]


def usual_call(lane: Lane) -> timedelta:
    """The least time a job must have left for the model: the lane's usual call, and room to write it down."""
    return max(lane.usual_call_time or timedelta(0), lane.least_call_time) + CALL_MARGIN


def _checked(limit: int) -> int:
    if not 1 <= limit <= MOST_AT_ONCE:
        raise InvalidClaim(f"A batch is from 1 to {MOST_AT_ONCE} claims.", field="limit")
    return limit


def _pick(lane: Lane, limit: int, now: datetime) -> list[int]:
    needs_until = now + usual_call(lane)
    if lane.run is None or lane.run.number != PROBE:
        return _ids(batch_sql.PICK_MOST_URGENT, lane=lane.pk, needs_until=needs_until, limit=limit)
    opened_at = (
        Outage.objects.filter(connection_id=lane.connection_id, closed_at__isnull=True)
        .values_list("opened_at", flat=True)
        .first()
    )
    for most_severe in (MOST_SEVERE_FOR_THE_PROBE, 3):
        picked = _ids(
            batch_sql.PICK_FOR_THE_PROBE,
            lane=lane.pk,
            needs_until=needs_until,
            limit=limit,
            most_severe=most_severe,
            outage_since=opened_at or lane.run.started_at,
        )
        # A lane that holds nothing harmless can be probed only with what it holds.
        if picked:
            return picked
    return []


def _lease(
    lane: Lane,
    job_ids: list[int],
    worker: str,
    now: datetime,
    lease: timedelta | None = None,
    *,
    taken_over: Collection[int] = (),
    rested: Collection[int] = (),
) -> list[Claimed]:
    """Lease locked and judged jobs. `taken_over` were LEASED before, `rested` in back-off; the rest were claimable."""
    if not job_ids:
        return []
    rows = _rows(
        batch_sql.LEASE,
        jobs=job_ids,
        now=now,
        lease=min(lease or lane.lease, LONGEST_LEASE),
        lane=lane.pk,
        worker=worker[:200],
        run=lane.run_id,
        policy=lane.policy_id,
        connection=lane.connection_id,
    )
    _tally(lane, rows, now, taken_over=taken_over, rested=rested)
    place = {job_id: number for number, job_id in enumerate(job_ids)}
    return [_claimed(row, lane) for row in sorted(rows, key=lambda row: place[row[0]])]


def _tally(
    lane: Lane, rows: list[tuple[Any, ...]], now: datetime, *, taken_over: Collection[int], rested: Collection[int]
) -> None:
    for job_id, *_token, deadline, severity, number, budget, _s, _t, _e, _r, queued_at, _closed in rows:
        tally.claimed(lane.pk, queued_at=queued_at, now=now)
        if job_id not in taken_over:
            rests, left = job_id in rested, budget - number + 1
            tally.leased(lane.pk, deadline=deadline, severity=severity, left=left, rested=rests, now=now)
    tally.ended(lane.pk, AttemptOutcome.LEASE_EXPIRED, now=now, number=rows[0][-1] if rows else 0)


def _claimed(row: tuple[Any, ...], lane: Lane) -> Claimed:
    job, fence, revision, attempt, key, lease_until, deadline, severity, number, budget, *ticket, _queued, _closed = row
    source, external_id, evidence, is_restricted = ticket
    return Claimed(
        token=LeaseToken(job, fence, revision, attempt, key if isinstance(key, UUID) else UUID(str(key))),
        lease_until=lease_until,
        deadline=deadline,
        source=source,
        external_id=external_id,
        severity=severity,
        number=number,
        max_attempts=budget,
        evidence=evidence,
        is_restricted=is_restricted,
        policy=lane.policy_id,
        run=lane.run_id,
    )


@transaction.atomic
@tally.kept()
def complete_together(
    endings: Sequence[tuple[LeaseToken, Ending]], *, clock: Clock, worker: str = ""
) -> list[CompleteOutcome]:
    """Hand in many results in one transaction: all are written, or an exception and none."""
    kept_back = hold_back({token.attempt for token, _ending in endings})
    jobs, tickets = _lock({token.job for token, _ending in endings})
    now = read_clock(clock, InvalidCompletion)
    attempts = _present_attempts(jobs)
    outcomes, good = [], []
    for token, ending in endings:
        job = jobs.get(token.job)
        if job is None:
            outcomes.append(CompleteOutcome.STALE)
            continue
        attempt = attempts.get(job.pk)
        judgement = judge_completion(job, identity_of(attempt), token, ending.result, now=now)
        outcomes.append(judgement.outcome)
        if judgement.outcome == CompleteOutcome.STALE:
            keep_late_answer(job, token, ending, judgement, worker=worker, now=now)
        elif judgement.outcome == CompleteOutcome.COMMITTED and attempt is not None:
            check_ending(ending)
            # Set on the row at once: a token handed in twice in one batch is judged against the first.
            end_done(job, ending.result, now=now)
            close_attempt(attempt, ending, now=now)
            good.append(Completion(tickets[job.ticket_id], job, attempt, ending, attempt.run_id in kept_back))
    _write(good, now)
    return outcomes


def _lock(job_ids: set[int]) -> tuple[dict[int, Job], dict[int, Ticket]]:
    """Tickets, then jobs, each by id: the order of all verbs. A job's ticket never changes, so it is read unlocked."""
    ticket_ids = set(Job.objects.filter(pk__in=job_ids).values_list("ticket_id", flat=True))
    tickets = Ticket.objects.select_for_update(no_key=True).filter(pk__in=ticket_ids).order_by("pk").in_bulk()
    jobs = Job.objects.select_for_update(no_key=True).filter(pk__in=job_ids).order_by("pk").in_bulk()
    return jobs, tickets


def _present_attempts(jobs: dict[int, Job]) -> dict[int, Attempt]:
    attempts = Attempt.objects.filter(job_id__in=list(jobs), fence=F("job__fence"))
    return {attempt.job_id: attempt for attempt in attempts}


def _write(good: list[Completion], now: datetime) -> None:
    if not good:
        return
    attempts = [c.attempt for c in good]
    columns = {name: [getattr(attempt, name) for attempt in attempts] for name in CLOSING_FIELDS}
    columns |= {name: [_json(value) for value in columns[name]] for name in ("scores", "usage")}
    with connection.cursor() as cursor:
        # The attempts first: the database refuses a result that no attempt of its fence has committed.
        cursor.execute(batch_sql.CLOSE_ATTEMPTS, columns | {"attempts": [a.pk for a in attempts], "ended_at": now})
        ids, results = [c.job.pk for c in good], [c.ending.result for c in good]
        cursor.execute(batch_sql.END_DONE, {"jobs": ids, "results": results, "now": now})
    write_consequences(good, now=now)


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _complete_alone(token: LeaseToken, ending: Ending, clock: Clock, worker: str) -> EndOfToken:
    try:
        return complete(token, ending, clock=clock, worker=worker)
    except Exception as fault:
        if _is_lost(fault):
            raise
        logger.exception("the completion of job %d, fence %d raised", token.job, token.fence)
        return release(
            token,
            outcome=AttemptOutcome.INVALID_ANSWER,
            clock=clock,
            worker=worker,
            detail=f"{type(fault).__name__}: {fault}",
        )


def _is_lost(fault: Exception) -> bool:
    """Whether the connection broke, so that what was committed is not known, and nothing can be done one by one.

    A statement that was cut, or a deadlock, leaves a connection that answers: some receiver may be to blame for it.
    """
    return isinstance(fault, InterfaceError | OperationalError) and not connection.is_usable()


def _ids(statement: str, **params: Any) -> list[int]:
    return [row[0] for row in _rows(statement, **params)]


def _rows(statement: str, **params: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
