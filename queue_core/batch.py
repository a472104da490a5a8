"""The contract's batch forms for workers: the same judgements (`contract.rules`), many rows a statement.

Together with `contract` the only writer of the contract fields. Held equal to the single verbs by the same traces.
"""

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, Protocol
from uuid import uuid4

from django.db import Error, InterfaceError, OperationalError, connection, transaction

from queue_core import batch_sql, prepared, tally
from queue_core.clock import Clock
from queue_core.contract import claim_sql
from queue_core.contract.claim import MAX_WORKER, check_terms, lease_rows
from queue_core.contract.complete import Ending, complete, complete_together
from queue_core.contract.deaths import bury
from queue_core.contract.locks import LockedLane, lock_lane, lock_lane_to_claim, own_instant, read_clock
from queue_core.contract.release import release
from queue_core.contract.room import measure_room, refusal_of
from queue_core.contract.rules import CALL_MARGIN, LONGEST_LEASE, PROBE, judge_claim
from queue_core.errors import InvalidClaim, InvalidCompletion
from queue_core.models import Job, Lane, Outage
from queue_core.prepared import Row
from queue_core.states import AttemptOutcome, ClaimOutcome, CompleteOutcome, JobState, LeaseOutcome, LeaseToken

__all__ = [
    "MOST_AT_ONCE",
    "Batch",
    "Claimed",
    "EndOfToken",
    "Trail",
    "claim_expired",
    "claim_most_urgent",
    "claim_next",
    "claim_rows",
    "complete_many",
    "complete_together",
    "usual_call",
]

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 500
MOST_BURIED_AT_ONCE = 500
MOST_SEVERE_FOR_THE_PROBE = 1
#: Before any urgency, and a date that PostgreSQL has.
EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
#: Seconds after which a trail begins at the head again.
BACK_TO_THE_HEAD = 1.0
#: Places in the rows of `claim_sql.CLAIM_MOST_URGENT`.
ATTEMPT, URGENCY, OLDEST, POLICY, RUN, HAS_PASSED = 3, 14, 15, 16, 17, 18

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


@dataclass(slots=True)
class Trail:
    """Where a worker's last claim in a lane left off, so that its next one begins there and not at the head.

    Entries that are done stay at the head of the lane's indexes as long as any old snapshot is open (a report, a
    backup, a forgotten psql), and a search from the head walks over all of them. What came to stand before the trail
    meanwhile waits until it goes back to the head, which it does each second.
    """

    since: datetime = EARLIEST
    oldest: int = 0
    head_at: float = field(default_factory=time.monotonic)

    def begin(self) -> datetime:
        """From where to search now."""
        if time.monotonic() - self.head_at >= BACK_TO_THE_HEAD:
            self.since, self.head_at = EARLIEST, time.monotonic()
        return self.since

    def follow(self, rows: Sequence[Row]) -> None:
        """Begin next time at the last of a claim's rows, and count from the oldest attempt that is open."""
        self.since = rows[-1][URGENCY]
        self.oldest = rows[0][OLDEST] or min(row[ATTEMPT] for row in rows)


def claim_next(lane_id: int, limit: int, *, clock: Clock, worker: str, trail: Trail | None = None) -> Batch:
    """Claim up to `limit` (at most 500) of a lane's WAITING jobs, most urgent first.

    Obeys hold, cap, rate and retry-after. Passes over jobs in back-off and jobs with too little time left for the
    lane's usual call. Passed deadlines turn DEAD as it goes, at most 500, and take no seat. While the probe runs, its
    own choice of tickets stands instead of urgency. With a `trail` the order is urgency as of the last second.
    """
    limit = _checked(limit)
    batch = claim_most_urgent(lane_id, limit, clock=clock, worker=worker, trail=trail)
    if batch.claims:
        return batch
    with transaction.atomic(), tally.kept():
        lane, now = lock_lane_to_claim(lane_id, clock)
        refusal = refusal_of(lane, now=now)
        return Batch([], refusal) if refusal is not None else _claim_in_steps(lane, limit, worker, now)


def claim_most_urgent(
    lane_id: int,
    limit: int,
    *,
    clock: Clock,
    worker: str,
    trail: Trail | None,
    statement: str | None = None,
) -> Batch:
    """A steady lane's claim, in a statement that is its own transaction. Nothing: the lane is empty, or not steady."""
    values = {
        "lane": lane_id,
        "limit": limit,
        "now": own_instant(clock, InvalidClaim),
        "lease": None,
        "since": trail.begin() if trail is not None else EARLIEST,
        "oldest": trail.oldest if trail is not None else 0,
        "worker": worker[:MAX_WORKER],
        "seed": uuid4().hex,
    }
    if statement is None:
        statement = claim_sql.CLAIM_MOST_URGENT_ONE if limit == 1 else claim_sql.CLAIM_MOST_URGENT
    rows = sorted(prepared.run_alone(statement, values).fetchall(), key=itemgetter(URGENCY, 0))
    if not rows:
        return Batch([])
    if trail is not None:
        trail.follow(rows)
    policy, run = rows[0][POLICY : RUN + 1]
    claims = [_claimed(row, policy, run) for row in rows]
    return Batch(claims, buried=_bury_beside(lane_id, clock) if rows[0][HAS_PASSED] else 0)


def _bury_beside(lane_id: int, clock: Clock) -> int:
    """Bury what stands at the head of the lane with a passed deadline. The claims that were given meanwhile stand.

    They must reach their caller: whatever fails here, the sweep buries too.
    """
    try:
        with transaction.atomic(), tally.kept():
            return _bury_passed(lane_id, read_clock(clock, InvalidClaim))
    except Error:
        logger.exception("passed deadlines of lane %d are left to the sweep", lane_id)
        return 0


def _claim_in_steps(locked: LockedLane, limit: int, worker: str, now: datetime) -> Batch:
    lane = lock_lane(locked.pk)
    room = measure_room(lane, now=now)
    if room.refusal is not None:
        return Batch([], room.refusal)
    buried = _bury_passed(locked.pk, now)
    picked = _pick(lane, min(limit, room.grants), now)
    return Batch(_lease(locked, picked, worker, now), buried=buried)


def _bury_passed(lane_id: int, now: datetime) -> int:
    passed = _ids(batch_sql.PICK_PASSED_DEADLINES, lane=lane_id, now=now, limit=MOST_BURIED_AT_ONCE)
    return len(bury(passed, now=now))


def claim_expired(lane_id: int, *, clock: Clock, worker: str) -> Batch:
    """Take over one job whose last lease is over. It is the caller's only work in its process until it ends.

    Nothing while the probe runs: each ticket is drawn for it at most once, and one that may have killed its worker is
    no harmless ticket.
    """
    with transaction.atomic(), tally.kept():
        locked, now = lock_lane_to_claim(lane_id, clock)
        lane = lock_lane(lane_id)
        room = measure_room(lane, now=now)
        if room.refusal is not None:
            return Batch([], room.refusal)
        if lane.run is not None and lane.run.number == PROBE:
            return Batch([])
        picked = _ids(batch_sql.PICK_EXPIRED, lane=lane_id, now=now, needs_until=now + usual_call(lane))
        return Batch(_lease(locked, picked, worker, now, taken_over=set(picked)))


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
    if lane_id is None:
        read_clock(clock, InvalidClaim)
        return {}
    with transaction.atomic(), tally.kept():
        lane, now = lock_lane_to_claim(lane_id, clock)
        bury(job_ids, now=now, max_attempts=max_attempts)
        jobs = Job.objects.select_for_update(no_key=True, skip_locked=True).filter(pk__in=job_ids, lane=lane_id)
        free = [
            job
            for job in jobs.order_by("pk")
            if judge_claim(job, now=now, max_attempts=max_attempts) == ClaimOutcome.CLAIMED
        ]
        grants = [job.pk for job in free[: measure_room(lock_lane(lane_id), now=now).grants]]
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


class Timed(Protocol):
    """The fields of a lane that say how long its calls take."""

    @property
    def usual_call_time(self) -> timedelta | None: ...
    @property
    def least_call_time(self) -> timedelta: ...


def usual_call(lane: Timed) -> timedelta:
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
    lane: LockedLane,
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
    rows = lease_rows(lane, job_ids, worker, now, min(lease or lane.lease, LONGEST_LEASE))
    _tally(lane.pk, rows, now, taken_over=taken_over, rested=rested)
    place = {job_id: number for number, job_id in enumerate(job_ids)}
    return [_claimed(row, lane.policy_id, lane.run_id) for row in sorted(rows, key=lambda row: place[row[0]])]


def _tally(
    lane: int, rows: Sequence[Row], now: datetime, *, taken_over: Collection[int], rested: Collection[int]
) -> None:
    for row in rows:
        job_id, deadline, severity, number, budget, queued_at = row[0], *row[6:10], row[14]
        tally.claimed(lane, queued_at=queued_at, now=now)
        if job_id not in taken_over:
            rests, left = job_id in rested, budget - number + 1
            tally.leased(lane, deadline=deadline, severity=severity, left=left, rested=rests, now=now)
    tally.ended(lane, AttemptOutcome.LEASE_EXPIRED, now=now, number=rows[0][-1] if rows else 0)


def _claimed(row: Row, policy: int | None, run: int | None) -> Claimed:
    """A row that begins as `claim_sql` says."""
    job, fence, revision, attempt, key, lease_until, deadline, severity, number, budget = row[:10]
    source, external_id, evidence, is_restricted = row[10:14]
    return Claimed(
        token=LeaseToken(job, fence, revision, attempt, key),
        lease_until=lease_until,
        deadline=deadline,
        source=source,
        external_id=external_id,
        severity=severity,
        number=number,
        max_attempts=budget,
        evidence=evidence,
        is_restricted=is_restricted,
        policy=policy,
        run=run,
    )


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
