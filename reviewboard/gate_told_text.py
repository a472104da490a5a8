"""A soaked run's gate in a sentence or two: what fails, or how much is missing, and about when it is there."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core import tally
from queue_core.figures import LaneFigures
from queue_core.gate_lines import Figure, GateVerdict
from queue_core.gate_rightly import SHARES
from queue_core.gate_told import GateTold
from queue_core.models import StageRun
from queue_core.ramp import Missing, MissingCode
from reviewboard.ramp_text import missing_text
from reviewboard.templatetags.board import count, duration
from reviewboard.where_text import moment

CODES = {
    GateVerdict.BAD: MissingCode.GUARDRAIL_BAD,
    GateVerdict.INCONCLUSIVE: MissingCode.GUARDRAIL_INCONCLUSIVE,
}


def in_short(gate: GateTold) -> str:
    if gate.verdict == GateVerdict.GOOD:
        return _("the gate passes")
    return _("the gate does not pass") if gate.verdict == GateVerdict.BAD else _("the gate cannot tell yet")


def not_passed(gate: GateTold, found: LaneFigures, run: StageRun) -> str:
    """Why a run that has run its time is not raised, by its worst line. For a gate that is not good."""
    worst = gate.lines[0] if gate.lines else None
    words = {"number": run.number, "why": _why(worst), "when": _when(worst, found, run)}
    if gate.verdict == GateVerdict.BAD:
        text = _("Stage %(number)d has run its time, but its gate does not pass. %(why)s Hold the lane or step down.")
        return text % words
    if not words["when"]:
        return _("Stage %(number)d has run its time, but its gate cannot tell yet. %(why)s") % words
    return _("Stage %(number)d has run its time, but its gate cannot tell yet. %(why)s %(when)s") % words


def _why(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return _("Nothing was measured.")
    return missing_text(Missing(CODES[GateVerdict(line["verdict"])], dict(line)))


def _when(line: Mapping[str, Any] | None, found: LaneFigures, run: StageRun) -> str:
    """About when enough calls have ended, at the pace of the last minutes."""
    flow = found.flow.value
    if line is None or flow is None or line["sample"] >= line["least_sample"]:
        return ""
    if line["figure"] in (Figure.WRONG, Figure.DISAGREEMENT):
        return _of_answers(line["figure"], run)
    pace = flow.reviewed + flow.errors
    if pace <= 0:
        return _("No call ends at present.")
    if line["figure"] not in SHARES and pace * (run.window / tally.MINUTE) < line["least_sample"]:
        return ngettext(
            "At about %(pace)s call a minute there are never so many in %(window)s.",
            "At about %(pace)s calls a minute there are never so many in %(window)s.",
            round(pace),
        ) % {"pace": count(round(pace)), "window": duration(run.window)}
    more = line["least_sample"] - line["sample"]
    return ngettext(
        "%(more)s more is needed, at the present pace at about %(at)s.",
        "%(more)s more are needed, at the present pace at about %(at)s.",
        more,
    ) % {"more": count(more), "at": moment(found.now + tally.MINUTE * (more / pace))}


def _of_answers(figure: str, run: StageRun) -> str:
    if figure == Figure.DISAGREEMENT:
        return _("They wait at the desk, for people to decide.")
    return _("They are sent every %(every)s.") % {"every": duration(run.known_every)}
