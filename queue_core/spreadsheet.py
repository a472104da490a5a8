"""Cells that no spreadsheet runs as a formula."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

#: Where a cell begins with one of these it may be run (OWASP, "CSV injection"): also the wide forms that some programs
#: take for the narrow ones.
DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}",
             "\N{FULLWIDTH HYPHEN-MINUS}", "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip
#: What they pass over before looking.
PASSED_OVER = " \u00a0\ufeff"

#: Within a text: where a spreadsheet of another country parts cells, at its own separator and then, since the quotes no
#: longer stand where a cell begins, at line ends too.
_PARTED = re.compile(rf"""([;\t\r\n]["'\s{PASSED_OVER}]*)(?=[{re.escape("".join(DANGEROUS[:4] + DANGEROUS[7:]))}])""")


def safe_cell(value: Any) -> Any:
    """A text that would be run as a formula begins with an apostrophe instead, and so does a part of it that would be.

    Numbers stay numbers.
    """
    if not isinstance(value, str):
        return value
    text = _PARTED.sub(r"\1'", value)
    return f"'{text}" if value.lstrip(PASSED_OVER).startswith(DANGEROUS) else text


def csv_lines(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Each row as a line of CSV as it comes, so that a file needs no more memory than its longest row.

    A byte-order mark before the first, by which Excel knows UTF-8.
    """
    writer = csv.writer(_Line())
    yield "\ufeff"
    for row in rows:
        yield str(writer.writerow([safe_cell(value) for value in row]))


class _Line:
    """What csv writes to: hands each line on."""

    def write(self, line: str) -> str:
        return line
