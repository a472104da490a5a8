"""Contract traces: lines of JSON that say what a verb must answer, replayed through the real verbs.

Times are whole milliseconds since 1970. What is no time (the text "NaN", a budget of 1.5) is handed on as it is, so
that the contract does the refusing and not this adapter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, cast
from uuid import UUID

from queue_core import batch, contract
from queue_core.clock import EPOCH, LATEST, Clock
from queue_core.contract import Ending, NewTicket
from queue_core.errors import CallerError, InvalidClaim, InvalidCompletion, InvalidJob, RevisionConflict, UnknownResult
from queue_core.models import Attempt, Job, Lane
from queue_core.states import DeadReason, JobState, LeaseToken

SOURCE = "contract-check"
LONGEST_MS = timedelta.max // timedelta(milliseconds=1)
#: The ground that the traces' REJECTED is given, since the contract asks for one.
GROUND = "contract-check"
#: What a trace can show, in the order of the PASS line.
PROMISES = (
    "lease exclusion",
    "stale fence rejected",
    "duplicate commit",
    "revision conflict",
    "finite retry",
    "deadline",
)

ERROR_TEXTS: dict[type[CallerError], str] = {
    InvalidJob: "job",
    RevisionConflict: "revision conflict",
    InvalidClaim: "claim clock/budget",
    InvalidCompletion: "completion clock",
    UnknownResult: "result",
}


class TraceClock:
    """Stands at one trace line's `now`, whatever that is."""

    def __init__(self, now: object) -> None:
        self._now = now

    def now(self) -> datetime:
        return cast("datetime", from_ms(self._now))


def from_ms(value: object) -> object:
    """Whole milliseconds as an instant; anything else, and what is beyond all dates, unconverted."""
    length = length_of(value)
    return EPOCH + length if isinstance(length, timedelta) and timedelta(0) <= length < LATEST - EPOCH else value


def length_of(value: object) -> object:
    """Whole milliseconds as a length, at most the longest there is; anything else unconverted."""
    if type(value) is not int:
        return value
    return timedelta(milliseconds=min(max(value, -LONGEST_MS), LONGEST_MS))


def to_ms(moment: datetime | None) -> int:
    return 0 if moment is None else (moment - EPOCH) // timedelta(milliseconds=1)


class Core(Protocol):
    """What a trace needs of a form of the verbs."""

    def claim(self, job: int, clock: Clock, lease: Any, max_attempts: Any) -> LeaseToken | None: ...

    def complete(self, token: LeaseToken, ending: Ending, clock: Clock) -> str: ...


class SingleCore:
    """The verbs by id."""

    def claim(self, job: int, clock: Clock, lease: Any, max_attempts: Any) -> LeaseToken | None:
        return contract.claim(job, clock=clock, worker="trace", lease=lease, max_attempts=max_attempts).token

    def complete(self, token: LeaseToken, ending: Ending, clock: Clock) -> str:
        return contract.complete(token, ending, clock=clock, worker="trace").value


class BatchCore:
    """The set-based forms, a batch of one."""

    def claim(self, job: int, clock: Clock, lease: Any, max_attempts: Any) -> LeaseToken | None:
        tokens = batch.claim_rows([job], clock=clock, worker="trace", lease=lease, max_attempts=max_attempts)
        return tokens.get(job)

    def complete(self, token: LeaseToken, ending: Ending, clock: Clock) -> str:
        # The last line of `complete_many` is for receivers that raise; a trace wants the caller's mistake itself.
        return batch.complete_together([(token, ending)], clock=clock, worker="trace")[0].value


@dataclass(frozen=True, slots=True)
class Difference:
    line: int
    op: str
    expected: dict[str, Any]
    answered: dict[str, Any]

    def __str__(self) -> str:
        return f"line {self.line} ({self.op}): expected {self.expected}, answered {self.answered}"


class Replay:
    """Plays the lines of one trace in a lane of its own. The caller opened a transaction and will roll it back."""

    def __init__(self, lane: Lane, core: Core) -> None:
        self.lane = lane
        self.core = core
        self.shown: set[str] = set()
        self._verbs: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "add": self._add,
            "claim": self._claim,
            "complete": self._complete,
            "state": self._state,
        }

    def play(self, number: int, line: dict[str, Any]) -> Difference | None:
        """The difference between what a line expects and what the verb answered, or None."""
        try:
            answered = self._verbs[line["op"]](line)
        except CallerError as error:
            answered = {"error": ERROR_TEXTS[type(error)]}
        if answered != line["expect"]:
            return Difference(number, line["op"], line["expect"], answered)
        self._note(line, answered)
        return None

    def _note(self, line: dict[str, Any], answered: dict[str, Any]) -> None:
        """Remember which promise this line has shown, so that PASS never names one that no line tried."""
        if answered == {"error": "revision conflict"}:
            self.shown.add("revision conflict")
        elif line["op"] == "complete":
            name = {"stale": "stale fence rejected", "already-done": "duplicate commit"}.get(
                answered.get("outcome", "")
            )
            self.shown |= {name} if name else set()
        elif answered == {"token": None}:
            job = Job.objects.filter(pk=self._job_id(line["id"])).first()
            if job is not None and job.state == JobState.LEASED:
                self.shown.add("lease exclusion")
            elif job is not None and job.state == JobState.DEAD:
                self.shown.add("deadline" if job.dead_reason == DeadReason.DEADLINE else "finite retry")

    def _add(self, line: dict[str, Any]) -> dict[str, Any]:
        ticket = NewTicket(
            source=SOURCE,
            external_id=line["id"],
            revision=line["revision"],
            lane=self.lane,
            evidence={},
            deadline=cast("datetime", from_ms(line["deadline"])),
        )
        return {"state": contract.add(ticket, clock=TraceClock(line["now"])).state}

    def _claim(self, line: dict[str, Any]) -> dict[str, Any]:
        token = self.core.claim(
            self._job_id(line["id"]),
            TraceClock(line["now"]),
            length_of(line["lease_ms"]),
            line["max_attempts"],
        )
        return {"token": token and {"id": line["id"], "fence": token.fence, "revision": token.revision}}

    def _complete(self, line: dict[str, Any]) -> dict[str, Any]:
        ending = Ending(result=line["result"], reason_code=GROUND if line["result"] == "REJECTED" else None)
        return {"outcome": self.core.complete(self._token(line["token"]), ending, TraceClock(line["now"]))}

    def _state(self, line: dict[str, Any]) -> dict[str, Any]:
        job = Job.objects.filter(ticket__source=SOURCE, ticket__external_id=line["id"]).first()
        if job is None:
            return {"state": None}
        return {
            "state": job.state,
            "attempts": job.attempts,
            "fence": job.fence,
            "lease_until": to_ms(job.lease_until),
            "result": job.result,
        }

    def _job_id(self, external_id: str) -> int:
        found = Job.objects.filter(ticket__source=SOURCE, ticket__external_id=external_id)
        return found.values_list("pk", flat=True).first() or 0

    def _token(self, token: dict[str, Any]) -> LeaseToken:
        """A trace's token has no attempt id: it is given the one that its fence was granted with, if there was any."""
        job_id = self._job_id(token["id"])
        attempt = Attempt.objects.filter(job_id=job_id, fence=token["fence"]).first()
        pk, key = (attempt.pk, attempt.key) if attempt else (0, UUID(int=0))
        return LeaseToken(job_id, token["fence"], token["revision"], pk, key)
