import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewboard.templatetags.board import visible_id, visible_text
from reviewboard.visible import visible

MARK = re.compile(r'<span class="hidden-char"[^>]*>(.*?)</span>')


def shown(text: str, *, strict: bool = False) -> str:
    """The text as a reader sees it: marks as their words, entities as their characters."""
    return html.unescape(MARK.sub(r"[\1]", str(visible(text, strict=strict))))


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "</script><script>alert(1)</script>",
        '" onmouseover=alert(1) x="',
        "<a hx-get=/admin/logout hx-trigger=load>",
        "{{7*7}}",
    ],
)
def test_markup_of_strangers_is_text(text: str) -> None:
    """MOD-14: content, ids and side fields are escaped, whatever they hold."""
    written = str(visible_text(text))

    assert written.count("<") == 2  # the isolating element's own two tags
    assert html.unescape(written[written.index(">") + 1 : -len("</bdi>")]) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("safe \u202egnp.exe", "safe [U+202E]gnp.exe"),
        ("\u2067never closed", "[U+2067]never closed"),
        ("ok\u200b", "ok[U+200B]"),
        ("a\u00adb", "a[U+00AD]b"),
        ("\ufefftext", "[U+FEFF]text"),
        ("bell\x07", "bell[U+0007]"),
        ("line\u2028line", "line[U+2028]line"),
        ("blank \u3164 letter", "blank [U+3164] letter"),
        ("lone \u200d joiner", "lone [U+200D] joiner"),
        ("tag\U000e0061", "tag[U+E0061]"),
        ("select\U000e0101", "select[U+E0101]"),
        ("return\r here", "return[U+000D] here"),
    ],
)
def test_hidden_characters_are_named(text: str, expected: str) -> None:
    """MOD-15: what reverses, hides or smuggles is seen."""
    assert shown(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines\tand a tab\r\n",
        "family \U0001f468\u200d\U0001f469\u200d\U0001f467",
        "heart \u2764\ufe0f",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f flag",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "שלום world",
        "nai\u0308ve, Việt Nam",
    ],
)
def test_honest_text_is_left_as_it_is(text: str) -> None:
    """MOD-15: emoji, flags, Persian, Hebrew and accents are no trick."""
    assert shown(text) == text


def test_a_thousand_combining_marks_are_cut_and_counted() -> None:
    """MOD-15: marks stacked over the neighbours' lines."""
    assert shown("e" + "\u0301" * 1000 + "!") == "e" + "\u0301" * 5 + "[+995 combining marks]!"


def test_ids_that_look_alike_are_told_apart() -> None:
    """MOD-15: 'ok' beside 'ok' with a zero-width space, an odd space or a space at its end."""
    written = {str(visible_id(one)) for one in ("ok", "ok\u200b", "ok ", "o\u00a0k", "o k")}

    assert len(written) == 5
    assert shown("ok ", strict=True) == "ok[U+0020]"
    assert shown("o k", strict=True) == "o k"


def test_every_value_is_isolated_from_its_neighbours() -> None:
    """MOD-15: an override that is never closed reverses no button."""
    assert str(visible_text("\u202e")).startswith('<bdi dir="auto"')


@given(st.text())
def test_nothing_is_lost_but_the_cut_marks(text: str) -> None:
    plain = re.sub(r"<[^>]*>", "", MARK.sub("", str(visible(text))))

    assert set(html.unescape(plain)) <= set(text)
    assert "<script" not in str(visible(text))


def test_the_same_hidden_character_over_and_over_is_one_mark_with_its_number() -> None:
    assert shown("a" + "\u200b" * 300 + "b") == "a[U+200B ×300]b"


def test_a_text_of_hidden_characters_alone_stays_small() -> None:
    """MOD-15: a page of marks would freeze what it is to protect."""
    text = str(visible_text("a\u200b" * 100_000))

    assert text.count("hidden-char") == 2_001
    assert len(text) < 600_000
    assert "98000 more hidden characters" in text
