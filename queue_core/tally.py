"""What verbs change in the kept figures: noted while a verb runs, written as one small row in its transaction.

A verb runs inside `kept()`; what it and its helpers note there becomes one row for each lane and minute, which a fold
moves into sums (`figures.folding`). Nothing here reads a sum, and no worker waits for another's row.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from django.db import connection, transaction

from queue_core.clock import EPOCH
from queue_core.states import JobState

MINUTE = timedelta(minutes=1)

#: Codes of what happens in a minute. A dot leads to a word of `states`: "result.APPROVED", "ended.timeout".
ADDED = "added"
REQUEUED = "requeued"
CLAIMED = "claimed"
#: Answers that came too late and were kept; releases of a token that no longer held do not count.
STALE = "stale"
RESULT = "result"
ENDED = "ended"
DIED = "died"
#: By people: "decided.APPROVED", "decided.REJECTED".
DECIDED = "decided"
ITEM_OPENED = "item_opened"
ITEM_CLOSED = "item_closed"
WAIT = "wait"
LATENCY = "latency"

#: Codes of what a lane holds now: "WAITING", "LEASED", "DONE", "DEAD.deadline", ..., and open items: "item.manual".
RESTING = "resting"
#: WAITING jobs by the attempts that they have left: "left.1" is on its last; the last code holds all with more.
LEFT = "left"
MOST_LEFT = 10
ITEM = "item"

#: Where the buckets of waits before a claim, and of calls, end; one bucket more holds what is longer.
WAIT_ENDS = tuple(
    timedelta(seconds=s) for s in (1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)
)
LATENCY_ENDS = tuple(
    timedelta(milliseconds=ms) for ms in (10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)
)


class Standing(Protocol):
    """The fields of a job that the totals are made of."""

    lane_id: int
    state: str
    dead_reason: str | None
    available_at: datetime | None
    deadline: datetime
    severity: int
    attempts: int
    max_attempts: int


@dataclass(slots=True)
class Changes:
    """What one lane changed in one minute."""

    counts: Counter[str] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    due: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Changes") -> None:
        # Counter.update adds, and unlike `+` it keeps what is below zero.
        self.counts.update(other.counts)
        self.totals.update(other.totals)
        self.due.update(other.due)


type Noted = dict[tuple[int, datetime], Changes]

_noted: ContextVar[Noted | None] = ContextVar("queue_core_tally", default=None)


@contextmanager
def kept() -> Iterator[None]:
    """Write what is noted inside, at its end, in the transaction that the caller has open. Also a decorator.

    Inside another one it hands on to that one; where it ends by an exception nothing of it is kept, as nothing of the
    savepoint around it is.
    """
    outer = _noted.get()
    inner: Noted = {}
    token = _noted.set(inner)
    try:
        yield
    finally:
        _noted.reset(token)
    if outer is None:
        _write(inner)
        return
    for key, changes in inner.items():
        outer.setdefault(key, Changes()).add(changes)


def count(lane_id: int, code: str, *, now: datetime, number: int = 1) -> None:
    """Note that something happened in a lane `number` times, in the minute of `now`."""
    if number:
        _changes(lane_id, now).counts[code] += number


def holds(lane_id: int, code: str, number: int, *, now: datetime) -> None:
    """Note that a lane holds so many more of one kind (fewer: below zero)."""
    _changes(lane_id, now).totals[code] += number


def enters(job: Standing, *, now: datetime, number: int = 1) -> None:
    """Note that a job stands now as its fields say. `number` -1: it leaves this standing."""
    changes = _changes(job.lane_id, now)
    state = str(job.state)
    changes.totals[f"{state}.{job.dead_reason}" if state == JobState.DEAD.value else state] += number
    if state == JobState.WAITING.value:
        changes.due[f"{minute_number(job.deadline)}.{job.severity}"] += number
        changes.totals[left_code(job.max_attempts - job.attempts)] += number
        if job.available_at is not None:
            changes.totals[RESTING] += number


def leaves(job: Standing, *, now: datetime) -> None:
    """Note, before its fields are set anew, that a job no longer stands as they say."""
    enters(job, now=now, number=-1)


def leased(lane_id: int, *, deadline: datetime, severity: int, left: int, rested: bool, now: datetime) -> None:
    """Note that a job, WAITING until now, is LEASED: as leaving and entering, for rows that were never read whole.

    `left` is how many attempts it had left while it waited.
    """
    changes = _changes(lane_id, now)
    changes.totals[JobState.WAITING.value] -= 1
    changes.totals[JobState.LEASED.value] += 1
    changes.due[f"{minute_number(deadline)}.{severity}"] -= 1
    changes.totals[left_code(left)] -= 1
    if rested:
        changes.totals[RESTING] -= 1


def claimed(lane_id: int, *, queued_at: datetime, now: datetime) -> None:
    """Note a claim and how long its job had waited."""
    counts = _changes(lane_id, now).counts
    counts[CLAIMED] += 1
    counts[f"{WAIT}.{bucket(now - queued_at, WAIT_ENDS)}"] += 1


def ended(lane_id: int, outcome: str, *, now: datetime, latency: timedelta | None = None, number: int = 1) -> None:
    """Note that attempts ended. `latency` is a call's; without one it says nothing of the model's speed."""
    if not number:
        return
    counts = _changes(lane_id, now).counts
    for code in codes_of_an_end(outcome, latency=latency):
        counts[code] += number


def codes_of_an_end(outcome: str, *, latency: timedelta | None) -> list[str]:
    """The codes of an attempt's end, as `ended` notes them."""
    of_outcome = f"{ENDED}.{outcome}"
    return [of_outcome] if latency is None else [of_outcome, f"{LATENCY}.{bucket(latency, LATENCY_ENDS)}"]


def bucket(length: timedelta, ends: Sequence[timedelta]) -> int:
    """The number of the bucket, from 0: bucket i ends before `ends[i]`, and the last has no end. As `width_bucket`."""
    return bisect_right(ends, length)


def left_code(left: int) -> str:
    """The code of WAITING jobs with so many attempts left. A job always waits with one."""
    return f"{LEFT}.{min(max(left, 1), MOST_LEFT)}"


def minute_of(moment: datetime) -> datetime:
    """The beginning of the minute."""
    return moment.replace(second=0, microsecond=0)


def minute_number(moment: datetime) -> int:
    """Whole minutes since 1970: a key for JSON."""
    return (moment - EPOCH) // MINUTE


def _changes(lane_id: int, now: datetime) -> Changes:
    noted = _noted.get()
    if noted is None:
        raise transaction.TransactionManagementError("Figures change inside a verb: wrap it in tally.kept().")
    return noted.setdefault((lane_id, minute_of(now)), Changes())


def taken() -> str:
    """What is noted so far, as the JSON rows of a statement that writes them itself; nothing of it is written twice."""
    noted = _noted.get()
    if noted is None:
        raise transaction.TransactionManagementError("Figures change inside a verb: wrap it in tally.kept().")
    rows = ",".join(
        f'{{"lane":{lane},"minute":"{minute.isoformat()}","counts":{as_json(changes.counts)},'
        f'"totals":{as_json(changes.totals)},"due":{as_json(changes.due)}}}'
        for (lane, minute), changes in noted.items()
    )
    noted.clear()
    return f"[{rows}]"


INSERT = """
INSERT INTO queue_core_figurechange (lane_id, minute, counts, totals, due)
SELECT * FROM unnest(%s::bigint[], %s::timestamptz[], %s::jsonb[], %s::jsonb[], %s::jsonb[])
"""


def _write(noted: Noted) -> None:
    rows = [
        (lane, minute, as_json(changes.counts), as_json(changes.totals), as_json(changes.due))
        for (lane, minute), changes in noted.items()
    ]
    rows = [row for row in rows if row[2:] != ("{}", "{}", "{}")]
    if not rows:
        return
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("Figures change in the transaction that makes them true.")
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [list(column) for column in zip(*rows, strict=True)])


def as_json(counter: Counter[str]) -> str:
    """JSON of the entries that are not zero. Codes are our own words, so that nothing needs escaping."""
    return "{" + ",".join(f'"{code}":{number}' for code, number in counter.items() if number) + "}"


def enter_all(jobs: Iterable[Standing], *, now: datetime) -> None:
    for job in jobs:
        enters(job, now=now)


def leave_all(jobs: Iterable[Standing], *, now: datetime) -> None:
    for job in jobs:
        leaves(job, now=now)
