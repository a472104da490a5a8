"""What an act of each kind rests on: the rights, what it never touches, and what its maker chooses."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import TextChoices
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_core.errors import InvalidRequest
from queue_core.models import BulkAct
from queue_core.models.bulk import MAX_REASON
from queue_core.people.rights import lanes_where_may
from queue_core.people.unseen import MOST_SEVERE
from queue_core.states import BulkKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: Jobs of one act. Who wants more makes another one, and sees how the first one went.
MOST = 20_000
#: Items rejected unseen by one act, and how many of them people decide first, each for itself (DESIGN.md).
MOST_REJECTED = 200
SAMPLE = 20
#: Nothing more severe is decided unseen.
LARGEST_SAMPLED = MOST_SEVERE
#: What a preview showed is confirmed within this time, or counted anew.
PREVIEW_HOLDS = timedelta(minutes=15)
LONGEST_FIRST = timedelta(days=30)
LONGEST_SPAN = timedelta(days=7)

#: All of these, on the job's lane: asked at the preview, and again when each job's turn comes.
RIGHTS: dict[BulkKind, tuple[str, ...]] = {
    BulkKind.REQUEUE: ("requeue_item",),
    BulkKind.PULL: ("pull_job",),
    BulkKind.MOVE_DEADLINES: ("move_deadlines",),
    BulkKind.HAND_OVER: ("decide_item",),
    BulkKind.ESCALATE: ("decide_item",),
    BulkKind.REJECT: ("decide_item", "reject_in_bulk"),
}
#: These are about open items, the others about jobs that wait for the model.
OF_ITEMS = frozenset({BulkKind.REQUEUE, BulkKind.HAND_OVER, BulkKind.ESCALATE, BulkKind.REJECT})
#: These may be about what somebody has in their hands.
PASSED_ON = frozenset({BulkKind.HAND_OVER, BulkKind.ESCALATE})
WITH_DEADLINES = frozenset({BulkKind.REQUEUE, BulkKind.MOVE_DEADLINES})


class LeftOut(TextChoices):
    """Why something of a selection is no part of the act."""

    RESTRICTED = "restricted", gettext_lazy("restricted evidence is never handled in bulk")
    NO_RIGHT = "no_right", gettext_lazy("on its lane you may not do this")
    GONE = "gone", gettext_lazy("it is not at the desk, or not there any more")
    TAKEN = "taken", gettext_lazy("somebody has it")
    NOT_DEAD = "not_dead", gettext_lazy("not DEAD by its deadline or its attempts")
    NOT_WAITING = "not_waiting", gettext_lazy("not WAITING")
    HARD = "hard", gettext_lazy("its deadline is hard: nobody here can move it")
    SEVERE = "severe", gettext_lazy("severity 2 and 3 are never decided unseen")
    FOR_LEADS = "for_leads", gettext_lazy("it is for leads already")
    DECIDED = "decided", gettext_lazy("its content has a decision in force")
    WAS_DECIDED = "was_decided", gettext_lazy("a person decided it before, and took that back")
    ERASED = "erased", gettext_lazy("its content was erased")


@dataclass(frozen=True, slots=True)
class Terms:
    """What the maker chooses. `first` and `span` count from the confirmation; `to` is a person's key."""

    first: timedelta | None = None
    span: timedelta = timedelta(0)
    moves_again: bool = False
    to: int | None = None
    reason_code: str = ""


@dataclass(frozen=True, slots=True)
class Spread:
    """New deadlines: from `first` on, evenly over `span`, the first places, which are the most severe, first."""

    first: datetime
    span: timedelta
    count: int

    def deadline(self, place: int) -> datetime:
        return self.first + self.span * place / (self.count - 1) if self.count > 1 else self.first

    def as_json(self) -> dict[str, Any]:
        return {"first": self.first.isoformat(), "span": self.span.total_seconds(), "count": self.count}

    @classmethod
    def of(cls, act: BulkAct) -> "Spread":
        """As it was confirmed."""
        span = timedelta(seconds=act.terms["span"])
        return cls(datetime.fromisoformat(act.terms["first"]), span, act.terms["count"])


def may_make(person: "AbstractUser", kind: BulkKind) -> bool:
    """Whether a person has all rights that an act of this kind asks for on one lane at least."""
    lanes = lanes_where_may_make(person, kind)
    return lanes is None or bool(lanes)


def lanes_where_may_make(person: "AbstractUser", kind: BulkKind) -> frozenset[int] | None:
    """The ids of the lanes on which a person has all rights of this kind; None: all lanes."""
    bounds = [lanes for right in RIGHTS[kind] if (lanes := lanes_where_may(person, right)) is not None]
    return frozenset.intersection(*bounds) if bounds else None


def checked_reason(reason: str) -> str:
    reason = reason.strip()
    if not reason or len(reason) > MAX_REASON or "\0" in reason:
        raise InvalidRequest(_("A reason has 1 to %(most)d characters.") % {"most": MAX_REASON}, field="reason")
    return reason


def check_spread(terms: Terms) -> None:
    if terms.first is None or not timedelta(0) < terms.first <= LONGEST_FIRST:
        raise InvalidRequest(_("The first new deadline lies within 30 days from now."), field="first")
    if not timedelta(0) <= terms.span <= LONGEST_SPAN:
        raise InvalidRequest(_("Deadlines are spread over at most 7 days."), field="span")
