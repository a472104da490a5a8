"""What a lane's state says about all of its jobs: read once a page for all lanes, in a fixed number of queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from queue_core import at_once, tally
from queue_core.at_once import Row, Told
from queue_core.batch import usual_call
from queue_core.contract.release import MAX_HOLD_IN_CALLS
from queue_core.contract.rules import CALL_MARGIN, JUDGED_WITHIN, PROBE, RATE_WINDOW, is_resumable
from queue_core.models import Hold, Lane, Presence
from queue_core.states import AttemptOutcome
from queue_core.where.words import Cause

#: A worker or scheduler that said nothing for longer than this is not counted as there.
SEEN_WITHIN = timedelta(seconds=30)

#: Running leases of the lanes, and of those that share a connection's total cap with them: number, first end.
RUNNING = """
SELECT 'running', a.lane_id, NULL::text, count(*), min(a.lease_until) FROM queue_core_attempt a
WHERE a.ended_at IS NULL AND a.lease_until > %(now)s::timestamptz AND a.lane_id IN (
  SELECT id FROM queue_core_lane WHERE id = ANY(%(lanes)s::bigint[]) OR connection_id = ANY(%(capped)s::bigint[]))
GROUP BY a.lane_id
"""
#: What a rate counts in the lanes that have one: number, the first of them. Claims are counted row by row only where
#: the kept figures say that the rate may be full: they have whole minutes, so never less than any sixty seconds.
GRANTS = f"""
SELECT 'grants', l.id, NULL::text, g.number, g.first
FROM (
  SELECT r.id FROM unnest(%(rated)s::bigint[], %(rates)s::bigint[]) AS r(id, rate)
  LEFT JOIN (
    SELECT lane_id, sum((counts->'{tally.CLAIMED}')::bigint) AS number FROM fresh
    WHERE minute >= %(rated_minute)s::timestamptz AND counts ? '{tally.CLAIMED}' GROUP BY lane_id
  ) f ON f.lane_id = r.id
  WHERE r.rate <= coalesce(f.number, 0) + (
    SELECT coalesce(sum((counts->'{tally.CLAIMED}')::bigint), 0) FROM queue_core_laneminute
    WHERE (lane_id, minute) >= (r.id, %(rated_minute)s::timestamptz) AND lane_id <= r.id AND counts ? '{tally.CLAIMED}')
) AS l
CROSS JOIN LATERAL (
  SELECT count(*) AS number, min(started_at) AS first FROM queue_core_attempt
  WHERE lane_id = l.id AND started_at > %(rated_since)s::timestamptz
    AND outcome IS DISTINCT FROM '{AttemptOutcome.FENCE_RAISED.value}') AS g
"""  # noqa: S608  (put together from constants)
#: Lanes of connections with a total cap; the number is the connection.
SIBLINGS = """
SELECT 'sibling', id, NULL::text, connection_id, NULL::timestamptz FROM queue_core_lane
WHERE connection_id = ANY(%(capped)s::bigint[])
"""
DRAINERS = """
SELECT 'drainers', lane_id, NULL::text, count(*), NULL::timestamptz FROM queue_core_drainer
WHERE until > %(now)s::timestamptz GROUP BY lane_id
"""
#: Who was seen lately, by kind.
PRESENCE = """
SELECT 'presence', NULL::bigint, kind, count(*), NULL::timestamptz FROM queue_core_presence
WHERE seen_at >= %(seen_since)s::timestamptz GROUP BY kind
"""
#: Each lane's plan: whether it has a probe to start, and its highest stage.
PLANNED = f"""
SELECT 'planned', lane_id, CASE WHEN bool_or(number = {PROBE}) THEN 'probe' END, max(number)::bigint, NULL::timestamptz
FROM queue_core_stage WHERE lane_id = ANY(%(lanes)s::bigint[]) GROUP BY lane_id
"""  # noqa: S608  (put together from constants)
FACTS = (RUNNING, GRANTS, SIBLINGS, DRAINERS, PRESENCE, PLANNED)


@dataclass(frozen=True, slots=True)
class HoldFacts:
    """Who stopped the lane, why, since when."""

    reason: str
    form: str
    is_automatic: bool
    by: str
    since: datetime
    until: datetime | None
    note: str
    has_run: bool

    def may_resume(self, now: datetime) -> bool:
        """What `ramp.resume` allows, as far as the hold itself decides it."""
        return self.has_run and not self.is_automatic and is_resumable(self.since, now=now)


@dataclass(frozen=True, slots=True)
class Limit:
    """What fills the stage: CAP, CONNECTION_CAP or RATE, its value, and when it gives room again at the latest."""

    cause: Cause
    value: int
    frees_at: datetime | None


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """A lane as of one moment. Jobs whose deadline is not after `needs_until` are too late for the model.

    `obstacle` is what of its set-up keeps the model from every job of the lane, however long one waits. `is_highest`:
    it runs the last stage of its plan, be it that the plan was cut short meanwhile.
    """

    lane_id: int
    now: datetime
    needs_until: datetime
    hold: HoldFacts | None
    stage: int | None
    cap: int | None
    running: int
    retry_until: datetime | None
    is_judged: bool
    judged_at: datetime | None
    drainers: int
    workers: int
    scheduler_seen: bool
    limit: Limit | None
    obstacle: Cause | None = None
    is_highest: bool = False

    @property
    def needs(self) -> timedelta:
        """The least time that a job must have left when it is claimed."""
        return self.needs_until - self.now

    @property
    def is_held(self) -> bool:
        return self.stage is None

    @property
    def is_attended(self) -> bool:
        """Whether anybody fetches. Not judged for 30 s: a claim gives nothing, whoever is seen."""
        return self.is_judged and (self.drainers > 0 or self.workers > 0)


def lanes_to_read(lanes: QuerySet[Lane] | None = None) -> QuerySet[Lane]:
    """Lanes with the rows that facts are made of."""
    found = Lane.objects.all() if lanes is None else lanes
    return found.select_related("run", "hold__by", "connection", "policy")


def facts_of(lanes: Sequence[Lane], *, now: datetime) -> dict[int, LaneFacts]:
    """The facts of each lane, by its id."""
    return facts_from(at_once.tell(FACTS, facts_params(lanes, now=now)), lanes, now=now)


def facts_params(lanes: Sequence[Lane], *, now: datetime) -> dict[str, Any]:
    """What FACTS asks about these lanes."""
    rates = {lane.pk: run.rate for lane in lanes if (run := lane.run) is not None and run.rate is not None}
    return {
        "now": now,
        "lanes": [lane.pk for lane in lanes],
        "capped": list({lane.connection_id for lane in lanes if lane.connection.total_cap is not None}),
        "rated": list(rates),
        "rates": list(rates.values()),
        "rated_since": now - RATE_WINDOW,
        "rated_minute": tally.minute_of(now - RATE_WINDOW),
        "seen_since": now - SEEN_WITHIN,
    }


def facts_from(told: Told, lanes: Sequence[Lane], *, now: datetime) -> dict[int, LaneFacts]:
    """The facts of each lane from rows that were told."""
    siblings, running, grants = _by_connection(told), _counted(told, "running"), _counted(told, "grants")
    drainers = {pk: number for pk, (number, _) in _counted(told, "drainers").items()}
    seen = {row.code: row.number for row in told.get("presence", ())}
    plans = {row.lane: row for row in told.get("planned", ())}
    facts = {}
    for lane in lanes:
        here, first_end = running.get(lane.pk, (0, None))
        facts[lane.pk] = LaneFacts(
            lane_id=lane.pk,
            now=now,
            needs_until=needs_until(lane, now=now),
            hold=_hold_facts(lane.hold) if lane.run is None and lane.hold is not None else None,
            stage=lane.run.number if lane.run is not None else None,
            cap=lane.cap,
            running=here,
            retry_until=pauses_until(lane, now=now),
            is_judged=lane.judged_at is not None and now - lane.judged_at <= JUDGED_WITHIN,
            judged_at=lane.judged_at,
            drainers=drainers.get(lane.pk, 0),
            workers=seen.get(Presence.Kind.WORKER, 0),
            scheduler_seen=seen.get(Presence.Kind.SCHEDULER, 0) > 0,
            limit=_limit(lane, here, first_end, _total(siblings, lane, running), grants.get(lane.pk)),
            obstacle=_obstacle(lane, has_plan=lane.run is not None or _has_probe(plans.get(lane.pk))),
            is_highest=_is_highest(lane, plans.get(lane.pk)),
        )
    return facts


def needs_until(lane: Lane, *, now: datetime) -> datetime:
    """Jobs whose deadline is not after this are too late for the model."""
    return now + usual_call(lane)


def pauses_until(lane: Lane, *, now: datetime) -> datetime | None:
    """Until when the model asked for a pause that is not over."""
    until = lane.claims_not_before
    return until if until is not None and until > now else None


def _has_probe(plan: Row | None) -> bool:
    return plan is not None and plan.code == "probe"


def _is_highest(lane: Lane, plan: Row | None) -> bool:
    run = lane.run
    return run is not None and (run.is_last or plan is None or plan.number <= run.number)


def _limit(
    lane: Lane,
    here: int,
    first_end: datetime | None,
    total: tuple[int, datetime | None],
    grants: tuple[int, datetime] | None,
) -> Limit | None:
    """The same comparisons as `contract.room`, which grants; here nothing is locked, so this only explains."""
    if lane.run is None or lane.cap is None:
        return None
    if here >= lane.cap:
        return Limit(Cause.CAP, lane.cap, first_end)
    total_cap = lane.connection.total_cap
    if total_cap is not None and total[0] >= total_cap:
        return Limit(Cause.CONNECTION_CAP, total_cap, total[1])
    number, first = grants or (0, None)
    if lane.run.rate is not None and number >= lane.run.rate:
        return Limit(Cause.RATE, lane.run.rate, None if first is None else first + RATE_WINDOW)
    return None


def _obstacle(lane: Lane, *, has_plan: bool) -> Cause | None:
    """What waiting alone never removes. The worst of it first: without a policy no plan helps."""
    if lane.policy_id is None:
        return Cause.NO_POLICY
    if not has_plan:
        return Cause.NO_PLAN
    if lane.connection.total_cap == 0 or (lane.run is not None and lane.run.rate == 0):
        return Cause.NO_ROOM_EVER
    return Cause.LEASE_TOO_SHORT if not _fits_a_call(lane) else None


def _fits_a_call(lane: Lane) -> bool:
    """Whether a fresh lease leaves time for a call. Where not, a worker gives every claim back (`calls.work_on`)."""
    limit = lane.connection.call_time_limit
    longest = lane.max_hold or MAX_HOLD_IN_CALLS * limit
    lease = max(lane.lease, min(limit + 2 * CALL_MARGIN, longest))
    return lease - CALL_MARGIN >= min(usual_call(lane) - CALL_MARGIN, limit, lane.lease / 2)


def _by_connection(told: Told) -> dict[int, list[int]]:
    """The lanes of each connection that has a total cap."""
    found: dict[int, list[int]] = {}
    for row in told.get("sibling", ()):
        found.setdefault(row.number, []).append(row.lane)
    return found


def _total(
    siblings: dict[int, list[int]], lane: Lane, running: Mapping[int, tuple[int, datetime | None]]
) -> tuple[int, datetime | None]:
    found = [running[pk] for pk in siblings.get(lane.connection_id, []) if pk in running]
    ends = [end for _number, end in found if end is not None]
    return sum(number for number, _end in found), min(ends, default=None)


def _counted(told: Told, word: str) -> dict[int, tuple[int, datetime]]:
    return {row.lane: (row.number, row.moment) for row in told.get(word, ())}


def _hold_facts(hold: Hold) -> HoldFacts:
    return HoldFacts(
        reason=hold.reason,
        form=hold.form,
        is_automatic=hold.is_automatic,
        by=hold.by.get_username() if hold.by is not None else "",
        since=hold.started_at,
        until=hold.until,
        note=hold.note,
        has_run=hold.run_id is not None,
    )
