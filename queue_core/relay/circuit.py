"""When to try again. Pure: no database, no clock, no chance of its own."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

#: So many failures running open the circuit. Until then one failure already makes the tries go one by one.
OPENS_AFTER = 4
FIRST_REST, LONGEST_REST = timedelta(seconds=15), timedelta(minutes=10)
#: 5 s, 20 s, 80 s, 5 min, 21 min, 85 min, then every 6 hours.
FIRST_WAIT, FACTOR, LONGEST_WAIT = timedelta(seconds=5), 4, timedelta(hours=6)
#: A wait is spread by this part of it, so that what failed together does not come back together.
JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Circuit:
    """What an endpoint's last answers were. `open_until`: nothing is sent before, and then one message."""

    failures: int = 0
    failing_since: datetime | None = None
    opens: int = 0
    open_until: datetime | None = None


def may_send(circuit: Circuit, now: datetime) -> bool:
    return circuit.open_until is None or circuit.open_until <= now


def at_once(circuit: Circuit, parallel: int) -> int:
    """How many messages go out together: one, as long as the last one failed."""
    return parallel if circuit.failures == 0 else 1


def after_success(_circuit: Circuit) -> Circuit:
    return Circuit()


def after_failure(circuit: Circuit, now: datetime, *, chance: float, retry_after: timedelta | None = None) -> Circuit:
    """`chance` is drawn from [0, 1) by the caller. An endpoint that asks for a rest gets it at once, within a limit."""
    failed = replace(circuit, failures=circuit.failures + 1, failing_since=circuit.failing_since or now)
    if failed.failures < OPENS_AFTER and retry_after is None:
        return failed
    rest = min(FIRST_REST * 2 ** min(circuit.opens, 16), LONGEST_REST)
    if retry_after is not None:
        rest = max(rest if failed.failures >= OPENS_AFTER else timedelta(0), min(retry_after, LONGEST_WAIT))
    return replace(failed, opens=circuit.opens + 1, open_until=now + _spread(rest, chance))


def wait_after(tries: int, *, chance: float, retry_after: timedelta | None = None) -> timedelta:
    """How long a message rests after its so-manieth failed try."""
    wait = min(FIRST_WAIT * FACTOR ** min(tries - 1, 16), LONGEST_WAIT)
    return max(_spread(wait, chance), min(retry_after or timedelta(0), LONGEST_WAIT))


def _spread(wait: timedelta, chance: float) -> timedelta:
    return wait * (1 + JITTER * (2 * chance - 1))
