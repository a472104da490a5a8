"""Strangers' text made safe to look at: nothing in it is invisible, and nothing in it moves what stands beside it.

Tickets, ids, notes and model errors may carry bidi overrides, zero-width characters, control characters or a
thousand combining marks. They are shown, never removed: the stored bytes stay as they came.
"""

import re
import sys
import unicodedata
from collections.abc import Iterator, Set
from functools import cache, lru_cache

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

MOST_MARKS = 5
#: Hidden characters of one text that are named one by one.
MOST_NAMED = 2_000
BOX = "▯"
#: Planes 0 to 3 hold what is seen; from here on there are tags, variation selectors, private use and nothing.
ASSIGNED_UP_TO = 0x40000
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
    return SafeString("".join(_pieces(text, strict)))


def _pieces(text: str, strict: bool) -> Iterator[str]:
    """Plain text, escaped, and between it the marks for what has to be looked at.

    Bounded: the same character over and over is one mark with its number, and beyond MOST_NAMED marks each run is a
    plain box, with the sum of them at the end. A text of nothing but zero-width spaces must not freeze a page.
    """
    plain_from, named, boxed = 0, 0, 0
    for run in _looked_at(strict).finditer(text):
        yield escape(text[plain_from : run.start()])
        plain_from = run.end()
        if named < MOST_NAMED:
            marks = list(_run(text, run.start(), run.end(), strict))
            named += sum(isinstance(mark, SafeString) for mark in marks)
            yield from (mark if isinstance(mark, SafeString) else escape(mark) for mark in marks)
        else:
            boxed += run.end() - run.start()
            yield BOX
    yield escape(text[plain_from:])
    if boxed:
        yield _boxed(boxed)


def _run(text: str, start: int, end: int, strict: bool) -> Iterator[str | SafeString]:
    plain_from, marks, i = start, 0, start
    while i < end:
        char = text[i]
        marks = marks + 1 if unicodedata.category(char) in MARK_CATEGORIES else 0
        if marks > MOST_MARKS:
            yield text[plain_from:i]
            last = _last_mark(text, i, end)
            yield _too_many(last - i + 1)
            plain_from = i = last + 1
        elif _is_hidden(text, i) or (strict and _is_odd_space(text, i)):
            yield text[plain_from:i]
            last = _last_same(text, i, end)
            yield _named(char, last - i + 1)
            plain_from = i = last + 1
        else:
            i += 1
    yield text[plain_from:end]


def _last_mark(text: str, i: int, end: int) -> int:
    while i + 1 < end and unicodedata.category(text[i + 1]) in MARK_CATEGORIES:
        i += 1
    return i


def _last_same(text: str, i: int, end: int) -> int:
    char = text[i]
    while i + 1 < end and text[i + 1] == char:
        i += 1
    return i


@cache
def _looked_at(strict: bool) -> re.Pattern[str]:
    """Too many marks in a row, or what may be hidden: rare in most texts, so that 200 KB take milliseconds."""
    marks, hidden = _by_category(MARK_CATEGORIES), _by_category(HIDDEN_CATEGORIES | ({"Zs"} if strict else set()))
    also = "".join(BLANK_LETTERS) + "\ufe00-\ufe0f\U000e0100-\U000e01ef" + ("\n\t" if strict else "")
    return re.compile(f"[{marks}]{{{MOST_MARKS + 1},}}|[{hidden}{also}]+")


def _by_category(categories: Set[str]) -> str:
    """For a character class: every character of these categories, but line ends and tabs. All planes from 4 on hide."""
    ranges: list[list[int]] = []
    for point in range(ASSIGNED_UP_TO):
        if unicodedata.category(chr(point)) in categories and chr(point) not in "\n\t":
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    if "Cn" in categories:
        ranges.append([ASSIGNED_UP_TO, sys.maxunicode])
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


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


@lru_cache(maxsize=1024)
def _named(char: str, number: int) -> SafeString:
    code = f"U+{ord(char):04X}"
    name = unicodedata.name(char, "") or _control_name(char)
    shown = f"{code} ×{number}" if number > 1 else code
    return format_html('<span class="hidden-char" title="{}">{}</span>', f"{code} {name}".strip(), shown)


def _control_name(char: str) -> str:
    return "CONTROL" if unicodedata.category(char) == "Cc" else ""


def _too_many(count: int) -> SafeString:
    text = ngettext("+%(count)d combining mark", "+%(count)d combining marks", count) % {"count": count}
    return format_html('<span class="hidden-char">{}</span>', text)


def _boxed(count: int) -> SafeString:
    text = ngettext("%(box)s: %(count)d more hidden character", "%(box)s: %(count)d more hidden characters", count)
    return format_html(' <span class="hidden-char">{}</span>', text % {"box": BOX, "count": count})
