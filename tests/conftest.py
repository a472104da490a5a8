"""The ground under the tests: real servers, thrown away with the run.

With no DATABASE_URL one embedded PostgreSQL serves the whole run, and each xdist process has a database of its own in
it. With no CELERY_BROKER_URL a test that asks for a broker gets an embedded Valkey.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import environ
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


def _start_server(config: pytest.Config) -> None:
    global _server, _folder
    _folder = Path(tempfile.mkdtemp(prefix="rbt-"))
    _server = server_with_template(_folder, config.rootpath / ".pytest_cache" / "migrated")
    os.environ[SERVER] = _server.url("postgres")


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests run where they are asked for: by -m, or each by its own name."""
    if config.getoption("markexpr") or any("::" in arg for arg in config.args):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_unconfigure(config: pytest.Config) -> None:
    if _server is not None:
        _server.stop()
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


#: What migrations and the signals after them made, and no test's flush takes away.
KEPT_TABLES = {"django_migrations", "django_content_type", "auth_permission", "auth_group", "auth_group_permissions"}


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Tests that really commit end with all tables emptied, and what migrations made put back.

    By DELETE and without the signals after a migration: Django's own flush truncates every table and makes every
    permission anew, which took longer than most of these tests.
    """
    from django.db import connection
    from django.test import TransactionTestCase

    from queue_core import roles
    from queue_core.models import ReasonCode

    with django_db_blocker.unblock():
        grounds = list(ReasonCode.objects.order_by("pk").values("code", "title", "clause", "public_text"))
        tables = sorted(set(connection.introspection.table_names()) - KEPT_TABLES)
    empty = "".join(f"DELETE FROM {connection.ops.quote_name(table)};" for table in tables)

    def put_back(_test: Any) -> None:
        with connection.cursor() as cursor:
            # Past the guards and the foreign keys: rows that are kept for ever otherwise go in any order.
            cursor.execute(f"BEGIN; SET LOCAL session_replication_role = replica; {empty} COMMIT;")
        roles.restore()
        for ground in grounds:
            ReasonCode.objects.get_or_create(code=ground["code"], defaults=ground)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TransactionTestCase, "_fixture_teardown", put_back)
        yield


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
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        reason = "no Chromium on this machine (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()
