import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_core.policy import MAX_RULES, Policy, PolicyFault

GOOD = {"category": "offensive", "reject_at": 0.85, "approve_below": 0.45, "reason_code": "insult"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def fault_of(data: object, **codes: object) -> PolicyFault:
    with pytest.raises(PolicyFault) as caught:
        Policy.from_rules(data, **codes)
    return caught.value


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"category": ""}, "category"),
        ({"category": " offensive"}, "category"),
        ({"category": "a\x00b"}, "category"),
        ({"category": "x" * 65}, "category"),
        ({"category": 7}, "category"),
        ({"reject_at": None}, "reject_at"),
        ({"reject_at": True}, "reject_at"),
        ({"reject_at": "0.9"}, "reject_at"),
        ({"reject_at": float("nan")}, "reject_at"),
        ({"reject_at": 1.01}, "reject_at"),
        ({"reject_at": 10**400}, "reject_at"),
        ({"approve_below": -0.01}, "approve_below"),
        ({"reason_code": ""}, "reason_code"),
        ({"reason_code": ["insult"]}, "reason_code"),
        ({"rejectat": 0.9}, "rejectat"),
    ],
)
def test_from_rules_names_the_field_that_is_wrong(change: dict[str, object], field: str) -> None:
    fault = fault_of([GOOD | change])

    assert [problem.field for problem in fault.problems] == [f"rules[0].{field}"]


@pytest.mark.parametrize("approve_below", [0.85, 0.9])
def test_from_rules_of_lines_that_meet_or_cross_names_the_field_and_the_limit(approve_below: float) -> None:
    fault = fault_of([GOOD | {"approve_below": approve_below}])

    assert fault.problems[0].field == "rules[0].approve_below"
    assert str(approve_below) in fault.problems[0].message
    assert "0.85" in fault.problems[0].message


def test_from_rules_names_every_mistake_at_once() -> None:
    fault = fault_of([GOOD | {"reject_at": 2}, 5, GOOD | {"category": "spam", "approve_below": "low"}])

    assert [problem.field for problem in fault.problems] == ["rules[0].reject_at", "rules[1]", "rules[2].approve_below"]


def test_from_rules_refuses_a_category_named_twice() -> None:
    assert fault_of([GOOD, GOOD]).problems[0].field == "rules[1].category"


def test_from_rules_refuses_a_reason_code_that_is_not_in_use() -> None:
    fault = fault_of([GOOD], codes={"spam"})

    assert fault.problems[0].field == "rules[0].reason_code"
    assert "insult" in fault.problems[0].message


@pytest.mark.parametrize("data", [None, {}, [], "rules", [GOOD] * (MAX_RULES + 1)])
def test_from_rules_needs_a_list_of_rules_within_its_bounds(data: object) -> None:
    assert fault_of(data).problems[0].field == "rules"


def test_from_rules_of_a_rule_without_reason_code_is_a_rule_for_people() -> None:
    policy = Policy.from_rules([{"category": "offensive", "reject_at": 0.85, "approve_below": 0.45}])

    assert policy.rules[0].reason_code is None


@given(json_values)
def test_from_rules_of_any_json_gives_a_policy_or_a_fault_and_nothing_else(data: object) -> None:
    problems: tuple[object, ...] | None = None
    try:
        Policy.from_rules(data)
    except PolicyFault as fault:
        problems = fault.problems

    assert problems is None or len(problems) > 0
