"""What a policy would have made of answers that were stored, and what it would make of items that wait for people.

Reads only: a policy changes no decided ticket, and a proposal is decided by the person who takes the item.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from queue_core.errors import ConfigurationFault
from queue_core.models import Attempt, Decision, Item, Lane, ReasonCode
from queue_core.models import Policy as PolicyRow
from queue_core.policy import Policy, Ruling
from queue_core.states import AttemptOutcome, ItemKind, Result

LAST = 200
MOST = 2000
#: So many jobs are named for each change.
NAMED = 5
#: So many open items are looked through for proposals.
MOST_ITEMS = 1000


@dataclass(frozen=True, slots=True)
class Change:
    """Answers that got `was` and would get `would`, with some of their jobs, newest first."""

    was: str
    would: str
    count: int
    jobs: tuple[int, ...]

    @property
    def is_change(self) -> bool:
        return self.was != self.would


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The last answers judged anew. `agreed` of the `decided` by people are as the policy would have had them."""

    looked_at: int
    changes: tuple[Change, ...]
    causes: tuple[tuple[str, int], ...]
    decided: int
    agreed: int

    @property
    def changed(self) -> int:
        return sum(change.count for change in self.changes if change.is_change)


def what_if(lane: Lane, policy: Policy, *, last: int = LAST, codes: Collection[str] | None = None) -> WhatIf:
    """Judge the scores of the lane's last `last` committed verdicts (at most 2,000) by `policy`.

    Scores that were asked for by other questions may be missing: those answers would go to people, and say so in
    `causes`.
    """
    answers = list(
        Attempt.objects.filter(lane=lane, ended_at__isnull=False, outcome=AttemptOutcome.VERDICT, is_committed=True)
        .order_by("-ended_at")
        .values_list("job", "job__result", "scores")[: max(1, min(last, MOST))]
    )
    judged = [(job, str(was), policy.judge(scores or {}, codes=codes)) for job, was, scores in answers]
    verdicts = _by_people([job for job, _was, _ruling in judged])
    human = [(verdicts[job], ruling) for job, _was, ruling in judged if job in verdicts]
    return WhatIf(
        looked_at=len(judged),
        changes=_changes(judged),
        causes=tuple(Counter(r.cause.value for _job, _was, r in judged if r.result == Result.MANUAL).most_common()),
        decided=sum(ruling.result != Result.MANUAL for _verdict, ruling in human),
        agreed=sum(verdict == ruling.result for verdict, ruling in human),
    )


def _changes(judged: Iterable[tuple[int, str, Ruling]]) -> tuple[Change, ...]:
    found: dict[tuple[str, str], list[int]] = {}
    for job, was, ruling in judged:
        found.setdefault((was, str(ruling.result)), []).append(job)
    # What would be decided otherwise first, then the rest; each by its number.
    pairs = sorted(found.items(), key=lambda entry: (entry[0][0] == entry[0][1], -len(entry[1])))
    return tuple(Change(was, would, len(jobs), tuple(jobs[:NAMED])) for (was, would), jobs in pairs)


def _by_people(jobs: list[int]) -> dict[int, str]:
    decisions = Decision.objects.filter(job__in=jobs, assignment__isnull=False, replaced_by__isnull=True)
    return {job: verdict for job, verdict in decisions.values_list("job", "verdict") if verdict is not None}


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the policy in force would have made of a stored answer that an older version sent to people."""

    item: int
    policy: PolicyRow = field(repr=False)
    ruling: Ruling

    @property
    def verdict(self) -> str:
        return str(self.ruling.result)


def proposal_for(item: Item) -> Proposal | None:
    """The verdict that the lane's policy in force proposes for an open MANUAL item; None where it has none.

    Only a version newer than the one that the answer was judged by proposes anything.
    """
    if item.kind != ItemKind.MANUAL or item.closed_at is not None or item.lane.policy is None:
        return None
    answer = _answers([item.job_id]).get(item.job_id)
    return _proposal(item.pk, item.lane.policy, answer, ReasonCode.rejecting(item.lane_id))


def proposals(lane: Lane) -> list[Proposal]:
    """The proposals for a lane's open MANUAL items, the oldest items first; of at most 1,000 items."""
    if lane.policy is None:
        return []
    items = list(
        Item.objects.filter(lane=lane, kind=ItemKind.MANUAL, closed_at__isnull=True)
        .order_by("pk")
        .values_list("pk", "job")[:MOST_ITEMS]
    )
    answers, codes = _answers([job for _item, job in items]), ReasonCode.rejecting(lane.pk)
    found = [_proposal(item, lane.policy, answers.get(job), codes) for item, job in items]
    return [proposal for proposal in found if proposal is not None]


def _answers(jobs: list[int]) -> dict[int, Attempt]:
    rows = Attempt.objects.filter(job__in=jobs, is_committed=True, outcome=AttemptOutcome.VERDICT)
    return {attempt.job_id: attempt for attempt in rows.select_related("policy")}


def _proposal(item: int, policy: PolicyRow, answer: Attempt | None, codes: frozenset[str]) -> Proposal | None:
    if answer is None or answer.policy is None or not isinstance(answer.scores, dict):
        return None
    if policy.version <= answer.policy.version:
        return None
    try:
        ruling = Policy.from_rules(policy.rules).judge(answer.scores, codes=codes)
    except ConfigurationFault:
        return None
    return None if ruling.result == Result.MANUAL else Proposal(item, policy, ruling)
