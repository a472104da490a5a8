"""Rows that are valid for their state, made through the verbs wherever a verb exists.

Times are seconds from T0, so that a test reads as a story: `receive(lane, at=0)`, `claim(job, at=10)`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from django.db import connection, transaction

from queue_core import contract
from queue_core.clock import FixedClock
from queue_core.contract import Ending, NewTicket
from queue_core.models import Hold, Job, Lane, ModelConnection, Policy, ReasonCode, StageRun
from queue_core.states import HoldReason, LeaseToken

T0 = datetime(2026, 1, 1, tzinfo=UTC)
#: So far ahead that guardrails count as judged at any time of a test.
JUDGED = T0 + timedelta(days=3650)

_numbers = count(1)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def clock(seconds: float) -> FixedClock:
    return FixedClock(at(seconds))


def make_connection(**fields: Any) -> ModelConnection:
    number = next(_numbers)
    return ModelConnection.objects.create(**({"name": f"model-{number}", "kind": "test"} | fields))


def make_lane(*, cap: int | None = 100, number: int = 2, run: dict[str, Any] | None = None, **fields: Any) -> Lane:
    """A lane that runs stage `number` with this cap; on hold with `cap=None`. Judged at all times."""
    lane_number = next(_numbers)
    defaults = {
        "name": f"lane-{lane_number}",
        "lease": timedelta(seconds=100),
        "max_attempts": 3,
        "least_call_time": timedelta(0),
    }
    if "connection" not in fields:
        defaults["connection"] = make_connection()
    lane = Lane.objects.create(**(defaults | fields))
    lane.policy = Policy.objects.create(lane=lane, version=1, rules={}, made_at=T0)
    if cap is None:
        lane.hold = Hold.objects.create(lane=lane, is_automatic=True, reason=HoldReason.NEW_LANE, started_at=T0)
    else:
        lane.run = make_run(lane, number=number, cap=cap, **(run or {}))
        lane.cap = cap
    lane.judged_at = JUDGED
    lane.save()
    return lane


def make_run(lane: Lane, *, number: int = 2, cap: int = 100, **fields: Any) -> StageRun:
    defaults = {
        "name": f"stage {number}",
        "soak_completions": 0,
        "soak_time": timedelta(0),
        "window": timedelta(minutes=5),
        "least_sample": 5,
        "max_error_ratio": 0.1,
        "max_timeout_ratio": 0.1,
        "max_stale_ratio": 0.1,
        "connection": lane.connection,
        "connection_snapshot": {},
        "lease": lane.lease,
        "policy": lane.policy,
        "reason": "for the test",
        "figures": {},
        "started_at": T0,
    }
    return StageRun.objects.create(lane=lane, number=number, cap=cap, **(defaults | fields))


def make_ground(code: str = "insult") -> ReasonCode:
    return ReasonCode.objects.get_or_create(code=code, defaults={"title": code})[0]


def new_ticket(
    lane: Lane, *, deadline: float | None = 1000, submitted: float | None = None, **fields: Any
) -> NewTicket:
    number = next(_numbers)
    defaults = {
        "source": "test",
        "external_id": f"t-{number}",
        "revision": "v1",
        "evidence": {"text": f"text {number}"},
    }
    return NewTicket(
        lane=lane,
        deadline=None if deadline is None else at(deadline),
        submitted_at=None if submitted is None else at(submitted),
        **(defaults | fields),
    )


def waiting_job(lane: Lane, *, added: float = 0, **fields: Any) -> Job:
    return contract.receive(new_ticket(lane, **fields), clock=clock(added)).job


def claim(job: Job, *, when: float, worker: str = "w1", **terms: Any) -> LeaseToken:
    """A token, or an assertion that says what the claim answered."""
    answer = contract.claim(job.pk, clock=clock(when), worker=worker, **terms)
    assert answer.token is not None, answer.outcome
    return answer.token


def leased_job(lane: Lane, *, added: float = 0, claimed: float = 1, **fields: Any) -> tuple[Job, LeaseToken]:
    job = waiting_job(lane, added=added, **fields)
    token = claim(job, when=claimed)
    job.refresh_from_db()
    return job, token


def done_job(lane: Lane, *, result: str = "APPROVED", completed: float = 2, **fields: Any) -> Job:
    job, token = leased_job(lane, **fields)
    ending = Ending(result=result, reason_code=make_ground().code if result == "REJECTED" else None, cause="grey_zone")
    assert contract.complete(token, ending, clock=clock(completed)) == "committed"
    job.refresh_from_db()
    return job


def dead_job(lane: Lane, *, deadline: float = 10, **fields: Any) -> Job:
    """DEAD by its deadline, with an item open."""
    job = waiting_job(lane, deadline=deadline, **fields)
    contract.sweep(clock=clock(deadline))
    job.refresh_from_db()
    assert job.state == "DEAD", job.state
    return job


@contextmanager
def made_once[T](blocker: Any, make: Callable[[], T]) -> Iterator[T]:
    """For a module's fixture: what is made stands in a transaction within which that of each test is a savepoint."""
    with blocker.unblock(), transaction.atomic():
        made = make()
        # Deferred foreign keys are looked at now, and not after a test has damaged what they point at.
        connection.check_constraints()
        yield made
        transaction.set_rollback(True)


@contextmanager
def without_guards() -> Iterator[None]:
    """What is written inside goes past the triggers: rows that no verb makes, or none at a time of a test's choice."""
    with transaction.atomic(), connection.cursor() as cursor:
        past_the_guards()
        yield
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


def past_the_guards() -> None:
    """From here on this transaction writes past the triggers: for tests of what a damaged row looks like."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
