"""From scores to a ruling. Pure: no database, no clock, no model; the same scores and rules give the same ruling.

Anything that is not plainly above or below a line is for people. A ruling of MANUAL is never wrong, only slow.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from django.db.models import TextChoices
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_core.errors import ConfigurationFault
from queue_core.questions import Problem
from queue_core.states import Result

MAX_RULES = 400
MAX_NAME = 64

type Param = str | float | None


class Cause(TextChoices):
    """Why a ruling is as it is. Items are grouped by it; `params` of the ruling fill its sentence."""

    ALL_BELOW = "all_below", gettext_lazy("every score is below its line")
    ABOVE_LINE = "above_line", gettext_lazy("a score reached its line for rejecting")
    GREY_ZONE = "grey_zone", gettext_lazy("a score is in the grey zone")
    TOO_LOW = "too_low", gettext_lazy("a score is lower than the policy asks for")
    NO_REASON_CODE = "no_reason_code", gettext_lazy("a rejecting score has no reason code")
    MISSING_SCORE = "missing_score", gettext_lazy("the model gave no score for a rule")
    INVALID_SCORE = "invalid_score", gettext_lazy("the model gave a score that is none")
    REFUSED = "refused", gettext_lazy("the model refused to judge")
    INPUT_REJECTED = "input_rejected", gettext_lazy("the model could not take this content")
    RESTRICTED = "restricted", gettext_lazy("restricted evidence, which this model may not see")


@dataclass(frozen=True, slots=True)
class Ruling:
    """A result with its ground and cause. `params` is plain JSON and holds nothing of the content."""

    result: Result
    cause: Cause
    reason_code: str | None = None
    params: Mapping[str, Param] = field(default_factory=dict)


#: What ends a job without scores.
REFUSED = Ruling(Result.MANUAL, Cause.REFUSED)
INPUT_REJECTED = Ruling(Result.MANUAL, Cause.INPUT_REJECTED)
RESTRICTED = Ruling(Result.MANUAL, Cause.RESTRICTED)


@dataclass(frozen=True, slots=True)
class Rule:
    """One category's lines: at or above `reject_at` reject, below `approve_below` nothing against it."""

    category: str
    reject_at: float
    approve_below: float
    reason_code: str | None = None


@dataclass(frozen=True, slots=True)
class Floor:
    """A score that must be high: a probability of “approve”, or a confidence.

    Below `least` people decide; where it is `for_approval` only, a score that rejects still rejects.
    """

    category: str
    least: float
    for_approval: bool


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one policy version, in the order in which their grounds are preferred. Made by `from_rules`."""

    rules: tuple[Rule, ...]
    floors: tuple[Floor, ...] = ()

    def __post_init__(self) -> None:
        # "Every score is below its line" is true of no rules at all, and would approve everything.
        if not (self.rules or self.floors):
            raise ConfigurationFault(_("A policy needs at least one rule."))

    @classmethod
    def from_rules(cls, data: object, *, codes: Collection[str] | None = None) -> Self:
        """The policy in a list of rules; PolicyFault if it is none.

        A rule is {category, reject_at, approve_below, reason_code}, or names the least score that a category needs:
        {category, approve_at} to be approved, {category, people_below} to be judged by the model at all. `codes`, if
        given, are the reason codes that may be named.
        """
        if not isinstance(data, list) or not 1 <= len(data) <= MAX_RULES:
            message = _("A list of 1 to %(most)d rules is needed.") % {"most": MAX_RULES}
            raise PolicyFault([Problem("rules", message)])
        reader = _Reader(codes)
        rules = [reader.rule(f"rules[{number}]", entry) for number, entry in enumerate(data)]
        if reader.problems:
            raise PolicyFault(reader.problems)
        return cls(
            tuple(rule for rule in rules if isinstance(rule, Rule)),
            tuple(rule for rule in rules if isinstance(rule, Floor)),
        )

    @property
    def categories(self) -> tuple[str, ...]:
        """Every category that is judged, each of which must have a score."""
        return (*(rule.category for rule in self.rules), *(floor.category for floor in self.floors))

    def judge(self, scores: Mapping[str, object], *, codes: Collection[str] | None = None) -> Ruling:
        """The ruling for `scores`. `codes`, if given, are the reason codes in use: one retired since is no ground."""
        for category in self.categories:
            if unsound := _unsound(category, scores):
                return unsound
        if low := _too_low([floor for floor in self.floors if not floor.for_approval], scores):
            return low
        sound = [(rule, _number(scores[rule.category])) for rule in self.rules]
        rejecting = [(rule, score) for rule, score in sound if score >= rule.reject_at]
        if rejecting:
            return _rejected(rejecting, codes)
        for rule, score in sound:
            if score >= rule.approve_below:
                return Ruling(Result.MANUAL, Cause.GREY_ZONE, params=_lines(rule, score))
        return _too_low([floor for floor in self.floors if floor.for_approval], scores) or Ruling(
            Result.APPROVED, Cause.ALL_BELOW
        )


def _too_low(floors: Sequence[Floor], scores: Mapping[str, object]) -> Ruling | None:
    for floor in floors:
        score = _number(scores[floor.category])
        if score < floor.least:
            params: dict[str, Param] = {"category": floor.category, "score": score, "least": floor.least}
            return Ruling(Result.MANUAL, Cause.TOO_LOW, params=params)
    return None


def _unsound(category: str, scores: Mapping[str, object]) -> Ruling | None:
    params: dict[str, Param] = {"category": category}
    if category not in scores:
        return Ruling(Result.MANUAL, Cause.MISSING_SCORE, params=params)
    score = scores[category]
    if score is None:
        return Ruling(Result.MANUAL, Cause.REFUSED, params=params)
    # NaN fails both comparisons. True and False are numbers to Python, but no scores.
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        return Ruling(Result.MANUAL, Cause.INVALID_SCORE, params=params)
    return None


def _number(score: object) -> float:
    assert isinstance(score, int | float)
    return float(score)


def _rejected(rejecting: list[tuple[Rule, float]], codes: Collection[str] | None) -> Ruling:
    """The first rejecting rule that has a ground decides: without a ground nothing may be taken from anybody."""
    for rule, score in rejecting:
        if rule.reason_code and (codes is None or rule.reason_code in codes):
            return Ruling(Result.REJECTED, Cause.ABOVE_LINE, rule.reason_code, _lines(rule, score))
    return Ruling(Result.MANUAL, Cause.NO_REASON_CODE, params=_lines(*rejecting[0]))


def _lines(rule: Rule, score: float) -> dict[str, Param]:
    return {
        "category": rule.category,
        "score": score,
        "reject_at": rule.reject_at,
        "approve_below": rule.approve_below,
    }


class PolicyFault(ConfigurationFault):
    """A policy whose JSON breaks the rules; it names every mistake at once."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(" ".join(f"{problem.field}: {problem.message}" for problem in problems))
        self.problems = tuple(problems)


class _Reader:
    """Reads rules and keeps what is wrong, so that a person hears all of it at once."""

    FIELDS = ("category", "reject_at", "approve_below", "reason_code")
    #: What makes a rule one that asks for a high score, and whether for approving alone.
    FLOORS = {"approve_at": True, "people_below": False}

    def __init__(self, codes: Collection[str] | None) -> None:
        self.problems: list[Problem] = []
        self._codes = codes
        self._seen: set[str] = set()

    def rule(self, path: str, entry: object) -> Rule | Floor | None:
        if not isinstance(entry, dict):
            self._add(path, _("A rule is an object with category, reject_at, approve_below and reason_code."))
            return None
        floor = next((name for name in self.FLOORS if name in entry), None)
        if floor is not None and "reject_at" not in entry:
            return self._floor(path, entry, floor)
        for name in sorted(str(key) for key in entry.keys() - set(self.FIELDS)):
            self._add(f"{path}.{name[:MAX_NAME]}", _("A rule has no such field."))
        category = self._category(f"{path}.category", entry.get("category"))
        reject_at = self._line(f"{path}.reject_at", entry.get("reject_at"))
        approve_below = self._line(f"{path}.approve_below", entry.get("approve_below"))
        reason_code = self._reason_code(f"{path}.reason_code", entry.get("reason_code"))
        if category is None or reject_at is None or approve_below is None:
            return None
        if approve_below >= reject_at:
            message = _("%(value)s is not below reject_at, which is %(limit)s: the two lines must not meet or cross.")
            self._add(f"{path}.approve_below", message % {"value": approve_below, "limit": reject_at})
        return Rule(category, reject_at, approve_below, reason_code)

    def _floor(self, path: str, entry: Mapping[str, object], name: str) -> Floor | None:
        for other in sorted(str(key) for key in entry.keys() - {"category", name}):
            self._add(f"{path}.{other[:MAX_NAME]}", _("A rule with %(name)s has no such field.") % {"name": name})
        category = self._category(f"{path}.category", entry.get("category"))
        least = self._line(f"{path}.{name}", entry.get(name))
        if category is None or least is None:
            return None
        if least == 0:
            # Nothing is below 0: it would look like a check and be none.
            self._add(f"{path}.{name}", _("A number above 0 is needed."))
        return Floor(category, least, self.FLOORS[name])

    def _add(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))

    def _category(self, path: str, value: object) -> str | None:
        if not _is_name(value):
            self._add(path, _("A name of 1 to %(most)d characters is needed.") % {"most": MAX_NAME})
            return None
        category = str(value)
        if category in self._seen:
            self._add(path, _("Another rule has this category already."))
        self._seen.add(category)
        return category

    def _line(self, path: str, value: object) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self._add(path, _("A number from 0 to 1 is needed."))
            return None
        return float(value)

    def _reason_code(self, path: str, value: object) -> str | None:
        if value is None:
            return None
        if not _is_name(value):
            self._add(path, _("A reason code, or nothing: then people decide instead of rejecting."))
            return None
        code = str(value)
        if self._codes is not None and code not in self._codes:
            self._add(path, _("There is no reason code “%(code)s” in use.") % {"code": code})
        return code


def _is_name(value: object) -> bool:
    return (
        isinstance(value, str)
        and 1 <= len(value.strip()) <= MAX_NAME
        and value == value.strip()
        and value.isprintable()
    )
