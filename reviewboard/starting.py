"""What keeps the site from starting ends the process with a sentence, not with a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured

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
