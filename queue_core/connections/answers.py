"""What a connection answers to one call. One class for each row of the outcome table, and no other way to answer.

Everything in an answer comes from outside and is written to the attempt: it is made small and storable here, once,
so that no adapter can break the transaction that ends an attempt.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar

from queue_core.states import AttemptOutcome

MAX_DETAIL = 512
MAX_NAME = 200
#: The widest request of a known wire asks 400 questions.
MAX_SCORES = 400
#: Longer than any lane tolerates, so that an absurd wish is still read as one and puts the lane on hold.
LONGEST_WAIT = timedelta(days=1)

#: Scores as a model gave them. None: the model refused this one question while it answered others.
type Scores = Mapping[str, float | None]


def bounded(text: object, limit: int = MAX_DETAIL) -> str:
    """`text` as PostgreSQL stores it: no NUL, no lone surrogate, at most `limit` characters."""
    if type(text) is str and len(text) <= limit and text.isascii() and "\x00" not in text:
        return text
    clean = str(text).replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")
    return clean if len(clean) <= limit else clean[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"


def storable_score(score: object) -> float | str | None:
    """A score for the attempt's JSON column, which knows neither NaN nor infinity: those are kept as words."""
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float):
        return bounded(type(score).__name__, MAX_NAME)
    if isinstance(score, float) and not math.isfinite(score):
        return str(score)
    # Compared before it is converted: an integer may be too long for a float, and too long to be printed.
    return float(score) if -1e6 <= score <= 1e6 else "out of range"


def clamped_wait(wait: timedelta) -> timedelta:
    """A wish to be left alone, between no time and a day."""
    return min(max(wait, timedelta(0)), LONGEST_WAIT)


class MisconfiguredKind(StrEnum):
    """Why a connection cannot work until a person changes something."""

    KEY_REFUSED = "401"
    FORBIDDEN = "403"
    NOT_FOUND = "404"
    NOT_INSTALLED = "not_installed"
    NO_KEY = "no_key"
    KEY_MALFORMED = "key_malformed"
    QUOTA = "quota"
    ADDRESS = "address"
    UNSUPPORTED = "unsupported"
    #: The questions or settings are beyond what the server takes: no ticket's fault.
    LIMIT = "limit"


@dataclass(frozen=True)
class _Answered:
    """What any answer may carry. `latency` is the call's own time, None where nothing was called."""

    outcome: ClassVar[AttemptOutcome]

    latency: timedelta | None = field(default=None, kw_only=True)
    model: str = field(default="", kw_only=True)
    request_id: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        self._bound("model", MAX_NAME)
        self._bound("request_id", MAX_NAME)

    def _bound(self, name: str, limit: int = MAX_DETAIL) -> None:
        object.__setattr__(self, name, bounded(getattr(self, name), limit))


@dataclass(frozen=True)
class Verdict(_Answered):
    """Scores to be judged by the lane's policy. Whether they are sound is the policy's to say, not the adapter's."""

    outcome = AttemptOutcome.VERDICT

    scores: Scores
    usage: Mapping[str, int] = field(default_factory=dict, kw_only=True)

    @property
    def stored_scores(self) -> dict[str, float | str | None]:
        first = list(self.scores.items())[:MAX_SCORES]
        return {bounded(category, MAX_NAME): storable_score(score) for category, score in first}

    @property
    def stored_usage(self) -> dict[str, int | str]:
        first = list(self.usage.items())[:MAX_SCORES]
        return {bounded(name, MAX_NAME): _storable_count(count) for name, count in first}


def _storable_count(count: object) -> int | str:
    """Tokens and the like: whole, and small enough that no JSON reader rounds them."""
    if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**53:
        return count
    return "no count"


@dataclass(frozen=True)
class _Explained(_Answered):
    """An answer whose only content is a text from outside."""

    detail: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._bound("detail")


@dataclass(frozen=True)
class Refused(_Explained):
    """The model declines to judge this content as a whole. The job is for people."""

    outcome = AttemptOutcome.REFUSED


@dataclass(frozen=True)
class InputRejected(_Explained):
    """This content cannot be judged by this model: empty, too long, not text. The job is for people."""

    outcome = AttemptOutcome.INPUT_REJECTED


@dataclass(frozen=True)
class InvalidAnswer(_Explained):
    """An answer arrived and is none: wrong shape, cut off, not the question's."""

    outcome = AttemptOutcome.INVALID_ANSWER


@dataclass(frozen=True)
class Unavailable(_Explained):
    """The call was surely not executed: refused connection, no route, a failure before the first byte was sent."""

    outcome = AttemptOutcome.UNAVAILABLE


@dataclass(frozen=True)
class Overloaded(_Explained):
    """The model says later. `retry_after` as `parse_retry_after` gives it; None: it did not say when."""

    outcome = AttemptOutcome.OVERLOADED

    retry_after: timedelta | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.retry_after is not None:
            object.__setattr__(self, "retry_after", clamped_wait(self.retry_after))


@dataclass(frozen=True)
class Misconfigured(_Answered):
    """Nobody but a person can help. `sentence` says what to change, in plain words, without the key.

    `said` is what the server said itself.
    """

    outcome = AttemptOutcome.MISCONFIGURED

    kind: MisconfiguredKind
    sentence: str
    said: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._bound("sentence")
        self._bound("said")

    @property
    def detail(self) -> str:
        """The sentence on the first line, so that a page can show it alone, and in the reader's language."""
        return bounded(f"{self.sentence}\n{self.said}" if self.said else self.sentence)


@dataclass(frozen=True)
class TimedOut(_Explained):
    """No answer is known and the call may have been executed. `after` is how long it was waited for."""

    outcome = AttemptOutcome.TIMEOUT

    after: timedelta = field(default=timedelta(0), kw_only=True)


type Answer = Verdict | Refused | InputRejected | InvalidAnswer | Unavailable | Overloaded | Misconfigured | TimedOut
#: The same, for `isinstance`.
ANSWERS = (Verdict, Refused, InputRejected, InvalidAnswer, Unavailable, Overloaded, Misconfigured, TimedOut)
