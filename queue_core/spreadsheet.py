"""Cells that no spreadsheet runs as a formula."""

from typing import Any

#: Where a cell begins with one of these it may be run (OWASP, "CSV injection"): also the wide forms that some programs
#: take for the narrow ones.
DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}",
             "\N{FULLWIDTH HYPHEN-MINUS}", "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip
#: What they pass over before looking.
PASSED_OVER = " \u00a0\ufeff"


def safe_cell(value: Any) -> Any:
    """A text that would be run as a formula begins with an apostrophe instead. Numbers stay numbers."""
    if isinstance(value, str) and value.lstrip(PASSED_OVER).startswith(DANGEROUS):
        return f"'{value}"
    return value
