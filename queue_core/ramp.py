"""The ramp: people raise the flow stage by stage, the machine may only lower it.

Every verb locks the lane first, then reads the clock, then judges; each act writes its audit row, and where consumers
want to know its message, in the same transaction.
"""

from queue_core.contract.rules import RESUME_WITHIN
from queue_core.ramp_bad_ends import BadEnd, end_badly, end_badly_together
from queue_core.ramp_judge import judge, judge_if_due
from queue_core.ramp_keep_back import KeptBack, accept_held_run, kept_back_runs
from queue_core.ramp_lower import force_policy, resume, set_cap, step_down
from queue_core.ramp_outages import (
    EntryCode,
    OutageActed,
    OutageOutcome,
    close_outage,
    hand_over,
    is_steady,
    lanes_of,
    lanes_of_connection,
    last_outage,
    open_outage,
    write_note,
)
from queue_core.ramp_raise import may_raise, raise_stage
from queue_core.ramp_runs import next_stage
from queue_core.ramp_words import Acted, JudgeOutcome, Missing, MissingCode, Raised, RaiseOutcome, RampOutcome

__all__ = [
    "RESUME_WITHIN",
    "Acted",
    "BadEnd",
    "EntryCode",
    "JudgeOutcome",
    "KeptBack",
    "Missing",
    "MissingCode",
    "OutageActed",
    "OutageOutcome",
    "RaiseOutcome",
    "Raised",
    "RampOutcome",
    "accept_held_run",
    "close_outage",
    "end_badly",
    "end_badly_together",
    "force_policy",
    "hand_over",
    "is_steady",
    "judge",
    "judge_if_due",
    "kept_back_runs",
    "lanes_of",
    "lanes_of_connection",
    "last_outage",
    "may_raise",
    "next_stage",
    "open_outage",
    "raise_stage",
    "resume",
    "set_cap",
    "step_down",
    "write_note",
]
