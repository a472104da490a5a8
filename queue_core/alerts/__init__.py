"""What people are told of without looking: seen by whoever watches, kept as episodes, sent once to each receiver.

watch: conditions (what is wrong now) -> episodes (begun, acknowledged, over) -> receivers (who is told) -> sending

Everybody watches: the scheduler's tasks, the web processes, and workers as they drain. So a dead scheduler, or dead
workers, are noticed by those who are left; a row of its own gives each look to one of them.
"""

from queue_core.alerts.conditions import Condition, Reading, read
from queue_core.alerts.episodes import Acknowledged, AckOutcome, acknowledge, apply, gates_told, newest, open_episodes
from queue_core.alerts.gates import gates_of_silent, run_subject
from queue_core.alerts.receivers import Receivers, receivers_of
from queue_core.alerts.sending import Sent, is_mail_set_up, send_due
from queue_core.alerts.watching import LATE, PACE, watch, watch_if_due, watch_if_late

__all__ = [
    "LATE",
    "PACE",
    "AckOutcome",
    "Acknowledged",
    "Condition",
    "Reading",
    "Receivers",
    "Sent",
    "acknowledge",
    "apply",
    "gates_of_silent",
    "gates_told",
    "is_mail_set_up",
    "newest",
    "open_episodes",
    "read",
    "receivers_of",
    "run_subject",
    "send_due",
    "watch",
    "watch_if_due",
    "watch_if_late",
]
