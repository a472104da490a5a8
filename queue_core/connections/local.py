"""The `local` kind: the alt-profanity-check model, in the worker's own process.

It knows English only and is biased (it takes some harmless identities for insults), so its score says "a person should
look" well and "reject" only where it is very sure. The lane's policy draws that line.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version

from django.utils.translation import gettext_noop

from queue_core.connections.answers import Answer, InputRejected, Misconfigured, MisconfiguredKind, Verdict
from queue_core.connections.base import Call, Health
from queue_core.connections.evidence_text import NoText, text_of
from queue_core.models import ModelConnection
from queue_core.questions import Question

CATEGORY = "offensive"
PACKAGE = "alt-profanity-check"
#: Scored in one go of a few milliseconds; more would only make the first answer wait.
AT_ONCE = 64

type Predict = Callable[[list[str]], Sequence[float]]


class NotInstalled(Exception):
    """The optional dependency group with the model is absent."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The loaded model. `predict` gives the probability of "offensive" for each text, in order."""

    name: str
    predict: Predict


_loading = threading.Lock()
_loaded: Weights | None = None


def weights() -> Weights:
    """The model, loaded once a process: importing it takes seconds, and web processes never need it."""
    global _loaded
    with _loading:
        _loaded = _loaded or _load()
        return _loaded


def _load() -> Weights:
    try:
        from profanity_check import predict_prob  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        # Only the package itself or what it brings: an error inside a present package is a fault to be seen.
        if error.name not in ("profanity_check", "sklearn", "joblib", "scipy", "numpy"):
            raise
        raise NotInstalled from error

    def predict(texts: list[str]) -> list[float]:
        return [float(score) for score in predict_prob(texts)]

    return Weights(f"{PACKAGE} {version(PACKAGE)}", predict)


#: Stored with the attempt as it is; marked so that a page may show it in the reader's language.
HOW_TO_INSTALL = gettext_noop(
    "The local model is not installed on this worker. Run “uv sync --group reviewer” there, then restart it."
)
NOT_INSTALLED = Misconfigured(MisconfiguredKind.NOT_INSTALLED, HOW_TO_INSTALL)


@dataclass(frozen=True, slots=True)
class LocalConnection:
    """Scores {"offensive": p}. Restricted evidence stays in this process, yet needs the connection's mark as any."""

    allow_restricted: bool
    load: Callable[[], Weights] = weights
    at_once: int = AT_ONCE
    asks: bool = False

    def categories(self, questions: Sequence[Question]) -> Sequence[str]:
        return (CATEGORY,)

    def prepare(self) -> None:
        try:
            self.load()
        except NotInstalled:
            # Told by every answer instead, so that the lane goes on hold with the sentence that helps.
            return

    def review(self, calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
        try:
            model = self.load()
        except NotInstalled:
            return iter([(call, NOT_INSTALLED) for call in calls])
        return self._scored(model, calls)

    def _scored(self, model: Weights, calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
        readable: list[tuple[Call, str]] = []
        for call in calls:
            try:
                readable.append((call, text_of(call.evidence)))
            except NoText as problem:
                yield call, InputRejected(str(problem), model=model.name)
        if not readable:
            return
        started = time.monotonic()
        scores = model.predict([text for _call, text in readable])
        took = timedelta(seconds=time.monotonic() - started)
        for (call, _text), score in zip(readable, scores, strict=True):
            yield call, Verdict({CATEGORY: score}, model=model.name, latency=took)

    def check_health(self, time_limit: timedelta) -> Health:
        started = time.monotonic()
        try:
            model = self.load()
        except NotInstalled:
            return Health(False, HOW_TO_INSTALL)
        model.predict(["Good morning."])
        return Health(True, model.name, latency=timedelta(seconds=time.monotonic() - started))


def build(row: ModelConnection) -> LocalConnection:
    return LocalConnection(allow_restricted=row.allow_restricted)
