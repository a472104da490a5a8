"""The `openai-decisions` kind: the policy's questions to a Decisions API, one ticket a request."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from queue_core.connections.answers import Answer, Verdict
from queue_core.connections.network.adapter import NetworkConnection, Parcel, look_at_models
from queue_core.connections.network.content import Content
from queue_core.connections.network.options import Options, address_of, at_once_of, model_of
from queue_core.connections.network.reading import (
    Scores,
    choice_scores,
    list_of,
    object_of,
    predicate_scores,
    refusal_scores,
    refuse_error,
    scale_scores,
    text_or_empty,
    usage_of,
)
from queue_core.connections.network.sending import Terms, Unreadable
from queue_core.connections.openai_package import ADDRESS, check_installed, client_for, load, plain, said
from queue_core.models import ModelConnection
from queue_core.questions import Choice, Predicate, Question, Scale, categories_of

#: What is sent of the evidence: its words, or the whole of it as JSON.
SENDS = ("text", "evidence")


@dataclass(frozen=True, slots=True)
class DecisionsWire:
    address: str
    model: str
    sends: str = "text"
    sends_images: bool = False
    image_detail: str = "auto"
    most_together: int = 1
    asks: bool = True

    def load(self) -> None:
        load()

    def share_of_ours(self, parcel: Parcel) -> float:
        ours = len(json.dumps(questions_of(parcel.calls[0].questions)))
        return ours / (ours + parcel.contents[0].size)

    def categories(self, questions: Sequence[Question]) -> Sequence[str]:
        return categories_of(questions)

    async def ask(self, client: httpx2.AsyncClient, parcel: Parcel, terms: Terms) -> Sequence[Answer]:
        [call], [content] = parcel.calls, parcel.contents
        package = client_for(self.address, client, terms)
        raw = await said(
            lambda: package.decisions.with_raw_response.create(
                model=self.model,
                input=self.input_of(content),
                questions=questions_of(call.questions),
                extra_headers=parcel.headers,
            )
        )
        return [verdict_of(plain(raw), call.questions, request_id=raw.headers.get("x-request-id", ""))]

    def input_of(self, content: Content) -> Any:
        """The ticket as data, never as an instruction: questions stand apart from it on this wire."""
        if self.sends == "text" and not content.images:
            return content.text
        parts: list[dict[str, object]] = []
        if self.sends == "evidence" and isinstance(content.whole, dict):
            whole = {name: value for name, value in content.whole.items() if name != "images"}
            parts.append({"type": "input_json", "data": whole})
        elif content.text:
            parts.append({"type": "input_text", "text": content.text})
        parts += [{"type": "input_image", "image_url": image, "detail": self.image_detail} for image in content.images]
        return [{"role": "user", "content": parts}]

    async def look(self, client: httpx2.AsyncClient, terms: Terms) -> str:
        return await look_at_models(client, f"{self.address}/models", terms)


def questions_of(questions: Sequence[Question]) -> list[Any]:
    """The questions in this wire's shape."""
    return [_question_of(question) for question in questions]


def _question_of(question: Question) -> dict[str, object]:
    common: dict[str, object] = {"name": question.name, "instructions": question.instructions}
    match question:
        case Predicate():
            return {"type": "predicate"} | common
        case Choice():
            choices = [_described("value", one.value, one.description) for one in question.options]
            return {"type": "choice", "choices": choices} | common
        case Scale():
            levels = [_described("label", one.value, one.description) for one in question.levels]
            return {"type": "score", "levels": levels} | common


def _described(name: str, value: str, description: str) -> dict[str, str]:
    return {name: value} | ({"description": description} if description else {})


def verdict_of(data: object, questions: Sequence[Question], *, request_id: str = "") -> Verdict:
    """The scores in an answer. Raises Unreadable for one that is not to these questions, in this order."""
    found = object_of(data, "The answer")
    refuse_error(found, without="answers")
    answers = list_of(found.get("answers"), "The list of answers")
    if len(answers) != len(questions):
        raise Unreadable(f"{len(answers)} answers came to {len(questions)} questions.")
    scores: Scores = {}
    for question, answer in zip(questions, answers, strict=True):
        scores |= _scores_of(question, object_of(answer, "An answer"))
    return Verdict(
        scores, model=text_or_empty(found.get("model")), request_id=request_id, usage=usage_of(found.get("usage"))
    )


def _scores_of(question: Question, answer: Mapping[str, object]) -> Scores:
    if answer.get("name") not in (None, question.name):
        raise Unreadable("The answers are in another order than the questions.")
    kind = answer.get("type")
    if kind == "refusal":
        return refusal_scores(question)
    match question, kind:
        case Predicate(), "predicate":
            return predicate_scores(question, answer.get("probability"))
        case Choice(), "choice":
            return choice_scores(
                question, _shares(answer, "value"), chosen=answer.get("choice"), confidence=answer.get("confidence")
            )
        case Scale(), "score":
            shares = _shares(answer, "label")
            levels = [level.value for level in question.levels]
            if set(shares) != set(levels):
                raise Unreadable("Other levels were answered than were asked about.")
            return scale_scores(question, [shares[level] for level in levels], confidence=answer.get("confidence"))
    raise Unreadable("An answer is of another type than its question.")


def _shares(answer: Mapping[str, object], name: str) -> dict[str, object]:
    entries = [object_of(entry, "A probability") for entry in list_of(answer.get("probabilities"), "Probabilities")]
    shares = {str(entry.get(name)): entry.get("probability") for entry in entries}
    if len(shares) < len(entries):
        raise Unreadable("An option was answered twice.")
    return shares


def build(row: ModelConnection) -> NetworkConnection:
    check_installed()
    options = Options.of(row)
    wire = DecisionsWire(
        address_of(row, ADDRESS),
        model_of(row),
        sends=options.text("sends", "text", choices=SENDS),
        sends_images=options.flag("images"),
        image_detail=options.text("image_detail", "auto", choices=("low", "high", "auto", "original")),
    )
    at_once = at_once_of(options)
    options.end()
    return NetworkConnection(wire, row.key_env, at_once=at_once, allow_restricted=row.allow_restricted)
