"""The board: what needs somebody, worst first; a healthy lane is one line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from queue_core import alerts, figures, prepared
from queue_core.figures import LaneFigures, LaneState
from queue_core.gate_told import GateTold
from queue_core.models import AlertEpisode, Lane
from reviewboard import alert_text, board_text, lane_layers, outage_text
from reviewboard.alert_text import AlertLine
from reviewboard.drawing import LayerBar
from reviewboard.live import LiveVersion, in_kept_order, page_or_partial
from reviewboard.outage_text import OutageLine
from reviewboard.shapes import Figure, Headline, NextStep
from reviewboard.views.access import lane_ids_seen, lanes_to_view, may
from reviewboard.views.permits import needs


@dataclass(frozen=True, slots=True)
class LaneView:
    """One lane as the board shows it."""

    pk: int
    is_card: bool
    headline: Headline
    step: NextStep
    figures: Sequence[Figure]
    bar: LayerBar
    exposure: str
    exposed: str
    """Which content `exposure` is about, where that is not all that waits."""
    line: str
    outage: OutageLine | None


#: More alerts than this are a number, and stand on their own page.
MOST_ALERTS = 5


@dataclass(frozen=True, slots=True)
class Alerts:
    """The worst alerts that stand, and how many more there are."""

    shown: Sequence[AlertLine]
    rest: int


@require_safe
@needs("view_board")
def board(request: HttpRequest) -> HttpResponse:
    with figures.snapshot() as as_of:
        with prepared.queries():
            found = figures.board(lanes_to_view(request), now=as_of)
            standing = alerts.open_episodes(lane_ids_seen(request))
        gates = _gates(found, standing, as_of)
    views = [_view(one, _gate_of(one, gates), _rights(request, one.lane)) for one in sorted(found, key=_worst_first)]
    views, order_changed = in_kept_order(request, views)
    told = Alerts([alert_text.line(one) for one in standing[:MOST_ALERTS]], max(0, len(standing) - MOST_ALERTS))
    context = {
        "nav": "board",
        "alerts": told,
        "cards": [one for one in views if one.is_card],
        "lines": [one for one in views if not one.is_card],
        "order": [one.pk for one in views],
        "order_changed": order_changed,
    }
    version = LiveVersion.of(as_of, views, told, order_changed)
    return page_or_partial(request, "board/board.html", "live", context, version=version)


def _worst_first(found: LaneFigures) -> tuple[int, int, str]:
    passing = sum((found.passing.value or {}).values())
    return figures.state_of(found).rank, -passing, found.lane.name


def _gates(found: Sequence[LaneFigures], standing: Sequence[AlertEpisode], as_of: datetime) -> Mapping[str, GateTold]:
    told = alerts.gates_told(standing, now=as_of)
    untold = [one for one in found if one.is_raise_due and _gate_of(one, told) is None]
    return {**told, **alerts.gates_of_silent(untold, now=as_of)} if untold else told


def _gate_of(found: LaneFigures, gates: Mapping[str, GateTold]) -> GateTold | None:
    return gates.get(alerts.run_subject(found.lane.run)) if found.lane.run is not None else None


def _rights(request: HttpRequest, lane: Lane) -> dict[str, bool]:
    return {"may_raise": may(request, "raise_stage", lane), "may_close": may(request, "manage_outage", lane)}


def _view(found: LaneFigures, gate: GateTold | None, rights: dict[str, bool]) -> LaneView:
    state: LaneState = figures.state_of(found)
    return LaneView(
        pk=found.lane.pk,
        is_card=state.needs_somebody or board_text.is_outage_to_close(found, state),
        headline=board_text.headline(found, state, level=2, gate=gate),
        step=board_text.next_step(found, state, gate=gate, **rights),
        figures=board_text.four_figures(found),
        bar=board_text.bar(found),
        exposure=found.exposure.value if found.exposure else "",
        exposed=lane_layers.exposed(found),
        line=board_text.line_text(found),
        outage=outage_text.open_line(found),
    )
