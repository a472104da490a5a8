"""The words of waiting: layers, causes, and what would move a ticket on. Codes only; pages make sentences of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Layer(StrEnum):
    """In the order of precedence: an open ticket stands in the first that fits.

    Nothing stands in DELIVERY without an endpoint that asked for decisions of its lane: nobody waits for them then.
    """

    DELIVERY = "delivery"
    PEOPLE = "people"
    RUNNING = "running"
    HELD = "held"
    BACK_OFF = "backoff"
    TOO_LATE = "too_late"
    LEASE_OVER = "lease_over"
    NO_WORKERS = "no_workers"
    STAGE_FULL = "stage_full"
    READY = "ready"


#: Layers of jobs that a claim would look at, if only it came and had room: what "oldest ready" is measured over.
CLAIMABLE = (Layer.NO_WORKERS, Layer.STAGE_FULL, Layer.READY)

#: Layers of jobs that wait for the model, with or without a chance.
FOR_THE_MODEL = (Layer.HELD, Layer.BACK_OFF, Layer.TOO_LATE, Layer.LEASE_OVER, *CLAIMABLE)


class Cause(StrEnum):
    """Why a job stands in its layer, or why in none."""

    NOT_DELIVERED = "not_delivered"
    KEPT_BACK = "kept_back"
    ITEM_FREE = "item_free"
    ITEM_TAKEN = "item_taken"
    LEASE_RUNS = "lease_runs"
    HELD_BY_PERSON = "held_by_person"
    HELD_AUTOMATICALLY = "held_automatically"
    RESTS = "rests"
    REST_IS_OVER = "rest_is_over"
    RETRY_AFTER = "retry_after"
    DEADLINE_PASSED = "deadline_passed"
    TOO_LITTLE_TIME = "too_little_time"
    BUDGET_SPENT = "budget_spent"
    NOT_TAKEN_OVER = "not_taken_over"
    NOT_JUDGED = "not_judged"
    NOBODY_FETCHES = "nobody_fetches"
    CAP = "cap"
    CONNECTION_CAP = "connection_cap"
    RATE = "rate"
    NEXT = "next"
    PROBE_DRAWS = "probe_draws"
    # Never, until the set-up is changed:
    NO_POLICY = "no_policy"
    NO_PLAN = "no_plan"
    NO_ROOM_EVER = "no_room_ever"
    LEASE_TOO_SHORT = "lease_too_short"
    # Too late in its layer:
    RESTS_TOO_LONG = "rests_too_long"
    HELD_TOO_LONG = "held_too_long"
    # Not open:
    DECIDED = "decided"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"
    #: Neither decided nor with anybody. The rules leave no such job; a page that met one would have to say so.
    LOST = "lost"


class Prospect(StrEnum):
    """Whether the model can still review it.

    TOO_LATE is the ticket's own: it has no time or no attempt left, and only people can decide it. NEVER is the lane's
    set-up, and stands until somebody changes that.
    """

    NOT_YET = "not_yet"
    TOO_LATE = "too_late"
    NEVER = "never"


class Moves(StrEnum):
    """What would move it on."""

    DELIVERY = "delivery"
    LEAD_ACCEPTS = "lead_accepts"
    PERSON_DECIDES = "person_decides"
    ANSWER = "answer"
    LEAD_STARTS_PROBE = "lead_starts_probe"
    LEAD_RESUMES = "lead_resumes"
    TIME = "time"
    NEXT_TICK = "next_tick"
    PERSON_TAKES = "person_takes"
    SWEEP = "sweep"
    TAKEOVER = "takeover"
    WORKERS = "workers"
    SCHEDULER = "scheduler"
    SEAT = "seat"
    TURN = "turn"
    NEXT_STAGE = "next_stage"
    ENGINEER = "engineer"
    ADMINISTRATOR = "administrator"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one job stands. `layer` is None for a job that is not open."""

    layer: Layer | None
    cause: Cause
    moves: Moves
    params: Mapping[str, Any] = field(default_factory=dict)
    prospect: Prospect = Prospect.NOT_YET
