"""What keeps the site from starting ends the process with a sentence, not with a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError
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
        if not isinstance(fault.__cause__, PoolTimeout):
            raise
        sys.stderr.write(f"The database cannot be reached. {_remedy()}\n")
        raise SystemExit(FAILED) from None


def _remedy() -> str:
    if settings.ENVIRONMENT.is_embedded:
        return "Start it with: uv run manage.py services start"
    return "Is the server that DATABASE_URL names running, and does it let this user in?"
