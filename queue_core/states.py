"""The words of the contract: states, results, outcomes and tokens.

Nothing here touches the database. Values are stored and sent as written; labels are for people.
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class JobState(TextChoices):
    """The four states of a job. Their names are the same in every language; a gloss stands beside them."""

    WAITING = "WAITING", "WAITING"
    LEASED = "LEASED", "LEASED"
    DONE = "DONE", "DONE"
    DEAD = "DEAD", "DEAD"


class Result(TextChoices):
    """What the machine's job ended with."""

    APPROVED = "APPROVED", _("approved")
    REJECTED = "REJECTED", _("rejected")
    MANUAL = "MANUAL", _("for a person")


class Verdict(TextChoices):
    """What a ticket got, from the model or from a person."""

    APPROVED = "APPROVED", _("approved")
    REJECTED = "REJECTED", _("rejected")


class DeadReason(TextChoices):
    """Why a job ended without a result."""

    DEADLINE = "deadline", _("deadline passed")
    ATTEMPTS = "attempts", _("attempts spent")
    SUPERSEDED = "superseded", _("superseded by a newer revision")
    WITHDRAWN = "withdrawn", _("withdrawn at the source")
    PULLED = "pulled", _("taken over by a person")


#: Deaths that a person has to look after. The others are nobody's work.
HANDLED_DEATHS = (DeadReason.DEADLINE, DeadReason.ATTEMPTS)
#: Deaths from which no requeue leads back.
FINAL_DEATHS = (DeadReason.SUPERSEDED, DeadReason.WITHDRAWN, DeadReason.PULLED)


class AttemptOutcome(TextChoices):
    """How one claim of a job ended. The rows of the table in DESIGN.md, and the ends that no call has."""

    VERDICT = "verdict", _("verdict")
    REFUSED = "refused", _("refused by the model")
    INPUT_REJECTED = "input_rejected", _("input rejected")
    INVALID_ANSWER = "invalid_answer", _("invalid answer")
    UNAVAILABLE = "unavailable", _("unavailable")
    OVERLOADED = "overloaded", _("overloaded")
    MISCONFIGURED = "misconfigured", _("connection refused by configuration")
    TIMEOUT = "timeout", _("timed out: effect unknown")
    LEASE_EXPIRED = "lease_expired", _("lease expired: effect unknown")
    RELEASED = "released", _("given back uncalled")
    SUPERSEDED = "superseded", _("superseded while running")
    WITHDRAWN = "withdrawn", _("withdrawn while running")
    REFUSED_BY_HOLD = "refused_by_hold", _("result refused by a hold")
    FENCE_RAISED = "fence_raised", _("fence raised by a person")
    UNKNOWN = "unknown", _("unknown after a restore")


#: Outcomes that make the job DONE; the rest give it back.
ENDING_OUTCOMES = (AttemptOutcome.VERDICT, AttemptOutcome.REFUSED, AttemptOutcome.INPUT_REJECTED)
#: Counted in the gate's error ratio.
ERROR_OUTCOMES = (
    AttemptOutcome.UNAVAILABLE,
    AttemptOutcome.OVERLOADED,
    AttemptOutcome.INVALID_ANSWER,
    AttemptOutcome.MISCONFIGURED,
)
#: Counted in the gate's timeout ratio: the effect on the model is unknown.
TIMEOUT_OUTCOMES = (AttemptOutcome.TIMEOUT, AttemptOutcome.LEASE_EXPIRED)
#: The model said nothing of the ticket: it is away, it hangs, or what came is no answer.
SILENT_OUTCOMES = (
    AttemptOutcome.UNAVAILABLE,
    AttemptOutcome.OVERLOADED,
    AttemptOutcome.INVALID_ANSWER,
    *TIMEOUT_OUTCOMES,
)
#: The model may have answered, and nobody heard it.
UNKNOWN_EFFECTS = (*TIMEOUT_OUTCOMES, AttemptOutcome.UNKNOWN)
#: Surely not executed, so the attempt is given back.
UNEXECUTED_OUTCOMES = (
    AttemptOutcome.UNAVAILABLE,
    AttemptOutcome.OVERLOADED,
    AttemptOutcome.MISCONFIGURED,
    AttemptOutcome.RELEASED,
)


class AddOutcome(StrEnum):
    """What intake answered. `refused` is never stored, only reported."""

    STORED = "stored"
    KNOWN = "known"
    SUPERSEDED = "superseded"
    REVISION_CONFLICT = "revision_conflict"


class ClaimOutcome(StrEnum):
    """What one claim by id gave. Only CLAIMED comes with a token."""

    CLAIMED = "claimed"
    MISSING = "missing"
    DONE = "done"
    DEAD = "dead"
    HELD = "held"
    DIED_DEADLINE = "died_deadline"
    DIED_ATTEMPTS = "died_attempts"
    ON_HOLD = "on_hold"
    STAGE_FULL = "stage_full"
    RATE_SPENT = "rate_spent"
    NOT_JUDGED = "not_judged"
    RETRY_AFTER = "retry_after"


class CompleteOutcome(StrEnum):
    COMMITTED = "committed"
    ALREADY_DONE = "already-done"
    STALE = "stale"


class LeaseOutcome(StrEnum):
    """What renew and release answered."""

    RENEWED = "renewed"
    RELEASED = "released"
    DIED = "died"
    STALE = "stale"


class ActOutcome(StrEnum):
    """What a person's verb on a job answered when nobody made a mistake."""

    DONE = "done"
    NOT_ALLOWED_IN_STATE = "not_allowed_in_state"
    MISSING = "missing"
    STALE = "stale"


class SourceKind(TextChoices):
    OWN_DETECTION = "own_detection", _("own detection")
    USER_NOTICE = "user_notice", _("user notice")
    TRUSTED_FLAGGER = "trusted_flagger", _("trusted flagger")
    AUTHORITY_ORDER = "authority_order", _("authority order")
    APPEAL = "appeal", _("appeal")


class Exposure(TextChoices):
    """What the content does while its ticket waits."""

    HIDDEN = "hidden", _("hidden from users")
    LIMITED = "limited", _("limited")
    LIVE = "live", _("LIVE while it waits")


class DeadlineKind(TextChoices):
    SERVICE = "service", _("service target")
    HARD = "hard", _("hard: law, or void afterwards")


class Automation(TextChoices):
    WHOLLY = "wholly", _("wholly automated")
    PARTLY = "partly", _("partly automated")
    NONE = "none", _("not automated")


class DecisionWhy(TextChoices):
    FIRST = "first", _("first decision")
    SECOND_LOOK = "second_look", _("second look")
    CORRECTION = "correction", _("correction")
    APPEAL = "appeal", _("appeal")
    RECALL = "recall", _("recall")
    #: By the very person who decided, before anybody was told. What was in force before is in force again.
    TAKEN_BACK = "taken_back", _("taken back")


class ItemKind(TextChoices):
    """Why people have the item."""

    MANUAL = "manual", _("the model handed it over")
    DEAD = "dead", _("DEAD before a result")
    URGENT = "urgent", _("for people at once")
    PULLED = "pulled", _("taken out of the machine's hands")
    RECALLED = "recalled", _("decision recalled")
    BLIND = "blind", _("blind check of the model")
    SECOND_LOOK = "second", _("second look")
    DISAGREEMENT = "disputed", _("two people decided differently")
    CORRECTION = "correction", _("correction of a decision")
    APPEAL = "appeal", _("appeal against a decision")


#: Items whose ticket has a decision in force: work for people, but no open ticket.
NOT_OPEN_TICKETS = (
    ItemKind.BLIND,
    ItemKind.SECOND_LOOK,
    ItemKind.DISAGREEMENT,
    ItemKind.CORRECTION,
    ItemKind.APPEAL,
)
#: The same as a list in SQL: `kind NOT IN {NOT_OPEN_SQL}`.
NOT_OPEN_SQL = "(" + ", ".join(f"'{kind.value}'" for kind in NOT_OPEN_TICKETS) + ")"


class ItemEnd(TextChoices):
    DECIDED = "decided", _("decided")
    REQUEUED = "requeued", _("requeued")
    SUPERSEDED = "superseded", _("superseded")
    WITHDRAWN = "withdrawn", _("withdrawn")
    CHECKED = "checked", _("checked")
    RECALLED = "recalled", _("decision recalled")
    TAKEN_BACK = "taken_back", _("decision taken back")
    APPEALED = "appealed", _("an appeal came in")


class AssignmentEnd(TextChoices):
    DECIDED = "decided", _("decided")
    REQUEUED = "requeued", _("requeued")
    GIVEN_BACK = "given_back", _("given back")
    HANDED_OVER = "handed_over", _("handed over")
    EXPIRED = "expired", _("time was over")
    ITEM_CLOSED = "item_closed", _("item closed")
    CHECKED = "checked", _("checked")
    SKIPPED = "skipped", _("skipped")
    ESCALATED = "escalated", _("escalated to a lead")


class PassedAs(TextChoices):
    """What a person did with an item instead of deciding it."""

    SKIPPED = "skipped", _("skipped")
    HANDED_OVER = "handed_over", _("handed over")
    ESCALATED = "escalated", _("escalated to a lead")


class RunEnd(TextChoices):
    """How a stage run ended."""

    RAISED = "raised", _("raised to the next stage")
    STEPPED_DOWN = "stepped_down", _("stepped down")
    HELD = "held", _("held by a person")
    AUTOMATIC_HOLD = "automatic_hold", _("held automatically")
    POLICY = "policy", _("another policy put into force")


class HoldForm(TextChoices):
    HOLD = "hold", _("hold: running calls may still commit")
    REFUSE = "refuse", _("hold and refuse running results")


class HoldReason(TextChoices):
    """The four reasons a person may give, and the causes of an automatic hold."""

    WRONG_ANSWERS = "wrong_answers", _("the model answers wrongly")
    MODEL_TROUBLE = "model_trouble", _("the model is in trouble")
    DESK_FULL = "desk_full", _("people cannot keep up")
    PRECAUTION = "precaution", _("as a precaution")
    AUTO_UNAVAILABLE = "auto_unavailable", _("the model was unavailable")
    AUTO_OVERLOADED = "auto_overloaded", _("the model was overloaded")
    AUTO_ERRORS = "auto_errors", _("too many errors")
    AUTO_TIMEOUTS = "auto_timeouts", _("too many timeouts")
    AUTO_STALE = "auto_stale", _("too many stale answers")
    AUTO_SLOW = "auto_slow", _("calls are too slow")
    AUTO_MISCONFIGURED = "auto_misconfigured", _("the model refused the connection")
    AUTO_WRONG = "auto_wrong", _("too many known answers were wrong")
    CONNECTION_CHANGED = "connection_changed", _("the connection was changed")
    NEW_LANE = "new_lane", _("the lane is new")
    RESTORED = "restored", _("the database was restored")


#: What the hold form offers to a person.
PERSONS_HOLD_REASONS = (
    HoldReason.WRONG_ANSWERS,
    HoldReason.MODEL_TROUBLE,
    HoldReason.DESK_FULL,
    HoldReason.PRECAUTION,
)


class AlertKind(TextChoices):
    """What people are told of without looking. The worst first, as the board lists them."""

    SCHEDULER_DEAD = "scheduler_dead", _("the scheduler is dead")
    AUTOMATIC_HOLD = "automatic_hold", _("a lane put itself on hold")
    NOBODY = "nobody", _("nobody is working")
    NO_PROGRESS = "no_progress", _("nothing completes")
    SEVERE_WAITING = "severe_waiting", _("a ticket of severity 3 waits")
    PASSING = "passing", _("deadlines pass within the hour")
    HELD_LATE = "held_late", _("tickets are held over the target")
    READY_LATE = "ready_late", _("tickets wait over the target")
    GROWING = "growing", _("the queue grows")
    MODEL_BACK = "model_back", _("the model answers again and a lane is still on hold")
    SOAK_MET = "soak_met", _("a stage has run its time")


class AlertPhase(TextChoices):
    BEGUN = "begun", _("begun")
    OVER = "over", _("over")


class AlertChannel(TextChoices):
    MAIL = "mail", _("e-mail")
    HOOK = "hook", _("webhook")


class ImportState(TextChoices):
    """What becomes of an uploaded file of tickets."""

    UPLOADED = "uploaded", _("uploaded")
    CHECKING = "checking", _("dry run")
    CHECKED = "checked", _("tried dry")
    IMPORTING = "importing", _("importing")
    DONE = "done", _("imported")
    STOPPED = "stopped", _("stopped")
    DISCARDED = "discarded", _("discarded")
    FAILED = "failed", _("failed")


#: From which nothing leads on. The file is gone.
ENDED_IMPORTS = (ImportState.DONE, ImportState.STOPPED, ImportState.DISCARDED, ImportState.FAILED)


class RecallTo(TextChoices):
    """What becomes of the tickets whose decisions are recalled."""

    PEOPLE = "people", _("items for people")
    REVIEW = "review", _("a new review round by the model")


class RecallOutcome(TextChoices):
    """What became of one decision of a recall."""

    #: Its message had reached nobody and was withdrawn.
    WITHDRAWN = "withdrawn", _("withdrawn before delivery")
    #: Its message may have been read: consumers are told that it is recalled.
    ANNOUNCED = "announced", _("consumers told")
    #: It was no longer in force.
    PASSED_OVER = "passed_over", _("replaced meanwhile")


class BulkKind(TextChoices):
    """What a bulk act does. None approves anything: content that nobody looked at is never passed."""

    REQUEUE = "requeue", _("requeue")
    PULL = "pull", _("take out of the machine's hands")
    MOVE_DEADLINES = "move_deadlines", _("move service deadlines")
    HAND_OVER = "hand_over", _("hand over")
    ESCALATE = "escalate", _("escalate")
    REJECT = "reject", _("reject unseen")


class BulkOutcome(TextChoices):
    """What became of one entry of a bulk act. Only DONE changed anything."""

    DONE = "done", _("done")
    #: Claimed, decided, requeued, taken and given back, or moved since the preview.
    CHANGED = "changed", _("changed since the preview: left as it is")
    TAKEN = "taken", _("somebody has it: left to them")
    NOT_ALLOWED = "not_allowed", _("not possible in its state")
    MOVED_BEFORE = "moved_before", _("its deadline was moved before: not moved again")
    NOT_LATER = "not_later", _("its own deadline is later already")
    TOO_LATE = "too_late", _("the new deadline passed before its turn came")
    HANDS_FULL = "hands_full", _("the person holds as many items as allowed")
    NO_RIGHT = "no_right", _("the right to it was lost meanwhile")
    FAILED = "failed", _("failed: nothing was changed")
    SAMPLED = "sampled", _("in the sample: decided by a person for itself")
    STOPPED = "stopped", _("stopped before its turn")


class MessageState(TextChoices):
    READY = "ready", _("ready")
    KEPT_BACK = "kept_back", _("kept back until the run is accepted")
    WITHDRAWN = "withdrawn", _("withdrawn before delivery")


class MessageKind(TextChoices):
    DECISION = "decision", "decision"
    DECISION_RECALLED = "decision.recalled", "decision.recalled"
    ITEM_OPENED = "item.opened", "item.opened"
    TICKET_DEAD = "ticket.dead", "ticket.dead"
    LANE_ON_HOLD = "lane.on_hold", "lane.on_hold"
    STAGE_RAISED = "stage.raised", "stage.raised"
    OUTAGE_OPENED = "outage.opened", "outage.opened"
    OUTAGE_CLOSED = "outage.closed", "outage.closed"
    #: To one endpoint, because a person asked whether it answers. It has no number and is on no page of messages.
    TEST = "endpoint.test", "endpoint.test"


class EndpointState(TextChoices):
    """Whether an endpoint gets its messages."""

    ENABLED = "enabled", _("enabled")
    DISABLED = "disabled", _("disabled: its messages are kept for it")
    RETIRED = "retired", _("retired: it wants no more messages")


class DeliveryState(TextChoices):
    """Where one message stands for one endpoint."""

    PENDING = "pending", _("waiting")
    DELIVERED = "delivered", _("delivered")
    GIVEN_UP = "given_up", _("given up")
    WITHDRAWN = "withdrawn", _("withdrawn before delivery")


class TryOutcome(TextChoices):
    """How one try to deliver ended. Only DELIVERED is an answer of 2xx; TIMEOUT and LOST leave the effect unknown."""

    DELIVERED = "delivered", _("ok")
    REDIRECT = "redirect", _("redirect, not followed")
    GONE = "gone", _("gone")
    REFUSED = "refused", _("refused")
    FAILED = "failed", _("failed")
    TIMEOUT = "timeout", _("time-out")
    UNREACHABLE = "unreachable", _("unreachable")
    FORBIDDEN_ADDRESS = "forbidden", _("address not allowed")
    NO_SECRET = "no_secret", _("no secret")
    LOST = "lost", _("sender vanished")


#: Tries after which the endpoint may have the message: it is never withdrawn, only recalled.
SEEN_OUTCOMES = (
    TryOutcome.DELIVERED,
    TryOutcome.REDIRECT,
    TryOutcome.GONE,
    TryOutcome.REFUSED,
    TryOutcome.FAILED,
    TryOutcome.TIMEOUT,
    TryOutcome.LOST,
)


@dataclass(frozen=True, slots=True)
class LeaseToken:
    """The right to complete one claim of one job. It names a grant, never a worker.

    `attempt` is the attempt's primary key, so that it is closed without a search; `key` is its random id, so that a
    guessed or replayed number is worth nothing.
    """

    job: int
    fence: int
    revision: str
    attempt: int
    key: UUID


@dataclass(frozen=True, slots=True)
class AssignmentToken:
    """The right of one person to decide one item, until the assignment's end."""

    item: int
    fence: int
    key: UUID
