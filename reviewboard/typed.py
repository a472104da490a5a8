"""What somebody had typed into a form that was not accepted, so that no error page throws it away."""

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.http.request import RawPostDataException

#: Never written back into a page.
SECRET = ("password", "csrf", "token", "secret", "key")
MOST_FIELDS = 50
#: Of a form that is sent once more: whole, or not at all. A list's ticked rows are the most fields that a form has.
MOST_SENT, MOST_SENT_LENGTH = 600, 60_000
MOST_LENGTH = 20_000

type Typed = list[tuple[str, str]]


def typed_fields(request: HttpRequest) -> Typed:
    """Every field that was sent, but secrets and what is too large. Nothing for a body that cannot be read."""
    return [pair for pair in _sent(request) if _may_be_shown(*pair)][:MOST_FIELDS]


def whole_fields(request: HttpRequest) -> Typed | None:
    """Every field that was sent, but secrets, to be sent once more; None where files or too much came with them."""
    pairs = [pair for pair in _sent(request) if not _is_secret(pair[0])]
    is_too_much = len(pairs) > MOST_SENT or sum(len(value) for _name, value in pairs) > MOST_SENT_LENGTH
    return None if is_too_much or (pairs and request.FILES) else pairs


def typed_text(request: HttpRequest) -> Typed:
    """The part of it that a person wrote: text with a space or a line in it, not ids and choices."""
    return prose_of(typed_fields(request))


def prose_of(fields: Typed) -> Typed:
    return [(name, value) for name, value in fields if len(value.split()) > 1][:MOST_FIELDS]


def _sent(request: HttpRequest) -> Typed:
    if request.method != "POST":
        return []
    try:
        return [(name, value) for name, values in request.POST.lists() for value in values]
    except (BadRequest, MultiPartParserError, SuspiciousOperation, RawPostDataException, OSError):
        return []


def _may_be_shown(name: str, value: str) -> bool:
    return len(value) <= MOST_LENGTH and not _is_secret(name)


def _is_secret(name: str) -> bool:
    # What ends so names a variable of the environment: no secret, and a setting that a save without it would clear.
    return not name.endswith("_env") and any(word in name.lower() for word in SECRET)
