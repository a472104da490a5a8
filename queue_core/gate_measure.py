"""The gate's figures, read from rows. Nothing here writes."""

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Min, QuerySet

from queue_core import gate_sql
from queue_core.batch import usual_call
from queue_core.contract import running_leases
from queue_core.gate_lines import Counts
from queue_core.models import Attempt, Item, Job, Lane, Message, StageRun
from queue_core.states import (
    ENDING_OUTCOMES,
    ERROR_OUTCOMES,
    NOT_OPEN_TICKETS,
    TIMEOUT_OUTCOMES,
    UNEXECUTED_OUTCOMES,
    JobState,
    MessageState,
    Result,
)

#: A call that ended so says something of the model. In DESIGN.md's words: the denominator of a gate's shares.
CALLS = [outcome.value for outcome in (*ENDING_OUTCOMES, *ERROR_OUTCOMES, *TIMEOUT_OUTCOMES)]
#: A refused connection takes a millisecond: it must not make a model look quick.
UNTIMED = [outcome.value for outcome in UNEXECUTED_OUTCOMES]
#: Counts beyond this are shown as "20,000+".
COUNT_LIMIT = 20_001
TIMES_LEFT = ("over", "under_15_min", "under_1_h", "under_4_h", "more")


@dataclass(frozen=True, slots=True)
class Load:
    """What a person weighs beside the gate's lines. Every count is capped at COUNT_LIMIT."""

    oldest_ready: datetime | None = None
    oldest_held: datetime | None = None
    waiting: int = 0
    by_time_left: dict[str, int] = field(default_factory=dict)
    by_attempts_left: dict[str, int] = field(default_factory=dict)
    by_severity: dict[str, int] = field(default_factory=dict)
    last_attempt: int = 0
    running: int = 0
    expired: int = 0
    claims: int = 0
    leases_expired: int = 0
    budgets_spent: int = 0
    results: dict[str, int] = field(default_factory=dict)
    people_waiting: int = 0
    people_oldest: datetime | None = None
    kept_back: int = 0

    def frozen(self) -> dict[str, Any]:
        return {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(self).items()
        }


def count_calls(run: StageRun, *, since: datetime, now: datetime) -> Counts:
    """The calls of a run that ended after `since`."""
    row = _row(
        gate_sql.COUNTS,
        lane=run.lane_id,
        run=run.pk,
        since=since,
        now=now,
        calls=CALLS,
        errors=[outcome.value for outcome in ERROR_OUTCOMES],
        timeouts=[outcome.value for outcome in TIMEOUT_OUTCOMES],
        untimed=UNTIMED,
        results=list(Result.values),
    )
    return Counts(*row)


def count_completions(run: StageRun, *, limit: int) -> int:
    """Results committed under a run, counted no further than `limit`."""
    committed = Attempt.objects.filter(lane_id=run.lane_id, started_at__gte=run.started_at, run=run, is_committed=True)
    return _capped(committed, limit)


def measure_load(lane: Lane, run: StageRun | None, *, now: datetime) -> Load:
    """`run` is the one that the figures are about: the running one, or on hold the one that was held."""
    people = Item.objects.filter(lane=lane, closed_at__isnull=True).exclude(kind__in=NOT_OPEN_TICKETS)
    return Load(
        **_oldest(lane, now),
        **_waiting(lane, now),
        **_claims(run),
        running=running_leases([lane.pk], now=now),
        expired=_capped(Job.objects.filter(lane=lane, state=JobState.LEASED, lease_until__lte=now)),
        people_waiting=_capped(people),
        people_oldest=people.aggregate(oldest=Min("opened_at"))["oldest"],
        kept_back=_kept_back(run),
    )


def _oldest(lane: Lane, now: datetime) -> dict[str, Any]:
    """Ready: could be claimed this second. Held: stopped by a hold. By `queued_at`, the present wait's beginning."""
    waiting = Job.objects.filter(lane=lane, state=JobState.WAITING).order_by("queued_at").values_list("queued_at")
    if lane.run_id is None:
        held = waiting.filter(deadline__gt=now).first()
        return {"oldest_held": held[0] if held else None}
    ready = waiting.filter(available_at__isnull=True, deadline__gt=now + usual_call(lane)).first()
    return {"oldest_ready": ready[0] if ready else None}


def _waiting(lane: Lane, now: datetime) -> dict[str, Any]:
    times, attempts, severities = dict.fromkeys(TIMES_LEFT, 0), dict[str, int](), dict[str, int]()
    last = 0
    for time_left, attempts_left, severity, count in _rows(gate_sql.WAITING, lane=lane.pk, now=now, limit=COUNT_LIMIT):
        times[time_left] += count
        attempts[str(attempts_left)] = attempts.get(str(attempts_left), 0) + count
        severities[str(severity)] = severities.get(str(severity), 0) + count
        last += count if attempts_left <= 1 else 0
    return {
        "waiting": sum(times.values()),
        "by_time_left": times,
        "by_attempts_left": attempts,
        "by_severity": severities,
        "last_attempt": last,
    }


def _claims(run: StageRun | None) -> dict[str, Any]:
    if run is None:
        return {}
    claims, expired, spent, approved, rejected, manual = _row(
        gate_sql.CLAIMS_OF_RUN, lane=run.lane_id, run=run.pk, since=run.started_at, limit=COUNT_LIMIT
    )
    results = {Result.APPROVED.value: approved, Result.REJECTED.value: rejected, Result.MANUAL.value: manual}
    return {"claims": claims, "leases_expired": expired, "budgets_spent": spent, "results": results}


def _kept_back(run: StageRun | None) -> int:
    if run is None or not run.keeps_back:
        return 0
    return _capped(Message.objects.filter(decision__run=run, state=MessageState.KEPT_BACK))


def _capped(rows: QuerySet[Any], limit: int = COUNT_LIMIT) -> int:
    return rows.order_by()[:limit].count() if limit else 0


def _row(statement: str, **params: Any) -> tuple[Any, ...]:
    return _rows(statement, **params)[0]


def _rows(statement: str, **params: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
