"""The one reader of the time.

Verbs take a `Clock` and read it after they hold the rows they judge: a time read before a lock was waited for is
older than the truth by that wait. Production hands over the database's clock, so that no worker's or web server's
own clock decides anything; tests and traces hand over their own.
"""

from datetime import UTC, datetime
from typing import Protocol

from django.db import connection

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Before the last year, so that no zone and no small sum leads out of the dates that Python can read back.
LATEST = datetime(9999, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    def now(self) -> datetime:
        """The instant of this very call, with a zone."""
        ...


class DatabaseClock:
    """PostgreSQL's `clock_timestamp()`: it moves inside a transaction, which `now()` does not."""

    def now(self) -> datetime:
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            row = cursor.fetchone()
        assert row is not None
        moment: datetime = row[0]
        return moment


DATABASE_CLOCK = DatabaseClock()


class FixedClock:
    """A clock that stands where it was set. For tests, traces and simulations (an import rule holds that)."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment


def is_instant(moment: object) -> bool:
    """Whether `moment` can be a time of the contract: an aware datetime, from 1970 to 9998."""
    return isinstance(moment, datetime) and moment.tzinfo is not None and EPOCH <= moment < LATEST
