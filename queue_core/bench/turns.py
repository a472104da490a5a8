"""What one client does over and over: a turn claims some jobs and completes them, or takes some tickets in."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import uuid4

from queue_core import batch, contract
from queue_core.batch import Batch, Trail
from queue_core.bench.floor import Floor
from queue_core.bench.stock import EVIDENCE, GROUND
from queue_core.clock import DATABASE_CLOCK, Clock
from queue_core.contract import Ending, NewTicket, claim_sql
from queue_core.models import Job, Lane
from queue_core.states import CompleteOutcome, LeaseToken, Result

#: One answer in so many is a rejection, with its ground.
REJECTED_ONE_IN = 8
#: Ids that a client of the single claim reads ahead, so that reading them is not what is measured.
AHEAD = 200


@dataclass(frozen=True, slots=True)
class Turn:
    """How many jobs a turn ended or took in, and how long its claim took, in seconds."""

    jobs: int
    claim: float = 0.0


type Turning = Callable[[], Turn]
type Claiming = Callable[..., Batch]


def of(path: str, *, client: int, lanes: list[int], size: int) -> Turning:
    """The turns of a path for one client, in the schema that its process stands on."""
    return PATHS[path](client, lanes, size)


def _floor_claims(client: int, lanes: list[int], size: int) -> Turning:
    floor, turns = Floor(client, EVIDENCE), count(client)

    def turn() -> Turn:
        started = time.monotonic()
        claimed = floor.claim(next(turns) % len(lanes), size)
        took = time.monotonic() - started
        return Turn(floor.complete(claimed) if claimed else 0, took)

    return turn


def _floor_adds(client: int, lanes: list[int], size: int) -> Turning:
    # Lanes of their own, so that what is added here is claimed by nobody.
    floor = Floor(client, EVIDENCE)
    return lambda: Turn(floor.add(len(lanes) + client, size))


def _claims(client: int, lanes: list[int], size: int) -> Turning:
    return _claims_by(batch.claim_next, client, lanes, size)


def _claims_without_cap(client: int, lanes: list[int], size: int) -> Turning:
    """The same statements but for the lane's lock and the count of its running leases."""
    return _claims_by(_claim_without_cap, client, lanes, size)


def _claims_by(claim: Claiming, client: int, lanes: list[int], size: int) -> Turning:
    turns, worker = count(client), f"bench-{client}"
    trails = {lane: Trail() for lane in lanes}

    def turn() -> Turn:
        lane = lanes[next(turns) % len(lanes)]
        started = time.monotonic()
        found = claim(lane, size, clock=DATABASE_CLOCK, worker=worker, trail=trails[lane])
        took = time.monotonic() - started
        endings = [(claim.token, _ending(claim.token)) for claim in found.claims]
        return Turn(_committed(batch.complete_many(endings, clock=DATABASE_CLOCK, worker=worker)), took)

    return turn


def _claim_without_cap(lane_id: int, limit: int, *, clock: Clock, worker: str, trail: Trail) -> Batch:
    return batch.claim_most_urgent(lane_id, limit, clock=clock, worker=worker, trail=trail, statement=_WITHOUT_CAP)


_WITHOUT_CAP = claim_sql.CLAIM_MOST_URGENT.replace("%(lane)s FOR NO KEY UPDATE", "%(lane)s").replace(
    "queue_core_room(c.id, c.connection_id, c.cap, c.now, %(oldest)s)", "ARRAY[2147483647, %(oldest)s]"
)


def _single_claims(client: int, lanes: list[int], _size: int) -> Turning:
    worker = f"bench-{client}"
    ahead: list[int] = []

    def turn() -> Turn:
        if not ahead:
            ahead.extend(_read_ahead(lanes[client % len(lanes)]))
        started = time.monotonic()
        answer = contract.claim(ahead.pop(0), clock=DATABASE_CLOCK, worker=worker)
        took = time.monotonic() - started
        if answer.token is None:
            return Turn(0, took)
        outcome = contract.complete(answer.token, _ending(answer.token), clock=DATABASE_CLOCK, worker=worker)
        return Turn(_committed([outcome]), took)

    return turn


def _receives(client: int, lanes: list[int], size: int) -> Turning:
    lane = Lane.objects.get(pk=lanes[client % len(lanes)])
    batches = count()
    # Unlike any other client's, and any other turn's.
    source = f"bench-{uuid4().hex[:12]}"

    def turn() -> Turn:
        number = next(batches)
        new = [
            NewTicket(source=source, external_id=f"{number}-{place}", revision="v1", lane=lane, evidence=EVIDENCE)
            for place in range(size)
        ]
        return Turn(len(contract.receive_many(new, clock=DATABASE_CLOCK)))

    return turn


PATHS: dict[str, Callable[[int, list[int], int], Turning]] = {
    "floor": _floor_claims,
    "floor_add": _floor_adds,
    "claim_next": _claims,
    "claim_next_without_cap": _claims_without_cap,
    "single": _single_claims,
    "receive": _receives,
}


def _read_ahead(lane: int) -> list[int]:
    """The next jobs in order of urgency. Clients of one lane may meet; who loses a race ends no job in that turn."""
    waiting = Job.objects.filter(lane=lane, state="WAITING", available_at__isnull=True).order_by("urgency", "pk")
    return list(waiting.values_list("pk", flat=True)[:AHEAD])


def _ending(token: LeaseToken) -> Ending:
    is_rejected = token.job % REJECTED_ONE_IN == 0
    return Ending(
        result=Result.REJECTED if is_rejected else Result.APPROVED,
        reason_code=GROUND if is_rejected else None,
        cause="above_line" if is_rejected else "all_below",
        scores={"toxic": 0.97 if is_rejected else 0.03},
        model="bench",
        latency=timedelta(milliseconds=3),
    )


def _committed(outcomes: Any) -> int:
    return sum(outcome == CompleteOutcome.COMMITTED for outcome in outcomes)
