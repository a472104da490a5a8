"""One text tried on a policy that is not in force: the model is called as for a ticket, and nothing is written."""

import json
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.utils.translation import gettext as _

from queue_core.connections import Answer, Call, Verdict, build, call_all
from queue_core.errors import InvalidRequest
from queue_core.models import ModelConnection
from queue_core.policy import INPUT_REJECTED, REFUSED, Policy, Ruling
from queue_core.questions import Question
from queue_core.states import AttemptOutcome

#: Somebody waits for it at a page.
LONGEST = timedelta(seconds=20)
MOST_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Trial:
    """What the model answered, and what the policy would make of it; no ruling where the job would be given back."""

    answer: Answer
    ruling: Ruling | None

    @property
    def cause(self) -> str:
        """Why the ruling is as it is, in the reader's language."""
        return str(self.ruling.cause.label) if self.ruling is not None else ""

    @property
    def detail(self) -> str:
        """What the answer says of itself, where it is no verdict."""
        return str(getattr(self.answer, "detail", "")) or str(self.answer.outcome.label)

    @property
    def scores(self) -> list[tuple[str, str]]:
        """Each score as it would be kept."""
        if not isinstance(self.answer, Verdict):
            return []
        kept = self.answer.stored_scores.items()
        return [
            (name, "–" if score is None else f"{score:.4f}" if isinstance(score, float) else score)
            for name, score in kept
        ]

    @property
    def milliseconds(self) -> int | None:
        latency = self.answer.latency
        return None if latency is None else round(latency.total_seconds() * 1000)


def try_text(
    text: str,
    policy: Policy,
    questions: Sequence[Question],
    connection: ModelConnection,
    *,
    codes: Collection[str] | None = None,
) -> Trial:
    """Call the model once for `text` as a ticket's whole evidence, for at most 20 s.

    Raises InvalidRequest for a text that is empty or too long, ConfigurationFault for a connection that cannot work.
    """
    if not text.strip() or len(text) > MOST_TEXT:
        raise InvalidRequest(_("A text of 1 to %(most)d characters is needed.") % {"most": MOST_TEXT}, field="text")
    call = Call(
        attempt=0,
        source="trial",
        ticket="trial",
        revision="1",
        policy_version=0,
        fence=0,
        # Its own each time: a repeat is asked again.
        idempotency_key=f"trial-{uuid.uuid4().hex}",
        evidence=json.dumps({"text": text}),
        time_limit=min(connection.call_time_limit, LONGEST),
        questions=tuple(questions),
    )
    [(_call, answer)] = call_all(build(connection), [call])
    return Trial(answer, _ruling(answer, policy, codes))


def _ruling(answer: Answer, policy: Policy, codes: Collection[str] | None) -> Ruling | None:
    if isinstance(answer, Verdict):
        return policy.judge(answer.scores, codes=codes)
    return {AttemptOutcome.REFUSED: REFUSED, AttemptOutcome.INPUT_REJECTED: INPUT_REJECTED}.get(answer.outcome)
