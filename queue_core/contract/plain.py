"""The completion that goes as it nearly always does, in one statement.

It commits nothing that `rules.judge_completion` would not: it holds what the rules ask of a token, all of it, against
the rows that it has locked, and where one of a call's tokens is anything else it writes nothing at all and says so.
What such a token then is, and what is kept of it, is judged in the one place for that (`complete.complete_together`).
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from queue_core import prepared, signals, tally, wakeups
from queue_core.clock import Clock
from queue_core.connections.answers import MAX_NAME, bounded
from queue_core.contract import complete_sql
from queue_core.contract.locks import LARGEST_ID, own_instant
from queue_core.errors import InvalidCompletion
from queue_core.models import Decision, Job
from queue_core.models.jobs import MAX_DETAIL
from queue_core.states import ENDING_OUTCOMES, Automation, LeaseToken, Result

if TYPE_CHECKING:
    from queue_core.contract.complete import Ending


def complete_plainly(endings: Sequence[tuple[LeaseToken, "Ending"]], *, clock: Clock) -> bool:
    """Commit all of them in a statement that is its own transaction, or nothing: whether it did.

    False also for what needs more than the statement writes: a MANUAL and its item, jobs of several lanes, a second
    round, receivers. Raises InvalidCompletion for a clock that is none.
    """
    if not _are_plain(endings) or signals.job_completed.has_listeners(Job):
        return False
    if signals.ticket_decided.has_listeners(Decision):
        return False
    values = {
        "rows": json.dumps([_row(token, ending) for token, ending in endings]),
        "seed": uuid4().hex,
        "number": len(endings),
        "jobs": [token.job for token, _ in endings],
        "now": own_instant(clock, InvalidCompletion),
        "automation": Automation.WHOLLY.value,
        **_figures([ending for _, ending in endings]),
    }
    found = prepared.run_alone(complete_sql.COMPLETE_PLAINLY, values).fetchone()
    if found != (len(endings),):
        return False
    wakeups.wake_relay()
    return True


def _are_plain(endings: Sequence[tuple[LeaseToken, "Ending"]]) -> bool:
    return len({token.job for token, _ in endings}) == len(endings) and all(
        _can_be_named(token)
        and ending.outcome in ENDING_OUTCOMES
        and (ending.result == Result.APPROVED or (ending.result == Result.REJECTED and _is_ground(ending.reason_code)))
        for token, ending in endings
    )


def _can_be_named(token: LeaseToken) -> bool:
    numbers = (token.job, token.attempt, token.fence)
    return all(abs(number) <= LARGEST_ID for number in numbers) and token.revision == bounded(token.revision, MAX_NAME)


def _is_ground(code: str | None) -> bool:
    return bool(code) and code == bounded(code, MAX_NAME)


def _row(token: LeaseToken, ending: "Ending") -> dict[str, Any]:
    row = {name: value for name, value in closing_values(ending).items() if value is not None and value != ""}
    row["job"], row["attempt"], row["fence"] = token.job, token.attempt, token.fence
    row["revision"], row["key"] = token.revision, str(token.key)
    if ending.result == Result.REJECTED:
        row["ground_code"] = ending.reason_code
    return row


def closing_values(ending: "Ending") -> dict[str, Any]:
    """What an attempt is closed with, as the statements of a completion read it."""
    return {
        "result": ending.result,
        "outcome": ending.outcome,
        "latency": None if ending.latency is None else f"{ending.latency.total_seconds():.6f} s",
        "scores": ending.scores,
        "cause": bounded(ending.cause, 40),
        "detail": bounded(ending.detail, MAX_DETAIL),
        "model": bounded(ending.model, MAX_NAME),
        "request_id": bounded(ending.request_id, MAX_NAME),
        "usage": ending.usage,
    }


def _figures(endings: Sequence["Ending"]) -> dict[str, str]:
    """What so many LEASED jobs change in the figures that are DONE now; the statement adds lane and minute."""
    codes = [code for ending in endings for code in tally.codes_of_an_end(ending.outcome, latency=ending.latency)]
    counts = Counter(codes + [f"{tally.RESULT}.{ending.result}" for ending in endings])
    moved = Counter({"LEASED": -len(endings), "DONE": len(endings)})
    return {"counts": tally.as_json(counts), "totals": tally.as_json(moved)}
