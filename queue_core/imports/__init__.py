"""Imports of uploaded files: stored in parts, tried dry, taken in by workers batch by batch, and forgotten again.

Every step of a worker is one transaction with the tickets of its batch: a worker that dies leaves the run where its
last batch ended, and the next one goes on from there.
"""

from queue_core.imports.acts import (
    RIGHT,
    Acted,
    ActedOn,
    Settings,
    begin,
    change,
    discard,
    settle,
    stop,
    take_report,
    visible_to,
)
from queue_core.imports.keeping import KEPT_FOR, LEFT_ALONE, forget_old, wake_waiting
from queue_core.imports.reading import Preview, format_of, header_of, preview, report
from queue_core.imports.uploading import MOST_BYTES, MOST_OPEN, NewFile, upload
from queue_core.imports.working import work

__all__ = [
    "KEPT_FOR",
    "LEFT_ALONE",
    "MOST_BYTES",
    "MOST_OPEN",
    "RIGHT",
    "Acted",
    "ActedOn",
    "NewFile",
    "Preview",
    "Settings",
    "begin",
    "change",
    "discard",
    "forget_old",
    "format_of",
    "header_of",
    "preview",
    "report",
    "settle",
    "stop",
    "take_report",
    "upload",
    "visible_to",
    "wake_waiting",
    "work",
]
