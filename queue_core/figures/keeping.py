"""What the tick does for the figures."""

from queue_core.clock import Clock
from queue_core.figures.folding import fold, forget
from queue_core.figures.heads import walk_heads
from queue_core.figures.samples import sample


def keep(*, clock: Clock) -> None:
    """Fold what was changed; once a minute look at each lane, and forget what is old; clear the way for pages."""
    fold()
    if sample(clock=clock):
        forget(clock=clock)
    walk_heads()
