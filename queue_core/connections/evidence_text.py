"""The words in a ticket's evidence, for models that read plain text."""

import json

#: Far above any post, far below what would block a worker. Longer content is for people, never cut in silence.
MAX_TEXT = 200_000


class NoText(ValueError):
    """The evidence holds nothing that a text model could judge. The message says why."""


def text_of(evidence: str) -> str:
    """The string under "text", else all strings of the evidence in their order, a line each."""
    try:
        content = json.loads(evidence)
    except (ValueError, RecursionError) as error:
        # The error's own message quotes the evidence, which does not belong in an attempt's detail.
        raise NoText("The evidence is not readable JSON.") from error
    text = _chosen(content)
    if not _is_visible(text):
        raise NoText("The evidence holds no text.")
    if len(text) > MAX_TEXT:
        raise NoText(f"The text is longer than {MAX_TEXT} characters.")
    return text


def _chosen(content: object) -> str:
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return "\n".join(_strings(content))


def _strings(content: object) -> list[str]:
    """Every string value, depth first. A stack of its own: nesting is bounded at intake, not here."""
    found: list[str] = []
    stack = [content]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            stack.extend(reversed(value.values()))
        elif isinstance(value, list):
            stack.extend(reversed(value))
    return found


def _is_visible(text: str) -> bool:
    """Whether anything would be seen. Spaces and format characters such as ZERO WIDTH SPACE alone are no text."""
    return any(character.isprintable() and not character.isspace() for character in text)
