"""The ledger proved: every rule that holds between rows, looked up row by row on a live system. Reads only."""

from queue_core.ledger.auditor import Finding, Report, Step, audit
from queue_core.ledger.rules import Rule, rules
from queue_core.ledger.sums import Sums

__all__ = ["Finding", "Report", "Rule", "Step", "Sums", "audit", "rules"]
