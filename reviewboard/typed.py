"""What somebody had typed into a form that was not accepted, so that no error page throws it away."""

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.http.request import RawPostDataException

#: Never written back into a page.
SECRET = ("password", "csrf", "token", "secret", "key")
MOST_FIELDS = 50
MOST_LENGTH = 20_000

type Typed = list[tuple[str, str]]


def typed_fields(request: HttpRequest) -> Typed:
    """Every field that was sent, but secrets and what is too large. Nothing for a body that cannot be read."""
    if request.method != "POST":
        return []
    try:
        pairs = [(name, value) for name, values in request.POST.lists() for value in values]
    except (BadRequest, MultiPartParserError, SuspiciousOperation, RawPostDataException, OSError):
        return []
    return [pair for pair in pairs if _may_be_shown(*pair)][:MOST_FIELDS]


def typed_text(request: HttpRequest) -> Typed:
    """The part of it that a person wrote: text with a space or a line in it, not ids and choices."""
    return [(name, value) for name, value in typed_fields(request) if len(value.split()) > 1]


def _may_be_shown(name: str, value: str) -> bool:
    return len(value) <= MOST_LENGTH and not any(word in name.lower() for word in SECRET)
