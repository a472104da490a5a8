"""What the fields of the forms mean: the unit, and what follows from a change. Beside the models' own texts."""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from queue_core.models import (
    AlertHook,
    AlertSettings,
    AlertSubscription,
    ApiKey,
    Endpoint,
    KnownAnswer,
    Lane,
    ModelConnection,
    Policy,
    ReasonCode,
    Stage,
)

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

#: How lengths of time are typed.
LENGTH = _("Hours:minutes:seconds, as 00:15:00; days stand before them, as 2 00:00:00.")
NAME = _("Lower-case letters, digits and hyphens, 64 at most; begins and ends with a letter or digit.")

LANE: "dict[str, StrPromise]" = {
    "name": _(
        "Lower-case letters, digits and hyphens, 64 at most; begins and ends with a letter or digit. It stands in "
        "addresses, messages and import files, and cannot be changed later."
    ),
    "title": _("What people read in place of the name. Empty: the name."),
    "connection": _("Which model is called. A change puts a running lane on hold, and a lead starts the probe."),
    "lease": _(
        "How long one call may take before its job is free for another worker: the connection's call time limit and a "
        "margin at least. A change puts a running lane on hold."
    ),
    "max_attempts": _(
        "So many charged calls a job has; when they are spent it is DEAD and waits for a person. A change is for jobs "
        "that come later."
    ),
    "backoff_base": _("A job whose call failed waits so long; the wait doubles with each failure in a row."),
    "backoff_cap": _("No job waits longer than this between two calls. At least the first back-off."),
    "least_call_time": _(
        "A ticket with less time left than the usual call, or than this, is too late for the model and is offered to "
        "people first."
    ),
    "wait_target": _("A longer wait is an alert, and is marked on the board, also while the lane is on hold."),
    "desk_items_per_hour": _(
        "Items an hour, of all people together. The forecast reckons with it while their own pace is not known."
    ),
    "assignment_time": _("An item that is not decided or extended by then is free for others. The note is kept."),
    "deadline_default": _("From a ticket's arrival. A job that is not done by then is DEAD and waits for a person."),
    "severity_default": _("0 to 3; 3 is danger to life, children or terror and goes to people at intake."),
    "source_kind_default": _("Who reported it. Authority orders go to people at intake."),
    "exposure_default": _("Whether users see the content while it waits. The board says so."),
    "deadline_kind_default": _("A service deadline is a target and may be moved; a hard one is law and may not."),
}
STAGE: "dict[str, StrPromise]" = {
    "number": _("1 is the probe; then 2, 3, … without a gap. Empty in a new row: no such stage."),
    "name": _("What leads read, such as probe, trickle, half, steady."),
    "soak_completions": _("So many jobs are completed in the run before the next stage may be raised."),
    "soak_time": _("So long the stage runs at least before the next may be raised."),
    "max_error_ratio": _("A share from 0 to 1: 0.1 is one in ten. More in the window puts the lane on hold."),
    "max_timeout_ratio": _("A share from 0 to 1. More calls without an answer put the lane on hold."),
    "max_stale_ratio": _("A share from 0 to 1. More answers that came too late put the lane on hold."),
}
CONNECTION: "dict[str, StrPromise]" = {
    "name": NAME,
    "allow_restricted": _(
        "Only when the model's operator may lawfully receive it. Otherwise such tickets go to people."
    ),
}
REASON_CODE: "dict[str, StrPromise]" = {
    "code": _(
        "Stands in decisions, policies and messages for ever: it cannot be changed later. Take a code out of use "
        "instead, and make another."
    ),
    "title": _("What reviewers choose by."),
    "clause": _("The law or the clause of your terms that a decision rests on. It goes out with the decision."),
    "public_text": _("What the person whose content it is may read. It goes out with the decision."),
    "is_for_rejection": _("Whether it is a ground to reject on. Otherwise it is one to approve on."),
    "needs_note": _("A decision on this ground is refused without a note."),
    "needs_second_look": _("Each decision on this ground is looked at by a second person, who does not see the first."),
    "is_active": _("Otherwise nobody chooses it any more. Decisions that rest on it stay as they are."),
}
ENDPOINT: "dict[str, StrPromise]" = {
    "name": NAME,
    "time_limit": _("From 0.1 seconds to a minute, as 00:00:10. A consumer that answers later is tried again."),
    "parallel": _("1 to 16. Messages about one ticket go out one after the other whatever it says."),
}
API_KEY: "dict[str, StrPromise]" = {
    "name": _(
        "Lower-case letters, digits and hyphens, 64 at most; begins and ends with a letter or digit. The audit names "
        "the key's acts by it."
    ),
}
KNOWN_ANSWER: "dict[str, StrPromise]" = {
    "lane": _("Sent to this lane's model, and judged by its policy in force."),
    "title": _("What lists call it. The model does not see it."),
    "is_active": _("Otherwise it is not sent any more. What models answered stays."),
}
POLICY: "dict[str, StrPromise]" = {
    "lane": _("Each lane has versions of its own. The new one rules when a lead puts it into force."),
    "note": _("What is different, and why. Leads read it before they put the version into force."),
}
ALERT_SETTINGS: "dict[str, StrPromise]" = {"lane": _("A lane without a row of its own has every alert.")}
ALERT_SUBSCRIPTION: "dict[str, StrPromise]" = {
    "person": _("Gets mail about what is chosen below, at the address of their account, on lanes they may see.")
}
ALERT_HOOK: "dict[str, StrPromise]" = {
    "name": NAME,
    "address": _("https, and reachable from outside unless it is allowed. Each alert is posted there, signed."),
    "is_enabled": _("Otherwise nothing is posted. What happens meanwhile is not sent later."),
}

EXPLAINED: "dict[type[models.Model], dict[str, StrPromise]]" = {
    Lane: LANE,
    Stage: STAGE,
    ModelConnection: CONNECTION,
    ReasonCode: REASON_CODE,
    Endpoint: ENDPOINT,
    ApiKey: API_KEY,
    KnownAnswer: KNOWN_ANSWER,
    Policy: POLICY,
    AlertSettings: ALERT_SETTINGS,
    AlertSubscription: ALERT_SUBSCRIPTION,
    AlertHook: ALERT_HOOK,
}


def explained(column: "models.Field[Any, Any]") -> "StrPromise | str":
    """What a field of a form means: this module's text or the model's own, and for a length of time how it is typed."""
    text = EXPLAINED.get(column.model, {}).get(column.name, column.help_text)
    return format_lazy("{} {}", text, LENGTH) if isinstance(column, models.DurationField) else text
