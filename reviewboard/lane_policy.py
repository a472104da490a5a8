"""A lane's policy as its page shows it: the version in force and those that may take its place, in words."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.errors import ConfigurationFault
from queue_core.models import Lane, Policy, ReasonCode
from queue_core.policy import Floor, Rule
from queue_core.policy import Policy as Rules
from queue_core.questions import Choice, Option, Predicate, Question, Scale, read_questions
from reviewboard.ramp_text import stage_name
from reviewboard.templatetags.board import count

#: So many other versions can be put into force here, the newest first. A lane has a handful.
MOST_VERSIONS = 30
#: So many rules are shown at once; the rest opens.
RULES_AT_ONCE = 6


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """One version. Its rules are sentences; where they are broken, `fault` says how and there are none."""

    pk: int
    version: int
    note: str
    made_at: datetime
    made_by: str
    rules: Sequence[str]
    more_rules: Sequence[str]
    questions: Sequence[str] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class LanePolicies:
    in_force: PolicyVersion | None
    others: Sequence[PolicyVersion]


def read_policies(lane: Lane) -> LanePolicies:
    codes = ReasonCode.rejecting(lane.pk)
    rows = Policy.objects.filter(lane=lane).select_related("made_by").order_by("-version")
    others = rows if lane.policy_id is None else rows.exclude(pk=lane.policy_id)
    return LanePolicies(
        in_force=_shown(lane.policy, codes) if lane.policy else None,
        others=[_shown(one, codes) for one in others[:MOST_VERSIONS]],
    )


def shown_version(policy: Policy) -> PolicyVersion:
    """One version, as it would be read when it is put into force."""
    return _shown(policy, ReasonCode.rejecting(policy.lane_id))


def _shown(policy: Policy, codes: Collection[str]) -> PolicyVersion:
    """The same reading of the rules as when the version is put into force."""
    rules, fault = _rules(policy, None)
    if rules:
        # Rules whose ground was retired can be read, though they cannot be put into force.
        fault = _rules(policy, codes)[1]
    return PolicyVersion(
        pk=policy.pk,
        version=policy.version,
        note=policy.note,
        made_at=policy.made_at,
        made_by=policy.made_by.get_username() if policy.made_by else _("the system"),
        rules=rules[:RULES_AT_ONCE],
        more_rules=rules[RULES_AT_ONCE:],
        questions=_questions(policy),
        fault=fault,
    )


def _rules(policy: Policy, codes: Collection[str] | None) -> tuple[list[str], str]:
    try:
        rules = Rules.from_rules(policy.rules, codes=codes)
    except ConfigurationFault as fault:
        return [], str(fault)
    return [*(rule_text(rule) for rule in rules.rules), *(floor_text(floor) for floor in rules.floors)], ""


def _questions(policy: Policy) -> list[str]:
    try:
        return [question_text(question) for question in read_questions(policy.questions)]
    except ConfigurationFault as fault:
        return [str(fault)]


def question_text(question: Question) -> str:
    """What the model is asked, with what it may answer."""
    values = {"name": question.name, "question": question.instructions}
    match question:
        case Predicate():
            return _("%(name)s: %(question)s (yes or no)") % values
        case Choice():
            return _("%(name)s: %(question)s (one of %(options)s)") % {**values, "options": _listed(question.options)}
        case Scale():
            return _("%(name)s: %(question)s (from %(options)s)") % {**values, "options": _listed(question.levels)}


def _listed(options: Sequence[Option]) -> str:
    return _(", ").join(option.value for option in options)


def floor_text(floor: Floor) -> str:
    values = {"category": floor.category, "least": number_format(floor.least)}
    if floor.for_approval:
        return _("%(category)s: approve only from %(least)s") % values
    return _("%(category)s: to people below %(least)s, whatever the other scores are") % values


def rule_text(rule: Rule) -> str:
    values = {
        "category": rule.category,
        "reject": number_format(rule.reject_at),
        "approve": number_format(rule.approve_below),
        "reason": rule.reason_code,
    }
    if rule.reason_code is None:
        return _("%(category)s: to people from %(approve)s, never rejected by the model") % values
    return _("%(category)s: reject at %(reject)s (%(reason)s), approve below %(approve)s") % values


def effect(lane: Lane) -> str:
    """What putting a version into force does to the lane as it stands."""
    run = lane.run
    if run is None or lane.cap is None:
        return _("The lane is on hold: a version that is put into force now rules from the next run on.")
    text = ngettext(
        "A new run begins (%(stage)s) at the same cap of %(cap)s call at once, and soaks again. "
        "Calls that run already are judged by the version they were claimed under.",
        "A new run begins (%(stage)s) at the same cap of %(cap)s calls at once, and soaks again. "
        "Calls that run already are judged by the version they were claimed under.",
        lane.cap,
    )
    return text % {"stage": stage_name(run), "cap": count(lane.cap)}
