"""The two kinds of files that tickets come in, behind one face: NDJSON and CSV."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO, Protocol

from queue_core import ticket_csv, ticket_file, ticket_refused
from queue_core.errors import InvalidJob
from queue_core.ticket_csv import Columns
from queue_core.ticket_fields import TicketRecord
from queue_core.ticket_file import Line
from queue_core.ticket_refused import Refusal


class FileKind(StrEnum):
    NDJSON = "ndjson"
    CSV = "csv"


class TicketFormat(Protocol):
    """How lines are found in a file, read, and written again when they did not go in."""

    def lines(self, stream: BinaryIO) -> Iterator[Line]:
        """The lines from where the stream stands, blank ones left out."""

    def lines_from(self, stream: BinaryIO, *, first: int) -> Iterator[Line]:
        """The same in the middle of a file, where line `first` begins."""

    def parse(self, line: Line, *, now: datetime) -> TicketRecord:
        """Raises InvalidJob."""

    def is_restricted(self, raw: bytes) -> bool:
        """Whether a line is, or may be, about restricted evidence, which is kept in no report of the site."""

    def names(self, raw: bytes) -> tuple[str | None, str | None]:
        """The source and the ticket that a line names, however wrong it is. None for what cannot be told for sure."""

    def report_head(self) -> bytes:
        """What a report of refused lines begins with."""

    def report_line(self, refusal: Refusal) -> bytes:
        """A refused line, with its reason."""


@dataclass(frozen=True, slots=True)
class Ndjson:
    """One JSON object a line. `defaults` are for fields that a line does not name."""

    defaults: Mapping[str, str]

    def lines(self, stream: BinaryIO) -> Iterator[Line]:
        return ticket_file.lines(stream)

    def lines_from(self, stream: BinaryIO, *, first: int) -> Iterator[Line]:
        return ticket_file.lines(stream, first=first)

    def parse(self, line: Line, *, now: datetime) -> TicketRecord:
        return ticket_file.parse(line, now=now, defaults=self.defaults)

    def is_restricted(self, raw: bytes) -> bool:
        return ticket_refused.names_restricted(raw)

    def names(self, raw: bytes) -> tuple[str | None, str | None]:
        return ticket_refused.names_in(raw)

    def report_head(self) -> bytes:
        return b""

    def report_line(self, refusal: Refusal) -> bytes:
        return ticket_refused.ndjson_line(refusal)


@dataclass(frozen=True, slots=True)
class Csv:
    """Rows under a header that was read already."""

    columns: Columns

    def lines(self, stream: BinaryIO) -> Iterator[Line]:
        return self.lines_from(stream, first=self.columns.header.next_line)

    def lines_from(self, stream: BinaryIO, *, first: int) -> Iterator[Line]:
        return ticket_csv.rows(stream, self.columns.header.delimiter, first=first)

    def parse(self, line: Line, *, now: datetime) -> TicketRecord:
        return self.columns.parse(line, now=now)

    def is_restricted(self, raw: bytes) -> bool:
        return self.columns.is_restricted(raw)

    def names(self, raw: bytes) -> tuple[str | None, str | None]:
        return self.columns.names(raw)

    def report_head(self) -> bytes:
        return ticket_refused.csv_header(self.columns.header)

    def report_line(self, refusal: Refusal) -> bytes:
        line = Line(refusal.line, refusal.raw)
        header = self.columns.header
        try:
            cells = self.columns.cells(line) if refusal.raw is not None else []
        except InvalidJob:
            cells = ticket_refused.lenient_cells(line, header)
        return ticket_refused.csv_line(refusal, header, cells)
