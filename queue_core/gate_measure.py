"""The gate's figures, read from the kept ones and from rows of the present run. Nothing here writes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Min, QuerySet

from queue_core import gate_sql, sums, tally
from queue_core.batch import usual_call
from queue_core.clock import LATEST
from queue_core.contract import running_leases
from queue_core.gate_lines import Counts
from queue_core.models import Attempt, Item, Job, Lane, Message, StageRun
from queue_core.states import (
    ENDING_OUTCOMES,
    ERROR_OUTCOMES,
    NOT_OPEN_TICKETS,
    TIMEOUT_OUTCOMES,
    UNEXECUTED_OUTCOMES,
    AttemptOutcome,
    DeadReason,
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
MORE = "more"
#: Names of times left, with the end of each; beyond the last there is more.
TIMES_LEFT = {
    "over": timedelta(0),
    "under_15_min": timedelta(minutes=15),
    "under_1_h": timedelta(hours=1),
    "under_4_h": timedelta(hours=4),
}
#: The claims of a longer run are told by the minutes since its beginning instead of row by row.
MOST_CLAIMS_READ = 2_000


@dataclass(frozen=True, slots=True)
class Load:
    """What a person weighs beside the gate's lines. Counts of rows are capped at COUNT_LIMIT."""

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
    held = sums.totals([lane.pk])[lane.pk]
    return Load(
        **_oldest(lane, now),
        **_waiting(lane, held, now),
        **_claims(run),
        running=running_leases([lane.pk], now=now),
        expired=_capped(Job.objects.filter(lane=lane, state=JobState.LEASED, lease_until__lte=now)),
        people_waiting=_people_waiting(held),
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


def _waiting(lane: Lane, held: Mapping[str, int], now: datetime) -> dict[str, Any]:
    """From the kept figures: exact, and by whole minutes of the deadline, of which the present one is not over."""
    times, severities = dict.fromkeys([*TIMES_LEFT, MORE], 0), dict[str, int]()
    present = tally.minute_of(now)
    names = [*TIMES_LEFT, MORE]
    for place, severity, number in sums.due_until(lane.pk, ends=[present + left for left in TIMES_LEFT.values()]):
        times[names[place]] += number
        severities[str(severity)] = severities.get(str(severity), 0) + number
    start = f"{tally.LEFT}."
    attempts = {code.removeprefix(start): n for code, n in sorted(held.items()) if code.startswith(start) and n}
    return {
        "waiting": held.get(JobState.WAITING.value, 0),
        "by_time_left": times,
        "by_attempts_left": attempts,
        "by_severity": dict(sorted(severities.items())),
        "last_attempt": attempts.get("1", 0),
    }


def _claims(run: StageRun | None) -> dict[str, Any]:
    if run is None:
        return {}
    counts = sums.counts([run.lane_id], since=run.started_at, until=run.ended_at or LATEST)[run.lane_id]
    if counts.claimed > MOST_CLAIMS_READ:
        return {
            "claims": counts.claimed,
            "leases_expired": counts.ended(AttemptOutcome.LEASE_EXPIRED.value),
            "budgets_spent": counts.of(f"{tally.DIED}.{DeadReason.ATTEMPTS.value}"),
            "results": {result.value: number for result, number in counts.results.items()},
        }
    claims, expired, spent, approved, rejected, manual = _row(
        gate_sql.CLAIMS_OF_RUN, lane=run.lane_id, run=run.pk, since=run.started_at, limit=COUNT_LIMIT
    )
    results = {Result.APPROVED.value: approved, Result.REJECTED.value: rejected, Result.MANUAL.value: manual}
    return {"claims": claims, "leases_expired": expired, "budgets_spent": spent, "results": results}


def _people_waiting(held: Mapping[str, int]) -> int:
    start, not_open = f"{tally.ITEM}.", {f"{tally.ITEM}.{kind.value}" for kind in NOT_OPEN_TICKETS}
    return sum(number for code, number in held.items() if code.startswith(start) and code not in not_open)


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
