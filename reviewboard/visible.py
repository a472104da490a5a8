"""Strangers' text made safe to look at: nothing in it is invisible, and nothing in it moves what stands beside it.

Tickets, ids, notes and model errors may carry bidi overrides, zero-width characters, control characters or a
thousand combining marks. They are shown, never removed: the stored bytes stay as they came.
"""

import unicodedata
from collections.abc import Iterator

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

MOST_MARKS = 5
#: The longest flag of a region: five letters and the closing tag.
MOST_TAGS = 8
ZWNJ, ZWJ, EMOJI_STYLE, BLACK_FLAG = "\u200c", "\u200d", "\ufe0f", "\U0001f3f4"
#: Letters that look like nothing at all.
BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
#: Scripts that spell with joiners: Arabic and its family, and the Indic block.
JOINING = ((0x0600, 0x08FF), (0x0900, 0x0DFF), (0x0F00, 0x109F), (0x1780, 0x18AF), (0xFB50, 0xFDFF))
MARK_CATEGORIES = frozenset({"Mn", "Me"})
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"})


def visible(text: str, *, strict: bool = False) -> SafeString:
    """Escaped text with a mark for each hidden character. `strict` is for ids: odd and outer spaces are marked too."""
    return format_html_join("", "{}", ((piece,) for piece in _pieces(text, strict)))


def _pieces(text: str, strict: bool) -> Iterator[str | SafeString]:
    plain_from, marks = 0, 0
    for i, char in enumerate(text):
        marks = marks + 1 if unicodedata.category(char) in MARK_CATEGORIES else 0
        if marks > MOST_MARKS:
            yield text[plain_from:i]
            plain_from = i + 1
            if i + 1 == len(text) or unicodedata.category(text[i + 1]) not in MARK_CATEGORIES:
                yield _too_many(marks - MOST_MARKS)
        elif _is_hidden(text, i) or (strict and _is_odd_space(text, i)):
            yield text[plain_from:i]
            yield _named(char)
            plain_from = i + 1
    yield text[plain_from:]


def _is_hidden(text: str, i: int) -> bool:
    char = text[i]
    if char in "\n\t" or (char == "\r" and text[i + 1 : i + 2] == "\n"):
        return False
    if char in (ZWNJ, ZWJ):
        return not _joins(text, i)
    if char == EMOJI_STYLE or "\ufe00" <= char <= "\ufe0e":
        return i == 0 or unicodedata.category(text[i - 1])[0] in "LZC"
    if "\U000e0020" <= char <= "\U000e007f":
        return not _is_in_flag(text, i)
    return (
        char in BLANK_LETTERS or "\U000e0100" <= char <= "\U000e01ef" or unicodedata.category(char) in HIDDEN_CATEGORIES
    )


def _joins(text: str, i: int) -> bool:
    """Whether a joiner does what it is for: inside an emoji, or between letters of a script that spells with it."""
    before, after = text[i - 1 : i], text[i + 1 : i + 2]
    if not before or not after:
        return False
    if text[i] == ZWJ and _is_pictorial(before) and _is_pictorial(after):
        return True
    return _is_joining(before) and _is_joining(after)


def _is_pictorial(char: str) -> bool:
    return char == EMOJI_STYLE or unicodedata.category(char) in ("So", "Sk") or char in "\u2640\u2642"


def _is_joining(char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in JOINING)


def _is_in_flag(text: str, i: int) -> bool:
    """Tags spell the flags of regions after a black flag; anywhere else they smuggle text."""
    start = i
    while start and "\U000e0020" <= text[start] <= "\U000e007f" and i - start <= MOST_TAGS:
        start -= 1
    return text[start] == BLACK_FLAG


def _is_odd_space(text: str, i: int) -> bool:
    if text[i] in "\n\t\r":
        return True
    if unicodedata.category(text[i]) != "Zs":
        return False
    return text[i] != " " or i in (0, len(text) - 1)


def _named(char: str) -> SafeString:
    code = f"U+{ord(char):04X}"
    name = unicodedata.name(char, "") or _control_name(char)
    return format_html('<span class="hidden-char" title="{}">{}</span>', f"{code} {name}".strip(), code)


def _control_name(char: str) -> str:
    return "CONTROL" if unicodedata.category(char) == "Cc" else ""


def _too_many(count: int) -> SafeString:
    text = ngettext("+%(count)d combining mark", "+%(count)d combining marks", count) % {"count": count}
    return format_html('<span class="hidden-char">{}</span>', text)
