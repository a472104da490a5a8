"""Tickets in NDJSON: a line of bytes in, a checked record or one named fault out.

Nothing here knows the database or the time; whether a deadline is over is the contract's to say, after it has looked
whether the ticket is known.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from queue_core import strict_json
from queue_core.errors import InvalidJob
from queue_core.strict_json import check_value
from queue_core.ticket_fields import FIELDS, TicketRecord, checked

MAX_LINE = 1024 * 1024
MAX_EVIDENCE = 256 * 1024
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
    content = strict_json.loads(raw)
    if not isinstance(content, dict):
        raise InvalidJob(_("It is no JSON object."))
    # The reason that a report of refused lines gave: the line was mended, and comes again.
    content.pop(REFUSED_FIELD, None)
    unknown = sorted(content.keys() - FIELDS)
    if unknown:
        raise InvalidJob(_("There is no such field."), field=strict_json.shown(unknown[0]))
    for name, value in content.items():
        check_value(name, value)
    check_size(content.get("evidence"))
    return content


def check_size(evidence: Any) -> None:
    """Raises InvalidJob for evidence that is larger than what is taken."""
    # Measured as it will be stored, not as it was sent: escapes make a line longer than its text.
    size = len(json.dumps(evidence, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_EVIDENCE:
        reason = _("The evidence has %(size)d bytes; at most %(most)d are taken.")
        raise InvalidJob(reason % {"size": size, "most": MAX_EVIDENCE}, field="evidence")
