"""What a run's answers are judged by where its stage asks for nothing: whatever there is to judge them by.

A plan that was never told of the gate's second half would let a model through that is up, fast and wrong. So known
answers that a lane has are always sent, and shares are compared as soon as there are usual ones. What a stage asks for
itself goes before this, also where it asks for what cannot be known yet: that stays inconclusive.
"""

from datetime import datetime

from queue_core.gate_usual import usual
from queue_core.models import KnownAnswer, StageRun

#: More than one wrong known answer of five.
WRONG_RATIO = 0.2
#: Wide enough for the ten answers of a probe: a narrower one could say nothing by so few.
SHARE_SHIFT = 0.3


def judge_unasked(run: StageRun, *, now: datetime) -> None:
    """Give a run that is about to begin the limits that its stage leaves empty, where there is what they need.

    They are part of its snapshot: what is made known later counts from the next run on. Shares gate a raise, and the
    last stage has none; known answers can put it on hold too.
    """
    if run.max_wrong_ratio is None and KnownAnswer.objects.filter(lane_id=run.lane_id, is_active=True).exists():
        run.max_wrong_ratio = WRONG_RATIO
    if run.max_share_shift is None and not run.is_last and usual(run, now=now) is not None:
        run.max_share_shift = SHARE_SHIFT
