"""Django's own `migrate`, with nothing that cuts its statements short.

The site's sessions end a statement after 30 s, so that no report holds old rows. An index over millions of rows takes
longer, and a migration that is cut at every start never lets the new version begin.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

NO_LIMITS = "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0"


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with without_limits(connections[options["database"]]):
            super().handle(*args, **options)


@contextmanager
def without_limits(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Let the sessions that this connection opens meanwhile take as long as they need."""
    if connection.in_atomic_block:
        # Its session is in use; what a transaction holds is the caller's to bound.
        yield
        return
    kept = connection.settings_dict["OPTIONS"]
    connection.close()
    # Without the pool, which may have opened its sessions already. The last word of an option counts.
    connection.settings_dict["OPTIONS"] = {name: value for name, value in kept.items() if name != "pool"} | {
        "options": f"{kept.get('options', '')} {NO_LIMITS}".strip()
    }
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["OPTIONS"] = kept
