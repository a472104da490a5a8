"""Stage runs: what was approved, as a snapshot. Begun and ended under the lane's lock by the verbs of the ramp."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from queue_core.contract.rules import PROBE
from queue_core.errors import ConfigurationFault
from queue_core.gate_unasked import judge_unasked
from queue_core.models import Hold, Lane, Message, ModelConnection, Stage, StageRun
from queue_core.states import MessageState, RunEnd

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: What a run takes from its stage, or from the run that it goes on from.
TERMS = (
    "number",
    "name",
    "cap",
    "rate",
    "soak_completions",
    "soak_time",
    "window",
    "least_sample",
    "max_error_ratio",
    "max_timeout_ratio",
    "max_stale_ratio",
    "max_latency",
    "keeps_back",
    "max_share_shift",
    "max_wrong_ratio",
    "known_every",
    "blind_share",
    "least_blind",
    "max_disagreement",
)


def next_stage(lane: Lane) -> Stage | None:
    """The stage that a raise would start: the probe on hold, whatever ran before; None in the last stage."""
    if lane.run is None:
        return Stage.objects.filter(lane=lane, number=PROBE).first()
    return Stage.objects.filter(lane=lane, number__gt=lane.run.number).order_by("number").first()


def terms_of(source: Stage | StageRun) -> dict[str, Any]:
    return {name: getattr(source, name) for name in TERMS}


def lowered_terms(stage: Stage, *, below: int, rate: int | None) -> dict[str, Any]:
    """A stage's terms, but no more than flows now: a plan edited upwards must not lift anything on the way down."""
    terms = terms_of(stage)
    terms["cap"] = min(stage.cap, below)
    rates = [given for given in (stage.rate, rate) if given is not None]
    terms["rate"] = min(rates) if rates else None
    return terms


def terms_under_another_policy(lane: Lane, run: StageRun) -> dict[str, Any]:
    """A run's terms to go on with. Usual shares are of one policy: a limit for them that the plan does not ask for is
    not carried over to another, under which nothing may be usual yet."""
    terms = terms_of(run)
    if not Stage.objects.filter(lane=lane, number=run.number, max_share_shift__isnull=False).exists():
        terms["max_share_shift"] = None
    return terms


def snapshot_of(connection: ModelConnection) -> dict[str, Any]:
    """What of a connection was approved with a run. Its key is not part of it."""
    return {
        "name": connection.name,
        "kind": connection.kind,
        "address": connection.address,
        "model": connection.model,
        "call_time_limit": connection.call_time_limit.total_seconds(),
        "options": connection.options,
    }


def is_as_approved(lane: Lane, run: StageRun) -> bool:
    """Whether the lane would still call what the run was approved for."""
    return (
        run.connection_id == lane.connection_id
        and run.connection_snapshot == snapshot_of(lane.connection)
        and run.lease == lane.lease
    )


def begin_run(
    lane: Lane,
    terms: dict[str, Any],
    *,
    person: "AbstractUser",
    reason: str,
    figures: dict[str, Any],
    now: datetime,
    override_reason: str = "",
    resumes: StageRun | None = None,
) -> StageRun:
    """Start a run on a locked lane whose last run or hold was ended. Claims may begin when the caller commits."""
    if lane.policy is None:
        raise ConfigurationFault(_("The lane has no policy: put one into force first."))
    run = StageRun(
        lane=lane,
        **terms,
        is_last=not Stage.objects.filter(lane=lane, number__gt=terms["number"]).exists(),
        connection=lane.connection,
        connection_snapshot=snapshot_of(lane.connection),
        lease=lane.lease,
        policy=lane.policy,
        raised_by_id=person.pk,
        reason=reason,
        override_reason=override_reason,
        figures=figures,
        resumes=resumes,
        started_at=now,
    )
    judge_unasked(run, now=now)
    run.save(force_insert=True)
    lane.run, lane.hold, lane.cap = run, None, run.cap
    # The person has just seen the figures; from here on workers judge.
    lane.judged_at = now
    lane.save(update_fields=["run", "hold", "cap", "judged_at"])
    return run


def end_run(lane: Lane, *, ended_as: RunEnd, person: "AbstractUser | None", now: datetime) -> StageRun | None:
    """End the locked lane's run, if one runs. The caller then begins another, or a hold."""
    run = lane.run
    if run is not None:
        run.ended_at, run.ended_as, run.ended_by_id = now, ended_as, person.pk if person else None
        run.save(update_fields=["ended_at", "ended_as", "ended_by"])
    return run


def end_hold(lane: Lane, *, person: "AbstractUser | None", now: datetime) -> Hold | None:
    hold = lane.hold
    if hold is not None:
        hold.ended_at, hold.ended_by_id = now, person.pk if person else None
        hold.save(update_fields=["ended_at", "ended_by"])
    return hold


def accept_run(run: StageRun, *, now: datetime) -> int:
    """Accept a run, with those that it resumed: their decisions that were kept back may go out. Returns how many."""
    ids = [accepted.pk for accepted in resumed_chain(run)]
    # This waits for completions that hold these runs back and have not committed yet; those that come later see it.
    StageRun.objects.filter(pk__in=ids, accepted_at__isnull=True).update(accepted_at=now)
    run.accepted_at = now
    return Message.objects.filter(decision__run__in=ids, state=MessageState.KEPT_BACK).update(state=MessageState.READY)


def resumed_chain(run: StageRun) -> list[StageRun]:
    """A run and those it goes on from by resuming."""
    chain = [run]
    while chain[-1].resumes is not None:
        chain.append(chain[-1].resumes)
    return chain
