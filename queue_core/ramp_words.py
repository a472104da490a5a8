"""What the ramp's verbs answer when nobody made a mistake: codes with parameters, made into sentences where shown."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from queue_core.models import StageRun

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser


class RaiseOutcome(StrEnum):
    RAISED = "raised"
    #: Somebody was faster with the same step.
    ALREADY_RAISED = "already_raised"
    #: The run that was shown ended in another way; another one runs.
    RUN_DIFFERS = "run_differs"
    #: A hold came, or is another one than was shown.
    ON_HOLD = "on_hold"
    #: The next stage of the plan is not what was shown.
    PLAN_DIFFERS = "plan_differs"
    FIGURES_OLD = "figures_old"
    FIGURES_WORSE = "figures_worse"
    #: Soak, a guardrail or the second person is missing; `missing` says what.
    NOT_MET = "not_met"


class MissingCode(StrEnum):
    PERMISSION = "permission"
    STAGE = "stage"
    POLICY = "policy"
    SOAK_COMPLETIONS = "soak_completions"
    SOAK_TIME = "soak_time"
    GUARDRAIL_BAD = "guardrail_bad"
    GUARDRAIL_INCONCLUSIVE = "guardrail_inconclusive"
    SECOND_PERSON = "second_person"
    NOBODY_ELSE = "nobody_else"


#: What the right to override, with a reason of its own, gets past.
OVERRIDABLE = frozenset(
    {
        MissingCode.SOAK_COMPLETIONS,
        MissingCode.SOAK_TIME,
        MissingCode.GUARDRAIL_BAD,
        MissingCode.GUARDRAIL_INCONCLUSIVE,
    }
)


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that stands between a person and a raise. `params` fill its sentence and are plain JSON."""

    code: MissingCode
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def can_be_overridden(self) -> bool:
        return self.code in OVERRIDABLE


@dataclass(frozen=True, slots=True)
class Raised:
    """The answer to a raise. `by` and `at` name who started the run, or the hold, that stands in the way.

    `by` is None where that was the machine. `run` is the run that stands now, None on hold.
    """

    outcome: RaiseOutcome
    run: StageRun | None = None
    by: "AbstractUser | None" = None
    at: datetime | None = None
    missing: tuple[Missing, ...] = ()
    worse: tuple[str, ...] = ()
    """The figures whose verdict is worse than was shown."""


class RampOutcome(StrEnum):
    DONE = "done"
    #: The act needs a running stage, and the lane is on hold.
    ON_HOLD = "on_hold"
    #: The act needs a hold, and a stage runs.
    RUNNING = "running"
    #: Another run or hold than was shown.
    DIFFERS = "differs"
    #: Only the probe leads out of an automatic hold.
    NOT_A_PERSONS_HOLD = "not_a_persons_hold"
    #: Only the probe leads out of a hold that has lasted this long.
    TOO_LATE = "too_late"
    GUARDRAIL_BROKEN = "guardrail_broken"
    #: The connection is not the one that the held run was approved for.
    CONNECTION_DIFFERS = "connection_differs"
    #: The step is not down.
    NOT_LOWER = "not_lower"
    #: Another version of the policy is in force than was shown.
    POLICY_DIFFERS = "policy_differs"
    #: The lane asks for two persons, and this one made the version.
    MADE_BY_THE_SAME = "made_by_the_same"
    UNCHANGED = "unchanged"
    #: The run keeps nothing back, or it still runs: then a raise accepts it.
    NOTHING_KEPT_BACK = "nothing_kept_back"
    #: The run keeps back more or fewer decisions than were shown.
    OTHERS_KEPT_BACK = "others_kept_back"
    #: Two persons are asked for, and this one raised the run.
    SAME_PERSON = "same_person"


@dataclass(frozen=True, slots=True)
class Acted:
    """The answer to resume, step down, set cap and force policy. `by` and `at` say who made what stands now."""

    outcome: RampOutcome
    run: StageRun | None = None
    by: "AbstractUser | None" = None
    at: datetime | None = None
    figure: str = ""
    """The guardrail that is broken, for GUARDRAIL_BROKEN."""


class JudgeOutcome(StrEnum):
    GOOD = "good"
    #: No guardrail is broken, and at least one has too small a sample to be good.
    INCONCLUSIVE = "inconclusive"
    HELD = "held"
    ON_HOLD = "on_hold"
    NOT_DUE = "not_due"
