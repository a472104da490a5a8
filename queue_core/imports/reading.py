"""An uploaded file as a stream, its first rows, and its refused lines as a file again."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from queue_core.models import ImportPart, ImportRun
from queue_core.ticket_csv import Header, columns_of, read_header, rows
from queue_core.ticket_file import lines
from queue_core.ticket_formats import Csv, FileKind, Ndjson, TicketFormat
from queue_core.ticket_refused import Refusal, lenient_cells

if TYPE_CHECKING:
    from collections.abc import Buffer

MOST_SHOWN = 5
MOST_OF_A_CELL = 200
REFUSALS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows of a file, cut short. `header` None: NDJSON, whose rows are lines."""

    header: Header | None
    rows: list[list[str]]


class StoredFile(io.RawIOBase):
    """The parts of a run's file, one in memory at a time. Seeks, so that a worker goes on where another ended."""

    def __init__(self, run: ImportRun, place: int = 0) -> None:
        self._run = run
        self._place = place
        self._number = -1
        self._part = b""
        first = ImportPart.objects.filter(run=run, number=0).values_list("content", flat=True).first()
        #: All parts but the last are of the first one's size.
        self._size = len(first or b"") or 1

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._run.size}[whence]
        self._place = base + place
        return self._place

    def readinto(self, buffer: "Buffer", /) -> int:
        number, within = divmod(self._place, self._size)
        if number != self._number:
            found = ImportPart.objects.filter(run=self._run, number=number).values_list("content", flat=True).first()
            self._number, self._part = number, bytes(found or b"")
        view = memoryview(buffer)
        piece = self._part[within : within + len(view)]
        view[: len(piece)] = piece
        self._place += len(piece)
        return len(piece)


def opened(run: ImportRun, place: int = 0) -> BinaryIO:
    stream = io.BufferedReader(StoredFile(run))
    stream.seek(place)
    return stream


def format_of(run: ImportRun) -> TicketFormat:
    """How the file is read, also when its parts are gone. Raises ConfigurationFault where header and mapping differ."""
    given = {"lane": run.lane.name if run.lane else "", "revision": run.revision}
    defaults = {name: text for name, text in given.items() if text}
    if run.kind == FileKind.NDJSON:
        return Ndjson(defaults)
    return Csv(columns_of(header_of(run), run.mapping, defaults))


def header_of(run: ImportRun) -> Header:
    """The header as it was when the run was settled; before, that of the file. Raises ConfigurationFault."""
    if run.header is None:
        return read_header(opened(run), run.delimiter or None, list(run.mapping))
    return Header(tuple(run.header["names"]), run.header["delimiter"], run.header["next_line"])


def preview(run: ImportRun) -> Preview:
    """Raises ConfigurationFault for a file of CSV that has no header."""
    stream = opened(run)
    found: list[list[str]] = []
    if run.kind == FileKind.NDJSON:
        for line, _place in zip(lines(stream), range(MOST_SHOWN), strict=False):
            found.append([_cut((line.raw or b"").decode(errors="replace"))])
        return Preview(None, found)
    header = read_header(stream, run.delimiter or None, list(run.mapping))
    for row, _place in zip(rows(stream, header.delimiter, first=header.next_line), range(MOST_SHOWN), strict=False):
        cells = lenient_cells(row, header)[: len(header.names)]
        found.append([_cut(cell) for cell in [*cells, *[""] * (len(header.names) - len(cells))]])
    return Preview(header, found)


def report(run: ImportRun, format_: TicketFormat) -> Iterator[bytes]:
    """The refused lines with their reasons, in the file's own format, some at a time."""
    yield format_.report_head()
    last = 0
    while found := list(run.refusals.filter(line__gt=last).order_by("line")[:REFUSALS_AT_ONCE]):
        yield b"".join(
            format_.report_line(
                Refusal(one.line, one.field, one.reason, one.outcome, None if one.raw is None else bytes(one.raw))
            )
            for one in found
        )
        last = found[-1].line


def _cut(text: str) -> str:
    return text if len(text) <= MOST_OF_A_CELL else f"{text[:MOST_OF_A_CELL]}…"
