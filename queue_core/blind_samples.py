"""A sample of a run's decisions, drawn by chance, for people who do not see them: whether the model answers rightly.

Drawn by the tick, so that no worker pays for it. Chance is the attempt's random key: who draws again draws the same.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from queue_core import contract
from queue_core.clock import Clock
from queue_core.models import Decision, Item, Lane, StageRun
from queue_core.states import ItemKind, Result

#: A decision is looked at when it is this old. What commits later than that after it was decided is not drawn.
LAG = timedelta(seconds=5)
#: Decisions looked at in one tick.
MOST_READ = 2_000
#: Checks that wait for people in one lane. Above it nothing is drawn: people who cannot keep up are not flooded.
MOST_OPEN = 50
#: By when somebody should have looked.
WITHIN = timedelta(hours=4)
KEYS = 2**32


def draw_due(*, clock: Clock) -> int:
    """Open the checks that are due in every running lane. Safe to run twice at once. Returns how many were opened."""
    lanes = Lane.objects.filter(run__blind_share__gt=0).order_by("pk").select_related("run")
    return sum(_draw(lane.run, clock) for lane in lanes if lane.run is not None)


@transaction.atomic
def _draw(run: StageRun, clock: Clock) -> int:
    since, until = run.blind_up_to or run.started_at, clock.now() - LAG
    if until <= since:
        return 0
    read, up_to = _decided(run, since, until)
    # Whoever moves the mark draws; the run's row is locked before tickets, as by completions of a run that keeps back.
    unmoved = StageRun.objects.filter(pk=run.pk, blind_up_to=run.blind_up_to, ended_at__isnull=True)
    if not unmoved.update(blind_up_to=up_to):
        return 0
    open_now = Item.objects.filter(lane_id=run.lane_id, kind=ItemKind.BLIND, closed_at__isnull=True).count()
    drawn = [decision for decision in read if _is_drawn(decision, run.blind_share)][: max(MOST_OPEN - open_now, 0)]
    return contract.open_blind_items([decision.pk for decision in drawn], within=WITHIN, clock=clock)


def _decided(run: StageRun, since: datetime, until: datetime) -> tuple[Sequence[Decision], datetime]:
    """The run's decisions after `since`, and up to when they were read: whole instants, since a batch shares one."""
    rows = (
        Decision.objects.filter(lane_id=run.lane_id, decided_at__gt=since, decided_at__lte=until, run=run)
        .filter(attempt__isnull=False, verdict__in=[Result.APPROVED, Result.REJECTED])
        .select_related("attempt")
        .only("decided_at", "attempt__key")
        .order_by("decided_at", "pk")
    )
    read = list(rows[: MOST_READ + 1])
    if len(read) <= MOST_READ:
        return read, until
    last = read[-1].decided_at
    whole = [decision for decision in read if decision.decided_at < last]
    # One instant with more than is read at once is cut: its rest is not drawn, and the mark still moves.
    return (whole, whole[-1].decided_at) if whole else (read, last)


def _is_drawn(decision: Decision, share: float) -> bool:
    assert decision.attempt is not None, "decisions of the model alone are read"
    return decision.attempt.key.int % KEYS < share * KEYS
