"""Pictures that came as bytes within evidence: shown from those bytes, never from an address.

Only kinds that a browser draws and cannot run, told by their first bytes, and of a size that no tab chokes on.
"""

import base64
import binascii
import re
import struct
from dataclasses import dataclass

#: More pixels than this are not drawn: some thousand bytes can claim to be a square kilometre.
MOST_PIXELS = 25_000_000
#: The stated type is not believed, but has to be one of these for a text to be looked at as a picture.
STATED = re.compile(r"data:image/(?:png|jpeg|jpg|gif|webp);base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Picture:
    """`source` is made anew from the checked bytes; None where it is too large or broken, and then is not drawn."""

    path: str
    kind: str
    width: int
    height: int
    size: int
    source: str | None


def picture_of(path: str, text: str) -> Picture | None:
    """The picture in a field's text; None where it claims to be none, or is none of the known kinds."""
    stated = STATED.match(text)
    if stated is None:
        return None
    try:
        body = base64.b64decode(text[stated.end() :], validate=True)
    except (binascii.Error, ValueError):
        return None
    found = _measure(body)
    if found is None:
        return None
    kind, width, height = found
    is_drawn = 0 < width * height <= MOST_PIXELS
    source = f"data:image/{kind};base64,{base64.b64encode(body).decode()}" if is_drawn else None
    return Picture(path, kind, width, height, len(body), source)


def _measure(body: bytes) -> tuple[str, int, int] | None:
    """Kind, width and height, from the first bytes alone."""
    try:
        if body.startswith(b"\x89PNG\r\n\x1a\n") and body[12:16] == b"IHDR":
            width, height = struct.unpack(">II", body[16:24])
            return "png", width, height
        if body[:6] in (b"GIF87a", b"GIF89a"):
            width, height = struct.unpack("<HH", body[6:10])
            return "gif", width, height
        if body.startswith(b"\xff\xd8"):
            return _measure_jpeg(body)
        if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
            return _measure_webp(body)
    except (struct.error, IndexError):
        return None
    return None


def _measure_jpeg(body: bytes) -> tuple[str, int, int] | None:
    at = 2
    while at + 9 < len(body) and body[at] == 0xFF:
        marker = body[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", body[at + 5 : at + 9])
            return "jpeg", width, height
        at += 2 + struct.unpack(">H", body[at + 2 : at + 4])[0]
    return None


def _measure_webp(body: bytes) -> tuple[str, int, int] | None:
    chunk = body[12:16]
    if chunk == b"VP8X":
        return "webp", 1 + int.from_bytes(body[24:27], "little"), 1 + int.from_bytes(body[27:30], "little")
    if chunk == b"VP8L":
        bits = int.from_bytes(body[21:25], "little")
        return "webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk == b"VP8 ":
        width, height = struct.unpack("<HH", body[26:30])
        return "webp", width & 0x3FFF, height & 0x3FFF
    return None
