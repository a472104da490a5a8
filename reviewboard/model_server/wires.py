"""The answers of the wires: Decisions, moderations, System One, and a plain JSON endpoint. Pure: JSON in, JSON out."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reviewboard.model_server.scoring import is_marked, probability

MODERATION_CATEGORIES = (
    "harassment",
    "harassment/threatening",
    "hate",
    "hate/threatening",
    "illicit",
    "illicit/violent",
    "self-harm",
    "self-harm/instructions",
    "self-harm/intent",
    "sexual",
    "sexual/minors",
    "violence",
    "violence/graphic",
)
#: Of an option whose value or description reads so, its share is that of the bad; of these others that of the good.
REJECTING = ("reject", "no", "bad", "remove", "true")
APPROVING = ("approve", "yes", "good", "keep", "false")

type Json = dict[str, Any]


class Refusal(Exception):
    """A request that is answered with a status of its own."""

    def __init__(self, status: int, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.param = status, param


def answer(path: str, body: object, *, fault: str) -> Json:
    """The answer to one request, bent as the fault says. Raises Refusal."""
    wire = WIRES.get(path)
    if wire is None:
        raise Refusal(404, f"There is nothing at {path}.")
    if not isinstance(body, dict):
        raise Refusal(400, "An object is needed.")
    texts = _texts(body)
    if fault == "rejects" or any(is_marked(text, "reject") for text in texts):
        raise Refusal(400, "The input could not be processed.", param="input")
    return wire(body, fault)


def decisions(body: Json, fault: str) -> Json:
    questions = body.get("questions")
    if not isinstance(questions, list) or not 1 <= len(questions) <= 400:
        raise Refusal(400, "questions: between 1 and 400 questions are needed.", param="questions")
    text = _text_of_input(body.get("input"))
    refuses = fault == "refuses" or is_marked(text, "refuse")
    bad = _bent(probability(text), fault)
    answers = [_decision(question, bad, refuses=refuses) for question in questions]
    return {"answers": _rearranged(answers, fault), "model": body.get("model"), "usage": _usage(body, questions)}


def _decision(question: Json, bad: float, *, refuses: bool) -> Json:
    name = {"name": question.get("name")}
    if refuses:
        return {"type": "refusal"} | name
    match question.get("type"):
        case "predicate":
            return {"type": "predicate", "probability": bad} | name
        case "choice":
            values = [choice["value"] for choice in question["choices"]]
            shares = _shares(values, bad)
            best = max(range(len(values)), key=shares.__getitem__)
            probabilities = [{"value": v, "probability": p} for v, p in zip(values, shares, strict=True)]
            answered = {"choice": values[best], "confidence": shares[best], "probabilities": probabilities}
            return {"type": "choice"} | answered | name
        case "score":
            labels = [level["label"] for level in question["levels"]]
            score, shares = _levels(len(labels), bad)
            probabilities = [
                {"value": n, "label": label, "probability": p}
                for n, (label, p) in enumerate(zip(labels, shares, strict=True))
            ]
            return {"type": "score", "score": score, "confidence": max(shares), "probabilities": probabilities} | name
    raise Refusal(400, "questions: the type is none of predicate, choice and score.", param="questions")


def moderations(body: Json, fault: str) -> Json:
    given = body.get("input")
    inputs = given if isinstance(given, list) and all(isinstance(one, str) for one in given) else [given]
    results = [_moderated(_text_of_input(one), fault) for one in inputs]
    return {"id": "modr-standin", "model": body.get("model"), "results": _rearranged(results, fault)}


def _moderated(text: str, fault: str) -> Json:
    bad = _bent(probability(text), fault)
    scores = dict.fromkeys(MODERATION_CATEGORIES, 0.01) | {"harassment": bad}
    return {
        "flagged": bad >= 0.5,
        "categories": {name: score >= 0.5 for name, score in scores.items()},
        "category_scores": scores,
        "category_applied_input_types": {name: ["text"] for name in scores},
    }


def systemone(body: Json, fault: str) -> Json:
    questions = body.get("questions")
    if not isinstance(questions, dict) or not questions:
        raise Refusal(400, "questions: an object of named questions is needed.")
    text = _text_of_input(body.get("state"))
    refuses = fault == "refuses" or is_marked(text, "refuse")
    bad = _bent(probability(text), fault)
    answers = {name: {"type": "refusal"} if refuses else _named(question, bad) for name, question in questions.items()}
    if fault == "miscount":
        answers.popitem()
    if fault == "extra":
        answers["another"] = {"type": "noul", "noul": 0.5}
    return {"model": body.get("model"), "answers": answers, "usage": _usage(body, questions)}


def _named(question: Json, bad: float) -> Json:
    match question.get("type"):
        case "noul":
            return {"type": "noul", "noul": bad}
        case "choice":
            options = list(question["criteria"])
            shares = _shares(options, bad)
            best = max(range(len(options)), key=shares.__getitem__)
            probabilities = dict(zip(options, shares, strict=True))
            return {
                "type": "choice",
                "choice": options[best],
                "probabilities": probabilities,
                "confidence": shares[best],
            }
        case "score":
            score, shares = _levels(len(question["criteria"]), bad)
            legend = {str(n): text for n, text in enumerate(question["criteria"])}
            probabilities = {str(n): share for n, share in enumerate(shares)}
            return {
                "type": "score",
                "score": score,
                "legend": legend,
                "probabilities": probabilities,
                "confidence": max(shares),
            }
    raise Refusal(400, "questions: the type is none of choice, noul and score.")


def plain(body: Json, fault: str) -> Json:
    """An endpoint of somebody's own: {"text"} -> {"scores": {"insult": p}}."""
    text = _text_of_input(body.get("text"))
    if fault == "refuses" or is_marked(text, "refuse"):
        return {"refused": True, "model": "plain-1"}
    bad = _bent(probability(text), fault)
    found: Json = {"insult": bad, "spam": 0.01}
    if fault == "miscount":
        found.pop("insult")
    return {"scores": found, "model": "plain-1", "id": "plain-call"}


WIRES: Mapping[str, Callable[[Json, str], Json]] = {
    "/v1/decisions": decisions,
    "/v1/moderations": moderations,
    "/v1/systemone": systemone,
    "/review": plain,
}


def spoiled(found: Json, fault: str) -> Json:
    """The answer with numbers replaced or options renamed, for the faults that keep its shape."""
    if fault == "unknown":
        renamed = json.dumps(found).replace('"reject"', '"banana"').replace('"true"', '"banana"')
        changed: Json = json.loads(renamed)
        return changed
    if fault in ("text_scores", "nan"):
        value = "high" if fault == "text_scores" else float("nan")
        return {name: _with_numbers(part, value) if name != "usage" else part for name, part in found.items()}
    return found


def _with_numbers(part: Any, value: object) -> Any:
    if isinstance(part, dict):
        return {name: _with_numbers(inner, value) for name, inner in part.items()}
    if isinstance(part, list):
        return [_with_numbers(inner, value) for inner in part]
    return value if isinstance(part, float) else part


def _texts(body: Json) -> list[str]:
    given = body.get("input", body.get("state", body.get("text", "")))
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        return given
    return [_text_of_input(given)]


def _text_of_input(given: object) -> str:
    """All strings in an input, joined: what a text is made of is the caller's affair."""
    if isinstance(given, str):
        return given
    if isinstance(given, dict):
        return " ".join(_text_of_input(value) for name, value in given.items() if name not in ("type", "role"))
    if isinstance(given, list):
        return " ".join(_text_of_input(value) for value in given)
    return ""


def _bent(bad: float, fault: str) -> float:
    return round(1.0 - bad if fault == "wrong" else bad, 6)


def _shares(values: Sequence[object], bad: float) -> list[float]:
    """The bad's share goes to the option that reads like rejecting, the good's to its opposite, a little to others."""
    words = [str(value).lower() for value in values]
    rejecting = next((n for n, word in enumerate(words) if word in REJECTING), 0)
    approving = next((n for n, word in enumerate(words) if word in APPROVING and n != rejecting), len(words) - 1)
    others = [n for n in range(len(words)) if n not in (rejecting, approving)]
    # What is neither plainly bad nor plainly good is unsure.
    unsure = round(0.5 - abs(bad - 0.5), 6) / 2 if others else 0.0
    shares = [unsure / len(others) if n in others else 0.0 for n in range(len(words))]
    shares[rejecting] = round(bad * (1 - unsure), 6)
    shares[approving] = round((1 - bad) * (1 - unsure), 6)
    return shares


def _levels(count: int, bad: float) -> tuple[float, list[float]]:
    position = bad * (count - 1)
    below = min(int(position), count - 2)
    shares = [0.0] * count
    shares[below], shares[below + 1] = round(1 - (position - below), 6), round(position - below, 6)
    return round(position, 6), shares


def _rearranged(answers: list[Json], fault: str) -> list[Json]:
    match fault:
        case "miscount":
            return answers[:-1]
        case "extra":
            return [*answers, answers[-1]]
        case "disorder":
            return answers[::-1]
    return answers


def _usage(body: Json, questions: Sequence[object] | Mapping[str, object]) -> Json:
    read, written = len(json.dumps(body)) // 4, 4 * len(questions)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
