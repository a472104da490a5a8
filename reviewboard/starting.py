"""A configuration that is refused ends the process with its sentence, not with a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured

#: As sysexits.h says it: a supervisor need not try again.
REFUSED = 78


@contextmanager
def or_say_why() -> Iterator[None]:
    try:
        yield
    except ImproperlyConfigured as fault:
        sys.stderr.write(f"Reviewboard does not start: {fault}\n")
        raise SystemExit(REFUSED) from None
