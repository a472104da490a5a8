"""Why people have an item, and what became of it, as sentences in the reader's language."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from queue_core.errors import ConfigurationFault
from queue_core.models import Attempt, Item
from queue_core.policy import Cause, Policy
from queue_core.states import AttemptOutcome, DeadReason, ItemKind, SourceKind


def cause_text(kind: str, cause: str) -> str:
    """A group's cause in a few words."""
    if kind == ItemKind.DEAD:
        return str(DeadReason(cause).label) if cause in DeadReason.values else cause
    if kind == ItemKind.MANUAL:
        return str(Cause(cause).label) if cause in Cause.values else _("the model could not decide")
    if kind == ItemKind.URGENT:
        return _("for people at once")
    return str(ItemKind(kind).label)


def why_here(item: Item, attempts: list[Attempt]) -> str:
    """One sentence. `attempts` are the job's, oldest first."""
    if item.kind == ItemKind.DEAD:
        return _why_dead(item, attempts)
    if item.kind == ItemKind.MANUAL:
        return _why_manual(item)
    if item.kind == ItemKind.URGENT:
        return _why_urgent(item)
    if item.kind == ItemKind.PULLED:
        return _("A person took it out of the machine's hands before its deadline; the model gave no result.")
    if item.kind == ItemKind.BLIND:
        return _(
            "A blind check: the model has decided this, and you do not see how. Decide as if nobody had. Where you "
            "decide otherwise, your decision takes the place of the model's."
        )
    why_again = WHY_AGAIN.get(ItemKind(item.kind))
    return str(why_again) if why_again is not None else _("Its earlier decision was recalled.")


#: Why people look at what was decided.
WHY_AGAIN = {
    ItemKind.SECOND_LOOK: gettext_lazy(
        "A second look: another person has decided this, and you do not see how. Decide as if nobody had. Where you "
        "decide otherwise, a lead decides; until then the first decision stands."
    ),
    ItemKind.DISAGREEMENT: gettext_lazy(
        "Two people decided this differently. The first decision stands until a third one decides."
    ),
    ItemKind.CORRECTION: gettext_lazy(
        "You look anew at a decision in force. It stands until you decide, and stays on record afterwards."
    ),
    ItemKind.APPEAL: gettext_lazy(
        "An appeal against a decision in force. What you decide goes out: the decision upheld, or overturned."
    ),
}


def _why_dead(item: Item, attempts: list[Attempt]) -> str:
    tried = [attempt for attempt in attempts if attempt.outcome != AttemptOutcome.FENCE_RAISED]
    if item.cause == DeadReason.ATTEMPTS:
        number = int(item.params.get("attempts", len(tried)))
        spent = ngettext(
            "Its only attempt was spent without a result; it ended so: %(outcome)s.",
            "All %(number)d attempts were spent without a result; the last one ended so: %(outcome)s.",
            number,
        )
        return spent % {"number": number, "outcome": outcome_text(tried[-1]) if tried else _("unknown")}
    if not tried:
        return _("Its deadline passed before the model was asked at all.")
    passed = ngettext(
        "Its deadline passed after %(number)d attempt without a result; it ended so: %(outcome)s.",
        "Its deadline passed after %(number)d attempts without a result; the last one ended so: %(outcome)s.",
        len(tried),
    )
    return passed % {"number": len(tried), "outcome": outcome_text(tried[-1])}


def outcome_text(attempt: Attempt) -> str:
    return str(AttemptOutcome(attempt.outcome).label) if attempt.outcome else _("still running")


def _why_manual(item: Item) -> str:
    has_score = "score" in item.params
    if has_score and item.cause == Cause.GREY_ZONE:
        return _(
            "The model was not sure: its score for “%(category)s” is %(score)s, between %(low)s and %(high)s."
        ) % _numbers(item.params)
    if has_score and item.cause == Cause.NO_REASON_CODE:
        return _(
            "The model would reject for “%(category)s” (%(score)s), but the policy names no reason code for it."
        ) % _numbers(item.params)
    if has_score and item.cause == Cause.TOO_LOW:
        return _("The model was not sure: its score for “%(category)s” is %(score)s, below the %(least)s it needs.") % {
            "category": str(item.params["category"]),
            "score": score_text(item.params["score"]),
            "least": score_text(item.params["least"]),
        }
    return _("The model handed it over: %(cause)s.") % {"cause": cause_text(item.kind, item.cause)}


def _numbers(params: Mapping[str, Any]) -> dict[str, str]:
    return {
        "category": str(params["category"]),
        "score": score_text(params["score"]),
        "low": score_text(params["approve_below"]),
        "high": score_text(params["reject_at"]),
    }


def score_text(score: float) -> str:
    return number_format(score, 2)


def _why_urgent(item: Item) -> str:
    if item.params.get("source_kind") == SourceKind.AUTHORITY_ORDER:
        return _("It is an authority's order: it never waits for the model.")
    return _("It has the highest severity: it never waits for the model.")


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """One score against its two lines. `zone` is below, grey, above or none (the policy has no line for it)."""

    category: str
    score: str
    zone: str
    text: str


def score_lines(attempt: Attempt | None) -> list[ScoreLine]:
    """The scores of an attempt against the policy it was claimed under."""
    if attempt is None or not isinstance(attempt.scores, dict):
        return []
    rules = {}
    if attempt.policy is not None:
        try:
            rules = {rule.category: rule for rule in Policy.from_rules(attempt.policy.rules).rules}
        except ConfigurationFault:
            rules = {}
    lines = []
    for category, score in attempt.scores.items():
        if isinstance(score, bool) or not isinstance(score, int | float):
            lines.append(ScoreLine(category, "–", "none", _("no score")))
        elif category not in rules:
            lines.append(ScoreLine(category, score_text(score), "none", _("no line in this policy")))
        else:
            rule = rules[category]
            zone = "above" if score >= rule.reject_at else "grey" if score >= rule.approve_below else "below"
            lines.append(ScoreLine(category, score_text(score), zone, _zone_text(zone, rule)))
    return lines


def _zone_text(zone: str, rule: Any) -> str:
    limits = {"low": score_text(rule.approve_below), "high": score_text(rule.reject_at)}
    if zone == "above":
        return _("rejects from %(high)s") % limits
    if zone == "grey":
        return _("for people between %(low)s and %(high)s") % limits
    return _("approves below %(low)s") % limits
