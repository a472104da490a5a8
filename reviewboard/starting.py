"""What keeps the site from starting ends the process with a sentence, not with a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError
from psycopg import Error
from psycopg_pool import PoolTimeout

from reviewboard.embedded import ServiceFault

FAILED = 1
#: As sysexits.h says it for a wrong configuration: a supervisor need not try again.
REFUSED = 78


@contextmanager
def or_say_why() -> Iterator[None]:
    try:
        yield
    except ImproperlyConfigured as fault:
        sys.stderr.write(f"Reviewboard does not start: {fault}\n")
        raise SystemExit(REFUSED) from None
    except ServiceFault as fault:
        sys.stderr.write(f"{fault}\n")
        raise SystemExit(FAILED) from None
    except OperationalError as fault:
        # Any other trouble with a database that was reached keeps its traceback.
        if not _never_reached(fault):
            raise
        sys.stderr.write(f"The database cannot be reached. {_remedy(fault)}\n")
        raise SystemExit(FAILED) from None


def _never_reached(fault: OperationalError) -> bool:
    """Through the pool, or past it, as `migrate` connects: psycopg names a session in an error of connecting alone."""
    cause = fault.__cause__
    return isinstance(cause, PoolTimeout) or (isinstance(cause, Error) and cause.pgconn is not None)


def _remedy(fault: OperationalError) -> str:
    if settings.ENVIRONMENT.is_embedded:
        return "Start it with: uv run manage.py services start"
    if not isinstance(fault.__cause__, PoolTimeout):
        # The pool keeps the cause for the log; past it the server's own words are at hand, which hold no password.
        return f"The driver says: {str(fault).strip()}"
    return "Is the server that DATABASE_URL names running, and does it let this user in?"
