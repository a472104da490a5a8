"""On the path of a process whose clock a test sets wrong: TEST_CLOCK_SHIFT seconds are added to all it reads.

The machine's own clock cannot be moved by a test. Python's three ways to it are moved instead, before anything else is
imported; a monotonic clock does not follow wall time, and is left alone. PostgreSQL's clock is another process's.
"""

import copyreg
import datetime as dt
import os
import time

SHIFT = float(os.environ.get("TEST_CLOCK_SHIFT", "0"))

_time, _time_ns, _localtime, _gmtime = time.time, time.time_ns, time.localtime, time.gmtime
time.time = lambda: _time() + SHIFT
time.time_ns = lambda: _time_ns() + int(SHIFT * 1_000_000_000)
time.localtime = lambda seconds=None: _localtime(_time() + SHIFT if seconds is None else seconds)
time.gmtime = lambda seconds=None: _gmtime(_time() + SHIFT if seconds is None else seconds)

_datetime = dt.datetime


class _OfType(type):
    """What was made by the true class (by C code, from a database) is an instance too."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _datetime)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, _datetime)


class ShiftedDatetime(_datetime, metaclass=_OfType):
    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> _datetime:
        return _datetime.now(tz) + dt.timedelta(seconds=SHIFT)

    @classmethod
    def utcnow(cls) -> _datetime:
        return _datetime.now(dt.UTC).replace(tzinfo=None) + dt.timedelta(seconds=SHIFT)

    @classmethod
    def today(cls) -> _datetime:
        return cls.now()


# Pickled under the name that both go by.
ShiftedDatetime.__module__, ShiftedDatetime.__qualname__ = "datetime", "datetime"
copyreg.pickle(_datetime, lambda moment: (ShiftedDatetime, moment.__reduce__()[1]))  # type: ignore[arg-type,return-value]
dt.datetime = ShiftedDatetime  # type: ignore[misc]
