"""Clients in processes of their own: the measured work of eight must not share one interpreter.

Nothing of Django is imported here at the top: a client's process reads this module before it has set Django up.
"""

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from queue_core.errors import BenchFault

#: Seconds within which a client must be ready, and must have ended beyond its time.
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Order:
    """One slice of a measure: which path, where, and when it ends (after so many jobs or seconds, what comes first)."""

    path: str
    database: dict[str, Any]
    lanes: list[int]
    size: int
    jobs: int
    seconds: float
    clients: int


@dataclass(frozen=True, slots=True)
class Slice:
    """What the clients did together. `claims` are the seconds that each claim took."""

    jobs: int
    seconds: float
    claims: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds if self.seconds else 0.0


class Crew:
    """The clients of one bench. Each order is carried out by as many of them as it names."""

    def __init__(self, clients: Sequence[Connection]) -> None:
        self._clients = clients

    def run(self, order: Order) -> Slice:
        """Raises BenchFault with what a client says when its work fails."""
        clients = self._clients[: order.clients]
        for client in clients:
            client.send(order)
        for client in clients:
            _heard(client, PATIENCE)
        for client in clients:
            client.send("go")
        did = [_heard(client, order.seconds + PATIENCE) for client in clients]
        return Slice(
            jobs=sum(one.jobs for one in did),
            seconds=max(one.seconds for one in did),
            claims=[claim for one in did for claim in one.claims],
        )


@contextmanager
def crew(number: int) -> Iterator[Crew]:
    """So many client processes, which end with the block whatever happens."""
    spawning = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for place in range(number):
        ours, theirs = spawning.Pipe()
        process = spawning.Process(target=_serve, args=(theirs, place), daemon=True, name=f"bench-{place}")
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    try:
        yield Crew(pipes)
    finally:
        _end(pipes, processes)


def _end(pipes: Sequence[Connection], processes: Sequence[SpawnProcess]) -> None:
    for pipe in pipes:
        pipe.close()
    for process in processes:
        process.join(5.0)
        if process.is_alive():
            process.kill()
            process.join()


def _heard(client: Connection, limit: float) -> Any:
    if not client.poll(limit):
        raise BenchFault(f"A client said nothing for {limit:.0f} s.")
    try:
        said = client.recv()
    except EOFError:
        raise BenchFault("A client ended by itself.") from None
    if isinstance(said, BenchFault):
        raise said
    return said


def _serve(pipe: Connection, place: int) -> None:
    import django

    django.setup()
    from queue_core.bench import ground

    standing: dict[str, Any] | None = None
    while True:
        try:
            order: Order = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        if order.database != standing:
            ground.stand_on(order.database)
            standing = order.database
        try:
            pipe.send(_carry_out(order, place, pipe))
        except Exception as fault:  # noqa: BLE001  whatever it is, the bench says it and ends
            pipe.send(BenchFault(f"{order.path}: {type(fault).__name__}: {fault}"))


def _carry_out(order: Order, place: int, pipe: Connection) -> Slice:
    from queue_core.bench import turns

    turn = turns.of(order.path, client=place, lanes=order.lanes, size=order.size)
    # Not measured: here statements are prepared and caches filled.
    turn()
    pipe.send("ready")
    pipe.recv()
    return _turn_until_over(turn, order)


def _turn_until_over(turn: Any, order: Order) -> Slice:
    started, jobs, claims = time.monotonic(), 0, []
    share, limit = order.jobs / order.clients, started + order.seconds
    while jobs < share and time.monotonic() < limit:
        did = turn()
        jobs += did.jobs
        claims.append(did.claim)
    return Slice(jobs, time.monotonic() - started, claims)
