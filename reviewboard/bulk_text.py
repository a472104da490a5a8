"""Bulk acts as sentences: what one will do, how it stands, and what became of its jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core import bulk
from queue_core.bulk import LeftOut, Progress, Sample, SecondOutcome
from queue_core.models import BulkAct
from queue_core.states import BulkKind, BulkOutcome
from reviewboard.shapes import Text, Tone
from reviewboard.templatetags.board import count

#: A worker was at it within this time, or nobody is.
QUIET = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class State:
    """How an act stands. `is_live`: it may change without anybody's click."""

    word: Text
    tone: Tone
    text: Text = ""
    is_live: bool = False


def will_do(kind: str, number: int) -> str:
    """What an act does to so many jobs, before it is confirmed."""
    text = {
        BulkKind.REQUEUE: ngettext(
            "%(number)s DEAD job goes back to the machine, with a new deadline and a new budget.",
            "%(number)s DEAD jobs go back to the machine, each with a new deadline and a new budget.",
            number,
        ),
        BulkKind.PULL: ngettext(
            "%(number)s WAITING job leaves the machine's hands for good and becomes an item for people.",
            "%(number)s WAITING jobs leave the machine's hands for good and become items for people.",
            number,
        ),
        BulkKind.MOVE_DEADLINES: ngettext(
            "%(number)s WAITING job gets a later service deadline.",
            "%(number)s WAITING jobs get later service deadlines.",
            number,
        ),
        BulkKind.HAND_OVER: ngettext(
            "%(number)s item is handed to one person.",
            "%(number)s items are handed to one person, as far as they may hold so many.",
            number,
        ),
        BulkKind.ESCALATE: ngettext(
            "%(number)s item goes to the leads, who alone may take it then.",
            "%(number)s items go to the leads, who alone may take them then.",
            number,
        ),
        BulkKind.REJECT: ngettext(
            "%(number)s item is rejected that nobody looked at, and is marked so for ever.",
            "%(number)s items are rejected that nobody looked at, and are marked so for ever.",
            number,
        ),
    }[BulkKind(kind)]
    return text % {"number": count(number)}


def button(kind: str, number: int) -> str:
    text = {
        BulkKind.REQUEUE: ngettext("Requeue %(number)s job", "Requeue %(number)s jobs", number),
        BulkKind.PULL: ngettext("Take %(number)s job out", "Take %(number)s jobs out", number),
        BulkKind.MOVE_DEADLINES: ngettext("Move %(number)s deadline", "Move %(number)s deadlines", number),
        BulkKind.HAND_OVER: ngettext("Hand over %(number)s item", "Hand over %(number)s items", number),
        BulkKind.ESCALATE: ngettext("Escalate %(number)s item", "Escalate %(number)s items", number),
        BulkKind.REJECT: ngettext("Draw the sample of %(number)s item", "Draw the sample of %(number)s items", number),
    }[BulkKind(kind)]
    return text % {"number": count(number)}


def left_out_lines(left_out: dict[str, int]) -> list[Text]:
    """What of the selection is no part of the act, and why."""
    lines: list[Text] = []
    for why, number in sorted(left_out.items(), key=lambda pair: -pair[1]):
        text = ngettext("%(number)s is left out: %(why)s.", "%(number)s are left out: %(why)s.", number)
        lines.append(text % {"number": count(number), "why": LeftOut(why).label if why in LeftOut.values else why})
    return lines


def state_of(act: BulkAct, found: Progress, sample: Sample | None, *, now: datetime) -> State:
    """The headline of a confirmed act."""
    if act.ended_at is not None:
        word, tone = (_("stopped"), Tone.WARN) if act.stopped_at else (_("done"), Tone.GOOD)
        return State(word, tone, handled_text(found))
    if act.stopped_at is not None:
        return State(
            _("stopping"), Tone.WARN, _("The job at hand is finished; the rest is left as it is."), is_live=True
        )
    if sample is not None and act.seconded_at is None:
        return _waits_for_people(sample)
    if act.begun_at is None:
        text = _("No worker has started this yet. It waits for one of those that take the queue “people”.")
        return State(_("waiting for a worker"), Tone.WARN, text, is_live=True)
    if act.worked_at is not None and now - act.worked_at > QUIET:
        text = _("No worker has been at it for a while. It goes on by itself when one comes.")
        return State(_("standing still"), Tone.WARN, text, is_live=True)
    return State(_("under way"), Tone.INFO, handled_text(found), is_live=True)


def handled_text(found: Progress) -> str:
    return _("%(handled)s of %(total)s had their turn; %(done)s were done.") % {
        "handled": count(found.handled),
        "total": count(found.total),
        "done": count(found.done),
    }


def _waits_for_people(sample: Sample) -> State:
    values = {"decided": count(sample.decided), "size": count(sample.size), "rejected": count(sample.rejected)}
    if sample.otherwise:
        text = _("%(rejected)s of the %(decided)s decided ones were rejected by somebody else than who asked for this.")
        return State(_("the sample disagrees"), Tone.BAD, text % values)
    if sample.open:
        text = _("%(decided)s of the sample of %(size)s are decided. The rest waits until all are.")
        return State(_("waiting for its sample"), Tone.WARN, text % values)
    text = _("All %(size)s of the sample were rejected. Another person with the right lets the rest begin.")
    return State(_("waiting for a second person"), Tone.WARN, text % values)


def not_seconded(outcome: SecondOutcome) -> str:
    return {
        SecondOutcome.ALREADY: _("Somebody let it begin before you."),
        SecondOutcome.NOT_ANOTHER: _("You asked for this act yourself: another person has to let it begin."),
        SecondOutcome.SAMPLE_OPEN: _("Not all of the sample is decided."),
        SecondOutcome.SAMPLE_DISAGREES: _(
            "Somebody decided one of the sample otherwise. The others are decided each for itself; stop this act."
        ),
        SecondOutcome.OVER: _("The act was stopped."),
    }[outcome]


@dataclass(frozen=True, slots=True)
class OutcomeLine:
    """Entries with one outcome; `code` is the filter's word for them."""

    code: str
    label: Text
    number: int


def outcome_lines(found: Progress) -> Sequence[OutcomeLine]:
    lines = [OutcomeLine(code.value, code.label, number) for code, number in found.by_outcome.items()]
    lines.sort(key=lambda line: (line.code != BulkOutcome.DONE, -line.number))
    return [*lines, *([OutcomeLine(PENDING, _("not yet"), found.pending)] if found.pending else [])]


#: The filter's word for entries whose turn has not come.
PENDING = "pending"


def capped_text() -> str:
    return _("There are more than one act may hold (%(most)s): the most severe come first, the rest stays.") % {
        "most": count(bulk.MOST)
    }
