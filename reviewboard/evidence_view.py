"""Evidence as a page shows it: the words large, pictures, other fields beside them, and whether the seal is whole."""

import hashlib
import json
from dataclasses import dataclass, field

from queue_core.models import Evidence
from reviewboard.pictures import Picture, picture_of

#: More fields than this are a number, not a list.
MOST_FIELDS = 60
#: More characters of one field than this are cut here; the stored bytes are untouched. As many as intake takes.
MOST_LENGTH = 262_144
MOST_PICTURES = 12


@dataclass(frozen=True, slots=True)
class Content:
    """What may be shown of one revision. All strangers' text: only through `visible_text`."""

    text: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    left_out: int = 0
    is_cut: bool = False
    is_sealed: bool = True
    is_erased: bool = False


def content_of(evidence: Evidence) -> Content:
    """The words under "text" and every other field by its path; the digest is computed from the stored bytes."""
    if evidence.erased_at is not None:
        return Content(is_erased=True)
    is_sealed = hashlib.sha256(evidence.body.encode()).hexdigest() == evidence.digest
    try:
        body = json.loads(evidence.body)
    except (ValueError, RecursionError):
        # A body that was changed behind the contract's back is still shown, as it stands.
        return Content(text=evidence.body[:MOST_LENGTH], is_cut=len(evidence.body) > MOST_LENGTH, is_sealed=is_sealed)
    text, rest = _words(body)
    pictures, fields = _parted(_fields(rest))
    return Content(
        text=text[:MOST_LENGTH],
        fields=[(name, value[:MOST_LENGTH]) for name, value in fields[:MOST_FIELDS]],
        pictures=pictures,
        left_out=max(len(fields) - MOST_FIELDS, 0),
        is_cut=len(text) > MOST_LENGTH or any(len(value) > MOST_LENGTH for _name, value in fields),
        is_sealed=is_sealed,
    )


def _parted(fields: list[tuple[str, str]]) -> tuple[list[Picture], list[tuple[str, str]]]:
    """Pictures, and the fields that are none."""
    pictures: list[Picture] = []
    others: list[tuple[str, str]] = []
    for name, value in fields:
        picture = picture_of(name, value) if len(pictures) < MOST_PICTURES else None
        if picture is None:
            others.append((name, value))
        else:
            pictures.append(picture)
    return pictures, others


def _words(body: object) -> tuple[str, object]:
    if isinstance(body, dict) and isinstance(body.get("text"), str):
        return body["text"], {key: value for key, value in body.items() if key != "text"}
    return (body, {}) if isinstance(body, str) else ("", body)


def _fields(body: object) -> list[tuple[str, str]]:
    """Leaves by their path, in their order. A stack of its own: nesting is bounded at intake, not here."""
    found: list[tuple[str, str]] = []
    stack: list[tuple[str, object]] = [("", body)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict) and value:
            stack.extend((f"{path}.{key}" if path else str(key), one) for key, one in reversed(value.items()))
        elif isinstance(value, list) and value:
            stack.extend((f"{path}[{number}]", value[number]) for number in reversed(range(len(value))))
        elif path or not isinstance(value, dict):
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            found.append((path, shown))
    return found
