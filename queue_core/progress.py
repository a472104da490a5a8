"""A progress bar for a terminal, and nothing where there is none."""

import os
import stat
import time
from typing import BinaryIO, Self, TextIO

from django.utils.translation import gettext as _

WIDTH = 30
#: Seconds between two drawings: faster is only flicker.
PACE = 0.1


class Progress:
    """How much of a file was read. Of a pipe only the line can be told, since nobody knows its end."""

    def __init__(self, out: TextIO, stream: BinaryIO) -> None:
        self._out = out
        self._stream = stream
        self._size = _size_of(stream)
        self._is_shown = out.isatty()
        self._drawn = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_fault: object) -> None:
        if self._is_shown and self._drawn:
            self._out.write("\r\033[K")
            self._out.flush()

    def show(self, line: int) -> None:
        moment = time.monotonic()
        if not self._is_shown or moment - self._drawn < PACE:
            return
        self._drawn = moment
        self._out.write("\r\033[K" + self._text(line))
        self._out.flush()

    def _text(self, line: int) -> str:
        at = _("line %(line)d") % {"line": line}
        if not self._size:
            return at
        share = min(self._stream.tell() / self._size, 1.0)
        filled = round(share * WIDTH)
        return f"[{'#' * filled}{'.' * (WIDTH - filled)}] {share:4.0%}  {at}"


def _size_of(stream: BinaryIO) -> int:
    """The size of a file; 0 for a pipe."""
    found = os.fstat(stream.fileno())
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
