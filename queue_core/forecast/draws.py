"""How many of a number fall where: by expectation, or by a seeded chance."""

import math
from collections.abc import Sequence
from random import Random
from typing import Protocol

#: Above this a Poisson count is drawn as a rounded normal one; the difference is far below one count in a thousand.
LARGE = 500.0


class Draw(Protocol):
    """Turns means into counts."""

    def count(self, mean: float) -> float:
        """A count whose expectation is `mean`."""
        ...

    def split(self, number: float, shares: Sequence[float]) -> list[float]:
        """`number` dealt out by `shares`, which sum to one. The parts sum to `number`."""
        ...

    def whole(self, amount: float, carried: float) -> tuple[float, float]:
        """How much of a capacity can be used now, and what is carried to the next step."""
        ...


class Mean:
    """Expectations: counts are fractions, and the same question has one answer."""

    def count(self, mean: float) -> float:
        return mean

    def split(self, number: float, shares: Sequence[float]) -> list[float]:
        return [number * share for share in shares]

    def whole(self, amount: float, carried: float) -> tuple[float, float]:
        return amount + carried, 0.0


class Chance:
    """Whole counts drawn from a seed: the same seed, the same counts. Ten million cost what ten do."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311  (a simulation, no secret)

    def count(self, mean: float) -> float:
        if mean <= 0:
            return 0.0
        if mean > LARGE:
            return float(max(0, round(self._random.gauss(mean, math.sqrt(mean)))))
        # Knuth's product, in pieces small enough for exp().
        number, left = 0, mean
        while left > 0:
            piece = min(left, 30.0)
            left -= piece
            number += self._small(piece)
        return float(number)

    def split(self, number: float, shares: Sequence[float]) -> list[float]:
        left, share_left, parts = int(number), 1.0, []
        for share in shares[:-1]:
            part = self._random.binomialvariate(left, min(1.0, share / share_left)) if left and share > 0 else 0
            parts.append(float(part))
            left -= part
            share_left = max(share_left - share, 1e-12)
        return [*parts, float(left)]

    def whole(self, amount: float, carried: float) -> tuple[float, float]:
        full = math.floor(amount + carried + 1e-9)
        return float(full), amount + carried - full

    def _small(self, mean: float) -> int:
        limit, product, number = math.exp(-mean), self._random.random(), 0
        while product > limit:
            product *= self._random.random()
            number += 1
        return number
