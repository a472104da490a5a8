"""Figures of lanes for the pages. Reads only, as of one moment, and never a sequential scan of a big table."""

from queue_core.figures.account import Account, account
from queue_core.figures.board import LaneFigures, board
from queue_core.figures.flow import Flow
from queue_core.figures.leases import Lease, Leases, running_leases
from queue_core.figures.panels import Panel
from queue_core.figures.snapshot import snapshot

__all__ = [
    "Account",
    "Flow",
    "LaneFigures",
    "Lease",
    "Leases",
    "Panel",
    "account",
    "board",
    "running_leases",
    "snapshot",
]
