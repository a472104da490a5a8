"""What people's verbs answer when nobody made a mistake."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from queue_core.models import Decision
from queue_core.states import AssignmentToken


class TakeOutcome(StrEnum):
    TAKEN = "taken"
    ALREADY_YOURS = "already_yours"
    HELD_BY_ANOTHER = "held_by_another"
    ITEM_CLOSED = "item_closed"
    HANDS_FULL = "hands_full"
    MISSING = "missing"
    NOTHING = "nothing"
    NOT_ALLOWED_IN_STATE = "not_allowed_in_state"


@dataclass(frozen=True, slots=True)
class Taken:
    """A token with TAKEN and ALREADY_YOURS, else none. `held_by` is a person's key."""

    outcome: TakeOutcome
    token: AssignmentToken | None = None
    until: datetime | None = None
    held_by: int | None = None


class HoldingOutcome(StrEnum):
    EXTENDED = "extended"
    GIVEN_BACK = "given_back"
    HANDED_OVER = "handed_over"
    HANDS_FULL = "hands_full"
    STALE = "stale"


class Stale(StrEnum):
    """Which test an assignment's token failed."""

    MISSING = "missing"
    ITEM_CLOSED = "item_closed"
    TAKEN_AGAIN = "taken_again"
    NOT_YOURS = "not_yours"
    NOT_TAKEN = "not_taken"
    TIME_OVER = "time_over"


@dataclass(frozen=True, slots=True)
class Held:
    """What extend, give back and hand over answered; `until` with EXTENDED and HANDED_OVER, `why` with STALE."""

    outcome: HoldingOutcome
    until: datetime | None = None
    why: Stale | None = None


class ResolveOutcome(StrEnum):
    DECIDED = "decided"
    #: A blind check that agrees with the model: its decision stands.
    CHECKED = "checked"
    REQUEUED = "requeued"
    ALREADY = "already"
    STALE = "stale"
    CONFLICT = "conflict"
    NOT_ALLOWED_IN_STATE = "not_allowed_in_state"


@dataclass(frozen=True, slots=True)
class Resolved:
    """DECIDED, CHECKED and REQUEUED were written now, ALREADY before by this very assignment; the rest wrote nothing.

    `decision` is the one written, or with CHECKED and CONFLICT the one in force.
    """

    outcome: ResolveOutcome
    decision: Decision | None = None
    why: Stale | None = None
