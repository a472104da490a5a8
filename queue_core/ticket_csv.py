"""Tickets in CSV: a row of bytes in, a checked record or one named fault out.

Rows are found by their quotes (RFC 4180), never by line ends alone: a text may hold line ends, delimiters and doubled
quotes. A row is bounded as a line of NDJSON is. Files are UTF-8 here (`ticket_encoding`).
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Any, BinaryIO

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.errors import ConfigurationFault, InvalidJob
from queue_core.strict_json import check_value
from queue_core.ticket_fields import FIELDS, TicketRecord, checked
from queue_core.ticket_file import MAX_LINE, SKIP, Line, check_size, with_defaults

#: Tried in this order where none is named.
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
#: Columns of a report of refused rows. They say why, and are passed over when the rows come again.
REFUSED_COLUMNS = ("_refused_line", "_refused_field", "_refused_reason")
MAX_COLUMNS = 200
MAX_HEADER = 64 * 1024
EVIDENCE = "evidence"
#: A key of the evidence, for a column that becomes a part of it.
EVIDENCE_PART = re.compile(r"evidence\.([^\W\d][\w-]{0,63})")
#: What Excel reads, and writes nowhere: the delimiter, before the header.
SEP_LINE = re.compile(r"sep=(.)")
FLAGS = {"true": True, "false": False}

# The package's own limit is lower than what evidence may have. It is one for the whole process.
csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))


class _State(Enum):
    """Where in a row one stands."""

    CELL_BEGINS = auto()
    PLAIN = auto()
    QUOTED = auto()
    QUOTE_IN_QUOTED = auto()


@dataclass(frozen=True, slots=True)
class Header:
    """A file's header: the names as they stand, and the line at which its first row begins."""

    names: tuple[str, ...]
    delimiter: str
    next_line: int

    @property
    def is_of_report(self) -> bool:
        return REFUSED_COLUMNS[-1] in self.names


@dataclass(frozen=True, slots=True)
class Columns:
    """What each column of a header is to us: a field, a part of the evidence, or nothing (None)."""

    header: Header
    targets: tuple[str | None, ...]
    defaults: Mapping[str, str]

    def parse(self, line: Line, *, now: datetime) -> TicketRecord:
        """The record in a row; relative times count from `now`. Raises InvalidJob with the field and the reason."""
        values = self._values(self.cells(line))
        for name, value in values.items():
            check_value(name, value)
        check_size(values.get(EVIDENCE))
        return checked(with_defaults(values, self.defaults), now=now)

    def is_restricted(self, raw: bytes) -> bool:
        """Whether a row is, or may be, about restricted evidence: of a broken one nobody can tell."""
        if "restricted" not in self.targets:
            return False
        try:
            cell = self.cells(Line(0, raw))[self.targets.index("restricted")]
        except InvalidJob:
            return True
        return cell.lower() not in ("", "false")

    def names(self, raw: bytes) -> tuple[str | None, str | None]:
        """The source and the ticket that a row names. None where there is no such column, and for a broken row."""
        try:
            named = dict(zip(self.targets, self.cells(Line(0, raw)), strict=True))
        except InvalidJob:
            return None, None
        return named.get("source") or None, named.get("ticket") or None

    def cells(self, line: Line) -> list[str]:
        """The row's cells, as many as the header has. Raises InvalidJob for a row that is broken."""
        if line.raw is None:
            raise InvalidJob(_("The row is longer than %(most)d bytes.") % {"most": MAX_LINE})
        cells = _cells(line.raw, self.header.delimiter)
        width = len(self.header.names)
        # Spreadsheets write empty cells after the last one that is used.
        if len(cells) < width or any(cells[width:]):
            reason = _("Columns of the header: %(width)d. Cells of this row: %(count)d.")
            raise InvalidJob(reason % {"width": width, "count": len(cells)})
        cells = cells[:width]
        return [without_guard(cell) for cell in cells] if self.header.is_of_report else cells

    def _values(self, cells: Sequence[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        evidence: dict[str, str] = {}
        for target, cell in zip(self.targets, cells, strict=True):
            if target is None or not cell:
                continue
            if part := EVIDENCE_PART.fullmatch(target):
                evidence[part[1]] = cell
            else:
                values[target] = _value(target, cell)
        return values | ({EVIDENCE: evidence} if evidence else {})


def rows(stream: BinaryIO, delimiter: str, *, first: int) -> Iterator[Line]:
    """The rows of a file from line `first` on, blank ones left out. Each has the number of the line it begins at."""
    number = first
    while True:
        raw, ends = _next_row(stream, delimiter.encode())
        if raw == b"" and not ends:
            return
        if raw is None or raw.strip(b" \t\r\n" + delimiter.encode()):
            yield Line(number, raw, ends)
        number += ends


def read_header(stream: BinaryIO, delimiter: str | None = None, known: Sequence[str] = ()) -> Header:
    """Read the header, and leave the stream at the first row.

    `delimiter` None: the one by which most names are `known` or our own. Raises ConfigurationFault for what is none.
    """
    raw, ends = _read_header_line(stream)
    if sep := SEP_LINE.fullmatch(_header_text(raw)):
        delimiter = delimiter or sep[1]
        raw, more = _read_header_line(stream)
        ends += more
    text = _header_text(raw)
    if delimiter is not None:
        _check_delimiter(delimiter)
    else:
        delimiter = max(DELIMITERS, key=lambda one: _likeness(text, one, {*FIELDS, *known, *REFUSED_COLUMNS}))
    names = tuple(name.strip("\ufeff \t") for name in _split(text, delimiter))
    if REFUSED_COLUMNS[-1] in names:
        names = tuple(without_guard(name) for name in names)
    _check_header(names, text)
    return Header(names, delimiter, next_line=ends + 1)


def columns_of(header: Header, mapping: Mapping[str, str], defaults: Mapping[str, str]) -> Columns:
    """What each column is, by the mapping of their names to ours; what it leaves out is known by our own names.

    An empty target leaves a column out. Raises ConfigurationFault that names what is unknown, missing or there twice.
    """
    _check_mapping(header, mapping)
    targets = tuple(_target(name, mapping) for name in header.names)
    named = [target for target in targets if target is not None]
    twice = sorted({target for target in named if named.count(target) > 1})
    if twice:
        raise ConfigurationFault(_("Two columns are mapped to “%(field)s”.") % {"field": twice[0]})
    given = {target.partition(".")[0] for target in named} | defaults.keys()
    missing = [field for field in ("lane", "ticket", "revision", EVIDENCE) if field not in given]
    if missing:
        text = _("No column is “%(field)s”. The header reads: %(header)s")
        raise ConfigurationFault(text % {"field": missing[0], "header": shown_header(header)})
    return Columns(header, targets, defaults)


def shown_header(header: Header) -> str:
    """The header for a message: short, and without what a terminal would obey."""
    return _shown(header.delimiter.join(header.names), 200)


def _shown(text: str, most: int = 64) -> str:
    return "".join(one if one.isprintable() or one == "\t" else "\N{REPLACEMENT CHARACTER}" for one in text)[:most]


_GUARDED = re.compile(r"'+(?=[\s\ufeff]*[=+\-@\t\r\n＝＋－＠])")


def with_guard(cell: str) -> str:
    """A cell that no spreadsheet runs; `without_guard` gives back every cell as it was."""
    return f"'{cell}" if _GUARDED.match(f"'{cell.lstrip(chr(39))}") else cell


def without_guard(cell: str) -> str:
    return cell[1:] if _GUARDED.match(cell) else cell


def _next_row(stream: BinaryIO, delimiter: bytes) -> tuple[bytes | None, int]:
    """The next row without its line end, and how many line ends it took. None: too long, and never held."""
    state, size, ends = _State.CELL_BEGINS, 0, 0
    held: list[bytes] = []
    while piece := stream.readline(MAX_LINE + 2 if size <= MAX_LINE else SKIP):
        is_whole = piece.endswith(b"\n")
        state = _state_after(piece, state, delimiter)
        size += len(piece)
        held.append(piece)
        if size > MAX_LINE + 2:
            held.clear()
        ends += is_whole
        if is_whole and state is not _State.QUOTED:
            break
    raw = b"".join(held).removesuffix(b"\n").removesuffix(b"\r")
    return (None if size > MAX_LINE + 2 or len(raw) > MAX_LINE else raw), ends


def _state_after(text: bytes, state: _State, delimiter: bytes) -> _State:
    """Where one stands after `text`. A quote begins a quoted cell only where a cell begins, as csv reads it."""
    if state is _State.CELL_BEGINS and b'"' not in text:
        return _State.PLAIN
    place = 0
    while place < len(text):
        match state:
            case _State.QUOTED:
                found = text.find(b'"', place)
                state, place = (_State.QUOTE_IN_QUOTED, found + 1) if found >= 0 else (state, len(text))
            case _State.PLAIN:
                found = text.find(delimiter, place)
                state, place = (_State.CELL_BEGINS, found + 1) if found >= 0 else (state, len(text))
            case _:
                is_quote = text[place : place + 1] == b'"'
                # After the end of a quoted cell a delimiter is looked for, from this very character on.
                state, place = (_State.QUOTED, place + 1) if is_quote else (_State.PLAIN, place)
    return state


def _cells(raw: bytes, delimiter: str) -> list[str]:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        reason = _("The row holds bytes that are no text in the file's encoding, at byte %(byte)d.")
        raise InvalidJob(reason % {"byte": error.start + 1}) from error
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        reason = ngettext(
            "The quotes of this row, which takes %(count)d line, do not match.",
            "The quotes of this row, which takes %(count)d lines, do not match.",
            raw.count(b"\n") + 1,
        )
        raise InvalidJob(reason % {"count": raw.count(b"\n") + 1}) from error


def _value(target: str, cell: str) -> Any:
    """A cell as the field's type. What is none of it stays a text, and is refused with the field's own reason."""
    if target == "severity" and re.fullmatch(r"[0-9]{1,9}", cell):
        return int(cell)
    return FLAGS.get(cell.lower(), cell) if target == "restricted" else cell


def _read_header_line(stream: BinaryIO) -> tuple[bytes, int]:
    raw = stream.readline(MAX_HEADER)
    # A name in quotes may hold a line end.
    while raw.count(b'"') % 2 and len(raw) < MAX_HEADER and (more := stream.readline(MAX_HEADER)):
        raw += more
    return raw, raw.count(b"\n")


def _header_text(raw: bytes) -> str:
    if not raw.strip():
        raise ConfigurationFault(_("The file has no header: its first line is empty."))
    if b"\r" in raw.rstrip(b"\r\n") and b"\n" not in raw:
        raise ConfigurationFault(_("The file ends its lines with CR alone. Save it as “CSV UTF-8”, with LF or CRLF."))
    if len(raw) >= MAX_HEADER:
        raise ConfigurationFault(_("The header is longer than %(most)d bytes.") % {"most": MAX_HEADER})
    try:
        return raw.decode().rstrip("\r\n").lstrip("\ufeff")
    except UnicodeDecodeError as error:
        raise ConfigurationFault(_("The header is no text in the file's encoding. Name the encoding.")) from error


def _split(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise ConfigurationFault(_("The quotes of the header do not match.")) from error


def _check_delimiter(text: str) -> None:
    if len(text) != 1 or not text.isascii() or text in '"\r\n\0':
        raise ConfigurationFault(_("A delimiter is one ASCII character that is neither a quote nor a line end."))


def _likeness(text: str, delimiter: str, known: set[str]) -> tuple[int, int]:
    try:
        names = [name.strip("\ufeff \t") for name in _split(text, delimiter)]
    except ConfigurationFault:
        return (0, 0)
    return sum(name in known for name in names), len(names)


def _check_header(names: Sequence[str], text: str) -> None:
    if len(names) > MAX_COLUMNS:
        raise ConfigurationFault(_("The header has more than %(most)d columns.") % {"most": MAX_COLUMNS})
    for place, name in enumerate(names, start=1):
        if not name:
            raise ConfigurationFault(_("Column %(place)d of the header has no name.") % {"place": place})
        if names.index(name) < place - 1:
            raise ConfigurationFault(_("The header names “%(name)s” twice.") % {"name": _shown(name)})
    if len(names) == 1 and len(text) > MAX_COLUMNS:
        raise ConfigurationFault(_("Delimiter or columns are not recognised: the first line is one long name."))


def _check_mapping(header: Header, mapping: Mapping[str, str]) -> None:
    strange = [name for name in mapping if name not in header.names]
    if strange:
        text = _("There is no column “%(name)s”. The header reads: %(header)s")
        raise ConfigurationFault(text % {"name": _shown(strange[0]), "header": shown_header(header)})
    for target in mapping.values():
        if target and target not in FIELDS and not EVIDENCE_PART.fullmatch(target):
            raise ConfigurationFault(_("There is no field “%(field)s”.") % {"field": _shown(target)})


def _target(name: str, mapping: Mapping[str, str]) -> str | None:
    target = mapping.get(name, name)
    if name in REFUSED_COLUMNS or not target:
        return None
    if target == EVIDENCE:
        # One text is stored as the object that models and pages read texts from.
        return f"{EVIDENCE}.text"
    if target not in FIELDS and not EVIDENCE_PART.fullmatch(target):
        text = _("Column “%(name)s” is none of ours. Map it to a field, or to nothing to leave it out.")
        raise ConfigurationFault(text % {"name": _shown(name)})
    return target
