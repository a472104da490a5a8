"""The ground under the tests: real servers, thrown away with the run.

With no DATABASE_URL one embedded PostgreSQL serves the whole run, and each xdist process has a database of its own in
it. With no CELERY_BROKER_URL a test that asks for a broker gets an embedded Valkey.
"""

import functools
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import environ
import psycopg
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from reviewboard.embedded.postgres import EmbeddedPostgres
from reviewboard.embedded.valkey import EmbeddedValkey
from tests.migrated import TEMPLATE, server_with_template

#: Handed to xdist's processes, which inherit the environment of the one that started the server.
SERVER = "REVIEWBOARD_TEST_DATABASE_URL"

# The same examples each time in CI: what a new example finds is for whoever looks for it, not for the next commit.
hypothesis_settings.register_profile(
    "reviewboard",
    deadline=None,
    database=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
hypothesis_settings.load_profile("reviewboard")

# Playwright's sync API runs a loop in the test's thread; Django would take it for async code and refuse the database.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

_server: EmbeddedPostgres | None = None
_folder: Path | None = None


def pytest_configure(config: pytest.Config) -> None:
    if "DATABASE_URL" not in os.environ and SERVER not in os.environ:
        _start_server(config)
    url = os.environ.get("DATABASE_URL") or os.environ[SERVER]
    _use(url)
    _serve_static_as_written()
    _hash_passwords_fast()


def _start_server(config: pytest.Config) -> None:
    global _server, _folder
    _folder = Path(tempfile.mkdtemp(prefix="rbt-"))
    _server = server_with_template(_folder, config.rootpath / ".pytest_cache" / "migrated")
    os.environ[SERVER] = _server.url("postgres")
    with psycopg.connect(os.environ[SERVER].replace("postgres:", "postgresql:", 1), autocommit=True) as connection:
        # What the planner knows of a table would depend on what a test had just committed when somebody looked.
        connection.execute("ALTER SYSTEM SET autovacuum_analyze_threshold = 2000000000")
        connection.execute("SELECT pg_reload_conf()")


def _use(url: str) -> None:
    from django.conf import settings

    database = settings.DATABASES["default"]
    options = {name: value for name, value in database.get("OPTIONS", {}).items() if name != "pool"}
    parsed = environ.Env.db_url_config(url)
    database.update(parsed | {"OPTIONS": options | parsed.get("OPTIONS", {}), "CONN_MAX_AGE": 0})
    if SERVER in os.environ:
        database.setdefault("TEST", {})["TEMPLATE"] = TEMPLATE


def _serve_static_as_written() -> None:
    """The live server finds them itself; a folder collected for a site that runs beside may be an old one."""
    from django.conf import settings

    settings.STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.MIDDLEWARE.remove("whitenoise.middleware.WhiteNoiseMiddleware")


def _hash_passwords_fast() -> None:
    """The site's own way takes a tenth of a second and a hundred megabytes each time, which is its purpose."""
    from django.conf import settings

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest-django, which has an order of its own
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Long tests run where they are asked for: by -m, or each by its own name. The dearest files come first."""
    is_asked_for = config.getoption("markexpr") or any("::" in arg for arg in config.args)
    long = [] if is_asked_for else [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    yield
    items.sort(key=lambda item: dearness(item.path))


def pytest_collection_finish() -> None:
    """What is collected stays to the end: no need for the collector to look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With -n: file by file, in the order of above, and what starts processes one after another.

    Two of those at once left processes without a turn; and while one waits, the others' tests have the machine. At the
    end there are only small files to share out.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "processes" if dearness(config.rootpath / file) == 0 else file

    config.option.loadscopereorder = False
    return Files(config, log)


@functools.cache
def dearness(file: Path) -> int:
    """0 for a file whose tests start processes, 1 with a browser, 2 for the rest."""
    text = file.read_text(encoding="utf-8")
    return 0 if "mark.processes" in text else 1 if "mark.browser" in text else 2


def pytest_unconfigure(config: pytest.Config) -> None:
    if _server is not None:
        _server.stop()
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[Callable[[], None]]:
    """Tests that really commit end with all tables emptied, and what migrations made put back, row for row.

    By DELETE and without the signals after a migration: Django's own flush truncates every table and makes every
    permission anew, which took longer than most of these tests.
    """
    from django.contrib.contenttypes.models import ContentType
    from django.db import connection
    from django.test import TransactionTestCase

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        tables = sorted(set(connection.introspection.table_names(cursor)) - {"django_migrations"})
        cursor.execute("DROP SCHEMA IF EXISTS made_by_migrations CASCADE; CREATE SCHEMA made_by_migrations")
        made = [table for table in tables if _has_rows(cursor, table)]
        for table in made:
            cursor.execute(f"CREATE TABLE made_by_migrations.{table} AS TABLE {table}")
        cursor.execute(
            "SELECT table_name FROM information_schema.columns WHERE column_name = 'id' AND is_identity = 'YES'"
        )
        numbered = {table for (table,) in cursor.fetchall()}
    empty = "".join(f"DELETE FROM {table};" for table in tables)
    fill = "".join(f"INSERT INTO {table} SELECT * FROM made_by_migrations.{table};" for table in made)
    # A test that wiped the demo has let the numbers begin anew, below those of the rows that are put back.
    fill += "".join(
        f"SELECT setval(numbers, greatest(max(id), nextval(numbers))) FROM {table},"
        f" pg_get_serial_sequence('{table}', 'id') AS numbers GROUP BY numbers;"
        for table in made
        if table in numbered
    )

    def put_back() -> None:
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            # Past the guards and the foreign keys: rows that are kept for ever otherwise go in any order.
            cursor.execute(f"BEGIN; SET LOCAL session_replication_role = replica; {empty} {fill} COMMIT;")
        # A test that wiped the demo has made them anew, by other numbers.
        ContentType.objects.clear_cache()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TransactionTestCase, "_fixture_teardown", lambda _test: put_back())
        yield put_back
    # A thread of a server that a test stopped may still be closing its session, and a database in use is not dropped.
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture(scope="session")
def put_back(django_db_setup: Callable[[], None]) -> Callable[[], None]:
    """For fixtures that commit for a whole module: the database is as migrations left it."""
    return django_db_setup


def _has_rows(cursor: Any, table: str) -> bool:
    cursor.execute(f"SELECT EXISTS (SELECT FROM {table})")
    (has_rows,) = cursor.fetchone()
    return bool(has_rows)


@pytest.fixture(scope="session")
def broker_url() -> Iterator[str]:
    """A broker of this process's own, emptied by nobody: each test uses queues by names of its own or purges."""
    given = os.environ.get("CELERY_BROKER_URL")
    if given:
        yield given
        return
    folder = Path(tempfile.mkdtemp(prefix="rbv-"))
    valkey = EmbeddedValkey(data=folder / "v", sockets=folder / "s", throwaway=True)
    valkey.start()
    try:
        yield valkey.url()
    finally:
        valkey.stop()
        shutil.rmtree(folder, ignore_errors=True)


# First the one without a window's own machinery: the same pages for three fifths of the work.
CHROMIUM_NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A real Chromium. Skips where there is none, and fails instead in CI."""
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if found is None:
        reason = "no Chromium on this machine (Debian: apt-get install chromium-headless-shell)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()
