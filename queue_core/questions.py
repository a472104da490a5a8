"""What a policy asks a model: typed questions, in words that no wire owns. Adapters put them into their wire's shape.

Scores come back under names: a yes-no question's probability under its own name (`insult`), an option's under
`verdict=reject`, a level's under `severity=grave`, a scale's position from 0 to 1 under `severity`, and what a server
calls its confidence under `verdict.confidence`. Rules of the policy speak of these names.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from queue_core.errors import ConfigurationFault

MAX_QUESTIONS = 400
MAX_OPTIONS = 255
MAX_LEVELS = 10
MAX_INSTRUCTIONS = 4000
MAX_DESCRIPTION = 1000
#: Short enough that name, "=" and option fit a rule's category.
MAX_QUESTION_NAME = 30
MAX_OPTION = 32
CONFIDENCE = ".confidence"

NAME = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in configuration. `field` is a path such as `rules[0].reject_at`."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a choice, or one level of a scale."""

    value: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Predicate:
    """Is it so? Answered by one probability."""

    name: str
    instructions: str

    @property
    def categories(self) -> tuple[str, ...]:
        return (self.name,)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of these? Answered by a probability for each option."""

    name: str
    instructions: str
    options: tuple[Option, ...]

    @property
    def categories(self) -> tuple[str, ...]:
        return (*(f"{self.name}={option.value}" for option in self.options), self.name + CONFIDENCE)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much, on ordered levels from least to most? Answered by a position and a probability for each level."""

    name: str
    instructions: str
    levels: tuple[Option, ...]

    @property
    def categories(self) -> tuple[str, ...]:
        return (self.name, *(f"{self.name}={level.value}" for level in self.levels), self.name + CONFIDENCE)


type Question = Predicate | Choice | Scale


class QuestionsFault(ConfigurationFault):
    """Questions whose JSON breaks the rules; it names every mistake at once."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(" ".join(f"{problem.field}: {problem.message}" for problem in problems))
        self.problems = tuple(problems)


def read_questions(data: object) -> tuple[Question, ...]:
    """The questions in a list of {type, name, instructions, options | levels}; QuestionsFault if it is none.

    `type` is predicate, choice or score. An option or level is a text, or {value, description}. No questions are
    right for models that ask their own.
    """
    if not isinstance(data, list) or len(data) > MAX_QUESTIONS:
        raise QuestionsFault(
            [Problem("questions", _("A list of at most %(most)d questions is needed.") % {"most": MAX_QUESTIONS})]
        )
    reader = _Reader()
    found = [reader.question(f"questions[{number}]", entry) for number, entry in enumerate(data)]
    if reader.problems:
        raise QuestionsFault(reader.problems)
    return tuple(question for question in found if question is not None)


def categories_of(questions: Sequence[Question]) -> tuple[str, ...]:
    """Every name under which an answer to these questions can bring a score."""
    return tuple(category for question in questions for category in question.categories)


@dataclass(slots=True)
class _Reader:
    """Reads questions and keeps what is wrong, so that a person hears all of it at once."""

    problems: list[Problem] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def question(self, path: str, entry: object) -> Question | None:
        if not isinstance(entry, dict):
            self._add(path, _("A question is an object with type, name and instructions."))
            return None
        kind = entry.get("type")
        wanted = {"choice": "options", "score": "levels"}.get(str(kind))
        known = {"type", "name", "instructions"} | ({wanted} if wanted else set())
        for name in sorted(str(key) for key in entry.keys() - known):
            self._add(f"{path}.{name[:64]}", _("A question of this type has no such field."))
        name = self._name(f"{path}.name", entry.get("name"))
        instructions = self._text(f"{path}.instructions", entry.get("instructions"), MAX_INSTRUCTIONS)
        match kind:
            case "predicate":
                return Predicate(name, instructions)
            case "choice":
                return Choice(name, instructions, self._options(f"{path}.options", entry.get("options"), MAX_OPTIONS))
            case "score":
                return Scale(name, instructions, self._options(f"{path}.levels", entry.get("levels"), MAX_LEVELS))
        self._add(f"{path}.type", _("One of predicate, choice and score is needed."))
        return None

    def _add(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))

    def _name(self, path: str, value: object) -> str:
        if not isinstance(value, str) or not NAME.fullmatch(value) or len(value) > MAX_QUESTION_NAME:
            self._add(
                path,
                _("Use 1 to %(most)d lower-case letters, digits, hyphens and underscores; begin with a letter.")
                % {"most": MAX_QUESTION_NAME},
            )
            return ""
        if value in self._seen:
            self._add(path, _("Another question has this name already."))
        self._seen.add(value)
        return value

    def _text(self, path: str, value: object, most: int) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > most:
            self._add(path, _("A text of 1 to %(most)d characters is needed.") % {"most": most})
            return ""
        return value.strip()

    def _options(self, path: str, value: object, most: int) -> tuple[Option, ...]:
        if not isinstance(value, list) or not 2 <= len(value) <= most:
            self._add(path, _("A list of 2 to %(most)d is needed.") % {"most": most})
            return ()
        options = [self._option(f"{path}[{number}]", entry) for number, entry in enumerate(value)]
        values = [option.value for option in options]
        if len(set(values)) < len(values):
            self._add(path, _("Each value may stand here only once."))
        return tuple(options)

    def _option(self, path: str, entry: object) -> Option:
        if isinstance(entry, str):
            entry = {"value": entry}
        if not isinstance(entry, dict) or entry.keys() - {"value", "description"}:
            self._add(path, _("A text is needed, or an object with value and description."))
            return Option("")
        value = self._text(f"{path}.value", entry.get("value"), MAX_OPTION)
        description = entry.get("description", "")
        if description:
            description = self._text(f"{path}.description", description, MAX_DESCRIPTION)
        return Option(value, description if isinstance(description, str) else "")
