"""What asks for people now, read from the same figures that the board shows. Writes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from queue_core import figures, where
from queue_core.alerts import gates
from queue_core.alerts.gates import run_subject
from queue_core.alerts.severe import severe_waiting
from queue_core.figures import LaneFigures, LaneState
from queue_core.hold import OUTAGES
from queue_core.last_look import model_answers
from queue_core.models import AlertSettings, Lane, Presence, StageRun
from queue_core.states import AlertKind, HoldReason
from queue_core.where.facts import SEEN_WITHIN

#: The model's health has to be good for so long, on hold, before people are told: it may come and go.
BACK_FOR = timedelta(minutes=1)
SOON = timedelta(hours=1)
#: Holds after which a model that answers again is news.
AWAITS_MODEL = OUTAGES | {HoldReason.MODEL_TROUBLE}
#: Read from the layers and flows of a lane, so not known where those could not be read.
OF_FIGURES = frozenset(
    {AlertKind.READY_LATE, AlertKind.HELD_LATE, AlertKind.GROWING, AlertKind.NO_PROGRESS, AlertKind.NOBODY}
)
#: A lane on hold neither grows nor stalls: it is held, which is told by itself.
OF_RUNNING = frozenset({AlertKind.READY_LATE, AlertKind.GROWING, AlertKind.NO_PROGRESS, AlertKind.NOBODY})
SITE = "site"

#: Deadlines of a lane that runs are looked at one by one up to here.
MOST_PASSING = 1_000
#: Waiting jobs of running lanes whose deadline passes in the next hour and that have waited for more than half of their
#: time: where deadlines are short, the others are the usual case.
PASSING = """
SELECT l.id, s.severity, count(*)
FROM unnest(%s::bigint[]) AS l(id)
CROSS JOIN LATERAL (
  SELECT severity, queued_at, deadline FROM queue_core_job
  WHERE lane_id = l.id AND state = 'WAITING' AND deadline > %s AND deadline <= %s ORDER BY deadline LIMIT %s
) s
WHERE %s - s.queued_at > s.deadline - %s
GROUP BY l.id, s.severity
"""

type Key = tuple[AlertKind, str]


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that asks for people. `subject` is what makes it the same thing when it is seen again."""

    kind: AlertKind
    subject: str
    lanes: tuple[int, ...] = ()
    connection: int | None = None
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.kind, self.subject


@dataclass(frozen=True, slots=True)
class Reading:
    """One look. `lasting` keeps what is told of already from being over, and begins nothing."""

    found: tuple[Condition, ...]
    lasting: frozenset[Key] = frozenset()
    #: Kinds and lanes that could not be judged: nothing of them begins or is over.
    unknown: frozenset[tuple[AlertKind, int]] = frozenset()
    #: What has no meaning any more, whoever saw it a moment ago: it is over at once.
    settled: frozenset[Key] = frozenset()


def read(*, now: datetime) -> Reading:
    """Look at every lane. Inside `figures.snapshot()`, so that all of it is of one moment."""
    lanes = list(where.lanes_to_read())
    if not lanes:
        return Reading(())
    settings = {row.lane_id: row for row in AlertSettings.objects.all()}
    board = figures.board(lanes, now=now)
    least = {one.lane.pk: _settings_of(one.lane, settings).least_passing for one in board}
    passing = _passing(board, least, now)
    severe = severe_waiting([lane.pk for lane in lanes], now=now)
    found: list[Condition] = [*_of_site(now), *_of_models(board)]
    for one in board:
        found += _of_lane(one)
        found += _of_deadlines(one.lane, passing.get(one.lane.pk, {}), least[one.lane.pk])
        found += _of_severe(one.lane, severe.get(one.lane.pk))
    silenced = {pk: set(AlertKind.values) - set(row.kinds) for pk, row in settings.items()}
    return Reading(
        tuple(wanted for one in found if (wanted := _unsilenced(one, silenced))),
        frozenset(_key_of_outage(one) for one in board if one.open_outage is not None),
        frozenset((kind, one.lane.pk) for one in board for kind in _unknown_kinds(one)),
        frozenset((kind, lane_subject(lane.pk)) for lane in lanes if lane.run is None for kind in OF_RUNNING)
        | _nobody_awaits(board),
    )


def lane_subject(lane_id: int) -> str:
    return f"lane {lane_id}"


def _of_site(now: datetime) -> Iterator[Condition]:
    seen = (
        Presence.objects.filter(kind=Presence.Kind.SCHEDULER)
        .order_by("-seen_at")
        .values_list("seen_at", flat=True)
        .first()
    )
    if seen is None or now - seen > SEEN_WITHIN:
        since = seen.isoformat() if seen else None
        yield Condition(AlertKind.SCHEDULER_DEAD, SITE, params={"since": since})


def _of_models(board: Sequence[LaneFigures]) -> Iterator[Condition]:
    """Once a connection, however many lanes it has: an outage is one episode from its first hold to its end."""
    held: dict[Key, Condition] = {}
    for one in board:
        for condition in (_of_automatic_hold(one), _of_model_back(one)):
            if condition is None:
                continue
            known = held.get(condition.key)
            held[condition.key] = condition if known is None else _with_lanes(known, condition)
    yield from held.values()


def _with_lanes(known: Condition, other: Condition) -> Condition:
    names = sorted({*known.params["lanes"], *other.params["lanes"]})
    return Condition(
        known.kind, known.subject, (*known.lanes, *other.lanes), known.connection, known.params | {"lanes": names}
    )


def _of_automatic_hold(one: LaneFigures) -> Condition | None:
    lane, hold = one.lane, one.facts.hold
    if lane.run is not None or hold is None or not hold.is_automatic or hold.reason == HoldReason.NEW_LANE:
        return None
    params = {"reason": hold.reason, "since": hold.since.isoformat(), "lanes": [str(lane)]}
    if one.open_outage is not None and hold.reason in OUTAGES:
        kind, subject = _key_of_outage(one)
        return Condition(kind, subject, (lane.pk,), lane.connection_id, params | {"connection": lane.connection.name})
    return Condition(AlertKind.AUTOMATIC_HOLD, f"hold {lane.hold_id}", (lane.pk,), params=params)


def _key_of_outage(one: LaneFigures) -> Key:
    return AlertKind.AUTOMATIC_HOLD, f"outage {one.open_outage.pk if one.open_outage else 0}"


def _of_model_back(one: LaneFigures) -> Condition | None:
    lane, hold = one.lane, one.facts.hold
    model = lane.connection
    if hold is None or not _awaits_model(one):
        return None
    if not model_answers(model, one.now) or model.health_since is None:
        return None
    if one.now - max(model.health_since, hold.since) < BACK_FOR:
        return None
    return Condition(
        AlertKind.MODEL_BACK,
        _model_subject(one),
        (lane.pk,),
        model.pk,
        {"since": model.health_since.isoformat(), "connection": model.name, "lanes": [str(lane)]},
    )


def _awaits_model(one: LaneFigures) -> bool:
    hold = one.facts.hold
    return one.lane.run is None and hold is not None and hold.reason in AWAITS_MODEL


def _model_subject(one: LaneFigures) -> str:
    return f"connection {one.lane.connection_id}"


def _nobody_awaits(board: Sequence[LaneFigures]) -> frozenset[Key]:
    """Models that no lane on hold waits for any more: that they answer is no news to anybody."""
    awaited = {_model_subject(one) for one in board if _awaits_model(one)}
    return frozenset((AlertKind.MODEL_BACK, _model_subject(one)) for one in board) - {
        (AlertKind.MODEL_BACK, subject) for subject in awaited
    }


def _of_lane(one: LaneFigures) -> Iterator[Condition]:
    """What one lane's figures say. A figure that could not be read says nothing."""
    lane, run = one.lane, one.lane.run
    if run is not None and gates.is_due(one):
        yield Condition(AlertKind.SOAK_MET, run_subject(run), (lane.pk,), params=_of_soaked(run, one.now))
    if not _is_known(one):
        return
    state = figures.state_of(one)
    if state in (LaneState.NOBODY, LaneState.NOT_JUDGED):
        yield _lane_condition(AlertKind.NOBODY, lane, why=state.value)
    if state == LaneState.NO_PROGRESS:
        since = figures.stalled_since(one)
        yield _lane_condition(AlertKind.NO_PROGRESS, lane, since=since.isoformat() if since else None)
    if run is not None and figures.is_growing(one) and one.flow.value is not None:
        yield _lane_condition(AlertKind.GROWING, lane, growth=round(one.flow.value.growth, 1))
    yield from _of_waits(one)


def _of_soaked(run: StageRun, now: datetime) -> dict[str, Any]:
    """With what the gate says by now: the board tells it from here. Left out where it cannot be read in time."""
    params = {"stage": run.number, "name": run.name, "since": (run.started_at + run.soak_time).isoformat()}
    told = gates.measure(run, now=now)
    return params if told is None else params | {"gate": told.frozen()}


def _of_waits(one: LaneFigures) -> Iterator[Condition]:
    table, lane = one.layers.value, one.lane
    assert table is not None, "asked only of a lane whose layers were read"
    for kind, oldest in (
        (AlertKind.READY_LATE, table.oldest_ready),
        (AlertKind.HELD_LATE, None if _is_on_purpose(one) else table.oldest_held),
    ):
        if oldest is not None and oldest > lane.wait_target:
            since = (one.now - oldest).isoformat()
            yield _lane_condition(kind, lane, since=since, target=lane.wait_target.total_seconds())


def _is_on_purpose(one: LaneFigures) -> bool:
    """A person's hold with an end that is not over: the only one whose age alarms nobody."""
    hold = one.facts.hold
    return hold is not None and not hold.is_automatic and hold.until is not None and hold.until > one.now


def _of_deadlines(lane: Lane, passing: dict[int, int], least: int) -> Iterator[Condition]:
    total = sum(passing.values())
    if total >= max(least, 1):
        by_severity = {str(severity): number for severity, number in sorted(passing.items(), reverse=True)}
        capped = {"most": MOST_PASSING} if lane.run is not None and total > MOST_PASSING else {}
        yield _lane_condition(AlertKind.PASSING, lane, count=total, by_severity=by_severity, **capped)


def _of_severe(lane: Lane, since: datetime | None) -> Iterator[Condition]:
    if since is not None:
        yield _lane_condition(AlertKind.SEVERE_WAITING, lane, since=since.isoformat())


def _lane_condition(kind: AlertKind, lane: Lane, **params: Any) -> Condition:
    return Condition(kind, lane_subject(lane.pk), (lane.pk,), params=params)


def _is_known(one: LaneFigures) -> bool:
    panels = (one.layers, one.flow)
    return all(panel.value is not None and not panel.is_kept for panel in panels)


def _unknown_kinds(one: LaneFigures) -> set[AlertKind]:
    kinds = set() if _is_known(one) else set(OF_FIGURES)
    return kinds | ({AlertKind.PASSING} if one.passing.is_kept else set())


def _settings_of(lane: Lane, settings: dict[int, AlertSettings]) -> AlertSettings:
    return settings.get(lane.pk) or AlertSettings(lane=lane)


def _unsilenced(condition: Condition, silenced: dict[int, set[str]]) -> Condition | None:
    """Without the lanes that do not want to hear of it; None if none is left."""
    if not condition.lanes:
        return condition
    lanes = tuple(pk for pk in condition.lanes if condition.kind not in silenced.get(pk, ()))
    if not lanes:
        return None
    return Condition(condition.kind, condition.subject, lanes, condition.connection, condition.params)


def _passing(board: Sequence[LaneFigures], least: dict[int, int], now: datetime) -> dict[int, dict[int, int]]:
    """Deadlines of the next hour by lane and severity. The kept figures say how many there are, by whole minutes; rows
    are looked at only in running lanes where there are enough of them to tell of."""
    found: dict[int, dict[int, int]] = {}
    look_at = []
    for one in board:
        soon = {} if one.passing.is_kept else dict(one.passing.value or {})
        if one.lane.run is None:
            found[one.lane.pk] = soon
        elif sum(soon.values()) >= least[one.lane.pk]:
            look_at.append(one.lane.pk)
    with connection.cursor() as cursor:
        if look_at:
            cursor.execute(PASSING, [look_at, now, now + SOON, MOST_PASSING + 1, now, now])
        for lane, severity, number in cursor.fetchall() if look_at else ():
            found.setdefault(lane, {})[severity] = number
    return found
