"""A figure that could not be read in time is shown as it was, with the time it is from. Never as zero."""

import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime

from django.db import OperationalError

from queue_core.figures.snapshot import part

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Panel[T]:
    """A value and when it was read. `value` is None where it could not be read and never was before."""

    value: T | None
    as_of: datetime
    is_kept: bool = False

    @property
    def kept_from(self) -> datetime | None:
        """When it was read, if that was not now: what a page writes beside it."""
        return self.as_of if self.is_kept else None


#: The last value of each panel that this process read. Data of lanes only, the same for every reader.
_kept: dict[Hashable, Panel[object]] = {}
MOST_KEPT = 200


def read_panel[T](key: Hashable, read: Callable[[], T], *, now: datetime) -> Panel[T]:
    """Read one figure so that one that takes too long spoils no other.

    With the key None nothing is kept, and what could not be read has no value.
    """
    try:
        with part():
            panel = Panel(read(), now)
    except OperationalError as fault:
        logger.warning("figures %s could not be read in time: %s", key or "all at once", fault)
        return _last(key, now)
    return panel if key is None else keep_panel(key, panel)


def keep_panel[T](key: Hashable, panel: Panel[T]) -> Panel[T]:
    """Keep what was read as the last value of its panel."""
    if len(_kept) >= MOST_KEPT and key not in _kept:
        _kept.pop(next(iter(_kept)))
    _kept[key] = panel
    return panel


def _last[T](key: Hashable, now: datetime) -> Panel[T]:
    kept = _kept.get(key)
    if kept is None:
        return Panel(None, now, is_kept=True)
    value: T = kept.value  # type: ignore[assignment]  # the key names the type
    return Panel(value, kept.as_of, is_kept=True)


def forget() -> None:
    """For tests: what one of them kept is nothing to the next."""
    _kept.clear()
