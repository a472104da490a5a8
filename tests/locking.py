"""Two real sessions against each other, without a sleep: a test waits until PostgreSQL says who is blocked.

A race reads as a story: one session holds what the loser needs, the loser is started and seen waiting, the winner
commits, the loser's outcome is asserted.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Event
from typing import Any

from django.db import connection, transaction

#: Seconds. Generous for a busy machine; a test that works never waits so long.
LIMIT = 60.0


class Session:
    """One call in a thread with a database session of its own, known to the server by `name`."""

    def __init__(self, name: str, verb: Callable[[], Any]) -> None:
        self.name = name
        self._pool = ThreadPoolExecutor(1)
        self._future: Future[Any] = self._pool.submit(_in_own_session, name, verb)

    def outcome(self) -> Any:
        """What the verb returned, or its exception. Fails if it has not ended within the limit."""
        try:
            return self._future.result(timeout=LIMIT)
        finally:
            self._pool.shutdown(wait=False)

    @property
    def is_over(self) -> bool:
        return self._future.done()


def _in_own_session(name: str, verb: Callable[[], Any]) -> Any:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('application_name', %s, false)", [name])
            cursor.execute("SET deadlock_timeout = '200ms'")
        return verb()
    finally:
        connection.close()


def started(name: str, verb: Callable[[], Any]) -> Session:
    return Session(name, verb)


def wait_until_blocked(session: Session) -> None:
    """Return when the server says that the session waits for a lock; fail if it ended without waiting."""
    wait_for(
        lambda: session.is_over or _is_blocked(session.name), f"{session.name} neither ended nor waited for a lock"
    )
    assert not session.is_over, f"{session.name} never waited: {session.outcome()!r}"


def wait_for(condition: Callable[[], bool], message: str) -> None:
    give_up = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < give_up, message
        time.sleep(0.005)  # the sessions that are waited for are threads of this process


def _is_blocked(name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = %s"
            " AND datname = current_database() AND wait_event_type = 'Lock')",
            [name],
        )
        row = cursor.fetchone()
    # pg_stat_activity is a snapshot of the transaction; a test that looks again must not look at the same one.
    assert not connection.in_atomic_block, "look from outside a transaction"
    return bool(row and row[0])


@contextmanager
def holding(verb: Callable[[], Any]) -> Iterator[Any]:
    """Run a verb in a session that keeps its transaction open until the block ends, then commits."""
    ready, let_go = Event(), Event()
    box: list[Any] = []

    def work() -> None:
        try:
            with transaction.atomic():
                box.append(verb())
                ready.set()
                assert let_go.wait(LIMIT), "the holder was never told to let go"
        finally:
            ready.set()

    holder = Session("holder", work)
    assert ready.wait(LIMIT), "the holder never had its rows"
    if not box:
        holder.outcome()
    try:
        yield box[0]
    finally:
        let_go.set()
        holder.outcome()


def together(verbs: list[Callable[[], Any]]) -> list[Any]:
    """Run all verbs at once, each in a session of its own, released by a barrier; their outcomes in order."""
    barrier = Barrier(len(verbs), timeout=LIMIT)

    def released(verb: Callable[[], Any]) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        barrier.wait()
        return verb()

    sessions = [Session(f"racer-{number}", lambda verb=verb: released(verb)) for number, verb in enumerate(verbs)]
    return [session.outcome() for session in sessions]
