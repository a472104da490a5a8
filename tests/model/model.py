"""The contract as plain Python: one lane's jobs as objects, time as an argument, no database and no code of ours.

Written from DESIGN.md and not from `contract`, so that a rule that is wrong in one of them shows as a difference.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

RATE_WINDOW = timedelta(seconds=60)
#: DESIGN.md, "Calling the model": outcome -> charged, rests, lengthens the back-off.
RELEASES = {
    "unavailable": (False, True, False),
    "overloaded": (False, True, False),
    "released": (False, False, False),
    "misconfigured": (False, False, False),
    "invalid_answer": (True, True, True),
    "timeout": (True, True, True),
}


@dataclass
class ModelAttempt:
    fence: int
    started: datetime
    until: datetime
    ended: datetime | None = None
    outcome: str | None = None
    charged: bool = True
    committed: bool = False

    def close(self, outcome: str, now: datetime, *, charged: bool = True) -> None:
        self.ended, self.outcome, self.charged = now, outcome, charged


@dataclass
class ModelJob:
    ticket: str
    revision: str
    severity: int
    queued: datetime
    deadline: datetime
    budget: int
    urgency: datetime
    state: str = "WAITING"
    available: datetime | None = None
    steps: int = 0
    attempts: int = 0
    fence: int = 0
    until: datetime | None = None
    result: str | None = None
    reason: str | None = None
    requeues: int = 0
    rows: list[ModelAttempt] = field(default_factory=list)
    decision: str | None = None
    item: str | None = None
    late: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def present(self) -> ModelAttempt | None:
        return next((row for row in self.rows if row.fence == self.fence), None)

    def holds(self, now: datetime) -> bool:
        return self.state == "LEASED" and self.until is not None and now < self.until

    def lapsed(self, now: datetime) -> bool:
        return self.state == "LEASED" and not self.holds(now)

    def edges(self) -> set[datetime]:
        found = {self.deadline} | ({self.available} if self.available else set())
        return found | ({self.until} if self.until else set()) | {row.until for row in self.rows if row.ended is None}

    def die(self, reason: str, *, item: str | None) -> None:
        self.state, self.reason, self.available = "DEAD", reason, None
        self.item = item

    def close_open(self, outcome: str, now: datetime, *, charged: bool = True) -> None:
        for row in self.rows:
            if row.ended is None:
                row.close(outcome, now, charged=charged)

    def raise_fence(self, now: datetime) -> None:
        self.fence += 1
        self.rows.append(ModelAttempt(self.fence, now, now, now, "fence_raised", charged=False))

    def bury(self, now: datetime, budget: int | None = None) -> bool:
        """Deadline before budget; only a lease that runs protects from either."""
        if self.state not in ("WAITING", "LEASED") or self.holds(now):
            return False
        late, spent = now >= self.deadline, self.attempts >= (self.budget if budget is None else budget)
        if not (late or spent):
            return False
        self.close_open("lease_expired", now)
        reason = "deadline" if late else "attempts"
        self.die(reason, item=f"dead:{reason}")
        return True


@dataclass
class ModelLane:
    """One lane under one run. `jobs` by number, which is the order of their keys."""

    cap: int
    rate: int | None
    lease: timedelta
    longest_hold: timedelta
    least_left: timedelta
    weight: float
    bonus: timedelta
    rest: timedelta
    longest_rest: timedelta
    budget: int
    jobs: dict[int, ModelJob] = field(default_factory=dict)
    current: dict[str, str] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)

    def urgency(self, queued: datetime, deadline: datetime, severity: int) -> datetime:
        return queued + self.weight * (deadline - queued) - severity * self.bonus

    def receive(self, number: int, ticket: str, revision: str, severity: int, now: datetime, left: timedelta) -> None:
        deadline = now + left
        self.jobs[number] = ModelJob(
            ticket, revision, severity, now, deadline, self.budget, self.urgency(now, deadline, severity)
        )
        self.current[ticket] = revision
        self.withdrawn.discard(ticket)

    # --- claims -----------------------------------------------------------------------------------------------------

    def room(self, now: datetime) -> tuple[int, str | None]:
        rows = [row for job in self.jobs.values() for row in job.rows]
        free = self.cap - sum(row.ended is None and row.until > now for row in rows)
        if free <= 0:
            return 0, "stage_full"
        if self.rate is None:
            return free, None
        grants = sum(now - RATE_WINDOW < row.started and row.outcome != "fence_raised" for row in rows)
        return (min(free, self.rate - grants), None) if grants < self.rate else (0, "rate_spent")

    def claim(self, number: int, now: datetime, lease: timedelta | None, budget: int | None) -> str:
        job = self.jobs[number]
        if job.state in ("DONE", "DEAD"):
            return job.state.lower()
        if job.holds(now):
            return "held"
        if job.bury(now, budget):
            return f"died_{job.reason}"
        free, refusal = self.room(now)
        if free <= 0:
            return str(refusal)
        self.grant(job, now, lease or self.lease)
        return "claimed"

    def grant(self, job: ModelJob, now: datetime, lease: timedelta) -> None:
        job.close_open("lease_expired", now)
        job.state, job.available = "LEASED", None
        job.attempts += 1
        job.fence += 1
        job.until = min(now + lease, job.deadline)
        job.rows.append(ModelAttempt(job.fence, now, job.until))

    def claim_next(self, limit: int, now: datetime) -> tuple[list[int], str | None]:
        free, refusal = self.room(now)
        if free <= 0:
            return [], refusal
        for job in self.jobs.values():
            if job.state == "WAITING" and now >= job.deadline:
                job.bury(now)
        ready = [n for n, j in self.jobs.items() if j.state == "WAITING" and not j.available and self.has_time(j, now)]
        picked = sorted(ready, key=lambda n: (self.jobs[n].urgency, n))[: min(limit, free)]
        for number in picked:
            self.grant(self.jobs[number], now, self.lease)
        return picked, None

    def claim_expired(self, now: datetime) -> tuple[set[int], str | None]:
        """Those whose turn it may be, all with the same end of lease; the caller says which one was granted."""
        free, refusal = self.room(now)
        if free <= 0:
            return set(), refusal
        over = [n for n, j in self.jobs.items() if j.lapsed(now) and self.has_time(j, now) and j.attempts < j.budget]
        first = min((self.end_of(n) for n in over), default=None)
        return {n for n in over if self.end_of(n) == first}, None

    def end_of(self, number: int) -> datetime:
        until = self.jobs[number].until
        assert until is not None
        return until

    def has_time(self, job: ModelJob, now: datetime) -> bool:
        return job.deadline > now + self.least_left

    # --- ends of attempts -------------------------------------------------------------------------------------------

    def judge(self, job: ModelJob, fence: int, now: datetime) -> str | None:
        """None if a token of this fence holds, else why it does not."""
        if job.state != "LEASED":
            return "not_leased"
        if fence != job.fence:
            return "fence"
        return None if job.holds(now) else "lease_over"

    def complete(self, number: int, fence: int, result: str, now: datetime) -> str:
        job = self.jobs[number]
        if job.state == "DONE" and (fence, result) == (job.fence, job.result):
            return "already-done"
        why = "done" if job.state == "DONE" else self.judge(job, fence, now)
        if why is not None:
            return self.stale(job, fence, result, why, now)
        row = job.present
        assert row is not None
        row.close("verdict", now)
        row.committed = True
        job.state, job.result = "DONE", result
        if result == "MANUAL":
            job.item = "manual:grey_zone"
        else:
            job.decision = result
        return "committed"

    def stale(self, job: ModelJob, fence: int, said: str, why: str, now: datetime) -> str:
        row = next((row for row in job.rows if row.fence == fence), None)
        if job.reason in ("superseded", "withdrawn") and row is not None and row.ended is None:
            row.close(job.reason, now)
        is_repeat = row is not None and row.outcome == said
        if said != "released" and not is_repeat:
            job.late.append((fence, why, said))
        return "stale"

    def release(self, number: int, fence: int, outcome: str, now: datetime) -> str:
        job = self.jobs[number]
        why = self.judge(job, fence, now)
        if why is not None:
            return self.stale(job, fence, outcome, why, now)
        charged, rests, lengthens = RELEASES[outcome]
        row = job.present
        assert row is not None
        row.close(outcome, now, charged=charged)
        job.attempts -= not charged
        rest = min(self.rest * 2**job.steps, self.longest_rest) if rests else None
        job.steps += lengthens
        if job.attempts >= job.budget:
            job.die("attempts", item="dead:attempts")
            return "died"
        job.state, job.available = "WAITING", now + rest if rest else None
        return "released"

    def renew(self, number: int, fence: int, lease: timedelta | None, now: datetime) -> str:
        job = self.jobs[number]
        if self.judge(job, fence, now) is not None:
            return "stale"
        row = job.present
        assert row is not None
        until = min(now + (lease or self.lease), job.deadline, row.started + self.longest_hold)
        job.until = row.until = max(until, row.until)
        return "renewed"

    # --- time and people --------------------------------------------------------------------------------------------

    def sweep(self, now: datetime) -> None:
        for job in self.jobs.values():
            for row in job.rows:
                if row.ended is None and row.until <= now:
                    row.close(job.reason if job.reason in ("superseded", "withdrawn") else "lease_expired", now)
            job.bury(now)

    def wake_due(self, now: datetime) -> None:
        for job in self.jobs.values():
            if job.state == "WAITING" and job.available is not None and job.available <= now:
                job.available = None

    def requeue(self, number: int, deadline: datetime, now: datetime) -> str:
        job = self.jobs[number]
        is_current = self.current[job.ticket] == job.revision and job.ticket not in self.withdrawn
        if job.reason not in ("deadline", "attempts") or not is_current:
            return "not_allowed_in_state"
        job.state, job.reason, job.item = "WAITING", None, None
        job.attempts, job.steps, job.budget = 0, 0, self.budget
        job.queued, job.deadline = now, deadline
        job.urgency = self.urgency(now, deadline, job.severity)
        job.requeues += 1
        return "done"

    def move_deadline(self, number: int, deadline: datetime, now: datetime) -> str:
        job = self.jobs[number]
        if job.state != "WAITING" or now >= job.deadline:
            return "not_allowed_in_state"
        job.deadline = deadline
        job.urgency = self.urgency(job.queued, deadline, job.severity)
        return "done"

    def pull(self, number: int, now: datetime) -> str:
        job = self.jobs[number]
        if not (job.state == "WAITING" or job.lapsed(now)) or now >= job.deadline:
            return "not_allowed_in_state"
        job.close_open("lease_expired", now)
        job.raise_fence(now)
        job.die("pulled", item="pulled:pulled")
        return "done"

    def end_ticket(self, ticket: str, reason: str) -> None:
        for job in self.jobs.values():
            if job.ticket == ticket:
                job.item = None
                if job.state in ("WAITING", "LEASED"):
                    job.die(reason, item=None)

    def withdraw(self, ticket: str) -> None:
        self.end_ticket(ticket, "withdrawn")
        self.withdrawn.add(ticket)

    def refuse_running(self, now: datetime) -> int:
        running = [job for job in self.jobs.values() if job.holds(now)]
        for job in running:
            job.close_open("refused_by_hold", now, charged=False)
            job.raise_fence(now)
            job.state, job.attempts = "WAITING", min(job.attempts, job.budget) - 1
        return len(running)
