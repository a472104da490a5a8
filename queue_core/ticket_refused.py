"""Lines that did not go in, written as they came and with the reason beside, so that they can be mended and sent again.

In NDJSON the reason is one more field, in CSV three more columns; reading passes them over. In CSV no cell is a formula
to a spreadsheet, and reading takes back the apostrophes that see to that.
"""

import csv
import io
import json
import re
from dataclasses import dataclass
from typing import Any

from queue_core.ticket_csv import REFUSED_COLUMNS, Header, with_guard
from queue_core.ticket_file import REFUSED_FIELD, Line

BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that did not go in: where, which field, why, and its bytes (None: too long, or not to be kept)."""

    line: int
    field: str
    reason: str
    outcome: str
    raw: bytes | None = None


def ndjson_line(refusal: Refusal) -> bytes:
    """The object with its reason before the other fields; of what is no object, its text stands in the reason."""
    why: dict[str, Any] = {"line": refusal.line, "field": refusal.field, "reason": refusal.reason}
    raw = refusal.raw or b""
    content = _object_of(raw)
    if content is None:
        # Whoever mends it writes the object; the text is what they have to go by.
        return _dumped({REFUSED_FIELD: why | ({"text": raw.decode(errors="replace")} if raw else {})}) + b"\n"
    if REFUSED_FIELD in content:
        return _dumped({REFUSED_FIELD: why} | {k: v for k, v in content.items() if k != REFUSED_FIELD}) + b"\n"
    # Its own bytes, not what a reader made of them: also what was refused, a key that stands twice, is still there.
    rest = raw.strip()[1:].lstrip()
    return _dumped({REFUSED_FIELD: why})[:-1] + (b"}" if rest == b"}" else b", " + rest) + b"\n"


def csv_header(header: Header) -> bytes:
    """The file's own columns, and those of the reason. Begins with the mark by which spreadsheets know UTF-8."""
    names = [name for name in header.names if name not in REFUSED_COLUMNS]
    return BOM.encode() + _csv_line([with_guard(name) for name in [*names, *REFUSED_COLUMNS]], header.delimiter)


def csv_line(refusal: Refusal, header: Header, cells: list[str]) -> bytes:
    """The row as it came, the reason in its columns, and behind them the cells for which the header has no column."""
    padded = [*cells, *[""] * (len(header.names) - len(cells))]
    kept = [cell for name, cell in zip(header.names, padded, strict=False) if name not in REFUSED_COLUMNS]
    why = [str(refusal.line), refusal.field, refusal.reason]
    beyond = padded[len(header.names) :]
    return _csv_line([with_guard(cell) for cell in [*kept, *why, *beyond]], header.delimiter)


def lenient_cells(line: Line, header: Header) -> list[str]:
    """The cells of a row however broken: what a person has to go by."""
    text = (line.raw or b"").decode(errors="replace")
    try:
        return next(csv.reader([text], delimiter=header.delimiter), [])
    except (csv.Error, StopIteration):
        return [text]


def _object_of(raw: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _dumped(content: dict[str, Any]) -> bytes:
    # ASCII, since a name or a text may hold what UTF-8 has no bytes for: half of a surrogate pair.
    return json.dumps(content, ensure_ascii=True).encode()


def _csv_line(cells: list[str], delimiter: str) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
    return out.getvalue().encode()


#: What may be a key "ticket" of a line, also where some of its letters are written as their numbers.
_KEYS = re.compile(rb'"ticket"\s*:')


def names_in(raw: bytes) -> tuple[str | None, str | None]:
    """The source and the ticket that a refused line of NDJSON names; None for what it does not tell for sure.

    Of a key that may stand twice nobody can tell which of them is meant.
    """
    content = _object_of(raw)
    if content is None or len(_KEYS.findall(_plain(raw))) > 1:
        return None, None
    source, ticket = content.get("source"), content.get("ticket")
    # A number is refused as an id, and may be meant as the text of its digits.
    named = str(ticket) if isinstance(ticket, str | int) else None
    return source if isinstance(source, str) else None, named


#: A line that says of itself that its evidence is restricted, in NDJSON.
_RESTRICTED = re.compile(rb'"restricted"\s*:\s*(?!false|null)')
#: JSON lets every letter of a name be written as its number.
_ESCAPED = re.compile(rb"\\u00([0-7][0-9a-fA-F])")


def names_restricted(raw: bytes) -> bool:
    """Whether a refused line of NDJSON is, or may be, about restricted evidence. Rather once too often."""
    return _RESTRICTED.search(_plain(raw)) is not None


def _plain(raw: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), raw)
