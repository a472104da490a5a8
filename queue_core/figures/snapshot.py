"""One moment for a whole page: all figures are read in one transaction that sees one state of the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta

from django.db import DatabaseError, connection, transaction

#: A page that needs longer than this for one figure shows the last one instead.
READ_LIMIT = timedelta(seconds=3)

ISOLATION = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;"
#: Every big read of a page walks an index in its order and stops at a cap. The planner cannot know how soon: it takes a
#: lane's rows for a third of what they are and prefers to scan and sort a table of millions. Compiling is for reports.
#: Sent as one text: between two statements of a busy machine others have their turn, which takes longer than both do.
BEGIN = """
SELECT clock_timestamp(), set_config('statement_timeout', '{limit}', true), set_config('enable_seqscan', 'off', true),
       set_config('enable_sort', 'off', true), set_config('jit', 'off', true);
SAVEPOINT figures_begin
"""
GO_BACK = "ROLLBACK TO SAVEPOINT figures_begin"

_is_open: ContextVar[bool] = ContextVar("queue_core_snapshot", default=False)


@contextmanager
def snapshot(*, read_limit: timedelta = READ_LIMIT) -> Iterator[datetime]:
    """A REPEATABLE READ, read-only transaction; gives its *as of* by the database's clock.

    Inside another transaction (a test's) it is a savepoint of that one, whose isolation can no longer be set.
    """
    isolation = "" if connection.in_atomic_block else ISOLATION
    with transaction.atomic():
        as_of = _begin(isolation, read_limit)
        token = _is_open.set(True)
        try:
            yield as_of
        finally:
            _is_open.reset(token)


@contextmanager
def part() -> Iterator[None]:
    """Read what may take too long. Its fault is raised, and spoils no other part of the page.

    A snapshot writes nothing, so that each part can go back to where it began: a savepoint for each would be two more
    ways to the database. Outside a snapshot it is a savepoint or transaction of its own.
    """
    if not _is_open.get():
        with transaction.atomic():
            yield
        return
    try:
        yield
    except DatabaseError:
        # A block within that shares our savepoint asks for the whole to be rolled back.
        connection.needs_rollback = False
        with connection.cursor() as cursor:
            cursor.execute(GO_BACK)
        raise


def _begin(isolation: str, read_limit: timedelta) -> datetime:
    limit = f"{int(read_limit.total_seconds() * 1000)}ms"
    with connection.cursor() as cursor:
        cursor.execute(isolation + BEGIN.format(limit=limit))
        if isolation:
            cursor.nextset()
        as_of: datetime = cursor.fetchall()[0][0]
        return as_of
