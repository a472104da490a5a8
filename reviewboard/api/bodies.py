"""What a call carries: read bounded, whatever its headers promise, and never unpacked."""

from typing import Any, BinaryIO, cast

from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest
from django.utils.translation import gettext as _
from pydantic import BaseModel, ValidationError

from queue_core import strict_json
from queue_core.errors import CallerError
from reviewboard.api.problems import Problem, too_large

#: Of a call about one ticket. Evidence may have 256 KiB when stored; escapes make it longer on its way.
MOST_BODY = 1024 * 1024
JSON = ("application/json",)
NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl")
LONGEST_NUMBER = 15
BOM = b"\xef\xbb\xbf"


def read_body(request: HttpRequest, *, most: int = MOST_BODY) -> bytes:
    """The whole body of a JSON call, at most `most` bytes. Raises Problem."""
    stream = open_body(request, JSON, most=most)
    parts, size = [], 0
    while part := stream.read(min(64 * 1024, most + 1 - size)):
        parts.append(part)
        size += len(part)
        if size > most:
            raise too_large(most)
    promised = length_of(request)
    if promised is not None and size < promised:
        raise Problem(
            "body_incomplete", _("%(sent)d of %(promised)d bytes came.") % {"sent": size, "promised": promised}
        )
    return b"".join(parts).removeprefix(BOM)


def open_body(request: HttpRequest, media_types: tuple[str, ...], *, most: int) -> BinaryIO:
    """The body as a stream that ends where the body does. Raises Problem for one that cannot or must not be read."""
    _check_headers(request, media_types)
    length = length_of(request)
    if length is not None:
        if length > most:
            raise too_large(most)
        return cast("BinaryIO", request)
    if not request.headers.get("Transfer-Encoding"):
        # Neither says that there is one: it is empty.
        return cast("BinaryIO", request)
    # In chunks. Django reads no further than a length, which is not there; a server that says so ends the stream.
    if not isinstance(request, WSGIRequest) or not request.environ.get("wsgi.input_terminated"):
        raise Problem("length_required", _("This server takes no body without a length: send Content-Length."))
    return cast("BinaryIO", request.environ["wsgi.input"])


def length_of(request: HttpRequest) -> int | None:
    """What Content-Length promises; None where it says nothing. Raises Problem for one that is no length."""
    sent = request.META.get("CONTENT_LENGTH") or ""
    if not sent or request.headers.get("Transfer-Encoding"):
        return None
    if not (sent.isascii() and sent.isdigit()):
        raise Problem("bad_request", _("Content-Length is no length."))
    return int(sent) if len(sent) <= LONGEST_NUMBER else 10**LONGEST_NUMBER


def _check_headers(request: HttpRequest, media_types: tuple[str, ...]) -> None:
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        # Some kilobytes unpack to gigabytes: what is refused needs no limit.
        raise Problem("encoding_not_supported", _("Send the body as it is, without Content-Encoding."))
    media_type, _semicolon, rest = request.headers.get("Content-Type", "").partition(";")
    charset = rest.partition("charset=")[2].strip(' "').lower()
    if media_type.strip().lower() not in media_types or charset not in ("", "utf-8", "utf8"):
        detail = _("Send %(types)s in UTF-8.") % {"types": media_types[0]}
        raise Problem("media_type_not_supported", detail, accepted=list(media_types))


def read_as[M: BaseModel](request: HttpRequest, model: type[M]) -> M:
    """The body as one of our schemas. Raises Problem with the field that is wrong."""
    return as_model(read_json(request), model)


def read_json(request: HttpRequest) -> Any:
    raw = read_body(request)
    try:
        content = strict_json.loads(raw)
        strict_json.check_value("", content)
    except CallerError as fault:
        raise Problem("invalid_json", str(fault), field=fault.field) from fault
    return content


def as_model[M: BaseModel](content: Any, model: type[M]) -> M:
    try:
        return model.model_validate(content, strict=True)
    except ValidationError as fault:
        raise invalid(fault.errors(include_url=False, include_context=False, include_input=False)) from fault


def invalid(errors: list[Any]) -> Problem:
    """The first of pydantic's errors. Its places are joined to a field's name."""
    first = errors[0]
    places = [str(place) for place in first["loc"] if place not in ("query", "path", "body")]
    return Problem("invalid_request", str(first["msg"]), field=".".join(places)[:100])
