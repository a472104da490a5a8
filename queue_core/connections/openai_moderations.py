"""The `openai-moderations` kind: many texts in one request, a score for each category of the server's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx2

from queue_core.connections.answers import Answer, Verdict
from queue_core.connections.network.adapter import NetworkConnection, Parcel, look_at_models
from queue_core.connections.network.options import Options, address_of, at_once_of, model_of
from queue_core.connections.network.reading import (
    Scores,
    list_of,
    number_of,
    object_of,
    refuse_error,
    text_or_empty,
    usage_of,
)
from queue_core.connections.network.sending import Terms, Unreadable
from queue_core.connections.openai_package import ADDRESS, check_installed, client_for, load, plain, said
from queue_core.models import ModelConnection
from queue_core.questions import Question

MODEL = "omni-moderation-latest"
MOST_TOGETHER = 256
DEFAULT_TOGETHER = 32
#: What the answers' reading of a category's name may be at most; a server's own names are kept as they are.
MOST_CATEGORIES = 100


@dataclass(frozen=True, slots=True)
class ModerationsWire:
    address: str
    model: str
    most_together: int = DEFAULT_TOGETHER
    sends_images: bool = False
    asks: bool = False

    def load(self) -> None:
        load()

    def share_of_ours(self, parcel: Parcel) -> float:
        return 0.0

    def categories(self, questions: Sequence[Question]) -> None:
        return None

    async def ask(self, client: httpx2.AsyncClient, parcel: Parcel, terms: Terms) -> Sequence[Answer]:
        package = client_for(self.address, client, terms)
        raw = await said(
            lambda: package.moderations.with_raw_response.create(
                model=self.model,
                input=[content.text for content in parcel.contents],
                extra_headers=parcel.headers,
            )
        )
        return verdicts_of(plain(raw), len(parcel.calls), request_id=raw.headers.get("x-request-id", ""))

    async def look(self, client: httpx2.AsyncClient, terms: Terms) -> str:
        return await look_at_models(client, f"{self.address}/models", terms)


def verdicts_of(data: object, count: int, *, request_id: str = "") -> list[Verdict]:
    """The scores of each text, in order. Raises Unreadable: one result too few, and no text knows which is its own."""
    found = object_of(data, "The answer")
    refuse_error(found, without="results")
    results = list_of(found.get("results"), "The list of results")
    if len(results) != count:
        raise Unreadable(f"{len(results)} results came to {count} texts.")
    model, usage = text_or_empty(found.get("model")), usage_of(found.get("usage"))
    # A request's usage is told once, with its first text, so that sums over attempts are right.
    return [
        Verdict(_scores_of(object_of(result, "A result")), model=model, request_id=request_id, usage={} if n else usage)
        for n, result in enumerate(results)
    ]


def _scores_of(result: Mapping[str, object]) -> Scores:
    scores = object_of(result.get("category_scores"), "The list of scores")
    if not 1 <= len(scores) <= MOST_CATEGORIES:
        raise Unreadable(f"{len(scores)} categories came in one result.")
    # Categories that a model does not know come as null: they are no scores, and no refusals either.
    return {name: number_of(score, "A score") for name, score in scores.items() if score is not None}


def build(row: ModelConnection) -> NetworkConnection:
    check_installed()
    options = Options.of(row)
    wire = ModerationsWire(
        address_of(row, ADDRESS),
        model_of(row, MODEL),
        most_together=options.whole("together", DEFAULT_TOGETHER, most=MOST_TOGETHER),
    )
    at_once = at_once_of(options)
    options.end()
    return NetworkConnection(wire, row.key_env, at_once=at_once, allow_restricted=row.allow_restricted)
