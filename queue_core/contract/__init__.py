"""The execution contract: the only writer, with its twin `batch`, of a job's state, fence, attempts, lease and result.

Each verb locks first, then reads the clock, then judges the locked row. A lost race is a returned outcome; a caller's
mistake is an exception of `queue_core.errors`.
"""

from queue_core.contract.acts import (
    assign,
    give_back_attempts,
    move_deadline,
    pull,
    pull_for_desk,
    refuse_running,
    requeue,
)
from queue_core.contract.blind import open_blind_items
from queue_core.contract.claim import Claim, claim
from queue_core.contract.complete import Ending, complete
from queue_core.contract.erase import Erased, EraseOutcome, erase
from queue_core.contract.intake import NewTicket, Received, add, receive, receive_many, supersede, withdraw
from queue_core.contract.items import Need, close_open_item, open_item, open_items
from queue_core.contract.locks import lock_job, lock_lane
from queue_core.contract.recall import Recalled, RecallTerms, recall_decisions
from queue_core.contract.rechecks import open_again, open_recheck
from queue_core.contract.release import GivenBack, release, release_together, renew
from queue_core.contract.room import Room, measure_room, running_leases
from queue_core.contract.rules import CALL_MARGIN
from queue_core.contract.sweep import Swept, shorten_rests, sweep, wake_due

__all__ = [
    "CALL_MARGIN",
    "Claim",
    "Ending",
    "EraseOutcome",
    "Erased",
    "GivenBack",
    "Need",
    "NewTicket",
    "RecallTerms",
    "Recalled",
    "Received",
    "Room",
    "Swept",
    "add",
    "assign",
    "claim",
    "close_open_item",
    "complete",
    "erase",
    "give_back_attempts",
    "lock_job",
    "lock_lane",
    "measure_room",
    "move_deadline",
    "open_again",
    "open_blind_items",
    "open_item",
    "open_items",
    "open_recheck",
    "pull",
    "pull_for_desk",
    "recall_decisions",
    "receive",
    "receive_many",
    "refuse_running",
    "release",
    "release_together",
    "renew",
    "requeue",
    "running_leases",
    "shorten_rests",
    "supersede",
    "sweep",
    "wake_due",
    "withdraw",
]
