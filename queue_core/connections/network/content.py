"""What of a ticket's evidence goes to a model: its words, its images handed in as bytes, or the whole of it."""

import json
import re
from dataclasses import dataclass, field

from queue_core.connections.evidence_text import NoText, text_of

MAX_IMAGES = 10
#: Images come as bytes in the evidence. An address would have the model server fetch what a stranger wrote.
DATA_URL = re.compile(r"data:image/(png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True, slots=True)
class Content:
    """What is sent. In no repr, so that it is in no log."""

    text: str = field(repr=False)
    images: tuple[str, ...] = field(default=(), repr=False)
    whole: object = field(default=None, repr=False)
    """The evidence as JSON."""

    @property
    def size(self) -> int:
        return len(self.text) + sum(map(len, self.images))


def content_of(evidence: str, *, sends_images: bool) -> Content:
    """The content of sealed evidence. Raises NoText where the model would judge less than all of it.

    Images stand under "images", as a list of data URLs. A model that does not look at them must not approve them.
    """
    try:
        whole = json.loads(evidence)
    except (ValueError, RecursionError) as error:
        raise NoText("The evidence is not readable JSON.") from error
    if "\\ud" in evidence.lower() and not _is_text(whole):
        raise NoText("The evidence holds half of a character, which no request can carry.")
    images = _images(whole)
    if not images:
        return Content(text_of(evidence), whole=whole)
    if not sends_images:
        raise NoText("The evidence holds images, which this connection does not look at.")
    assert isinstance(whole, dict)
    text = whole.get("text")
    return Content(text if isinstance(text, str) else "", images, whole)


def _is_text(whole: object) -> bool:
    """JSON can name half of a character that takes two; no encoding has a place for it."""
    try:
        json.dumps(whole, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _images(whole: object) -> tuple[str, ...]:
    given = whole.get("images") if isinstance(whole, dict) else None
    if not given:
        return ()
    if not isinstance(given, list) or len(given) > MAX_IMAGES:
        raise NoText(f"The evidence's images are no list of at most {MAX_IMAGES}.")
    for image in given:
        if not isinstance(image, str) or not DATA_URL.fullmatch(image):
            raise NoText("An image in the evidence is no data URL of a PNG, JPEG, WebP or GIF.")
    return tuple(given)
