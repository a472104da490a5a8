"""Questions as a person writes them, and whether rules fit what their answers bring."""

from typing import Any

import pytest

from queue_core.models import ModelConnection
from queue_core.policy import Policy
from queue_core.policy_fit import misfits
from queue_core.questions import Choice, Predicate, QuestionsFault, Scale, categories_of, read_questions
from tests.connections.wires import QUESTIONS, row

NOWHERE = "http://127.0.0.1:9"
RULES = [{"category": "verdict=reject", "reject_at": 0.8, "approve_below": 0.2, "reason_code": "insult"}]


def test_questions_are_read_in_their_order_and_name_their_scores() -> None:
    verdict, insult, severity = read_questions(QUESTIONS)

    assert isinstance(verdict, Choice)
    assert isinstance(insult, Predicate)
    assert isinstance(severity, Scale)
    assert categories_of([verdict]) == ("verdict=approve", "verdict=reject", "verdict=unsure", "verdict.confidence")
    assert categories_of([insult, severity])[:3] == ("insult", "severity", "severity=none")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"type": "essay"}, "type"),
        ({"name": "Verdict"}, "name"),
        ({"name": "x" * 31}, "name"),
        ({"name": "a=b"}, "name"),
        ({"instructions": " "}, "instructions"),
        ({"instructions": "x" * 4001}, "instructions"),
        ({"options": ["approve"]}, "options"),
        ({"options": ["a", "a"]}, "options"),
        ({"options": ["a", 7]}, "options[1]"),
        ({"options": ["a", {"value": "b", "weight": 1}]}, "options[1]"),
        ({"options": ["a", "x" * 33]}, "options[1].value"),
        ({"levels": ["a", "b"]}, "levels"),
    ],
)
def test_a_question_that_is_none_names_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(QuestionsFault) as fault:
        read_questions([QUESTIONS[0] | change])

    assert f"questions[0].{field}" in [problem.field for problem in fault.value.problems]


def test_two_questions_of_one_name_and_too_many_are_refused() -> None:
    with pytest.raises(QuestionsFault, match="name already"):
        read_questions([QUESTIONS[1], QUESTIONS[1]])
    with pytest.raises(QuestionsFault, match="400"):
        read_questions([QUESTIONS[1]] * 401)


@pytest.mark.parametrize(
    ("kind", "questions", "category", "said"),
    [
        ("openai-decisions", QUESTIONS, "verdict=reject", None),
        ("openai-decisions", QUESTIONS, "verdict=rejected", "verdict=reject"),
        ("openai-decisions", [], "verdict=reject", "at least one question"),
        ("systemone", [], "insult", "at least one question"),
        ("openai-moderations", [], "anything/at-all", None),
        ("openai-moderations", QUESTIONS, "hate", "its own questions"),
        ("http", [], "insult", None),
        ("http", [], "spam", "insult"),
    ],
)
def test_a_policy_that_its_model_can_never_answer_is_told(
    kind: str, questions: list[dict[str, Any]], category: str, said: str | None
) -> None:
    policy = Policy.from_rules([RULES[0] | {"category": category}])

    problems = misfits(policy, read_questions(questions), row(kind, NOWHERE))

    if said is None:
        assert problems == []
    else:
        [problem] = problems
        assert said in problem.message


def test_the_local_model_brings_one_score() -> None:
    local = ModelConnection(kind="local", name="l")

    assert misfits(Policy.from_rules([RULES[0] | {"category": "offensive"}]), (), local) == []
    assert misfits(Policy.from_rules(RULES), (), local) != []
