"""The four wires at a stand-in, and a call that each can carry."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from queue_core.connections import Answer, Call, build, call_all
from queue_core.models import ModelConnection
from queue_core.questions import read_questions
from tests.connections.adapters import call
from tests.factories import clock

QUESTIONS = [
    {"type": "choice", "name": "verdict", "instructions": "What should become of it?",
     "options": ["approve", {"value": "reject", "description": "It breaks a rule."}, "unsure"]},
    {"type": "predicate", "name": "insult", "instructions": "Is it an insult?"},
    {"type": "score", "name": "severity", "instructions": "How grave is it?", "levels": ["none", "some", "grave"]},
]  # fmt: skip
KEY = "sk-test-3f9c1b7a5d"
#: Kind -> the path behind the server's address, and the category that says how bad a text is.
WIRES = {
    "openai-decisions": ("/v1", "verdict=reject"),
    "openai-moderations": ("/v1", "harassment"),
    "systemone": ("/v1", "verdict=reject"),
    "http": ("/review", "insult"),
}
HTTP_OPTIONS = {
    "request": {"text": "{text}", "about": "ticket {ticket} of {source}"},
    "scores": {"insult": "/scores/insult"},
    "refused": "/refused",
    "model": "/model",
    "request_id": "/id",
}


def row(kind: str, url: str, **fields: Any) -> ModelConnection:
    path, _category = WIRES[kind]
    options = (HTTP_OPTIONS if kind == "http" else {}) | fields.pop("options", {})
    values = {"name": "m", "kind": kind, "address": url + path, "model": "gpt-6-luna", "options": options}
    return ModelConnection(**(values | fields))


def adapter(kind: str, url: str, **fields: Any) -> Any:
    """The adapter of a connection to this server, on a clock that stands."""
    made: Any = build(row(kind, url, **fields))
    made.clock = clock(0)
    return made


def asked(number: int = 1, text: str = "Good morning.", *, limit: float = 5.0, **changes: Any) -> Call:
    import json

    values = {
        "evidence": json.dumps({"text": text}),
        "time_limit": timedelta(seconds=limit),
        "questions": read_questions(QUESTIONS),
    }
    return call(number, **(values | changes))


def answers(connection: Any, calls: Sequence[Call]) -> list[Answer]:
    """The answers in the order of the calls."""
    found = {given.attempt: answer for given, answer in call_all(connection, calls)}
    return [found[given.attempt] for given in calls]
