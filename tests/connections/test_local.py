import json
from datetime import timedelta

import pytest

from queue_core.connections import InputRejected, Misconfigured, MisconfiguredKind, Verdict, call_all
from queue_core.connections.evidence_text import MAX_TEXT, NoText, text_of
from queue_core.connections.local import LocalConnection, NotInstalled, Weights
from tests.connections.adapters import call


def test_the_text_of_evidence_is_its_text_field() -> None:
    assert text_of('{"language": "en", "text": "Good morning"}') == "Good morning"


def test_the_text_of_evidence_without_a_text_field_is_all_its_strings_in_order() -> None:
    evidence = {"title": "One", "parts": [{"body": "two"}, "three", 4, None], "text": {"en": "five"}}

    assert text_of(json.dumps(evidence)) == "One\ntwo\nthree\nfive"


def test_bare_text_and_emoji_alone_are_text() -> None:
    assert text_of('"hello"') == "hello"
    assert text_of('{"text": "😀"}') == "😀"


@pytest.mark.parametrize(
    "evidence",
    ['{"text": ""}', '{"text": " \\n\\t"}', '{"text": "\\u200b\\u202e"}', "{}", "12", "null", "", "{", "[" * 100_000],
)
def test_evidence_without_readable_text_is_none(evidence: str) -> None:
    with pytest.raises(NoText):
        text_of(evidence)


def test_a_text_beyond_the_limit_is_refused_and_never_cut() -> None:
    assert len(text_of(json.dumps("x" * MAX_TEXT))) == MAX_TEXT
    with pytest.raises(NoText, match="longer"):
        text_of(json.dumps("x" * (MAX_TEXT + 1)))


def test_local_scores_many_texts_in_one_go_and_rejects_what_holds_none() -> None:
    batches: list[list[str]] = []

    def predict(texts: list[str]) -> list[float]:
        batches.append(texts)
        return [len(text) / 10 for text in texts]

    adapter = LocalConnection(allow_restricted=False, load=lambda: Weights("model 1", predict))
    calls = [call(1, evidence='{"text": "a"}'), call(2, evidence='{"text": ""}'), call(3, evidence='{"text": "abc"}')]
    answered = {given.attempt: answer for given, answer in call_all(adapter, calls)}

    assert batches == [["a", "abc"]]
    assert isinstance(answered[2], InputRejected)
    first, third = answered[1], answered[3]
    assert isinstance(first, Verdict)
    assert isinstance(third, Verdict)
    assert (first.scores, third.scores) == ({"offensive": 0.1}, {"offensive": 0.3})
    assert first.model == "model 1"


def test_local_without_its_package_says_how_to_install_it() -> None:
    def absent() -> Weights:
        raise NotInstalled

    adapter = LocalConnection(allow_restricted=False, load=absent)
    [(_given, answer)] = call_all(adapter, [call()])

    assert isinstance(answer, Misconfigured)
    assert answer.kind is MisconfiguredKind.NOT_INSTALLED
    assert "uv sync --group reviewer" in answer.sentence
    assert not adapter.check_health(timedelta(seconds=1)).is_good


def test_local_with_the_real_model_tells_a_friendly_text_from_a_rude_one() -> None:
    pytest.importorskip("profanity_check", reason="the reviewer group is not installed")
    adapter = LocalConnection(allow_restricted=False)
    calls = [call(1, evidence='{"text": "What a lovely day"}'), call(2, evidence='{"text": "You are a damn idiot"}')]
    answered = {given.attempt: answer for given, answer in call_all(adapter, calls)}

    friendly, rude = answered[1], answered[2]
    assert isinstance(friendly, Verdict)
    assert isinstance(rude, Verdict)
    assert friendly.scores["offensive"] < 0.45  # type: ignore[operator]
    assert rude.scores["offensive"] > 0.85  # type: ignore[operator]
    assert friendly.model.startswith("alt-profanity-check 1.")
    assert adapter.check_health(timedelta(seconds=30)).is_good
