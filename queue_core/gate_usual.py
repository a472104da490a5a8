"""The lane's usual shares of results: of its steady running, at the same hours of the week where there are enough."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q

from queue_core.gate_rightly import Basis, Usual
from queue_core.models import Hold, Recall, StageRun
from queue_core.states import HoldReason, Result

WEEK = timedelta(weeks=1)
WEEKS_BACK = 4
#: So far from now, on either side, counts as the same hours of the week.
AROUND = timedelta(hours=1)
DAYS_BACK = timedelta(days=7)
#: Fewer results than this are no usual.
LEAST_RESULTS = 100
#: Results from so long before a hold for wrong answers are not taken for right ones.
DOUBTED = timedelta(hours=1)
WRONG = (HoldReason.WRONG_ANSWERS, HoldReason.AUTO_WRONG)
MOST_RUNS = 500

#: Sums of the kept minutes within some spans, which do not overlap.
RESULTS = """
SELECT coalesce(sum((m.counts->>'result.APPROVED')::bigint), 0),
       coalesce(sum((m.counts->>'result.REJECTED')::bigint), 0),
       coalesce(sum((m.counts->>'result.MANUAL')::bigint), 0)
FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS span(a, b)
JOIN queue_core_laneminute m ON m.lane_id = %(lane)s AND m.minute >= span.a AND m.minute < span.b
"""


@dataclass(frozen=True, slots=True)
class Span:
    start: datetime
    end: datetime


def usual(run: StageRun, *, now: datetime) -> Usual | None:
    """What the lane's results usually are, for a run of it; None where it has not run steadily for long enough.

    Of steady runs under the same policy, but for those whose decisions were recalled. The same hours of the last weeks
    first, since a night's mix is not a day's; else the last days.
    """
    steady = _steady(run, now)
    hours = [Span(now - WEEK * back - AROUND, now - WEEK * back + AROUND) for back in range(1, WEEKS_BACK + 1)]
    for basis, spans in (
        (Basis.SAME_HOURS, hours),
        (Basis.HEALTHY_DAYS, [Span(now - DAYS_BACK, now)]),
    ):
        results = _results(run.lane_id, _overlaps(steady, spans))
        if sum(results.values()) >= LEAST_RESULTS:
            return Usual(results, basis)
    return None


def _steady(run: StageRun, now: datetime) -> list[Span]:
    """When the lane ran steadily. The last hour of the run that is judged is no measure of itself."""
    since = now - WEEK * WEEKS_BACK - AROUND
    doubted = Hold.objects.filter(run=OuterRef("pk"), reason__in=WRONG)
    runs = (
        StageRun.objects.filter(lane_id=run.lane_id, is_last=True, policy_id=run.policy_id, started_at__lte=now)
        .filter(Q(ended_at__isnull=True) | Q(ended_at__gt=since))
        .filter(~Exists(Recall.objects.filter(run=OuterRef("pk"))))
        .annotate(is_doubted=Exists(doubted))
        .order_by("-started_at")[:MOST_RUNS]
    )
    spans = []
    for one in runs:
        end = now - AROUND if one.pk == run.pk else min(one.ended_at or now, now)
        spans.append(Span(one.started_at, end - DOUBTED if one.is_doubted else end))
    return [span for span in spans if span.start < span.end]


def _overlaps(steady: Sequence[Span], spans: Iterable[Span]) -> list[Span]:
    both = [Span(max(a.start, b.start), min(a.end, b.end)) for a in steady for b in spans]
    return [span for span in both if span.start < span.end]


def _results(lane_id: int, spans: Sequence[Span]) -> dict[Result, int]:
    if not spans:
        return {}
    params: dict[str, Any] = {
        "lane": lane_id,
        "starts": [span.start for span in spans],
        "ends": [span.end for span in spans],
    }
    with connection.cursor() as cursor:
        cursor.execute(RESULTS, params)
        [row] = cursor.fetchall()
    return dict(zip((Result.APPROVED, Result.REJECTED, Result.MANUAL), map(int, row), strict=True))
