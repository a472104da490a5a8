"""Files of tickets in any encoding, read as UTF-8: told by their byte-order mark, or by name.

What is no text in a file's encoding becomes a byte that is none in UTF-8 either, so that the one line is refused, with
its number, by whoever reads lines.
"""

import codecs
import io
from typing import TYPE_CHECKING, BinaryIO

from django.utils.translation import gettext as _

from queue_core.errors import ConfigurationFault

if TYPE_CHECKING:
    from collections.abc import Buffer

UTF_8 = "utf-8"
#: The longer ones first: the mark of UTF-32 begins as that of UTF-16.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
LONGEST_MARK = 4
#: How packed files and workbooks begin: gzip, zip (as which .xlsx comes), old workbooks, bzip2, xz, zstd. None of them
#: is text, and a million refused lines of one would say nothing of what is wrong.
PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"BZh", b"\xfd7zX", b"\x28\xb5\x2f\xfd")
PIECE = 256 * 1024
UNREADABLE = "queue_core.unreadable"


def _mark_unreadable(error: UnicodeError) -> tuple[str | bytes, int]:
    """Half a surrogate pair where bytes are no text, and 0xFF where such a half is to be written: none of UTF-8."""
    if isinstance(error, UnicodeDecodeError):
        return "\udcff", error.end
    assert isinstance(error, UnicodeEncodeError)
    return b"\xff", error.end


codecs.register_error(UNREADABLE, _mark_unreadable)


def as_utf8(stream: BinaryIO, encoding: str | None = None) -> tuple[BinaryIO, str]:
    """A file's text as UTF-8 without a byte-order mark, and the encoding that it was read by.

    `encoding` None: what the mark says, else UTF-8. A mark counts for more than a name, since it was put there by
    whoever wrote the file. Raises ConfigurationFault for a name that is none, and for a file that is no text.
    """
    named = UTF_8 if encoding is None else _checked(encoding)
    head = stream.read(LONGEST_MARK)
    _check_is_text(head, encoding)
    mark, found = next(((mark, name) for mark, name in MARKS if head.startswith(mark)), (b"", named))
    rest = _Rejoined(head.removeprefix(mark), stream)
    raw: io.RawIOBase = rest if found == UTF_8 else _Decoded(rest, found)
    return io.BufferedReader(raw, PIECE), found


def _check_is_text(head: bytes, encoding: str | None) -> None:
    if head.startswith(PACKED):
        raise ConfigurationFault(_("The file is packed, or a workbook. Unpack it, or save it as “CSV UTF-8”."))
    if encoding is None and not head.startswith(tuple(mark for mark, _name in MARKS)) and b"\x00" in head:
        raise ConfigurationFault(_("The file is no UTF-8: its first characters hold NUL. Name its encoding."))


def _checked(name: str) -> str:
    try:
        found = codecs.lookup(name)
        "a".encode(name)
    except (LookupError, ValueError) as error:
        # Codecs such as base64 exist too, and are no encodings of text.
        raise ConfigurationFault(_("There is no encoding “%(name)s”.") % {"name": name[:40]}) from error
    return found.name


class _Rejoined(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer", /) -> int:
        view = memoryview(buffer)
        piece = self._head[: len(view)] or self._rest.read(len(view))
        self._head = self._head[len(piece) :]
        view[: len(piece)] = piece
        return len(piece)


class _Decoded(io.RawIOBase):
    """A stream of another encoding, as UTF-8, decoded piece by piece."""

    def __init__(self, stream: _Rejoined, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)(UNREADABLE)
        self._ready = b""
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer", /) -> int:
        while not self._ready and not self._is_over:
            piece = self._stream.read(PIECE) or b""
            self._is_over = not piece
            self._ready = self._decoder.decode(piece, final=self._is_over).encode(errors=UNREADABLE)
        view = memoryview(buffer)
        count = min(len(view), len(self._ready))
        view[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
