"""What a lane's layers are made of, as rows of a table: severity, exposure, and whether the model can come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from queue_core.figures import LaneFigures
from queue_core.figures.board import EXPOSURE_SAMPLE
from queue_core.states import Exposure
from queue_core.where import MOST_LOOKED_INTO, Layer, MakeUp, Prospect
from reviewboard.shapes import Text
from reviewboard.templatetags.board import count
from reviewboard.where_text import layer_name

SEVERITIES = (3, 2, 1, 0)
PROSPECTS = (Prospect.NOT_YET, Prospect.TOO_LATE, Prospect.NEVER)


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One layer. `is_part`: it holds more than was looked into, and the figures are of the part that was."""

    code: str
    name: Text
    severities: Sequence[str]
    live: str
    prospects: Sequence[str]
    is_part: bool


def rows(made: Mapping[Layer, MakeUp] | None) -> list[LayerRow]:
    return [
        LayerRow(
            code=layer.value,
            name=layer_name(layer),
            severities=[_count(one.by_severity.get(severity, 0)) for severity in SEVERITIES],
            live=_count(one.by_exposure.get(Exposure.LIVE, 0)),
            prospects=[_count(one.by_prospect.get(prospect, 0)) for prospect in PROSPECTS],
            is_part=one.total >= MOST_LOOKED_INTO,
        )
        for layer, one in (made or {}).items()
    ]


def exposed(found: LaneFigures) -> str:
    """Whose exposure a lane's figures tell, where more waits than was looked at; empty where it is that of all.

    What was met LIVE is said of all: that some of the rest is quieter takes nothing from it.
    """
    if found.exposure is None or found.exposure == Exposure.LIVE or not found.is_exposure_of_part:
        return ""
    return _("The %(number)s that wait longest (more wait, and were not looked at) are") % {
        "number": count(EXPOSURE_SAMPLE)
    }


def _count(number: int) -> str:
    return count(number) if number else "–"
