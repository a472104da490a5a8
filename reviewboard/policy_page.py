"""One version of a lane's policy: what it would have made of the last answers, of open items, and of a text."""

from collections.abc import Sequence
from dataclasses import dataclass

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from queue_core.connections import Verdict
from queue_core.errors import ConfigurationFault
from queue_core.models import Lane, Policy, ReasonCode
from queue_core.policy import Cause
from queue_core.policy import Policy as Rules
from queue_core.trial import MOST_TEXT, Trial
from queue_core.what_if import LAST, MOST, Proposal, WhatIf, proposals, what_if
from reviewboard.item_text import score_text
from reviewboard.templatetags.board import count

#: So many proposals are listed, the oldest items first; the rest is a number.
LISTED = 20


class LastForm(forms.Form):
    """How many of the last answers are judged anew."""

    last = forms.IntegerField(
        label=gettext_lazy("Of the last answers"),
        min_value=1,
        max_value=MOST,
        initial=LAST,
        help_text=gettext_lazy("At most 2,000."),
    )


class TryForm(forms.Form):
    text = forms.CharField(
        label=gettext_lazy("A text to try"),
        max_length=MOST_TEXT,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=gettext_lazy("The lane's model is asked once. Nothing is saved, of the text or of the answer."),
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """What the page shows of a version; `fault` instead, where its rules cannot be read."""

    found: WhatIf | None
    causes: Sequence[tuple[str, int]]
    sentence: str
    people: str
    proposed: Sequence[Proposal]
    more_proposed: int
    fault: str = ""


def read(lane: Lane, policy: Policy, last: int) -> Reading:
    """Proposals are made by the version in force alone: another one proposes nothing yet."""
    try:
        rules = Rules.from_rules(policy.rules)
    except ConfigurationFault as fault:
        return Reading(None, (), "", "", (), 0, str(fault))
    found = what_if(lane, rules, last=last, codes=ReasonCode.rejecting(lane.pk))
    proposed = proposals(lane) if policy.pk == lane.policy_id else []
    return Reading(
        found,
        [(_cause(code), number) for code, number in found.causes],
        _sentence(found),
        _people(found),
        proposed[:LISTED],
        max(len(proposed) - LISTED, 0),
    )


def _cause(code: str) -> str:
    return str(Cause(code).label)


def _sentence(found: WhatIf) -> str:
    if not found.looked_at:
        return _("No answer with scores is stored yet: there is nothing to judge anew.")
    return ngettext(
        "Of the last %(all)s answer %(changed)s would end otherwise.",
        "Of the last %(all)s answers %(changed)s would end otherwise.",
        found.looked_at,
    ) % {"all": count(found.looked_at), "changed": count(found.changed)}


def _people(found: WhatIf) -> str:
    """How often the version would have been of one mind with the people who decided."""
    if not found.decided:
        return ""
    return ngettext(
        "%(decided)s was decided by people and would be decided by it too: %(agreed)s in the same way.",
        "%(decided)s were decided by people and would be decided by it too: %(agreed)s in the same way.",
        found.decided,
    ) % {"decided": count(found.decided), "agreed": count(found.agreed)}


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial in words."""

    result: str
    why: str
    scores: Sequence[tuple[str, str]]
    model: str
    milliseconds: int | None


def tried(trial: Trial) -> Tried:
    answer, ruling = trial.answer, trial.ruling
    scores = answer.scores.items() if isinstance(answer, Verdict) else ()
    shown = [(name, _("no score") if score is None else score_text(score)) for name, score in scores]
    if ruling is None:
        return Tried("", trial.detail, shown, answer.model, trial.milliseconds)
    why = f"{trial.cause} ({ruling.reason_code})" if ruling.reason_code else trial.cause
    return Tried(str(ruling.result), why, shown, answer.model, trial.milliseconds)


def proposal_text(proposal: Proposal) -> str:
    """What the policy in force proposes for an item, and that a person decides it."""
    values = {"version": proposal.policy.version, "code": proposal.ruling.reason_code or ""}
    if proposal.ruling.reason_code:
        return _("Version %(version)d of the policy would reject it (%(code)s). You decide.") % values
    return _("Version %(version)d of the policy would approve it. You decide.") % values
