import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_core.connections import (
    Health,
    InvalidAnswer,
    Misconfigured,
    MisconfiguredKind,
    Overloaded,
    Verdict,
    idempotency_key,
    parse_retry_after,
)
from queue_core.connections.answers import ANSWERS, LONGEST_WAIT, MAX_DETAIL
from queue_core.models import jobs
from tests.connections.adapters import call

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def test_details_are_as_long_as_their_column_and_no_longer() -> None:
    assert MAX_DETAIL == jobs.MAX_DETAIL
    assert len(InvalidAnswer("x" * 10_000).detail) == MAX_DETAIL
    assert len(Misconfigured(MisconfiguredKind.FORBIDDEN, "x" * 10_000).sentence) == MAX_DETAIL
    assert len(Health(False, "x" * 10_000).detail) == MAX_DETAIL
    assert len(Verdict({}, model="x" * 10_000, request_id="y" * 10_000).model) == 200


def test_a_detail_holds_nothing_that_postgresql_refuses() -> None:
    detail = InvalidAnswer("a\x00b\ud800c").detail

    assert "\x00" not in detail
    detail.encode()


@given(st.dictionaries(st.text(max_size=4), st.one_of(st.none(), st.floats(), st.integers(), st.text()), max_size=6))
def test_scores_are_stored_as_strict_json_whatever_came(scores: dict[str, Any]) -> None:
    stored = json.dumps(Verdict(scores).stored_scores, allow_nan=False)

    assert "\\u0000" not in stored


def test_scores_that_are_none_stay_recognisable() -> None:
    stored = Verdict({"a": math.nan, "b": None, "c": 0.5, "d": 10**5000, "e": True}).stored_scores

    assert stored == {"a": "nan", "b": None, "c": 0.5, "d": "out of range", "e": "bool"}


def test_usage_keeps_counts_and_nothing_else() -> None:
    usage: dict[str, Any] = {"input_tokens": 12, "cost": 1.5, "huge": 2**63}

    assert Verdict({}, usage=usage).stored_usage == {"input_tokens": 12, "cost": "no count", "huge": "no count"}


def test_every_kind_of_answer_has_its_own_outcome() -> None:
    assert len({answer.outcome for answer in ANSWERS}) == len(ANSWERS)


def test_a_call_shows_no_evidence_in_its_repr() -> None:
    assert "hello" not in repr(call(evidence='{"text": "hello"}'))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 1.5 ", 1.5),
        ("0", 0),
        ("-5", 0),
        ("99999999", 86400),
        ("9" * 390, 86400),
        ("-" + "9" * 390, 0),
        ("Sun, 29 Nov 2026 12:02:00 GMT", 120),
        ("Sun, 29 Nov 2026 12:02:00 -0000", 120),
        ("Sun, 29 Nov 2026 11:00:00 GMT", 0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 86400),
    ],
)
def test_retry_after_is_read_and_clamped(value: str, seconds: float) -> None:
    """BRK-04: a negative, a huge and a dated Retry-After."""
    assert parse_retry_after(value, NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value", [None, "", " ", "soon", "NaN", "inf", "1e9", "٣", "0x10", "Sun, 99 Nov 2026 12:02:00 GMT", "9" * 401]
)
def test_retry_after_that_cannot_be_read_says_nothing(value: str | None) -> None:
    assert parse_retry_after(value, NOW) is None


@given(st.text(max_size=40))
def test_retry_after_of_any_text_is_nothing_or_within_its_bounds(value: str) -> None:
    wait = parse_retry_after(value, NOW)

    assert wait is None or timedelta(0) <= wait <= LONGEST_WAIT


@pytest.mark.parametrize(("given_wait", "kept"), [(timedelta(-1), timedelta(0)), (timedelta(9), LONGEST_WAIT)])
def test_an_adapters_own_retry_after_is_clamped_too(given_wait: timedelta, kept: timedelta) -> None:
    assert Overloaded("busy", given_wait).retry_after == kept


def key_of(**changes: Any) -> str:
    values: dict[str, Any] = {"source": "s", "ticket": "t", "revision": "1", "policy_version": 1, "answered": 0}
    return idempotency_key(**(values | changes))


def test_an_idempotency_key_is_the_same_for_the_same_call_and_fits_a_header() -> None:
    assert key_of() == key_of()
    assert key_of(ticket="é\n").isascii()
    assert len(key_of(ticket="x" * 200)) < 100


@pytest.mark.parametrize(
    "change",
    [{"source": "st", "ticket": ""}, {"ticket": "t1"}, {"revision": "2"}, {"policy_version": 2}, {"answered": 1}],
)
def test_an_idempotency_key_differs_when_any_part_of_it_does(change: dict[str, Any]) -> None:
    assert key_of(**change) != key_of()
