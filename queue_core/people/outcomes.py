"""What people's verbs answer when nobody made a mistake."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from queue_core.models import Appeal, Decision
from queue_core.states import AssignmentToken


class TakeOutcome(StrEnum):
    TAKEN = "taken"
    ALREADY_YOURS = "already_yours"
    HELD_BY_ANOTHER = "held_by_another"
    ITEM_CLOSED = "item_closed"
    HANDS_FULL = "hands_full"
    #: It is for a lead, a specialist, or somebody who had no part in what was decided.
    NOT_FOR_YOU = "not_for_you"
    MISSING = "missing"
    NOTHING = "nothing"
    NOT_ALLOWED_IN_STATE = "not_allowed_in_state"


@dataclass(frozen=True, slots=True)
class Taken:
    """A token with TAKEN and ALREADY_YOURS, else none. `held_by` is a person's key; `most_held` with HANDS_FULL."""

    outcome: TakeOutcome
    token: AssignmentToken | None = None
    until: datetime | None = None
    held_by: int | None = None
    most_held: int | None = None


class HoldingOutcome(StrEnum):
    EXTENDED = "extended"
    GIVEN_BACK = "given_back"
    SKIPPED = "skipped"
    HANDED_OVER = "handed_over"
    ESCALATED = "escalated"
    #: It is for leads already.
    ALREADY = "already"
    HANDS_FULL = "hands_full"
    STALE = "stale"


class Stale(StrEnum):
    """Which test an assignment's token, or what somebody saw of an item, failed."""

    MISSING = "missing"
    ITEM_CLOSED = "item_closed"
    TAKEN_AGAIN = "taken_again"
    NOT_YOURS = "not_yours"
    NOT_TAKEN = "not_taken"
    TIME_OVER = "time_over"


@dataclass(frozen=True, slots=True)
class Held:
    """What the verbs on a holding answered.

    `until` with EXTENDED and HANDED_OVER, `why` with STALE, `most_held` with HANDS_FULL.
    """

    outcome: HoldingOutcome
    until: datetime | None = None
    why: Stale | None = None
    most_held: int | None = None


class ResolveOutcome(StrEnum):
    DECIDED = "decided"
    #: A blind check that agrees with the model, or a second look: the decision looked at stands.
    CHECKED = "checked"
    REQUEUED = "requeued"
    ALREADY = "already"
    STALE = "stale"
    CONFLICT = "conflict"
    NOT_ALLOWED_IN_STATE = "not_allowed_in_state"


@dataclass(frozen=True, slots=True)
class Resolved:
    """DECIDED, CHECKED and REQUEUED were written now, ALREADY before by this very assignment; the rest wrote nothing.

    `decision` is the one written, or with CHECKED and CONFLICT the one in force. `not_before` is until when it may be
    taken back.
    """

    outcome: ResolveOutcome
    decision: Decision | None = None
    why: Stale | None = None
    not_before: datetime | None = None


class TakeBackOutcome(StrEnum):
    TAKEN_BACK = "taken_back"
    #: The time is over, or the message is on its way.
    TOO_LATE = "too_late"
    #: Another decision, a recall or an appeal followed it, or its revision is gone.
    NOT_IN_FORCE = "not_in_force"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class TakenBack:
    """With TAKEN_BACK the token of the person's new assignment."""

    outcome: TakeBackOutcome
    token: AssignmentToken | None = None


class AppealOutcome(StrEnum):
    OPENED = "opened"
    #: This decision was appealed against before; `appeal` is that one.
    KNOWN = "known"
    #: The decision in force was itself made on an appeal.
    FINAL = "final"
    #: There is no decision in force to appeal against.
    NOTHING_DECIDED = "nothing_decided"
    #: The revision named is no longer current, or the ticket was withdrawn.
    NOT_CURRENT = "not_current"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Appealed:
    outcome: AppealOutcome
    appeal: Appeal | None = None


class CorrectOutcome(StrEnum):
    OPENED = "opened"
    #: An open item of this job stands in the way; `item` is its key.
    BUSY = "busy"
    HANDS_FULL = "hands_full"
    #: Another decision is in force by now, or none.
    NOT_IN_FORCE = "not_in_force"
    NOT_CURRENT = "not_current"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Correcting:
    """With OPENED the token of the lead's own assignment, with HANDS_FULL how many items one may hold (`most_held`)."""

    outcome: CorrectOutcome
    token: AssignmentToken | None = None
    item: int | None = None
    most_held: int | None = None
