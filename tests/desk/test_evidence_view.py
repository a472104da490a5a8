"""Evidence as a page shows it: words, fields, the seal. No database: it is read from the row alone."""

import hashlib
import json
from datetime import UTC, datetime

import pytest

from queue_core.models import Evidence
from reviewboard import evidence_view
from reviewboard.evidence_view import content_of


def evidence(body, **fields):
    return Evidence(body=body, digest=hashlib.sha256(body.encode()).hexdigest(), **fields)


def test_the_words_stand_apart_from_the_other_fields_by_their_paths():
    body = {"text": "some words", "author": {"id": "a-17", "banned": False}, "links": ["one", "two"], "score": 0.5}

    content = content_of(evidence(json.dumps(body)))

    assert (content.text, content.is_sealed, content.is_cut) == ("some words", True, False)
    assert content.fields == [
        ("author.id", "a-17"),
        ("author.banned", "false"),
        ("links[0]", "one"),
        ("links[1]", "two"),
        ("score", "0.5"),
    ]


def test_other_bytes_than_were_accepted_are_told_by_their_digest():
    row = evidence('{"text": "some words"}')
    row.body = '{"text": "other words"}'

    assert not content_of(row).is_sealed


@pytest.mark.parametrize(
    ("body", "text", "fields"),
    [
        ('"just words"', "just words", []),
        ("[1, null]", "", [("[0]", "1"), ("[1]", "null")]),
        ("{}", "", []),
        ("7", "", [("", "7")]),
        ('{"text": 5}', "", [("text", "5")]),
        ('{"a": [], "b": {}}', "", [("a", "[]"), ("b", "{}")]),
    ],
)
def test_any_json_value_is_shown(body, text, fields):
    content = content_of(evidence(body))

    assert (content.text, content.fields) == (text, fields)


def test_what_is_no_json_any_more_is_shown_as_it_stands():
    assert content_of(evidence("{broken")).text == "{broken"


def test_deep_nesting_and_many_fields_are_bounded(monkeypatch):
    """IMP-09, IMP-12: depth, length and numbers of many digits are no error."""
    monkeypatch.setattr(evidence_view, "MOST_FIELDS", 3)
    monkeypatch.setattr(evidence_view, "MOST_LENGTH", 10)
    deep = "[" * 900 + "1" + "]" * 900

    assert content_of(evidence(deep)).fields[0][1] == "1"
    many = content_of(evidence(json.dumps({str(number): "x" * 20 for number in range(5)})))
    assert (len(many.fields), many.left_out, many.is_cut) == (3, 2, True)
    assert many.fields[0] == ("0", "x" * 10)
    assert content_of(evidence("9" * 5000)).text.startswith("9")


def test_erased_evidence_says_so():
    assert content_of(Evidence(body="", digest="", erased_at=datetime(2026, 1, 1, tzinfo=UTC))).is_erased
