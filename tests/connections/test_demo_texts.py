import json
import unicodedata

import pytest

from queue_core.connections.evidence_text import text_of
from queue_core.connections.local import CATEGORY, weights
from queue_core.policy import Policy, Rule
from queue_core.states import Result
from reviewboard.demo.texts import DemoText, demo_texts, posts, reviews

RULES = Policy((Rule(CATEGORY, reject_at=0.85, approve_below=0.45, reason_code="insult"),))


def shares(texts: tuple[DemoText, ...]) -> dict[Result, float]:
    scores = weights().predict([text.text for text in texts])
    results = [RULES.judge({CATEGORY: score}).result for score in scores]
    return {result: results.count(result) / len(results) for result in Result}


def test_demo_texts_are_many_and_no_two_are_alike() -> None:
    assert len(posts()) >= 250
    assert len(reviews()) >= 60
    assert len({text.text for text in demo_texts()}) == len(demo_texts())


def test_demo_texts_are_what_intake_takes() -> None:
    for text in demo_texts():
        assert text_of(json.dumps({"text": text.text})) == text.text
        assert 0 <= text.severity <= 3
        assert text.category
        assert "\x00" not in text.text


def test_demo_texts_speak_many_languages_and_hold_a_few_tricks() -> None:
    assert {"en", "de", "zh", "ja", "ar", "he"} <= {text.language for text in demo_texts()}
    together = "".join(text.text for text in demo_texts())
    assert {"\u202e", "\u200b", "\u2067"} <= {sign for sign in together if unicodedata.category(sign) == "Cf"}
    assert "<img src=x onerror=" in together


def test_demo_texts_hold_few_of_the_gravest_since_those_never_wait_for_the_ramp() -> None:
    assert 1 <= sum(text.severity == 3 for text in demo_texts()) <= 5


@pytest.mark.parametrize("texts", [posts, reviews])
def test_demo_texts_spread_over_all_three_results_of_the_real_model(texts: object) -> None:
    pytest.importorskip("profanity_check", reason="the reviewer group is not installed")
    spread = shares(texts())  # type: ignore[operator]

    assert 0.65 <= spread[Result.APPROVED] <= 0.75
    assert 0.10 <= spread[Result.REJECTED] <= 0.15
