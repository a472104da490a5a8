import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from queue_core.connections.answers import LONGEST_WAIT, clamped_wait

_SECONDS = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


def parse_retry_after(value: str | None, now: datetime) -> timedelta | None:
    """How long a `Retry-After` header asks to wait, between nothing and a day. None: not said, or not readable.

    `now` is only asked for the form with a date; it is the database's, like every other time.
    """
    text = (value or "").strip()
    if not text or len(text) > 400:
        return None
    if _SECONDS.fullmatch(text):
        # Cut down first: a float of many digits is infinite, which no timedelta can hold.
        longest = LONGEST_WAIT.total_seconds()
        return clamped_wait(timedelta(seconds=min(max(float(text), -longest), longest)))
    return _until(text, now)


def _until(text: str, now: datetime) -> timedelta | None:
    try:
        moment = parsedate_to_datetime(text)
        # The date says "-0000" where its zone is unknown; HTTP dates are in UTC by definition.
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        wait = aware - now
    except (ValueError, TypeError, OverflowError):
        return None
    return clamped_wait(wait)
