"""Texts for the demo, all of our own writing: a platform's usual night. None is taken from a data set or a person."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from queue_core.states import Exposure

type Kind = Literal["post", "review"]

_FILE = Path(__file__).with_name("texts.json")


@dataclass(frozen=True, slots=True)
class DemoText:
    """One text with what intake would know of it. `category` is what it was reported for."""

    kind: Kind
    text: str
    language: str
    severity: int
    category: str
    exposure: Exposure


@cache
def demo_texts() -> tuple[DemoText, ...]:
    """All texts in the file's order, which mixes friendly and rude ones."""
    return tuple(_text(**entry) for entry in json.loads(_FILE.read_text(encoding="utf-8")))


def posts() -> tuple[DemoText, ...]:
    return tuple(text for text in demo_texts() if text.kind == "post")


def reviews() -> tuple[DemoText, ...]:
    return tuple(text for text in demo_texts() if text.kind == "review")


def _text(kind: Kind, text: str, language: str, severity: int, category: str, exposure: str) -> DemoText:
    return DemoText(kind, text, language, severity, category, Exposure(exposure))
