"""Rules that ask for a high score: to be approved, or to be judged by the model at all."""

from typing import Any

import pytest

from queue_core.policy import Policy, PolicyFault

RULES: list[dict[str, Any]] = [
    {"category": "verdict=reject", "reject_at": 0.8, "approve_below": 0.3, "reason_code": "insult"},
    {"category": "verdict=approve", "approve_at": 0.7},
    {"category": "verdict.confidence", "people_below": 0.5},
]


@pytest.mark.parametrize(
    ("reject", "approve", "confidence", "result", "cause"),
    [
        (0.1, 0.9, 0.9, "APPROVED", "all_below"),
        (0.1, 0.7, 0.5, "APPROVED", "all_below"),
        # Neither rejected nor well enough approved: unsure is not a yes.
        (0.1, 0.69, 0.9, "MANUAL", "too_low"),
        (0.9, 0.0, 0.9, "REJECTED", "above_line"),
        # The model's word counts for nothing below this, whatever it says.
        (0.9, 0.0, 0.49, "MANUAL", "too_low"),
        (0.5, 0.9, 0.9, "MANUAL", "grey_zone"),
        (0.1, None, 0.9, "MANUAL", "refused"),
    ],
)
def test_judge_by_floors(reject: float, approve: float | None, confidence: float, result: str, cause: str) -> None:
    scores = {"verdict=reject": reject, "verdict=approve": approve, "verdict.confidence": confidence}

    ruling = Policy.from_rules(RULES).judge(scores)

    assert (ruling.result, ruling.cause) == (result, cause)


def test_a_score_that_a_floor_needs_and_nobody_gave_is_for_people() -> None:
    ruling = Policy.from_rules(RULES).judge({"verdict=reject": 0.1, "verdict=approve": 0.9})

    assert (ruling.result, ruling.cause, ruling.params) == (
        "MANUAL", "missing_score", {"category": "verdict.confidence"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"category": "a", "approve_at": 1.1}, "approve_at"),
        ({"category": "a", "approve_at": 0}, "approve_at"),
        ({"category": "a", "people_below": "0.5"}, "people_below"),
        ({"category": "a", "approve_at": 0.5, "reason_code": "insult"}, "reason_code"),
        ({"category": "", "approve_at": 0.5}, "category"),
        ({"category": "a", "approve_at": 0.5, "people_below": 0.5}, "people_below"),
    ],
)
def test_a_floor_that_is_none_names_its_field(rule: dict[str, Any], field: str) -> None:
    with pytest.raises(PolicyFault) as fault:
        Policy.from_rules([rule])

    assert [problem.field for problem in fault.value.problems] == [f"rules[0].{field}"]
