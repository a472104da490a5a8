"""The gate's table: each figure against its limit, in both halves, in dry words."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.gate import GateReading, GateVerdict
from queue_core.gate_lines import Figure, GateLine
from queue_core.gate_rightly import SHARES, Basis
from queue_core.gate_usual import LEAST_RESULTS
from reviewboard.ramp_text import figure_name, measure_text
from reviewboard.shapes import GateRow, Text
from reviewboard.templatetags.board import count


def gate_rows(reading: GateReading | None) -> list[GateRow]:
    return [_row(line) for line in (reading.lines if reading else ())]


def notes(reading: GateReading | None, *, has_known_answers: bool) -> list[Text]:
    """What the second half rests on, and from when on the rest of it is judged. `has_known_answers`: the lane, now."""
    if reading is None:
        return []
    if reading.run is None:
        return [_known_later(has_known_answers=has_known_answers)]
    run, lines = reading.run, {line.figure: line for line in reading.lines if line.is_rightly}
    found: list[Text] = []
    if not lines:
        found.append(
            _("Nothing here tells whether the model answers rightly: a model that is up, fast and wrong would pass.")
        )
    if Figure.APPROVED in lines:
        found.append(_basis(lines[Figure.APPROVED]))
    elif not run.is_last:
        found.append(_shares_later())
    if Figure.WRONG not in lines:
        found.append(_known_later(has_known_answers=has_known_answers))
    if Figure.DISAGREEMENT in lines:
        found.append(_("People decide a sample of this run without seeing the model's answer."))
    return found


def _shares_later() -> str:
    return ngettext(
        "Shares of results are not judged yet: they are from the first stage on that starts when the last stage has "
        "given %(least)s result under this policy, the last hour not counted.",
        "Shares of results are not judged yet: they are from the first stage on that starts when the last stage has "
        "given %(least)s results under this policy, the last hour not counted.",
        LEAST_RESULTS,
    ) % {"least": count(LEAST_RESULTS)}


def _known_later(*, has_known_answers: bool) -> str:
    if has_known_answers:
        return _("The lane has known answers by now. They are sent and judged from the next stage on.")
    return _("Known answers are not judged: the lane has none. Once an administrator writes some, the next stage does.")


def line_text(line: GateLine) -> str:
    """One line of the gate in words, for where there is no table."""
    return _("%(figure)s: %(measured)s, limit %(limit)s: %(word)s") % {
        "figure": figure_name(line.figure),
        "measured": measure_text(line.figure, line.measured),
        "limit": _limit(line),
        "word": _word(line),
    }


def _basis(line: GateLine) -> str:
    if line.basis == Basis.SAME_HOURS:
        return _("Usual is this lane's steady running at the same hours of the last weeks.")
    if line.basis == Basis.HEALTHY_DAYS:
        return _("Usual is this lane's steady running in the last seven days.")
    return _("Nothing is usual yet: this lane has not run steadily under this policy for long enough.")


def _row(line: GateLine) -> GateRow:
    return GateRow(
        figure=figure_name(line.figure),
        measured=measure_text(line.figure, line.measured),
        limit=_limit(line),
        sample=_sample(line),
        verdict=line.verdict.value,
        word=_word(line),
        half=_("Does it answer rightly?") if line.is_rightly else _("Does it answer?"),
    )


def _limit(line: GateLine) -> str:
    limit = measure_text(line.figure, line.limit)
    if line.figure not in SHARES:
        return limit
    if line.usual is None:
        return _("± %(limit)s") % {"limit": limit}
    return _("%(usual)s ± %(limit)s") % {"usual": measure_text(line.figure, line.usual), "limit": limit}


def _sample(line: GateLine) -> str:
    if line.sample >= line.least_sample:
        return count(line.sample)
    text = ngettext("%(sample)s of %(least)s", "%(sample)s of %(least)s", line.least_sample)
    return text % {"sample": count(line.sample), "least": count(line.least_sample)}


def _word(line: GateLine) -> str:
    if line.verdict == GateVerdict.GOOD:
        return _("good")
    if line.verdict == GateVerdict.BAD:
        return _("not as usual") if line.figure in SHARES else _("over the limit")
    if line.figure in SHARES and line.usual is None:
        return _("nothing to compare with")
    return _("too few to say")
