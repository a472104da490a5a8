"""What is taken out in files: decisions, statements of reasons, and the counts of a transparency report."""

from queue_core.exports.periods import Period
from queue_core.exports.tables import Column, Kind, Table

__all__ = ["Column", "Kind", "Period", "Table"]
