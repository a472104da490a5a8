"""One squashed migration stands for twenty-five: the same database comes of both, whatever ran before."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState

from reviewboard.embedded import postgres
from reviewboard.embedded.postgres import EmbeddedPostgres

ROOT = Path(__file__).parents[2]
SQUASHED = "0001_squashed_0025_indexes_without_nulls"
NEWEST_OF_IT = "0025_indexes_without_nulls"
#: Where every installation stands that is older than the squash.
RELEASED = "0018_attempts_unchecked"

#: Past the squash, as every database went that is older than it.
STEP_BY_STEP = """
import sys, django
django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
executor = MigrationExecutor(connection)
executor.loader = MigrationLoader(connection, replace_migrations=False)
wanted = [("queue_core", name) for name in sys.argv[1:]]
leaves = [key for key in executor.loader.graph.leaf_nodes() if "squashed" not in key[1]]
executor.migrate(wanted or leaves)
"""

RIGHTS = """
SELECT g.name, t.app_label, t.model, p.codename, p.name FROM auth_group g
JOIN auth_group_permissions m ON m.group_id = g.id JOIN auth_permission p ON p.id = m.permission_id
JOIN django_content_type t ON t.id = p.content_type_id ORDER BY 1, 2, 3, 4
"""
PERMISSIONS = """
SELECT t.app_label, t.model, p.codename, p.name FROM auth_permission p
JOIN django_content_type t ON t.id = p.content_type_id ORDER BY 1, 2, 3
"""
CODES = """
SELECT code, title, clause, public_text, is_for_rejection, is_active, version FROM queue_core_reasoncode ORDER BY 1
"""
VERSIONS = """
SELECT c.code, v.version, v.title, v.clause, v.public_text, v.made_at FROM queue_core_reasoncodeversion v
JOIN queue_core_reasoncode c ON c.id = v.ground_id ORDER BY 1, 2
"""
#: Django's own list of what ran is the one that may differ.
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'django_migrations' ORDER BY 1"


def test_the_squash_leaves_the_models_that_the_steps_leave() -> None:
    loader = MigrationLoader(None, replace_migrations=False)
    squash = loader.disk_migrations["queue_core", SQUASHED]

    steps = loader.project_state(("queue_core", NEWEST_OF_IT))
    at_once = loader.project_state(("queue_core", SQUASHED))

    files = [path.stem for path in sorted((ROOT / "queue_core" / "migrations").glob("0*.py")) if path.stem != SQUASHED]
    assert [name for _app, name in squash.replaces] == files[: files.index(NEWEST_OF_IT) + 1]
    assert at_once.models.keys() == steps.models.keys()
    for key, model in steps.models.items():
        assert described(at_once.models[key]) == described(model)


def described(model: ModelState) -> object:
    """All that a migration can say of a model, in an order of its own."""
    fields = {name: (field.deconstruct()[1:], field.is_relation) for name, field in model.fields.items()}
    indexes = {index.name: index.deconstruct() for index in model.options["indexes"]}
    constraints = {constraint.name: constraint.deconstruct() for constraint in model.options["constraints"]}
    return fields, model.options | {"indexes": indexes, "constraints": constraints}, model.bases


@pytest.fixture
def server() -> Iterator[EmbeddedPostgres]:
    with tempfile.TemporaryDirectory(prefix="rbs-", ignore_cleanup_errors=True) as folder:
        server = EmbeddedPostgres(data=Path(folder, "pg"), sockets=Path(folder, "s"), throwaway=True)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_database_is_the_same_by_the_squash_by_the_steps_and_from_what_was_released(server: EmbeddedPostgres) -> None:
    at_once, steps, released, back = (make(server, name) for name in ("at_once", "steps", "released", "back"))

    run(at_once, "manage.py", "migrate", "-v0")
    run(steps, "-c", STEP_BY_STEP)
    run(steps, "manage.py", "migrate", "-v0")
    run(released, "-c", STEP_BY_STEP, RELEASED)
    run(released, "manage.py", "migrate", "-v0")
    run(back, "manage.py", "migrate", "-v0", "queue_core", SQUASHED)
    run(back, "manage.py", "migrate", "-v0", "queue_core", "zero")
    run(back, "manage.py", "migrate", "-v0")

    for other in (steps, released, back):
        assert schema(other) == schema(at_once)
        assert rows(other) == rows(at_once)
    assert "queue_core_guard_job" in schema(at_once)


def make(server: EmbeddedPostgres, name: str) -> str:
    server.create_database(name)
    return server.url(name)


def run(url: str, *command: str) -> None:
    given = {
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "reviewboard.settings",
        "CELERY_BROKER_URL": "redis://127.0.0.1:1/0",  # never asked
        "SECRET_KEY": "of-a-database-that-is-thrown-away-after-the-test",
        "ALLOWED_HOSTS": "localhost",
    }
    command = (sys.executable, *command)
    environment = os.environ | given
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def schema(url: str) -> str:
    command = [str(postgres._binary("pg_dump")), "--schema-only", "--dbname", url.replace("postgres:", "postgresql:")]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    # A password of that dump alone.
    return re.sub(r"^\\(un)?restrict .*$", "", dumped, flags=re.MULTILINE)


def rows(url: str) -> list[object]:
    with psycopg.connect(url) as connection:
        tables = [name for (name,) in connection.execute(TABLES)]
        counts = [(name, connection.execute(f"SELECT count(*) FROM {name}").fetchone()) for name in tables]
        return [counts, *(connection.execute(query).fetchall() for query in (RIGHTS, PERMISSIONS, CODES, VERSIONS))]
