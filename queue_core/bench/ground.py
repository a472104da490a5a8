"""A schema of the bench's own, in which the queue's tables are made anew. The user's data are never touched."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from queue_core.errors import BenchFault

#: Says that a schema is the bench's: one that a killed run left behind is dropped, one of anybody else's never.
MARK = "made by manage.py bench, gone when it ends"
SCHEMAS = ("reviewboard_bench", "reviewboard_bench_large")
#: One bench in a database at a time.
LOCK = 2_748_000_001

type Database = dict[str, Any]


@contextmanager
def grounds(*, needed: Collection[str] = SCHEMAS) -> Iterator[tuple[Database, Database]]:
    """Settings of connections to two fresh sets of tables: one for most measures, one for the large backlog.

    Only schemas that are `needed` are made.

    Inside, this process's own connection stands where `stand_on` last put it; afterwards it is as it was, and both
    schemas are gone. Raises BenchFault where another bench runs or a schema of that name is somebody else's.
    """
    usual: Database = connection.settings_dict
    # By the site's own settings, whose fault when there is no database is said in a sentence.
    connection.ensure_connection()
    stand_on(_without_pool(usual))
    try:
        with _alone():
            grounds = tuple(_in_schema(usual, schema) for schema in SCHEMAS)
            try:
                for schema, ground in zip(SCHEMAS, grounds, strict=True):
                    if schema in needed:
                        _make(schema, _without_pool(usual), ground)
                yield grounds[0], grounds[1]
            finally:
                stand_on(_without_pool(usual))
                for schema in SCHEMAS:
                    _drop(schema)
    finally:
        stand_on(usual)


def stand_on(database: Database) -> None:
    """Let this process's connection be one of these settings from now on."""
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    connection.settings_dict = database


@contextmanager
def _alone() -> Iterator[None]:
    """Held by a session of its own, since the connection in use changes. A killed bench's session frees it."""
    own = connection.copy()
    try:
        with own.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
            if cursor.fetchone() != (True,):
                raise BenchFault("Another bench runs in this database.")
        yield
    finally:
        own.close()


def _make(schema: str, usual: Database, ground: Database) -> None:
    stand_on(usual)
    _drop(schema)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA {schema}")
        cursor.execute(f"COMMENT ON SCHEMA {schema} IS '{MARK}'")
    stand_on(ground)
    # Not the command: it would also look after permissions and content types, which nothing here reads.
    executor = MigrationExecutor(connection)
    executor.migrate([key for key in executor.loader.graph.leaf_nodes() if key[0] == "queue_core"])


def _drop(schema: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", [schema])
        found = cursor.fetchone()
        if found is None:
            return
        if found[0] != MARK:
            raise BenchFault(f"The schema {schema} is not the bench's own: drop or rename it first.")
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SET client_min_messages = warning")
        cursor.execute(f"DROP SCHEMA {schema} CASCADE")


def _in_schema(usual: Database, schema: str) -> Database:
    """That schema alone: with `public` behind it, migrations would find the user's tables and make none."""
    ground = _without_pool(usual)
    given = ground["OPTIONS"].get("options", "")
    ground["OPTIONS"]["options"] = f"{given} -c search_path={schema}".strip()
    return ground


def _without_pool(usual: Database) -> Database:
    """One session a process, kept: a pool would open more than are measured, and keep those of the schema before.

    Without a pool Django would close it after each of Celery's tasks, which the site's tasks are not made to pay for.
    """
    return usual | {
        "CONN_MAX_AGE": None,
        "OPTIONS": {key: value for key, value in usual["OPTIONS"].items() if key != "pool"},
    }
