"""Which paths are measured, in which turns, and the ratios that come of it."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from statistics import median

import psycopg
from django.db import connection

from queue_core.bench import floor, ground, stock
from queue_core.bench.celery_path import plain_celery, through_celery
from queue_core.bench.crew import Crew, Order, Slice, crew
from queue_core.figures import folding

ROUNDS = 3
#: The longest that one path works before the other has its turn.
SLICE = 3.0
HOT_CLIENTS, HOT_BATCH = 8, 10
#: Waiting jobs that the large backlog is compared with.
SMALL_BACKLOG = 10_000
#: How long the old snapshot stays open, with claims and completions all the while.
CHURN = 60.0
SMALL_BATCH, LARGE_BATCH = 10, 50
SINGLE_RECEIVES, BULK_RECEIVES = 1, 500

#: In their order: beside the least SQL; one lane with and without its cap; through Celery; a small and a large backlog;
#: with an old snapshot open.
PARTS = ("floor", "hot", "celery", "backlog", "snapshot")
OF_THE_LARGE = {"backlog", "snapshot"}

type Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured. `jobs` bounds each path in each of its turns, `churn` is in seconds."""

    jobs: int = 20_000
    backlog: int = 1_000_000
    batch: int = LARGE_BATCH
    workers: int = 4
    churn: float = CHURN
    slice: float = SLICE
    rounds: int = ROUNDS


@dataclass(slots=True)
class Pair:
    """Two paths that had their turns beside each other."""

    ours: list[Slice] = field(default_factory=list)
    theirs: list[Slice] = field(default_factory=list)

    def ratio(self, of: Callable[[Slice], float] = lambda one: one.rate) -> float | None:
        """The middle one of the ratios of each turn; None where nothing was measured."""
        found = [of(ours) / of(theirs) for ours, theirs in zip(self.ours, self.theirs, strict=True) if of(theirs)]
        return round(median(found), 3) if found else None


@dataclass(slots=True)
class Found:
    """Everything measured, by the name of the path; and the ratios."""

    slices: dict[str, list[Slice]] = field(default_factory=dict)
    ratios: dict[str, float | None] = field(default_factory=dict)

    def add(self, name: str, one: Slice) -> None:
        self.slices.setdefault(name, []).append(one)

    def compare(self, ratio: str, ours: str, theirs: str, of: Callable[[Slice], float] | None = None) -> None:
        pair = Pair(self.slices.get(ours, []), self.slices.get(theirs, []))
        self.ratios[ratio] = pair.ratio(of) if of else pair.ratio()


def measure(size: Size, *, parts: Collection[str] = PARTS, say: Say) -> Found:
    """The bench, or some of its PARTS, in schemas of its own. Raises BenchFault when it cannot go on."""
    found = Found()
    say("making tables")
    needed = [ground.SCHEMAS[0], *(ground.SCHEMAS[1:] if OF_THE_LARGE & set(parts) else ())]
    with ground.grounds(needed=needed) as (small, large), crew(max(size.workers, HOT_CLIENTS)) as clients:
        if "floor" in parts:
            _beside_the_floor(size, small, clients, found, say)
        if "hot" in parts:
            _hot_lane(size, small, clients, found, say)
        if "celery" in parts:
            _through_celery(size, small, found, say)
        lanes = _large_backlog(size, large, say) if OF_THE_LARGE & set(parts) else []
        if "backlog" in parts:
            _by_backlog(size, small, large, lanes, clients, found, say)
        if "snapshot" in parts:
            _under_a_snapshot(size, large, lanes, clients, found, say)
    return found


def p95(one: Slice) -> float:
    """The 95th percentile of how long a claim took, in seconds; 0 where none was made."""
    claims = sorted(one.claims)
    return claims[int(len(claims) * 0.95)] if claims else 0.0


def _beside_the_floor(size: Size, small: ground.Database, clients: Crew, found: Found, say: Say) -> None:
    ground.stand_on(small)
    lanes = stock.make_lanes()
    stock.fill(lanes, 5 * size.rounds * size.jobs)
    floor.make(
        jobs_a_lane=max(4 * size.rounds * size.jobs // stock.LANES, 1), lanes=stock.LANES, evidence=stock.EVIDENCE
    )
    paths: dict[str, tuple[str, int]] = {
        "floor_1": ("floor", 1),
        "single": ("single", 1),
        "claim_next_1": ("claim_next", 1),
        f"floor_{SMALL_BATCH}": ("floor", SMALL_BATCH),
        f"batch_{SMALL_BATCH}": ("claim_next", SMALL_BATCH),
        f"floor_{size.batch}": ("floor", size.batch),
        f"batch_{size.batch}": ("claim_next", size.batch),
        "floor_receive_1": ("floor_add", SINGLE_RECEIVES),
        "receive_1": ("receive", SINGLE_RECEIVES),
        "floor_receive_bulk": ("floor_add", BULK_RECEIVES),
        "receive_bulk": ("receive", BULK_RECEIVES),
    }
    orders = {
        name: Order(path, small, lanes, number, size.jobs, size.slice, size.workers)
        for name, (path, number) in paths.items()
    }
    _take_turns(size.rounds, orders, clients, found, say)
    found.compare("single_vs_ideal", "single", "floor_1")
    found.compare("claim_next_1_vs_ideal", "claim_next_1", "floor_1")
    found.compare(f"batch_{SMALL_BATCH}_vs_ideal", f"batch_{SMALL_BATCH}", f"floor_{SMALL_BATCH}")
    found.compare(f"batch_{size.batch}_vs_ideal", f"batch_{size.batch}", f"floor_{size.batch}")
    found.compare("receive_1_vs_ideal", "receive_1", "floor_receive_1")
    found.compare("receive_bulk_vs_ideal", "receive_bulk", "floor_receive_bulk")


def _hot_lane(size: Size, small: ground.Database, clients: Crew, found: Found, say: Say) -> None:
    ground.stand_on(small)
    lanes = stock.make_lanes(1, name="hot")
    stock.fill(lanes, 3 * size.rounds * size.jobs)
    orders = {
        name: Order(path, small, lanes, HOT_BATCH, size.jobs, size.slice, HOT_CLIENTS)
        for name, path in (("hot_with_cap", "claim_next"), ("hot_without_cap", "claim_next_without_cap"))
    }
    _take_turns(size.rounds, orders, clients, found, say)
    found.compare("hot_lane_cap_vs_no_cap", "hot_with_cap", "hot_without_cap")


def _through_celery(size: Size, small: ground.Database, found: Found, say: Say) -> None:
    ground.stand_on(small)
    turns = min(size.rounds, 2)
    for number in range(turns):
        say(f"through Celery, turn {number + 1} of {turns}")
        found.add("celery", through_celery(small, jobs=size.jobs, seconds=2 * size.slice))
        found.add("plain_celery", plain_celery(small, jobs=min(size.jobs, 5000), seconds=2 * size.slice))
    found.compare("celery_vs_plain_celery_row", "celery", "plain_celery")


def _large_backlog(size: Size, large: ground.Database, say: Say) -> list[int]:
    ground.stand_on(large)
    lanes = stock.make_lanes()
    stock.fill(lanes, size.backlog, say=lambda done: say(f"storing the large backlog: {done} of {size.backlog}"))
    return lanes


def _by_backlog(
    size: Size,
    small: ground.Database,
    large: ground.Database,
    lanes: list[int],
    clients: Crew,
    found: Found,
    say: Say,
) -> None:
    ground.stand_on(small)
    few = stock.make_lanes(name="few")
    stock.fill(few, min(SMALL_BACKLOG, size.backlog) + size.rounds * size.jobs)
    orders = {
        "backlog_small": Order("claim_next", small, few, SMALL_BATCH, size.jobs, size.slice, size.workers),
        "backlog_large": Order("claim_next", large, lanes, SMALL_BATCH, size.jobs, size.slice, size.workers),
    }
    _take_turns(size.rounds, orders, clients, found, say)
    found.compare("claim_p95_1m_vs_10k", "backlog_large", "backlog_small", p95)


def _under_a_snapshot(
    size: Size, large: ground.Database, lanes: list[int], clients: Crew, found: Found, say: Say
) -> None:
    """The same churn without and with an old snapshot open, on the large backlog, figures folded all the while."""
    ground.stand_on(large)
    for name, held in (("no_snapshot", nullcontext()), ("open_snapshot", _old_snapshot())):
        say(f"{size.churn:.0f} s of churn: {name.replace('_', ' ')}")
        _settle()
        order = Order("claim_next", large, lanes, SMALL_BATCH, 2**31, size.churn, size.workers)
        with held, _folding(large):
            found.add(name, clients.run(order))
    found.compare("open_snapshot_vs_none", "open_snapshot", "no_snapshot")


@contextmanager
def _folding(database: ground.Database) -> Iterator[None]:
    """The tick's fold of figures, each second, on a session of its own."""
    is_over = threading.Event()

    def fold_each_second() -> None:
        ground.stand_on(database)
        while not is_over.wait(1.0):
            folding.fold()
        connection.close()

    thread = threading.Thread(target=fold_each_second, name="bench-fold", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def _old_snapshot() -> Iterator[None]:
    """As a report, a backup or a forgotten psql holds one."""
    params = connection.get_connection_params()
    with psycopg.connect(**{key: params[key] for key in params if key not in ("cursor_factory", "context")}) as old:
        old.execute("SET idle_in_transaction_session_timeout = 0")
        old.commit()
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("SELECT count(*) FROM queue_core_lane")
        yield


def _settle() -> None:
    """Both turns begin on tables without dead rows."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        for table in stock.TABLES:
            cursor.execute(f"VACUUM (ANALYZE) queue_core_{table}")


def _take_turns(rounds: int, orders: Mapping[str, Order], clients: Crew, found: Found, say: Say) -> None:
    for number in range(rounds):
        for name, order in orders.items():
            say(f"turn {number + 1} of {rounds}: {name.replace('_', ' ')}")
            found.add(name, clients.run(order))
