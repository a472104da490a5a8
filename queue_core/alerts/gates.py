"""Gates of runs that have run their time: measured by whoever looks for alerts, and told from there."""

from collections.abc import Iterable
from datetime import datetime

from queue_core import gate
from queue_core.figures import LaneFigures
from queue_core.figures.panels import read_panel
from queue_core.gate_told import GateTold
from queue_core.last_look import model_answers
from queue_core.models import AlertSettings, StageRun
from queue_core.states import AlertKind

#: So many silent lanes are measured in one reading of a board. The pages of the others have their gates.
MOST_MEASURED = 5


def run_subject(run: StageRun) -> str:
    """What makes an alert one of this run."""
    return f"run {run.pk}"


def is_due(one: LaneFigures) -> bool:
    """Whether a run waits for a person: it has run its time, has a stage above it, and its model answers."""
    return one.is_raise_due and model_answers(one.lane.connection, one.now) is not False


def measure(run: StageRun, *, now: datetime) -> GateTold | None:
    """What the gate of a run says. None where it cannot be read in time."""
    lines = read_panel(None, lambda: (*gate.read_lines(run, now=now), *gate.read_rightly(run, now=now)), now=now).value
    return None if lines is None else GateTold.of(lines)


def gates_of_silent(board: Iterable[LaneFigures], *, now: datetime) -> dict[str, GateTold]:
    """The gates of lanes that want no alert of a soak: no episode tells them, so they are measured now.

    Silence is about being called, not about what the board says.
    """
    due = {one.lane.pk: one.lane.run for one in board if is_due(one) and one.lane.run is not None}
    silent = [row.lane_id for row in AlertSettings.objects.filter(lane__in=due) if AlertKind.SOAK_MET not in row.kinds]
    measured = {run_subject(due[pk]): measure(due[pk], now=now) for pk in sorted(silent)[:MOST_MEASURED]}
    return {subject: told for subject, told in measured.items() if told is not None}
