"""Calls of unknown effect and refused answers as sentences. Unknown is not failed, and refused is not lost."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.figures import Effects
from reviewboard.templatetags.board import count_capped


def of_run(effects: Effects, *, is_over: bool = False) -> tuple[str, ...]:
    """For a lane's page: of its run, or of its last one. One sentence where there is nothing to tell."""
    lines = _lines(effects)
    if lines:
        return lines
    if is_over:
        return (_("In the last run every call was heard, and no answer came late or stale."),)
    return (_("In this run every call was heard, and no answer came late or stale."),)


def of_job(effects: Effects) -> tuple[str, ...]:
    """For a job's page. Nothing where there is nothing to tell."""
    return _lines(effects)


def _lines(effects: Effects) -> tuple[str, ...]:
    lines = (_unknown(effects.unknown), _late(effects.late), _stale(effects.stale))
    return tuple(line for line in lines if line)


def _unknown(number: int) -> str:
    if not number:
        return ""
    text = ngettext(
        "%(number)s call of unknown effect: the model may have answered, and nobody heard it.",
        "%(number)s calls of unknown effect: the model may have answered, and nobody heard it.",
        number,
    )
    return text % {"number": count_capped(number)}


def _late(number: int) -> str:
    if not number:
        return ""
    text = ngettext(
        "%(number)s answer came after its lease was over. It was kept and refused.",
        "%(number)s answers came after their leases were over. They were kept and refused.",
        number,
    )
    return text % {"number": count_capped(number)}


def _stale(number: int) -> str:
    if not number:
        return ""
    text = ngettext(
        "%(number)s answer was stale: its job had other hands or its end by then. It was kept and refused.",
        "%(number)s answers were stale: their jobs had other hands or their end by then. They were kept and refused.",
        number,
    )
    return text % {"number": count_capped(number)}
