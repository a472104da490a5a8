"""Imports in words."""

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from queue_core.models import ImportRun
from queue_core.states import AddOutcome, ImportState
from queue_core.ticket_import import REFUSED
from reviewboard.shapes import Text, Tone

TONES = {
    ImportState.UPLOADED: Tone.IDLE,
    ImportState.CHECKING: Tone.INFO,
    ImportState.CHECKED: Tone.INFO,
    ImportState.IMPORTING: Tone.INFO,
    ImportState.DONE: Tone.GOOD,
    ImportState.STOPPED: Tone.HOLD,
    ImportState.DISCARDED: Tone.IDLE,
    ImportState.FAILED: Tone.BAD,
}
LABELS: dict[str, tuple[Text, Text]] = {
    AddOutcome.STORED: (gettext_lazy("Stored"), gettext_lazy("Would be stored")),
    AddOutcome.KNOWN: (gettext_lazy("Known already"), gettext_lazy("Known already")),
    AddOutcome.SUPERSEDED: (gettext_lazy("Of an older revision"), gettext_lazy("Of an older revision")),
    AddOutcome.REVISION_CONFLICT: (gettext_lazy("In conflict"), gettext_lazy("In conflict")),
    REFUSED: (gettext_lazy("Refused"), gettext_lazy("Would be refused")),
}


@dataclass(frozen=True, slots=True)
class Count:
    label: Text
    number: int


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in the list."""

    run: ImportRun
    tone: Tone
    text: str


def counts_of(run: ImportRun) -> list[Count]:
    """How many lines ended how, or would; none where nothing was read yet."""
    is_foretold = run.state in (ImportState.CHECKING, ImportState.CHECKED)
    return [
        Count(would if is_foretold else did, run.counts[code]) for code, (did, would) in LABELS.items() if run.counts
    ]


def row_of(run: ImportRun) -> RunRow:
    return RunRow(run, TONES[ImportState(run.state)], _row_text(run))


def _row_text(run: ImportRun) -> str:
    counts = run.counts
    if run.state == ImportState.FAILED:
        return run.fault
    if not counts or run.state in (ImportState.UPLOADED, ImportState.DISCARDED):
        return ""
    stored, refused = counts[AddOutcome.STORED], counts[REFUSED] + counts[AddOutcome.REVISION_CONFLICT]
    if run.state in (ImportState.CHECKING, ImportState.CHECKED):
        text = ngettext(
            "%(stored)d ticket would be stored; lines left out: %(refused)d",
            "%(stored)d tickets would be stored; lines left out: %(refused)d",
            stored,
        )
    else:
        text = ngettext(
            "%(stored)d ticket stored; lines left out: %(refused)d",
            "%(stored)d tickets stored; lines left out: %(refused)d",
            stored,
        )
    return text % {"stored": stored, "refused": refused}


def standing_text(run: ImportRun, *, workers: int) -> str:
    """What happens to a run right now, in a sentence; empty where it waits for a person or has ended."""
    if not run.is_at_work:
        return ""
    if run.taken_at is None and not workers:
        return _("No worker has started this yet, and none is seen working. It begins as soon as one is there.")
    if run.taken_at is None:
        return _("No worker has started this yet.")
    if run.held_until is None or not run.held_by:
        return _("It waits for its next turn: workers give it a few seconds at a time, between other work.")
    return _("A worker is at it.")
