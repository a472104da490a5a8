"""From typed answers to scores under the names that policies use. Shared by the wires that ask questions."""

from collections.abc import Mapping, Sequence

from queue_core.connections.network.outcomes import error_in
from queue_core.connections.network.sending import Unreadable
from queue_core.questions import CONFIDENCE, Choice, Predicate, Question, Scale

type Scores = dict[str, float | None]

MOST_USAGE = 20


#: Shares are rounded, and by every server otherwise: each may be off by so much.
ROUNDING = 0.01


def refuse_error(data: object, *, without: str = "") -> None:
    """Raises Unreadable, with the server's words, for an error that came with the status of success."""
    if isinstance(data, Mapping) and without not in data and data.get("error"):
        raise Unreadable(f"The server sent an error in place of an answer: {error_in(data).get('message', '')}")


def check_shares(numbers: Sequence[float], *, are_all: bool) -> None:
    """Raises Unreadable for probabilities that add up to more than one, or where all are there to less.

    What is no probability at all is the policy's to judge: it sends it to people.
    """
    if not all(0 <= number <= 1 for number in numbers):
        return
    spare = ROUNDING * len(numbers)
    if sum(numbers) > 1 + spare or (are_all and sum(numbers) < 1 - spare):
        raise Unreadable("The probabilities of a question do not add up to one.")


def object_of(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise Unreadable(f"{what} is no object.")
    return value


def list_of(value: object, what: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise Unreadable(f"{what} is no list.")
    return value


def number_of(value: object, what: str) -> float:
    """A number. NaN and numbers out of range are the policy's to judge: it sends them to people."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable(f"{what} is no number.")
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def refusal_scores(question: Question) -> Scores:
    """The model refused this one question: every score of it is none, which no rule takes for a low one."""
    return dict.fromkeys(question.categories)


def predicate_scores(question: Predicate, probability: object) -> Scores:
    return {question.name: number_of(probability, "A probability")}


def choice_scores(
    question: Choice, probabilities: Mapping[str, object], *, chosen: object, confidence: object
) -> Scores:
    offered = {option.value for option in question.options}
    if chosen not in offered or not set(probabilities) <= offered:
        raise Unreadable("An option was answered that was not offered.")
    shares = {value: number_of(share, "A probability") for value, share in probabilities.items()}
    check_shares(list(shares.values()), are_all=set(shares) == offered)
    scores: Scores = {f"{question.name}={value}": share for value, share in shares.items()}
    return scores | _confidence(question.name, confidence)


def scale_scores(question: Scale, shares: Sequence[object], *, confidence: object) -> Scores:
    """`shares` are the levels' probabilities in the order of the question. The position is their mean, from 0 to 1."""
    if len(shares) != len(question.levels):
        raise Unreadable("Another number of levels was answered than was asked about.")
    numbers = [number_of(share, "A probability") for share in shares]
    check_shares(numbers, are_all=True)
    last = len(numbers) - 1
    position = sum(number * place / last for place, number in enumerate(numbers))
    # The shares' own rounding may lift the mean a hair above its end.
    scores: Scores = {question.name: 1.0 if 1.0 < position < 1.000001 else position}
    scores |= {f"{question.name}={level.value}": p for level, p in zip(question.levels, numbers, strict=True)}
    return scores | _confidence(question.name, confidence)


def _confidence(name: str, value: object) -> Scores:
    return {} if value is None else {name + CONFIDENCE: number_of(value, "A confidence")}


def usage_of(value: object) -> dict[str, int]:
    """Whole counts of an answer's usage. It is told for the bill, so one that cannot be read spoils no verdict."""
    if not isinstance(value, Mapping):
        return {}
    found = {
        str(name): count for name, count in value.items() if isinstance(count, int) and not isinstance(count, bool)
    }
    details = value.get("input_tokens_details")
    if isinstance(details, Mapping) and isinstance(details.get("cached_tokens"), int):
        found["cached_tokens"] = details["cached_tokens"]
    return dict(list(found.items())[:MOST_USAGE])


def text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""
