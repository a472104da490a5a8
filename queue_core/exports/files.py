"""Where an export goes: standard output, or a file that appears when it is whole."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from django.utils.translation import gettext as _

from queue_core.errors import ConfigurationFault


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """A stream for `name`, or standard output for "-".

    What is written goes to a file beside it that takes its place at the end: a half export is never taken for a whole
    one, and what was there before stays until then. Raises ConfigurationFault where it cannot be written.
    """
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        stream = part.open("wb")
    except OSError as error:
        raise _fault(path, error) from error
    try:
        with stream:
            yield stream
        part.replace(path)
    except OSError as error:
        raise _fault(path, error) from error
    finally:
        part.unlink(missing_ok=True)


def _fault(path: Path, error: OSError) -> ConfigurationFault:
    return ConfigurationFault(_("%(file)s cannot be written: %(error)s") % {"file": path, "error": error.strerror})
