"""Statements that are planned once and run often: the hot path's way past the planner.

A statement here is bound and prepared on the server. Whether a session keeps what it prepared, and plans it once for
all values, is the project's to say where it configures the database: `"prepare_threshold": 0` in its OPTIONS, and
`-c plan_cache_mode=force_generic_plan` among its options. Without them the same statements run, planned each time.

Sending several of them together (psycopg's pipeline) was tried and left out: it saved no work, only waiting, and the
rows that Django counts after an update are not known inside it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

type Row = tuple[Any, ...]

#: Where a session has its cursors: with them it lives exactly as long as they do.
KEPT = "_queue_core_cursors"


class _Cursor(psycopg.Cursor[Row]):
    """Prepares at the first use, where the session prepares at all."""

    def execute(self, query: Any, params: Any = None, **_options: Any) -> "_Cursor":
        return super().execute(query, params, prepare=True)


class _QueryCursor(psycopg.Cursor[Row]):
    """As `_Cursor`, for queries alone: savepoints have a name of their own each time, and would only fill the cache."""

    def execute(self, query: Any, params: Any = None, **_options: Any) -> "_QueryCursor":
        is_query = isinstance(query, str) and query.startswith("SELECT")
        return super().execute(query, params, prepare=is_query)


@contextmanager
def queries() -> Iterator[None]:
    """Within, the queries of Django's models are planned once too: for pages that are asked for again and again.

    Bound on the server, where a parameter has the type of what it is compared with. An expression that gives it none
    (a CASE or a sum of values) is refused there; those belong outside.
    """
    connection.ensure_connection()
    session = connection.connection
    usual, session.cursor_factory = session.cursor_factory, _QueryCursor
    try:
        yield
    finally:
        session.cursor_factory = usual


def run(statement: str, params: Mapping[str, Any]) -> CursorWrapper:
    """Run a statement; its rows are the cursor's, to be read before the same one runs again in this session.

    A session keeps its cursor of each statement, and with it the last rows, until then.
    """
    connection.ensure_connection()
    cursor = _cursor_of(connection.connection, statement)
    # Through Django's wrapper, so that its errors, its log of queries and its limits hold here too.
    wrap = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    wrapped = wrap(cursor)  # type: ignore[arg-type]
    wrapped.execute(_short(statement), params)
    return wrapped


def run_alone(statement: str, params: Mapping[str, Any]) -> CursorWrapper:
    """As `run`, for a statement that is its own transaction, or fails without harm to the caller's."""
    if not connection.in_atomic_block:
        return run(statement, params)
    with transaction.atomic():
        return run(statement, params)


def _cursor_of(session: psycopg.Connection[Row], statement: str) -> _Cursor:
    """The session's own cursor for a statement, which keeps how its values are written and its columns read."""
    kept: dict[str, _Cursor] = vars(session).setdefault(KEPT, {})
    cursor = kept.get(statement)
    if cursor is None or cursor.closed:
        cursor = kept[statement] = _Cursor(session)
    return cursor


@cache
def _short(statement: str) -> str:
    """Without its indents: of what is longer than 4,096 characters psycopg reads the placeholders anew each time."""
    return " ".join(statement.split())
