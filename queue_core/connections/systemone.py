"""The `systemone` kind: the policy's questions by name to a local decision-model server, one ticket a request."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx2

from queue_core.connections.answers import Answer, Verdict
from queue_core.connections.network.adapter import NetworkConnection, Parcel, look_at_models
from queue_core.connections.network.content import Content
from queue_core.connections.network.options import Options, address_of, at_once_of, model_of
from queue_core.connections.network.reading import (
    Scores,
    choice_scores,
    object_of,
    predicate_scores,
    refusal_scores,
    refuse_error,
    scale_scores,
    text_or_empty,
    usage_of,
)
from queue_core.connections.network.sending import Terms, Unreadable, post_json
from queue_core.models import ModelConnection
from queue_core.questions import Choice, Option, Predicate, Question, Scale, categories_of

SENDS = ("text", "evidence")


@dataclass(frozen=True, slots=True)
class SystemOneWire:
    address: str
    model: str
    sends: str = "text"
    sends_images: bool = False
    most_together: int = 1
    asks: bool = True

    def load(self) -> None:
        """Nothing: the HTTP client is here already."""

    def share_of_ours(self, parcel: Parcel) -> float:
        ours = len(json.dumps(questions_of(parcel.calls[0].questions)))
        return ours / (ours + parcel.contents[0].size)

    def categories(self, questions: Sequence[Question]) -> Sequence[str]:
        return categories_of(questions)

    async def ask(self, client: httpx2.AsyncClient, parcel: Parcel, terms: Terms) -> Sequence[Answer]:
        [call], [content] = parcel.calls, parcel.contents
        body = {"model": self.model, "state": self._state(content), "questions": questions_of(call.questions)}
        data, headers = await post_json(client, f"{self.address}/systemone", body, headers=parcel.headers, terms=terms)
        return [verdict_of(data, call.questions, request_id=headers.get("x-request-id", ""))]

    def _state(self, content: Content) -> object:
        return content.whole if self.sends == "evidence" else content.text

    async def look(self, client: httpx2.AsyncClient, terms: Terms) -> str:
        return await look_at_models(client, f"{self.address}/models", terms)


def questions_of(questions: Sequence[Question]) -> dict[str, dict[str, object]]:
    """The questions in this wire's shape, by name."""
    return {question.name: _question_of(question) for question in questions}


def _question_of(question: Question) -> dict[str, object]:
    match question:
        case Predicate():
            return {"type": "noul", "instructions": question.instructions}
        case Choice():
            criteria = {option.value: option.description or None for option in question.options}
            return {"type": "choice", "instructions": question.instructions, "criteria": criteria}
        case Scale():
            levels = [_level_text(level) for level in question.levels]
            return {"type": "score", "instructions": question.instructions, "criteria": levels}


def _level_text(level: Option) -> str:
    return f"{level.value}: {level.description}" if level.description else level.value


def verdict_of(data: object, questions: Sequence[Question], *, request_id: str = "") -> Verdict:
    """The scores in an answer. A question without an answer brings no score, which is for people.

    Raises Unreadable for answers to what was not asked.
    """
    found = object_of(data, "The answer")
    refuse_error(found, without="answers")
    answers = object_of(found.get("answers"), "The set of answers")
    if not answers:
        raise Unreadable("No question was answered.")
    if not set(answers) <= {question.name for question in questions}:
        raise Unreadable("A question was answered that was not asked.")
    scores: Scores = {}
    for question in questions:
        if question.name in answers:
            scores |= _scores_of(question, answers[question.name])
    return Verdict(
        scores, model=text_or_empty(found.get("model")), request_id=request_id, usage=usage_of(found.get("usage"))
    )


def _scores_of(question: Question, given: object) -> Scores:
    if given is None:
        return refusal_scores(question)
    answer = object_of(given, "An answer")
    kind = answer.get("type")
    if kind == "refusal":
        return refusal_scores(question)
    match question, kind:
        case Predicate(), "noul":
            return predicate_scores(question, answer.get("noul"))
        case Choice(), "choice":
            shares = object_of(answer.get("probabilities"), "Probabilities")
            return choice_scores(question, shares, chosen=answer.get("choice"), confidence=answer.get("confidence"))
        case Scale(), "score":
            shares_in_order = _in_order(question, answer.get("probabilities"))
            return scale_scores(question, shares_in_order, confidence=answer.get("confidence"))
    raise Unreadable("An answer is of another type than its question.")


def _in_order(question: Scale, given: object) -> Sequence[object]:
    """Levels come as a list, or by their text, or by their number: servers differ."""
    if isinstance(given, list):
        return given
    shares: Mapping[str, object] = object_of(given, "Probabilities")
    texts = [_level_text(level) for level in question.levels]
    if set(shares) == set(texts):
        return [shares[text] for text in texts]
    if all(name.isdecimal() for name in shares):
        return [shares[name] for name in sorted(shares, key=int)]
    raise Unreadable("Other levels were answered than were asked about.")


def build(row: ModelConnection) -> NetworkConnection:
    options = Options.of(row)
    address = address_of(row)
    wire = SystemOneWire(
        # Written with or without the version of the API: both are seen in servers' own notes.
        address if address.endswith("/v1") else f"{address}/v1",
        model_of(row),
        sends=options.text("sends", "text", choices=SENDS),
    )
    at_once = at_once_of(options)
    options.end()
    return NetworkConnection(wire, row.key_env, at_once=at_once, allow_restricted=row.allow_restricted)
