"""Figures of lanes for the pages. Reads only, as of one moment, and never a sequential scan of a big table."""

from queue_core.figures.account import Account, account
from queue_core.figures.board import LaneFigures, board
from queue_core.figures.effects import Effects, effects_of_job
from queue_core.figures.flow import Flow
from queue_core.figures.folding import fold, forget
from queue_core.figures.keeping import keep
from queue_core.figures.leases import Lease, Leases, running_leases
from queue_core.figures.panels import Panel
from queue_core.figures.samples import longest_waits, sample, samples
from queue_core.figures.snapshot import snapshot
from queue_core.figures.state import LaneState, is_growing, stalled_since, state_of
from queue_core.sums import Counts, counts, cuts, due, series, totals

__all__ = [
    "Account",
    "Counts",
    "Effects",
    "Flow",
    "LaneFigures",
    "LaneState",
    "Lease",
    "Leases",
    "Panel",
    "account",
    "board",
    "counts",
    "cuts",
    "due",
    "effects_of_job",
    "fold",
    "forget",
    "is_growing",
    "keep",
    "longest_waits",
    "running_leases",
    "sample",
    "samples",
    "series",
    "snapshot",
    "stalled_since",
    "state_of",
    "totals",
]
