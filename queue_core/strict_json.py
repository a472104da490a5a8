"""JSON from outside, read strictly where readers differ.

So that what is stored can be shown, exported and sent by every later step: no duplicate keys, no NaN, no NUL, no lone
surrogate, bounded numbers and nesting. The one reader for files and for the API, so that both refuse the same.
"""

import json
import math
from typing import Any

from django.utils.translation import gettext as _

from queue_core.errors import InvalidJob

MAX_NESTING = 64
#: Longer numbers are rounded, refused or mistaken by one reader or another on their way.
MAX_NUMBER = 40


def loads(raw: bytes) -> Any:
    """The value in `raw`, whose texts and depth are still unchecked (`check_value`). Raises InvalidJob."""
    if b"\x00" in raw:
        raise InvalidJob(_("It holds a NUL character."))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidJob(_("It is not UTF-8 at byte %(byte)d.") % {"byte": error.start + 1}) from error
    try:
        return json.loads(
            text,
            object_pairs_hook=_without_duplicates,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except InvalidJob:
        raise
    except RecursionError as error:
        raise InvalidJob(_too_deep()) from error
    except ValueError as error:
        position = error.pos + 1 if isinstance(error, json.JSONDecodeError) else 1
        raise InvalidJob(_("It is no JSON, at character %(position)d.") % {"position": position}) from error


def check_value(name: str, value: Any) -> None:
    """Raises InvalidJob for a field's value that nests too deeply or holds a text that cannot be stored."""
    # A stack of its own: this walk must not be what nesting breaks.
    stack = [(value, 1)]
    while stack:
        part, depth = stack.pop()
        if isinstance(part, str):
            check_text(name, part)
        elif isinstance(part, dict | list):
            if depth > MAX_NESTING:
                raise InvalidJob(_too_deep(), field=name)
            children = part.values() if isinstance(part, dict) else part
            stack.extend((child, depth + 1) for child in children)
            if isinstance(part, dict):
                check_text(name, "".join(part))


def check_text(name: str, text: str) -> None:
    """Raises InvalidJob for a text that PostgreSQL cannot hold."""
    if "\x00" in text:
        raise InvalidJob(_("A text holds a NUL character, which cannot be stored."), field=name)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidJob(_("A text holds half of a surrogate pair, which is no character."), field=name) from error


def shown(name: str) -> str:
    """A name from outside, for a report: short, and without what a terminal would obey."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)[:64]


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidJob(_("A key stands twice in one object."), field=shown(_first_repeat(pairs)))
    return found


def _first_repeat(pairs: list[tuple[str, Any]]) -> str:
    """One walk: counting each name would keep a line of 100,000 keys busy for minutes."""
    seen: set[str] = set()
    for name, _value in pairs:
        if name in seen:
            return name
        seen.add(name)
    raise AssertionError("no name stands twice")


def _no_constant(text: str) -> Any:
    raise InvalidJob(_("%(number)s is no JSON number.") % {"number": text})


def _integer(text: str) -> int:
    _check_digits(text)
    return int(text)


def _float(text: str) -> float:
    _check_digits(text)
    number = float(text)
    if not math.isfinite(number):
        raise InvalidJob(_("The number %(number)s is too large.") % {"number": text})
    return number


def _check_digits(text: str) -> None:
    if len(text) > MAX_NUMBER:
        raise InvalidJob(_("A number is longer than %(most)d characters.") % {"most": MAX_NUMBER})


def _too_deep() -> str:
    return _("Objects and lists stand deeper in each other than %(most)d.") % {"most": MAX_NESTING}
