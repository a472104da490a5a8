"""The `http` kind: a JSON endpoint of the user's own, by a request template and an answer's mapping.

Options: `request` (a JSON template in which texts such as "{text}" stand for what is sent), `scores` (category -> JSON
pointer), and if wanted `refused`, `model`, `request_id`, `usage`, `headers`, `key_header`, `key_prefix`, `health`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import httpx2
from django.utils.translation import gettext as _

from queue_core.connections.answers import Answer, Refused, Verdict
from queue_core.connections.base import Call
from queue_core.connections.network.adapter import NetworkConnection, Parcel, look_at_models
from queue_core.connections.network.content import Content
from queue_core.connections.network.options import OptionFault, Options, address_of, at_once_of
from queue_core.connections.network.reading import Scores, number_of, refuse_error, text_or_empty, usage_of
from queue_core.connections.network.sending import Terms, Unreadable, post_json
from queue_core.connections.network.transport import KeyPlace
from queue_core.connections.pointers import Nowhere, at, check_pointer
from queue_core.errors import ConfigurationFault
from queue_core.models import ModelConnection
from queue_core.questions import Question

#: What a template may name. A text that is one of these alone becomes the value itself, of whatever type it is.
PLACES = ("text", "evidence", "images", "ticket", "source", "revision", "model", "policy_version", "fence")
CONTENT = ("text", "evidence", "images")
PLACE = re.compile(r"\{([a-z_]+)\}")
MAX_TEMPLATE = 64 * 1024
MAX_CATEGORIES = 400
MAX_HEADERS = 20
HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
#: Ours to set, or the way in which a key would stand in the row in clear.
RESERVED = frozenset(
    {"authorization", "cookie", "host", "content-length", "content-type", "transfer-encoding", "connection"}
    | {"accept-encoding", "idempotency-key", "x-review-fence", "x-api-key", "api-key", "proxy-authorization"}
)
#: Options are stored, shown and audited in clear.
SECRET_HEADER = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpWire:
    address: str
    model: str
    template: object = field(repr=False)
    scores: Mapping[str, str]
    refused: str = ""
    model_at: str = ""
    request_id_at: str = ""
    usage_at: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    health: str = ""
    method: str = "POST"
    sends_images: bool = False
    most_together: int = 1
    asks: bool = False

    def load(self) -> None:
        """Nothing: the HTTP client is here already."""

    def share_of_ours(self, parcel: Parcel) -> float:
        ours = len(json.dumps(self.template))
        return ours / (ours + parcel.contents[0].size)

    def categories(self, questions: Sequence[Question]) -> Sequence[str]:
        return list(self.scores)

    async def ask(self, client: httpx2.AsyncClient, parcel: Parcel, terms: Terms) -> Sequence[Answer]:
        [call], [content] = parcel.calls, parcel.contents
        body = filled(self.template, values_of(call, content, self.model))
        headers = {**self.headers, **parcel.headers}
        data, said = await post_json(client, self.address, body, headers=headers, terms=terms, method=self.method)
        return [self.answer_of(data, request_id=said.get("x-request-id", ""))]

    def answer_of(self, data: object, *, request_id: str = "") -> Answer:
        """The answer in a reply. A category that is not there brings no score, which is for people.

        Raises Unreadable where none is there: an error page in JSON is no answer, and must not send a backlog to
        people.
        """
        model = text_or_empty(_found(data, self.model_at)) or self.model
        request_id = text_or_empty(_found(data, self.request_id_at)) or request_id
        if _found(data, self.refused) not in (None, False, ""):
            return Refused("The model refused to judge this.", model=model, request_id=request_id)
        scores: Scores = {}
        for category, pointer in self.scores.items():
            try:
                value = at(data, pointer)
            except Nowhere:
                continue
            scores[category] = None if value is None else number_of(value, "A score")
        if not scores:
            refuse_error(data)
            raise Unreadable("Nothing stands where the scores were to be.")
        return Verdict(scores, model=model, request_id=request_id, usage=usage_of(_found(data, self.usage_at)))

    async def look(self, client: httpx2.AsyncClient, terms: Terms) -> str:
        return await look_at_models(client, self.health or self.address, terms)


def _found(data: object, pointer: str) -> object:
    if not pointer:
        return None
    try:
        return at(data, pointer)
    except Nowhere:
        return None


def values_of(call: Call, content: Content, model: str) -> dict[str, object]:
    """What the places of a template stand for."""
    return {
        "text": content.text,
        "evidence": content.whole,
        "images": list(content.images),
        "ticket": call.ticket,
        "source": call.source,
        "revision": call.revision,
        "model": model,
        "policy_version": call.policy_version,
        "fence": call.fence,
    }


def filled(template: object, values: Mapping[str, object]) -> object:
    """The template with its places filled. Only the template is read for places: a ticket's text never is."""
    if isinstance(template, dict):
        return {name: filled(part, values) for name, part in template.items()}
    if isinstance(template, list):
        return [filled(part, values) for part in template]
    if not isinstance(template, str):
        return template
    whole = PLACE.fullmatch(template)
    if whole:
        return values[whole[1]]
    return PLACE.sub(lambda place: _as_text(values[place[1]]), template)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def build(row: ModelConnection) -> NetworkConnection:
    options = Options.of(row)
    template = _template(options.any("request"))
    wire = HttpWire(
        address_of(row),
        row.model,
        template,
        _scores(options),
        refused=_pointer(options, "refused"),
        model_at=_pointer(options, "model"),
        request_id_at=_pointer(options, "request_id"),
        usage_at=_pointer(options, "usage"),
        headers=_headers(options),
        health=_health(options),
        method=options.text("method", "POST", choices=("POST", "PUT")),
        sends_images=bool({"images", "evidence"} & set(_places(template))),
    )
    place = KeyPlace(_header_name(options.text("key_header", "Authorization")), options.text("key_prefix", "Bearer "))
    at_once = at_once_of(options)
    options.end()
    return NetworkConnection(wire, row.key_env, place, at_once=at_once, allow_restricted=row.allow_restricted)


def _template(given: object) -> object:
    if given is None:
        return {"text": "{text}"}
    if not isinstance(given, dict | list) or len(json.dumps(given)) > MAX_TEMPLATE:
        raise _fault("request", _("an object or list of at most %(most)d bytes is needed.") % {"most": MAX_TEMPLATE})
    places = _places(given)
    unknown = sorted(set(places) - set(PLACES))
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in PLACES)
        raise _fault(
            "request", _("there is no place {%(name)s}. Known: %(known)s.") % {"name": unknown[0], "known": known}
        )
    if not set(places) & set(CONTENT):
        raise _fault("request", _("{text}, {evidence} or {images} must stand in it: else the model judges nothing."))
    return given


def _places(template: object) -> list[str]:
    return PLACE.findall(json.dumps(template))


def _scores(options: Options) -> dict[str, str]:
    found = {}
    for category, pointer in options.mapping("scores", most=MAX_CATEGORIES).items():
        if not 1 <= len(category.strip()) <= 64:
            raise _fault("scores", _("a category's name has 1 to 64 characters."))
        found[category] = _checked(f"scores.{category}", pointer)
    if not found:
        raise _fault("scores", _("at least one category with its JSON pointer is needed."))
    return found


def _pointer(options: Options, name: str) -> str:
    return _checked(name, options.text(name))


def _checked(name: str, pointer: object) -> str:
    try:
        return check_pointer(pointer)
    except ConfigurationFault as fault:
        raise _fault(name, str(fault)) from fault


def _headers(options: Options) -> dict[str, str]:
    found = {}
    for name, value in options.mapping("headers", most=MAX_HEADERS).items():
        if not isinstance(value, str) or not value.isascii() or not value.isprintable() or len(value) > 1000:
            raise _fault(f"headers.{name}", _("a text of at most 1000 printable ASCII characters is needed."))
        if name.lower() in RESERVED or SECRET_HEADER.search(name):
            raise _fault(
                f"headers.{name}",
                _("this header is set by itself; a key is named in its own field, and its header in key_header."),
            )
        found[_header_name(name)] = value
    return found


def _header_name(name: str) -> str:
    if not HEADER.fullmatch(name):
        raise _fault("headers", _("“%(name)s” is no name of a header.") % {"name": name[:64]})
    return name


def _health(options: Options) -> str:
    address = options.text("health")
    if address:
        address_of(ModelConnection(address=address))
    return address


def _fault(name: str, message: str) -> OptionFault:
    return OptionFault(f"{name}: {message}", field="options")
