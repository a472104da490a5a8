"""The OpenAPI document as people read it: one page of headings and tables, made from what machines are told."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

COMPONENTS = "#/components/schemas/"
JSON = "application/json"
#: OpenAPI's words for types, in a reader's.
WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
}
FORMATS = {"date-time": "time", "uuid": "UUID"}
#: What `minimum` and `maximum` are where only the column's own size is meant.
LARGEST = 2**63 - 1

type Piece = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of a body or an answer. `shape` names the shape that it is, or is a list of."""

    name: str
    kind: str
    shape: str
    is_needed: bool
    says: list[Piece]


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    word: str
    shape: str
    media_type: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One call. `media_types` are those of its body, `fields` what its body holds where that is an object."""

    anchor: str
    method: str
    path: str
    title: str
    says: list[list[Piece]]
    scope: str
    parameters: list[Field]
    media_types: list[str]
    example: str
    fields: list[Field]
    answers: list[Answer]
    failures: list[Answer]


@dataclass(frozen=True, slots=True)
class Shape:
    """An object that answers are made of."""

    name: str
    says: list[list[Piece]]
    fields: list[Field]
    values: list[str]


def operations(document: Mapping[str, Any]) -> dict[str, list[Operation]]:
    """Every call, by what it is about, in the document's order."""
    found: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            found.setdefault(told["tags"][0], []).append(_operation(path, method, told))
    return found


def shapes(document: Mapping[str, Any]) -> list[Shape]:
    """What answers are made of, by name."""
    return [
        Shape(name, prose(told.get("description", "")), _fields(told), [str(one) for one in told.get("enum", ())])
        for name, told in sorted(document["components"]["schemas"].items())
    ]


def prose(text: str) -> list[list[Piece]]:
    """Paragraphs of pieces, each with whether it stood in backticks."""
    return [_pieces(part) for part in re.split(r"\n\s*\n", text.strip()) if part]


def _pieces(text: str) -> list[Piece]:
    joined = " ".join(text.split())
    return [(piece, place % 2 == 1) for place, piece in enumerate(joined.split("`")) if piece]


def _operation(path: str, method: str, told: Mapping[str, Any]) -> Operation:
    content = told.get("requestBody", {}).get("content", {})
    answers = [_answer(str(status), one) for status, one in told["responses"].items()]
    example = next((one["example"] for one in content.values() if "example" in one), "")
    return Operation(
        anchor=f"{method}-{re.sub('[^a-z0-9]+', '-', path.lower()).strip('-')}",
        method=method.upper(),
        path=path,
        title=told["summary"],
        says=prose(told.get("description", "")),
        scope=", ".join(scope for one in told["security"] for scope in one.get("Key", ())),
        parameters=[
            _field(one["name"], one["schema"] | _only(one, "description"), one["required"], one["in"])
            for one in told["parameters"]
        ],
        media_types=list(content),
        example=example,
        fields=_fields(content[JSON]["schema"]) if JSON in content else [],
        answers=[one for one in answers if one.status < "400"],
        failures=[one for one in answers if one.status >= "400"],
    )


def _only(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: told[name]} if told.get(name) else {}


def _answer(status: str, told: Mapping[str, Any]) -> Answer:
    content: Mapping[str, Any] = told.get("content", {})
    media_type = next(iter(content), "")
    shape = _shape_of(content[media_type].get("schema", {})) if media_type else ""
    return Answer(status, told["description"], shape, media_type)


def _fields(schema: Mapping[str, Any]) -> list[Field]:
    needed = schema.get("required", ())
    return [_field(name, told, name in needed) for name, told in schema.get("properties", {}).items()]


def _field(name: str, told: Mapping[str, Any], is_needed: bool, place: str = "") -> Field:
    kinds = [kind for kind in (_kind(one) for one in _choices(told)) if kind]
    if place == "path":
        kinds.append("in the address")
    meant = next((one for one in (told, *_choices(told)) if one.get("description")), {})
    return Field(name, "; ".join(kinds), _shape_of(told), is_needed, _pieces(meant.get("description", "")))


def _choices(told: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """What a value may be; that it may be null is said by its not being needed."""
    found: list[Mapping[str, Any]] = [one for one in told.get("anyOf", [told]) if one.get("type") != "null"]
    return found


def _kind(told: Mapping[str, Any]) -> str:
    if "enum" in told:
        return "one of " + ", ".join(map(str, told["enum"]))
    if "const" in told:
        return str(told["const"])
    if told.get("type") == "array":
        return "list"
    word = FORMATS.get(told.get("format", ""), WORDS.get(told.get("type", ""), "" if "$ref" in told else "any JSON"))
    return ", ".join(part for part in (word, _limits(told)) if part)


def _limits(told: Mapping[str, Any]) -> str:
    if "maxLength" in told:
        return f"at most {told['maxLength']} characters"
    least, most = told.get("minimum"), told.get("maximum")
    if most is None or most == LARGEST:
        return "" if least is None else f"at least {least}"
    return f"{least} to {most}" if least is not None else f"at most {most}"


def _shape_of(told: Mapping[str, Any]) -> str:
    """The shape that a value is, or is a list of; empty for what is none."""
    for one in (*_choices(told), told.get("items", {})):
        if "$ref" in one:
            return str(one["$ref"]).removeprefix(COMPONENTS)
    return ""
