"""Where one job stands. `counting.LAYER_CASE` says the same for all rows; a property test holds them equal."""

from datetime import datetime
from typing import Any

from queue_core.contract.rules import PROBE
from queue_core.models import Decision, Item, Job
from queue_core.states import NOT_OPEN_TICKETS, DeadReason, ItemEnd, JobState
from queue_core.where.delivering import ENDED, undelivered
from queue_core.where.facts import LaneFacts, facts_of, lanes_to_read
from queue_core.where.words import FOR_THE_MODEL, Cause, Layer, Moves, Prospect, Standing


def locate(job: Job, *, now: datetime) -> Standing:
    """Where the job stands as of `now`, why, and what would move it."""
    items = Item.objects.filter(job=job, closed_at__isnull=True).exclude(kind__in=NOT_OPEN_TICKETS)
    item = items.select_related("taken_by").first()
    if item is None and job.state in ENDED:
        return undelivered(job) or _ended(job)
    lane = lanes_to_read().get(pk=job.lane_id)
    return judge(job, item, facts_of([lane], now=now)[lane.pk])


def judge(job: Job, item: Item | None, lane: LaneFacts) -> Standing:
    """Where an open job stands, on rows that were read: the job, its open item if there is one, its lane's facts.

    An obstacle of the lane changes no layer, only the cause: what stands there waits for nothing that will come. Too
    late goes before it, since people can still reach that, but not for long.
    """
    standing = _placed(job, item, lane)
    if lane.obstacle is None or standing.prospect != Prospect.NOT_YET or standing.layer not in FOR_THE_MODEL:
        return standing
    return Standing(standing.layer, lane.obstacle, Moves.ADMINISTRATOR, prospect=Prospect.NEVER)


def _placed(job: Job, item: Item | None, lane: LaneFacts) -> Standing:
    """The precedence itself."""
    if item is not None:
        return _with_people(item, lane.now)
    if job.state == JobState.LEASED and job.lease_until is not None and job.lease_until > lane.now:
        return Standing(Layer.RUNNING, Cause.LEASE_RUNS, Moves.ANSWER, {"at": job.lease_until, "fence": job.fence})
    if lane.is_held:
        return _held(job, lane)
    if job.available_at is not None or lane.retry_until is not None:
        return _resting(job, lane)
    if job.deadline <= lane.needs_until:
        return _too_late(job, lane.now)
    if job.state == JobState.LEASED:
        return _lease_over(job, lane)
    return _claimable(lane)


def _with_people(item: Item, now: datetime) -> Standing:
    if item.taken_by is not None and item.taken_until is not None and item.taken_until > now:
        params = {"by": item.taken_by.get_username(), "at": item.taken_until, "since": item.opened_at}
        return Standing(Layer.PEOPLE, Cause.ITEM_TAKEN, Moves.PERSON_DECIDES, params)
    return Standing(Layer.PEOPLE, Cause.ITEM_FREE, Moves.PERSON_DECIDES, {"since": item.opened_at})


def _held(job: Job, lane: LaneFacts) -> Standing:
    hold = lane.hold
    params: dict[str, Any] = {"deadline": job.deadline}
    if job.deadline <= lane.needs_until:
        moves = Moves.SWEEP if job.deadline <= lane.now else Moves.PERSON_TAKES
        return Standing(Layer.HELD, Cause.HELD_TOO_LONG, moves, params, Prospect.TOO_LATE)
    if hold is None:
        return Standing(Layer.HELD, Cause.HELD_AUTOMATICALLY, Moves.LEAD_STARTS_PROBE, params)
    params |= {"since": hold.since, "reason": hold.reason, "by": hold.by, "until": hold.until}
    cause = Cause.HELD_AUTOMATICALLY if hold.is_automatic else Cause.HELD_BY_PERSON
    return Standing(
        Layer.HELD, cause, Moves.LEAD_RESUMES if hold.may_resume(lane.now) else Moves.LEAD_STARTS_PROBE, params
    )


def _resting(job: Job, lane: LaneFacts) -> Standing:
    rests_until = max((at for at in (job.available_at, lane.retry_until) if at is not None), default=lane.now)
    if job.deadline <= max(rests_until, lane.now) + lane.needs:
        moves = Moves.SWEEP if job.deadline <= lane.now else Moves.PERSON_TAKES
        params = {"at": rests_until, "deadline": job.deadline}
        return Standing(Layer.BACK_OFF, Cause.RESTS_TOO_LONG, moves, params, Prospect.TOO_LATE)
    if lane.retry_until is not None and (job.available_at is None or job.available_at <= lane.retry_until):
        return Standing(Layer.BACK_OFF, Cause.RETRY_AFTER, Moves.TIME, {"at": lane.retry_until})
    if job.available_at is not None and job.available_at > lane.now:
        return Standing(Layer.BACK_OFF, Cause.RESTS, Moves.TIME, {"at": job.available_at, "attempts": job.attempts})
    return Standing(Layer.BACK_OFF, Cause.REST_IS_OVER, Moves.NEXT_TICK)


def _too_late(job: Job, now: datetime) -> Standing:
    params = {"deadline": job.deadline}
    if job.deadline <= now:
        return Standing(Layer.TOO_LATE, Cause.DEADLINE_PASSED, Moves.SWEEP, params, Prospect.TOO_LATE)
    return Standing(Layer.TOO_LATE, Cause.TOO_LITTLE_TIME, Moves.PERSON_TAKES, params, Prospect.TOO_LATE)


def _lease_over(job: Job, lane: LaneFacts) -> Standing:
    params = {"since": job.lease_until, "attempts": job.attempts, "most": job.max_attempts}
    if job.attempts >= job.max_attempts:
        return Standing(Layer.LEASE_OVER, Cause.BUDGET_SPENT, Moves.SWEEP, params, Prospect.TOO_LATE)
    # The probe takes over nothing.
    moves = Moves.NEXT_STAGE if lane.stage == PROBE else Moves.TAKEOVER
    return Standing(Layer.LEASE_OVER, Cause.NOT_TAKEN_OVER, moves, params)


def _claimable(lane: LaneFacts) -> Standing:
    if not lane.is_judged:
        return Standing(Layer.NO_WORKERS, Cause.NOT_JUDGED, Moves.SCHEDULER, {"since": lane.judged_at})
    if lane.limit is not None:
        params = {"value": lane.limit.value, "at": lane.limit.frees_at, "stage": lane.stage}
        return Standing(Layer.STAGE_FULL, lane.limit.cause, Moves.SEAT, params)
    if not lane.is_attended:
        return Standing(Layer.NO_WORKERS, Cause.NOBODY_FETCHES, Moves.WORKERS)
    if lane.stage == PROBE:
        return Standing(Layer.READY, Cause.PROBE_DRAWS, Moves.NEXT_STAGE)
    return Standing(Layer.READY, Cause.NEXT, Moves.TURN)


def _ended(job: Job) -> Standing:
    """A job that is over and has no open item: decided, gone, or nobody's."""
    decision = (
        Decision.objects.filter(ticket_id=job.ticket_id, revision=job.revision, replaced_by__isnull=True)
        .select_related("person")
        .first()
    )
    if decision is not None and decision.verdict is not None:
        by = decision.person.get_username() if decision.person is not None else ""
        params = {"verdict": decision.verdict, "by": by, "at": decision.decided_at}
        return Standing(None, Cause.DECIDED, Moves.NOTHING, params)
    ends = {job.dead_reason, *Item.objects.filter(job=job).values_list("closed_as", flat=True)}
    if ends & {DeadReason.SUPERSEDED.value, ItemEnd.SUPERSEDED.value}:
        return Standing(None, Cause.SUPERSEDED, Moves.NOTHING, {"at": job.finished_at})
    if ends & {DeadReason.WITHDRAWN.value, ItemEnd.WITHDRAWN.value}:
        return Standing(None, Cause.WITHDRAWN, Moves.NOTHING, {"at": job.finished_at})
    return Standing(None, Cause.LOST, Moves.ENGINEER)
