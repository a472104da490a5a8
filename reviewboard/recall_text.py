"""Recalls as sentences: what a preview counted, how far one is, and why one did not happen."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core import gate
from queue_core.models import Recall
from queue_core.ramp import KeptBack
from queue_core.recalls import Progress, RecallActed, RecallActOutcome, RecallPreview
from queue_core.states import RecallTo
from reviewboard.gate_text import line_text
from reviewboard.recall_forms import AcceptForm, run_name
from reviewboard.shapes import Conflict, Text
from reviewboard.templatetags.board import count


def preview_lines(shown: RecallPreview) -> list[Text]:
    """What the recall would do, in whole sentences."""
    lines: list[Text] = [_verdict_line(shown)]
    if shown.delivered is None:
        lines.append(_("Where consumers may have read a decision, they are told that it is recalled."))
    else:
        lines += [_withdrawn_line(shown.undelivered)] if shown.undelivered else []
        lines += [_told_line(shown.delivered)] if shown.delivered else []
    if shown.superseded:
        text = ngettext(
            "%(number)s is of a revision that is no longer current: nobody looks at it again.",
            "%(number)s are of revisions that are no longer current: nobody looks at them again.",
            shown.superseded,
        )
        lines.append(text % {"number": count(shown.superseded)})
    return lines


def _verdict_line(shown: RecallPreview) -> str:
    approved, rejected = shown.verdicts.get("APPROVED", 0), shown.verdicts.get("REJECTED", 0)
    return _("APPROVED: %(approved)s, REJECTED: %(rejected)s.") % {
        "approved": count(approved),
        "rejected": count(rejected),
    }


def _withdrawn_line(number: int) -> str:
    text = ngettext(
        "%(number)s has reached nobody: it is withdrawn.",
        "%(number)s have reached nobody: they are withdrawn.",
        number,
    )
    return text % {"number": count(number)}


def _told_line(number: int) -> str:
    text = ngettext(
        "Consumers may have read %(number)s of them: they are told that it is recalled.",
        "Consumers may have read %(number)s of them: they are told that they are recalled.",
        number,
    )
    return text % {"number": count(number)}


def button(number: int) -> str:
    text = ngettext("Recall %(number)s decision", "Recall %(number)s decisions", number)
    return text % {"number": count(number)}


def done_text(acted: RecallActed, progress: Progress) -> str:
    if progress.pending:
        return _("The recall has begun: %(done)s of %(total)s decisions are no longer in force.") % {
            "done": count(progress.total - progress.pending),
            "total": count(progress.total),
        }
    text = ngettext(
        "%(number)s decision is no longer in force.", "%(number)s decisions are no longer in force.", acted.count
    )
    return text % {"number": count(acted.count)}


def recall_conflict(acted: RecallActed) -> Conflict:
    """Why nothing was recalled: what stands there now, and who recalled last."""
    if acted.outcome == RecallActOutcome.NOTHING:
        what = _("There is nothing to recall.")
    else:
        text = _("The number of decisions is not the one you saw: it is %(number)s now. Look once more.")
        what = text % {"number": count(acted.count)}
    who = _("%(person)s recalled last.") % {"person": acted.by.get_username()} if acted.by is not None else ""
    return Conflict(what=what, who=who, at=acted.at)


@dataclass(frozen=True, slots=True)
class RecallRow:
    """One recall in the list, with how far it is."""

    at: datetime
    who: str
    what: Text
    to: Text
    reason: str
    lines: Sequence[Text]
    is_under_way: bool


def row_of(act: Recall, progress: Progress) -> RecallRow:
    return RecallRow(
        at=act.started_at,
        who=act.by.get_username(),
        what=run_name(act.run) if act.run is not None else _("by a filter"),
        to=RecallTo(act.to).label,
        reason=act.reason,
        lines=_progress_lines(progress),
        is_under_way=act.ended_at is None,
    )


def _progress_lines(progress: Progress) -> list[Text]:
    parts = [
        (_("withdrawn before delivery: %(number)s"), progress.withdrawn),
        (_("consumers told: %(number)s"), progress.announced),
        (_("replaced meanwhile: %(number)s"), progress.passed_over),
        (_("still to come: %(number)s"), progress.pending),
    ]
    return [text % {"number": count(number)} for text, number in parts if number]


#: So many runs at once; those below come up as these are settled.
MOST_KEPT_BACK = 5


@dataclass(frozen=True, slots=True)
class KeptBackRow:
    """A run that ended and keeps decisions back, with the form to accept it; None for who may not."""

    run_id: int
    name: Text
    text: Text
    lines: Sequence[Text]
    """Whether its model answered rightly, as the gate says now."""
    oldest: datetime
    form: AcceptForm | None


def kept_back_rows(
    found: Sequence[KeptBack], *, may_accept: bool, now: datetime, bound: AcceptForm | None = None
) -> list[KeptBackRow]:
    rows = []
    for kept in found[:MOST_KEPT_BACK]:
        text = ngettext(
            "%(number)s decision is kept back: no raise will let it go.",
            "%(number)s decisions are kept back: no raise will let them go.",
            kept.count,
        )
        form = AcceptForm(run_id=kept.run.pk, shown=kept.count)
        if bound is not None and bound.run_id == kept.run.pk:
            form = bound
        rows.append(
            KeptBackRow(
                run_id=kept.run.pk,
                name=run_name(kept.run),
                text=text % {"number": count(kept.count)},
                lines=[line_text(line) for line in gate.read_rightly(kept.run, now=now)],
                oldest=kept.oldest,
                form=form if may_accept else None,
            )
        )
    return rows
