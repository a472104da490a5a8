"""What the component templates are given: one small frozen record per component.

A page's view fills these, `templates/components/` shows them. Text is already in the reader's language (gettext);
times stay datetimes until the template tags write them in the reader's zone. No record here knows the database.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from django.utils.functional import Promise

type Text = str | Promise


class Tone(StrEnum):
    """How much something asks for attention. Each tone has a colour and a shape, never a colour alone."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    HOLD = "hold"
    IDLE = "idle"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Headline:
    """State, cause, since when. `subject` and `state` are what board.js compares to announce a change.

    `level` is the heading's level: 1 on the page of one lane, 2 on a card. `alarm` is the sentence for role=alert:
    set it for an automatic hold or a lost assignment and for nothing else.
    """

    subject: str
    state: str
    word: Text
    tone: Tone
    cause: Text = ""
    since: datetime | None = None
    name: Text = ""
    url: str = ""
    alarm: Text = ""
    level: int = 1


@dataclass(frozen=True, slots=True)
class NextStep:
    """The one thing to do, and who may. Without a `url` it is a sentence: "Nothing to do: ...".

    Who may not do it gets no button that promises it.
    """

    text: Text
    label: Text = ""
    url: str = ""
    who: Text = ""
    is_yours: bool = True


@dataclass(frozen=True, slots=True)
class FigurePart:
    value: Text
    label: Text = ""
    tone: Tone | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the four figures. Two parts stand side by side, as in oldest wait: ready | held.

    `kept_from` is set when the panel could not be read in time: the figure shown is that old.
    """

    label: Text
    parts: Sequence[FigurePart]
    note: Text = ""
    kept_from: datetime | None = None
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class GateRow:
    """A measured figure against its limit. `verdict` is good, bad or inconclusive; `word` says it."""

    figure: Text
    measured: Text
    limit: Text
    sample: Text
    verdict: str
    word: Text
    half: Text = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a soak is. `text` is the whole sentence, for instance "14 of 20 completions"."""

    label: Text
    text: Text
    value: float
    most: float

    @property
    def is_full(self) -> bool:
        return self.value >= self.most


@dataclass(frozen=True, slots=True)
class StageStep:
    """A stage on the ramp's path: state is done, current, next or later."""

    number: int
    name: Text
    state: str
    cap: Text
    rate: Text = ""
    note: Text = ""
    soak: Sequence[Progress] = ()


@dataclass(frozen=True, slots=True)
class LifeStep:
    """One step of a job's life. `length` is how long it lasted, already as text; `lines` are details under it."""

    title: Text
    tone: Tone
    at: datetime | None = None
    length: Text = ""
    lines: Sequence[Text] = ()
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """A yes/no line above an action. `answer` None: not known, never shown as a yes."""

    text: Text
    answer: bool | None
    detail: Text = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why an act did not happen: what changed, who did it, and the row as it is now."""

    what: Text
    who: Text = ""
    at: datetime | None = None
    now_is: Sequence[tuple[Text, Text]] = ()
    url: str = ""
    url_label: Text = ""


@dataclass(frozen=True, slots=True)
class Pager:
    """Keyset paging: links or nothing; no page numbers, because nobody counted."""

    previous_url: str = ""
    next_url: str = ""
    text: Text = ""
    notice: Text = ""


@dataclass(frozen=True, slots=True)
class DemoStep:
    text: Text
    is_done: bool
    url: str = ""


@dataclass(frozen=True, slots=True)
class DemoStrip:
    """The strip that only the demo has. `conditions` are (value, label); `condition` is the one in force."""

    steps: Sequence[DemoStep]
    conditions: Sequence[tuple[str, Text]]
    condition: str
    url: str
    notes: Sequence[Text] = field(default_factory=tuple)
