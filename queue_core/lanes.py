"""Lanes made: on hold from their first moment, with a plan and, where the connection's kind has one, a policy."""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from queue_core import audit
from queue_core.clock import Clock
from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.models import Hold, Lane, ModelConnection, Policy, Stage
from queue_core.models.lanes import name_validator
from queue_core.policy import Policy as Rules
from queue_core.states import HoldReason
from queue_core.usual_policies import LOCAL, UsualPolicy, usual_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import AbstractUser


@dataclass(frozen=True, slots=True)
class StagePlan:
    """One stage of a plan, with the model's defaults for its guardrails."""

    number: int
    name: str
    cap: int
    soak_completions: int = 20
    soak_time: timedelta = timedelta(minutes=5)
    rate: int | None = None
    window: timedelta = timedelta(minutes=5)
    least_sample: int = 20
    max_error_ratio: float = 0.1
    max_timeout_ratio: float = 0.1
    max_stale_ratio: float = 0.1
    max_latency: timedelta | None = None
    keeps_back: bool = False
    max_share_shift: float | None = None
    max_wrong_ratio: float | None = None
    known_every: timedelta = timedelta(minutes=10)
    blind_share: float = 0.0
    least_blind: int = 10
    max_disagreement: float | None = None


# A stage's least sample is never above its soak: else a soaked stage would stay inconclusive where little comes in.
# The rate, 30 calls a minute for each seat, is that of calls of two seconds. A cap alone bounds no quick model: one
# that answers in milliseconds would judge the whole backlog at the probe's two seats before anybody saw the gate.
DEFAULT_STAGES = (
    StagePlan(1, "probe", cap=2, rate=60, soak_completions=10, soak_time=timedelta(minutes=1), least_sample=10),
    StagePlan(2, "trickle", cap=10, rate=300, soak_completions=20, soak_time=timedelta(minutes=3)),
    StagePlan(3, "half", cap=50, rate=1500, soak_completions=50, soak_time=timedelta(minutes=5)),
    StagePlan(4, "steady", cap=200, soak_completions=0, soak_time=timedelta(0)),
)


@transaction.atomic
def create_lane(
    name: str,
    connection: ModelConnection,
    *,
    title: str = "",
    policy_rules: list[dict[str, Any]] | None = None,
    stages: "Sequence[StagePlan]" = DEFAULT_STAGES,
    clock: Clock,
    person: "AbstractUser | None" = None,
    **settings: Any,
) -> Lane:
    """Make a lane: on hold, policy version 1, its plan. `settings` are further fields of the lane's configuration.

    `policy_rules` None takes the connection's usual policy. Raises InvalidRequest for a name that is none or taken, a
    plan that does not begin at stage 1, or rules that are broken.
    """
    policy = usual_policy(connection) if policy_rules is None else UsualPolicy(policy_rules)
    if policy is None:
        raise InvalidRequest(
            _("A connection of the kind “%(kind)s” has no usual policy: write its rules.") % {"kind": connection.kind},
            field="policy",
        )
    _check(name, stages)
    lane = Lane(name=name, title=title, connection=connection, **settings)
    try:
        with transaction.atomic():
            lane.save(force_insert=True)
    except IntegrityError as fault:
        if not Lane.objects.filter(name=name).exists():
            raise
        raise InvalidRequest(_("There is a lane of this name already."), field="name") from fault
    Stage.objects.bulk_create([Stage(lane=lane, **asdict(stage)) for stage in stages])
    _take_in(lane, policy, person=person, now=clock.now())
    return lane


def adopt(lane: Lane, *, person: "AbstractUser", now: datetime) -> None:
    """Give a lane that was just saved by a form its hold and, where its connection has a usual one, its first policy.

    The caller is inside the transaction that saved it, and writes its plan.
    """
    _take_in(lane, usual_policy(lane.connection), person=person, now=now)


@transaction.atomic
def create_lane_for_import(name: str, *, connection: str | None, clock: Clock) -> Lane:
    """The lane that an import names, made with the connection of that name, or the only one there is.

    Where there is no connection at all, one of the kind local is made. If another import was faster, its lane is
    returned. Raises ConfigurationFault where the connection cannot be told.
    """
    chosen = _connection_for_import(connection)
    try:
        return create_lane(name, chosen, clock=clock)
    except InvalidRequest as fault:
        if fault.field == "name" and (lane := Lane.objects.filter(name=name).first()) is not None:
            return lane
        if fault.field == "policy":
            raise ConfigurationFault(str(fault)) from fault
        raise


def _check(name: str, stages: "Sequence[StagePlan]") -> None:
    try:
        name_validator(name)
    except ValidationError as fault:
        raise InvalidRequest(fault.messages[0], field="name") from fault
    if [stage.number for stage in stages] != list(range(1, len(stages) + 1)) or not stages:
        raise InvalidRequest(_("Stages are numbered 1, 2, 3, … without a gap; stage 1 is the probe."), field="stages")


def _take_in(lane: Lane, policy: UsualPolicy | None, *, person: "AbstractUser | None", now: datetime) -> None:
    if policy is not None:
        lane.policy = _first_policy(lane, policy, person=person, now=now)
    by = person.pk if person else None
    lane.hold = Hold.objects.create(lane=lane, is_automatic=True, reason=HoldReason.NEW_LANE, by_id=by, started_at=now)
    lane.save(update_fields=["policy", "hold"])
    after = {"connection": lane.connection.name, "hold": lane.hold.pk, "policy": 1 if policy is not None else None}
    audit.record("lane.created", now=now, actor=person, subject=lane, lane=lane, after=after)


def _first_policy(lane: Lane, policy: UsualPolicy, *, person: "AbstractUser | None", now: datetime) -> Policy:
    try:
        Rules.from_rules(policy.rules)
    except ConfigurationFault as fault:
        raise InvalidRequest(str(fault), field="policy") from fault
    return Policy.objects.create(
        lane=lane,
        version=1,
        rules=policy.rules,
        questions=policy.questions,
        note=policy.note,
        made_at=now,
        made_by_id=person.pk if person else None,
    )


def _connection_for_import(name: str | None) -> ModelConnection:
    if name is not None:
        found = ModelConnection.objects.filter(name=name).first()
        if found is None:
            raise ConfigurationFault(_("There is no model connection “%(name)s”.") % {"name": name})
        return found
    # Two rows are enough to know that there is more than one.
    found_all = list(ModelConnection.objects.order_by("pk")[:2])
    if len(found_all) > 1:
        raise ConfigurationFault(_("There is more than one model connection: name one with --connection."))
    if found_all:
        return found_all[0]
    return ModelConnection.objects.get_or_create(name=LOCAL, defaults={"kind": LOCAL})[0]
