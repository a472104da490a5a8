"""Acts on many jobs at once, as rows: previewed with what they will touch, confirmed with one reason, carried out by
workers one job a transaction, and told entry by entry.

The preview writes down each job with its fence. What is not so any more when its turn comes was changed by somebody
meanwhile, and is left alone. No act of these approves content: what nobody looked at is never passed.
"""

from queue_core.bulk.confirming import (
    Confirmed,
    ConfirmOutcome,
    Seconded,
    SecondOutcome,
    confirm,
    may_stop,
    rejecting,
    second,
    stop,
)
from queue_core.bulk.previewing import Previewed, discard, drop_old, preview
from queue_core.bulk.progress import Progress, Sample, moved_before, progress, sample_of
from queue_core.bulk.terms import (
    LARGEST_SAMPLED,
    MOST,
    MOST_REJECTED,
    PREVIEW_HOLDS,
    RIGHTS,
    SAMPLE,
    LeftOut,
    Terms,
    lanes_where_may_make,
    may_make,
)
from queue_core.bulk.working import wake_waiting, work

__all__ = [
    "LARGEST_SAMPLED",
    "MOST",
    "MOST_REJECTED",
    "PREVIEW_HOLDS",
    "RIGHTS",
    "SAMPLE",
    "ConfirmOutcome",
    "Confirmed",
    "LeftOut",
    "Previewed",
    "Progress",
    "Sample",
    "SecondOutcome",
    "Seconded",
    "Terms",
    "confirm",
    "discard",
    "drop_old",
    "lanes_where_may_make",
    "may_make",
    "may_stop",
    "moved_before",
    "preview",
    "progress",
    "rejecting",
    "sample_of",
    "second",
    "stop",
    "wake_waiting",
    "work",
]
