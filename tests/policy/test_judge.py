import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_core.errors import ConfigurationFault
from queue_core.policy import Cause, Policy, Rule
from queue_core.states import Result

OFFENSIVE = Rule("offensive", reject_at=0.85, approve_below=0.45, reason_code="insult")
SPAM = Rule("spam", reject_at=0.9, approve_below=0.2, reason_code="spam")
GROUNDLESS = Rule("threat", reject_at=0.8, approve_below=0.1)

ONE = Policy((OFFENSIVE,))
BOTH = Policy((OFFENSIVE, SPAM))

anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=2)
)
score = st.floats(0, 1)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True))
    rules = []
    for name in names:
        low, high = sorted(draw(st.lists(score, min_size=2, max_size=2, unique=True)))
        rules.append(Rule(name, high, low, draw(st.sampled_from([None, "code"]))))
    return Policy(tuple(rules))


scores_of_anything = st.dictionaries(st.sampled_from("abcdefg"), anything, max_size=7)


@pytest.mark.parametrize(
    ("value", "result", "cause"),
    [
        (0.0, Result.APPROVED, Cause.ALL_BELOW),
        (math.nextafter(0.45, 0), Result.APPROVED, Cause.ALL_BELOW),
        (0.45, Result.MANUAL, Cause.GREY_ZONE),
        (math.nextafter(0.85, 0), Result.MANUAL, Cause.GREY_ZONE),
        (0.85, Result.REJECTED, Cause.ABOVE_LINE),
        (1, Result.REJECTED, Cause.ABOVE_LINE),
        (None, Result.MANUAL, Cause.REFUSED),
        (math.nan, Result.MANUAL, Cause.INVALID_SCORE),
        (math.inf, Result.MANUAL, Cause.INVALID_SCORE),
        (-0.01, Result.MANUAL, Cause.INVALID_SCORE),
        (1.01, Result.MANUAL, Cause.INVALID_SCORE),
        pytest.param(10**5000, Result.MANUAL, Cause.INVALID_SCORE, id="huge"),
        (False, Result.MANUAL, Cause.INVALID_SCORE),
        ("0.1", Result.MANUAL, Cause.INVALID_SCORE),
    ],
)
def test_judge_of_one_score_follows_its_lines(value: object, result: Result, cause: Cause) -> None:
    ruling = ONE.judge({"offensive": value})

    assert (ruling.result, ruling.cause) == (result, cause)


def test_judge_without_a_score_for_a_rule_hands_over_to_people_even_if_another_rejects() -> None:
    ruling = BOTH.judge({"offensive": 0.99})

    assert (ruling.result, ruling.cause) == (Result.MANUAL, Cause.MISSING_SCORE)
    assert ruling.params == {"category": "spam"}


def test_judge_ignores_categories_without_a_rule() -> None:
    assert ONE.judge({"offensive": 0.1, "other": 1.0}).result is Result.APPROVED


def test_judge_rejects_on_the_first_rejecting_ground_and_says_the_figures() -> None:
    ruling = BOTH.judge({"offensive": 0.9, "spam": 0.99})

    assert (ruling.result, ruling.reason_code) == (Result.REJECTED, "insult")
    assert ruling.params == {"category": "offensive", "score": 0.9, "reject_at": 0.85, "approve_below": 0.45}


def test_judge_of_a_rejecting_score_without_reason_code_hands_over_to_people() -> None:
    ruling = Policy((GROUNDLESS,)).judge({"threat": 1.0})

    assert (ruling.result, ruling.cause) == (Result.MANUAL, Cause.NO_REASON_CODE)


def test_judge_prefers_a_rejecting_rule_with_a_ground_over_one_without() -> None:
    ruling = Policy((GROUNDLESS, SPAM)).judge({"threat": 1.0, "spam": 1.0})

    assert (ruling.result, ruling.reason_code) == (Result.REJECTED, "spam")


def test_judge_takes_a_retired_reason_code_for_none() -> None:
    ruling = ONE.judge({"offensive": 1.0}, codes={"spam"})

    assert (ruling.result, ruling.cause) == (Result.MANUAL, Cause.NO_REASON_CODE)


def test_a_policy_of_no_rules_cannot_exist() -> None:
    with pytest.raises(ConfigurationFault, match="at least one rule"):
        Policy(())


@given(policies(), scores_of_anything)
def test_judge_approves_only_when_every_rule_has_a_sound_score_below_its_line(
    policy: Policy, scores: dict[str, object]
) -> None:
    ruling = policy.judge(scores)

    all_below = all(
        isinstance(value := scores.get(rule.category), int | float)
        and not isinstance(value, bool)
        and 0 <= value < rule.approve_below
        for rule in policy.rules
    )
    assert (ruling.result is Result.APPROVED) == all_below


@given(policies(), scores_of_anything)
def test_judge_rejects_only_with_a_ground_and_a_score_at_its_line(policy: Policy, scores: dict[str, object]) -> None:
    ruling = policy.judge(scores)

    if ruling.result is Result.REJECTED:
        grounds = [rule for rule in policy.rules if rule.reason_code == ruling.reason_code]
        assert any(scores[rule.category] >= rule.reject_at for rule in grounds)  # type: ignore[operator]
    else:
        assert ruling.reason_code is None


@given(policies(), st.data())
def test_judge_never_turns_milder_when_a_score_rises(policy: Policy, data: st.DataObject) -> None:
    """With a ground for every rule, a higher score may only move a ruling from approved over people to rejected."""
    grounded = Policy(tuple(Rule(r.category, r.reject_at, r.approve_below, "code") for r in policy.rules))
    scores = {rule.category: data.draw(score) for rule in grounded.rules}
    raised = data.draw(st.sampled_from(sorted(scores)))
    higher = scores | {raised: data.draw(st.floats(scores[raised], 1))}

    order = [Result.APPROVED, Result.MANUAL, Result.REJECTED]
    assert order.index(grounded.judge(higher).result) >= order.index(grounded.judge(scores).result)


@given(policies())
def test_what_a_policy_says_is_read_back_as_the_same_policy(policy: Policy) -> None:
    data = [
        {
            "category": r.category,
            "reject_at": r.reject_at,
            "approve_below": r.approve_below,
            "reason_code": r.reason_code,
        }
        for r in policy.rules
    ]

    assert Policy.from_rules(data) == policy
