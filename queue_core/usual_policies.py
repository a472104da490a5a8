"""The policy that a new lane begins with, by what its connection asks and answers.

It is version 1, to be read before the probe and changed by further versions. What a score means is only known of models
that we ask ourselves, or whose categories are public: every other score is shown to people until somebody draws lines.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from queue_core.connections import Connection, build
from queue_core.errors import ConfigurationFault
from queue_core.models import ModelConnection, ReasonCode

type Json = dict[str, Any]

LOCAL = "local"
MODERATIONS = "openai-moderations"


@dataclass(frozen=True, slots=True)
class UsualPolicy:
    """Questions and rules as `read_questions` and `Policy.from_rules` take them."""

    rules: list[Json]
    questions: list[Json] = field(default_factory=list)
    note: str = ""


def _line(category: str, reject_at: float, approve_below: float, reason_code: str | None) -> Json:
    return {
        "category": category,
        "reject_at": reject_at,
        "approve_below": approve_below,
        "reason_code": reason_code,
    }


LOCAL_RULES = [_line("offensive", 0.85, 0.45, "insult")]

#: To the model, so not translated. Each rejecting question has a ground of its own; the verdict alone rejects nothing.
QUESTIONS: list[Json] = [
    {
        "type": "choice",
        "name": "verdict",
        "instructions": "What should become of this post?",
        "options": [
            {"value": "approve", "description": "It harms nobody."},
            {"value": "reject", "description": "It insults, threatens or advertises."},
            {"value": "unsure", "description": "The post alone does not tell."},
        ],
    },
    {
        "type": "predicate",
        "name": "insult",
        "instructions": "The post insults or demeans a person or a group of people.",
    },
    {"type": "predicate", "name": "threat", "instructions": "The post threatens somebody or calls for violence."},
    {"type": "predicate", "name": "spam", "instructions": "The post advertises something or repeats the same content."},
]
ASKED_RULES = [
    _line("insult", 0.9, 0.3, "insult"),
    _line("threat", 0.9, 0.2, "threat"),
    _line("spam", 0.95, 0.4, "spam"),
    _line("verdict=reject", 0.95, 0.4, None),
    {"category": "verdict=approve", "approve_at": 0.7},
]

#: The categories of the public moderation API. What is gravest, or has no ground among ours, the model never rejects.
MODERATION_RULES = [
    _line("harassment", 0.9, 0.3, "insult"),
    _line("harassment/threatening", 0.9, 0.2, "threat"),
    _line("hate", 0.9, 0.2, "insult"),
    _line("hate/threatening", 0.9, 0.1, "threat"),
    _line("illicit", 0.95, 0.3, None),
    _line("illicit/violent", 0.95, 0.2, None),
    _line("self-harm", 0.95, 0.1, None),
    _line("self-harm/instructions", 0.95, 0.1, None),
    _line("self-harm/intent", 0.95, 0.1, None),
    _line("sexual", 0.95, 0.3, None),
    _line("sexual/minors", 0.95, 0.05, None),
    _line("violence", 0.95, 0.3, None),
    _line("violence/graphic", 0.95, 0.2, None),
]


def usual_policy(connection: ModelConnection) -> UsualPolicy | None:
    """The usual policy for this connection; None where nobody but its maker knows what it answers.

    It passes the checks of the policy's form: rules name only reason codes that are in use for rejecting.
    """
    try:
        adapter = build(connection)
    except ConfigurationFault:
        # Its own fault, told where it is set up. What its kind would answer is known all the same.
        adapter = None
    found = _of_kind(connection.kind, adapter)
    return _with_grounds_in_use(found) if found is not None else None


def _of_kind(kind: str, adapter: Connection | None) -> UsualPolicy | None:
    if kind == LOCAL:
        return UsualPolicy(LOCAL_RULES, note=_("The usual lines for the small model that comes along."))
    if kind == MODERATIONS:
        return UsualPolicy(MODERATION_RULES, note=_("The usual lines for the categories of a moderation API."))
    if getattr(adapter, "asks", False) is True:
        return UsualPolicy(ASKED_RULES, QUESTIONS, _("The usual questions, with a ground for each that rejects."))
    name_scores = getattr(adapter, "categories", None)
    categories: Sequence[str] = (name_scores(()) if callable(name_scores) else None) or ()
    if not categories:
        return None
    # Whether a high score of a stranger's model is good or bad, nobody here knows.
    rules = [_line(category, 1.0, 0.0, None) for category in categories]
    return UsualPolicy(rules, note=_("People decide everything; its scores are kept. Draw lines in a next version."))


def _with_grounds_in_use(policy: UsualPolicy) -> UsualPolicy:
    named = {rule["reason_code"] for rule in policy.rules if rule.get("reason_code")}
    in_use = set(
        ReasonCode.objects.filter(code__in=named, is_active=True, is_for_rejection=True).values_list("code", flat=True)
    )
    return UsualPolicy([_grounded(rule, in_use) for rule in policy.rules], policy.questions, policy.note)


def _grounded(rule: Json, in_use: Collection[str]) -> Json:
    """A ground that was retired rejects nobody: such tickets are for people."""
    return rule if rule.get("reason_code") in (None, *in_use) else rule | {"reason_code": None}
