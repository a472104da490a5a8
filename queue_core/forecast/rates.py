"""How fast something goes, from counts of whole minutes: a pace with what is not known of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

#: How many standard errors a range is wide to either side. A forecast moves two paces apart at once, each by this much,
#: so that together they leave out less than one case in twenty.
WIDTH = 1.8
#: Fewer minutes than this tell no pace.
LEAST_MINUTES = 3
#: Fewer events than this tell no pace either.
LEAST_NUMBER = 20


@dataclass(frozen=True, slots=True)
class Rate:
    """`number` events in `minutes` minutes: a mean a minute, and the variance between minutes."""

    mean: float
    noise: float
    minutes: int
    number: float

    def within(self, ahead: float) -> tuple[float, float]:
        """The range of the mean pace over the next `ahead` minutes: the error of the past and the chance to come."""
        spread = WIDTH * math.sqrt(self.noise / self.minutes + self.noise / max(ahead, 1.0))
        return max(0.0, self.mean - spread), self.mean + spread


def measured(counts: Sequence[float], *, least: float = LEAST_NUMBER) -> Rate | None:
    """The pace of these minutes; None where they are too few, or less than `least` events happened in them.

    With `least` 0 a count of nothing is a finding too: arrivals that did not come.
    """
    minutes, number = len(counts), float(sum(counts))
    if minutes < LEAST_MINUTES or number < least:
        return None
    # Few minutes may look more alike than they are: no pace is taken for steadier than half of a Poisson count's, and
    # nothing seen for a time does not mean that nothing comes.
    noise = max(variance(counts), number / minutes / 2, 1.0 / minutes)
    return Rate(fmean(counts), noise, minutes, number)
