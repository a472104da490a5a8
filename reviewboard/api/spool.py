"""Answers on their way out: written by one thread, read by another, held in memory only while they are few.

A client may send all of its body before it reads a byte. Whoever wrote each answer to the connection at once would then
wait for that client, which waits for its body to be taken: both for ever.
"""

import tempfile
import threading
from collections.abc import Generator

#: Bytes; more are put into a file that no other process can name.
IN_MEMORY = 1024 * 1024
CHUNK = 64 * 1024


class Spool:
    """A pipe without a size. Writing never waits for reading."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  closed by its reader
        self._changed = threading.Condition()
        self._written = self._read = 0
        self._is_complete = self._is_given_up = False

    def write(self, text: bytes) -> bool:
        """Add to what is there. False: nobody reads any more."""
        with self._changed:
            if not self._is_given_up:
                self._file.seek(self._written)
                self._file.write(text)
                self._written += len(text)
                self._changed.notify()
            return not self._is_given_up

    def complete(self) -> None:
        """Nothing more comes."""
        with self._changed:
            self._is_complete = True
            self._changed.notify()

    def read(self) -> Generator[bytes]:
        """What is written, until it is complete.

        Waits as long as whoever writes does. An answer that ends while another thread still reads its request stops the
        whole process: the server (granian 2.8) then waits for that reading, and lets nobody else run meanwhile.
        """
        try:
            while part := self._next():
                yield part
        finally:
            with self._changed:
                self._is_given_up = True
                self._file.close()

    def _next(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._written > self._read or self._is_complete)
            self._file.seek(self._read)
            part = self._file.read(min(CHUNK, self._written - self._read))
            self._read += len(part)
            return part
