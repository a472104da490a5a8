"""Cells that no spreadsheet runs as a formula."""

from typing import Any

#: What a spreadsheet takes for the beginning of one.
DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}",
             "\N{FULLWIDTH HYPHEN-MINUS}", "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip


def safe_cell(value: Any) -> Any:
    """A text that would be run as a formula begins with an apostrophe instead. Numbers stay numbers."""
    if isinstance(value, str) and value.lstrip(" ").startswith(DANGEROUS):
        return f"'{value}"
    return value
