"""What the pages of bulk acts are given."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext as _

from queue_core import bulk
from queue_core.bulk import LeftOut, Progress
from queue_core.figures import snapshot
from queue_core.forecast.backlog import requeued
from queue_core.forecast.reading import order_of, read_forecast
from queue_core.models import BulkAct
from queue_core.states import BulkKind
from queue_core.where import lanes_to_read
from reviewboard import bulk_text
from reviewboard.bulk_forms import ReasonForm, form_of
from reviewboard.bulk_text import State
from reviewboard.forecast_text import ForecastTable, table
from reviewboard.lengths import DEADLINES, SPANS, length_of
from reviewboard.models import Person
from reviewboard.shapes import Text, Tone


@dataclass(frozen=True, slots=True)
class ActLine:
    """An act in the list."""

    act: BulkAct
    kind: Text
    state: State
    progress: Progress


def act_line(act: BulkAct, *, now: datetime) -> ActLine:
    found = bulk.progress(act)
    return ActLine(act, BulkKind(act.kind).label, _state(act, found, now), found)


def live_facts(act: BulkAct, found: Progress, *, now: datetime) -> dict[str, Any]:
    """What the poll shows of an act: numbers and names."""
    state = _state(act, found, now)
    return {"state": state, "progress": found, "outcomes": bulk_text.outcome_lines(found), "is_live": state.is_live}


def preview_facts(
    act: BulkAct, found: Progress, person: Person, *, now: datetime, form: ReasonForm | None = None
) -> dict[str, Any]:
    """What will be done, in words and numbers, and the form that confirms it."""
    form = form or form_of(act, person)
    by_severity = _by_severity(act)
    return {
        "form": form,
        "will_do": bulk_text.will_do(act.kind, found.total),
        "verb": bulk_text.button(act.kind, found.total),
        "by_severity": by_severity,
        "left_out": bulk_text.left_out_lines(_left_out(act, found)),
        "capped": bulk_text.capped_text() if act.is_capped else "",
        "moved_before": bulk.moved_before(act) if act.kind == BulkKind.MOVE_DEADLINES else 0,
        "sample": bulk.SAMPLE if act.kind == BulkKind.REJECT else 0,
        "forecast": _forecast(act, by_severity, form, now) if act.kind == BulkKind.REQUEUE else None,
        "holds_until": act.previewed_at + bulk.PREVIEW_HOLDS,
        "is_on_hold": act.kind in (BulkKind.REQUEUE, BulkKind.MOVE_DEADLINES) and _is_on_hold(act),
    }


def _left_out(act: BulkAct, found: Progress) -> dict[str, int]:
    """Ticked rows of which nothing is found count too: gone since, or none that the reader could have ticked."""
    left_out: dict[str, int] = act.left_out
    gone = act.selection.get("ticked", 0) - found.total - sum(left_out.values())
    return left_out | ({LeftOut.GONE.value: gone} if gone > 0 else {})


def _state(act: BulkAct, found: Progress, now: datetime) -> State:
    if act.confirmed_at is None:
        return State(_("previewed, not confirmed"), Tone.IDLE)
    needs_sample = act.kind == BulkKind.REJECT and act.seconded_at is None
    return bulk_text.state_of(act, found, bulk.sample_of(act) if needs_sample else None, now=now)


def _by_severity(act: BulkAct) -> dict[int, int]:
    rows = act.entries.order_by().values_list("severity").annotate(number=Count("pk"))
    return dict(sorted(rows, reverse=True))


def _lane_ids(act: BulkAct) -> list[int]:
    return list(act.entries.order_by().values_list("job__lane_id", flat=True).distinct()[:2])


def _is_on_hold(act: BulkAct) -> bool:
    return any(lane.is_on_hold for lane in lanes_to_read().filter(pk__in=_lane_ids(act)))


def _forecast(act: BulkAct, by_severity: dict[int, int], form: ReasonForm, now: datetime) -> ForecastTable | None:
    """The forecast with these jobs back in their lane, new deadlines spread as the form says. None for two lanes."""
    ids = _lane_ids(act)
    if len(ids) != 1:
        return None
    lane = lanes_to_read().get(pk=ids[0])
    chosen = {name: str(form[name].value()) for name in ("first", "span")}
    first = length_of(chosen["first"] if chosen["first"] in dict(DEADLINES) else "4h")
    span = length_of(chosen["span"] if chosen["span"] in dict(SPANS) else "2h")
    joining = requeued(by_severity, order_of(lane), first=first, span=span)
    with snapshot():
        return table(read_forecast(lane, now=now, joining=joining))
