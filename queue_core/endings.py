"""From a model's answer to the end of its attempt: what the policy bound at the claim makes of it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Self

from django.utils.translation import gettext as _

from queue_core import policy as policies
from queue_core.connections import Answer, InputRejected, Refused, Verdict
from queue_core.contract import Ending
from queue_core.errors import ConfigurationFault
from queue_core.models import Policy, ReasonCode
from queue_core.policy import Ruling
from queue_core.questions import Question, read_questions


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The policies that a lane's batch was claimed under, and the reason codes by which it may reject now."""

    rows: dict[int, Policy]
    codes: frozenset[str]

    @classmethod
    def of(cls, policy_ids: Iterable[int | None]) -> Self:
        rows = Policy.objects.in_bulk([pk for pk in policy_ids if pk is not None])
        lanes = {row.lane_id for row in rows.values()}
        return cls(rows, frozenset(code for lane in lanes for code in ReasonCode.rejecting(lane)))

    def policy(self, policy_id: int | None) -> policies.Policy:
        """Raises ConfigurationFault where there is none, or one that cannot be read."""
        return policies.Policy.from_rules(self._row(policy_id).rules)

    def version(self, policy_id: int | None) -> int:
        """The version, of a policy that can be read."""
        self.policy(policy_id)
        return self._row(policy_id).version

    def questions(self, policy_id: int | None) -> tuple[Question, ...]:
        """What the model is asked; ConfigurationFault where that cannot be read."""
        return read_questions(self._row(policy_id).questions)

    def _row(self, policy_id: int | None) -> Policy:
        row = self.rows.get(policy_id) if policy_id is not None else None
        if row is None:
            raise ConfigurationFault(_("The lane has no policy: put one into force."))
        return row


def ending_of(answer: Answer, policy: policies.Policy, codes: Collection[str]) -> Ending | None:
    """The end of a job that this answer ends; None where the answer gives the job back."""
    match answer:
        case Verdict():
            ending = _ending(answer, policy.judge(answer.scores, codes=codes))
            return replace(ending, scores=answer.stored_scores, usage=dict(answer.stored_usage))
        case Refused():
            return replace(_ending(answer, policies.REFUSED), detail=answer.detail)
        case InputRejected():
            return replace(_ending(answer, policies.INPUT_REJECTED), detail=answer.detail)
    return None


def ending_of_restricted(answer: Answer) -> Ending:
    """Evidence that this model may not see is for people; it was never sent."""
    return _ending(answer, policies.RESTRICTED)


def _ending(answer: Answer, ruling: Ruling) -> Ending:
    return Ending(
        result=ruling.result,
        reason_code=ruling.reason_code,
        cause=ruling.cause.value,
        params=dict(ruling.params),
        outcome=answer.outcome,
        model=answer.model,
        request_id=answer.request_id,
        latency=answer.latency,
    )
