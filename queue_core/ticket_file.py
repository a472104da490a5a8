"""Tickets in NDJSON: a line of bytes in, a checked record or one named fault out.

Strict where JSON readers differ, so that what is stored can be shown, exported and sent by every later step: no
duplicate keys, no NaN, no NUL, no lone surrogate, bounded numbers and nesting. Nothing here knows the database or the
time; whether a deadline is over is the contract's to say, after it has looked whether the ticket is known.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from queue_core.errors import InvalidJob
from queue_core.ticket_fields import FIELDS, TicketRecord, checked

MAX_LINE = 1024 * 1024
MAX_EVIDENCE = 256 * 1024
MAX_NESTING = 64
#: Longer numbers are rounded, refused or mistaken by one reader or another on their way.
MAX_NUMBER = 40
SKIP = 64 * 1024
BOM = b"\xef\xbb\xbf"
#: Where a report of refused lines says why. Ignored when the line comes again.
REFUSED_FIELD = "_refused"
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is not blank. `raw` is None for one that is too long: it was passed over, never held.

    `ends` is how many line ends it takes: a row of CSV may take several.
    """

    number: int
    raw: bytes | None
    ends: int = 1


def lines(stream: BinaryIO, *, first: int = 1) -> Iterator[Line]:
    """The lines of a file, each read bounded. `first` is the number of the line that the stream stands at."""
    number = first - 1
    while head := stream.readline(MAX_LINE + 2):
        number += 1
        text = head.rstrip(b"\r\n")
        if len(text) > MAX_LINE or (len(head) == MAX_LINE + 2 and not head.endswith(b"\n")):
            _skip_rest(stream, head)
            yield Line(number, None)
            continue
        text = (text.removeprefix(BOM) if number == 1 else text).strip(b" \t\r")
        if text:
            yield Line(number, text)


def _skip_rest(stream: BinaryIO, head: bytes) -> None:
    while head and not head.endswith(b"\n"):
        head = stream.readline(SKIP)


def parse(line: Line, *, now: datetime, defaults: Mapping[str, str] = NOTHING) -> TicketRecord:
    """The record in a line; relative times count from `now`. Raises InvalidJob with the field and the reason.

    `defaults` are the values of fields that the line does not name.
    """
    if line.raw is None:
        raise InvalidJob(_("The line is longer than %(most)d bytes.") % {"most": MAX_LINE})
    return checked(with_defaults(_object(line.raw), defaults), now=now)


def with_defaults(values: Mapping[str, Any], defaults: Mapping[str, str]) -> Mapping[str, Any]:
    """What a line says, and for what it does not name (or says null) the default."""
    return {**values, **{name: text for name, text in defaults.items() if values.get(name) is None}}


def _object(raw: bytes) -> dict[str, Any]:
    content = _loaded(_text(raw))
    if not isinstance(content, dict):
        raise InvalidJob(_("The line is no JSON object."))
    # The reason that a report of refused lines gave: the line was mended, and comes again.
    content.pop(REFUSED_FIELD, None)
    unknown = sorted(content.keys() - FIELDS)
    if unknown:
        raise InvalidJob(_("There is no such field."), field=_shown(unknown[0]))
    for name, value in content.items():
        check_value(name, value)
    check_size(content.get("evidence"))
    return content


def _text(raw: bytes) -> str:
    if b"\x00" in raw:
        raise InvalidJob(_("The line holds a NUL character."))
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidJob(_("The line is not UTF-8 at byte %(byte)d.") % {"byte": error.start + 1}) from error


def _loaded(text: str) -> Any:
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
        raise InvalidJob(_("The line is no JSON, at character %(position)d.") % {"position": position}) from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidJob(_("A key stands twice in one object."), field=_shown(_first_repeat(pairs)))
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


def check_value(name: str, value: Any) -> None:
    """Raises InvalidJob for a value that nests too deeply or holds a text that cannot be stored."""
    # A stack of its own: this walk must not be what nesting breaks.
    stack = [(value, 1)]
    while stack:
        part, depth = stack.pop()
        if isinstance(part, str):
            _check_text(name, part)
        elif isinstance(part, dict | list):
            if depth > MAX_NESTING:
                raise InvalidJob(_too_deep(), field=name)
            children = part.values() if isinstance(part, dict) else part
            stack.extend((child, depth + 1) for child in children)
            if isinstance(part, dict):
                _check_text(name, "".join(part))


def _check_text(name: str, text: str) -> None:
    if "\x00" in text:
        raise InvalidJob(_("A text holds a NUL character, which cannot be stored."), field=name)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidJob(_("A text holds half of a surrogate pair, which is no character."), field=name) from error


def check_size(evidence: Any) -> None:
    """Raises InvalidJob for evidence that is larger than what is taken."""
    # Measured as it will be stored, not as it was sent: escapes make a line longer than its text.
    size = len(json.dumps(evidence, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_EVIDENCE:
        reason = _("The evidence has %(size)d bytes; at most %(most)d are taken.")
        raise InvalidJob(reason % {"size": size, "most": MAX_EVIDENCE}, field="evidence")


def _too_deep() -> str:
    return _("Objects and lists stand deeper in each other than %(most)d.") % {"most": MAX_NESTING}


def _shown(name: str) -> str:
    """A name from outside, for a report: short, and without what a terminal would obey."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)[:64]
