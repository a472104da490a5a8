"""The statement of a plain completion holds what the rules hold, and leaves what the judged way leaves."""

import sys
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from queue_core import contract, signals
from queue_core.contract import Ending, plain
from queue_core.contract.complete import complete_together
from queue_core.contract.rules import judge_completion
from queue_core.models import Attempt, Decision, FigureChange, Job, LateAnswer, Message, Ticket
from queue_core.states import AttemptOutcome, CompleteOutcome, LeaseToken
from tests.factories import at, clock, leased_job, make_ground, make_lane

pytestmark = pytest.mark.django_db

#: The package's own name for it is the verb.
judged_way = sys.modules["queue_core.contract.complete"]

APPROVED = Ending("APPROVED")
REJECTED = Ending(
    "REJECTED", reason_code="insult", scores={"insult": 0.9}, model="m", request_id="r", usage={"tokens": 2},
    cause="c", detail="d", latency=timedelta(milliseconds=30),
)  # fmt: skip


def written() -> list[Any]:
    """All that a completion writes, without keys."""
    return [
        list(Job.objects.order_by("pk").values_list("state", "result", "finished_at", "fence", "attempts")),
        list(Attempt.objects.order_by("pk").values_list(
            "ended_at", "outcome", "is_committed", "latency", "scores", "cause", "detail", "model", "request_id",
            "usage",
        )),
        list(Decision.objects.order_by("pk").values_list(
            "verdict", "why", "source_kind", "automation", "decided_at", "reason_code__code", "run__number",
            "policy__version", "revision",
        )),
        list(Message.objects.order_by("pk").values_list("kind", "seq", "state", "created_at")),
        [message.body | {"decision": None, "ticket": None} for message in Message.objects.order_by("pk")],
        list(Ticket.objects.order_by("pk").values_list("seq", flat=True)),
        list(FigureChange.objects.order_by("pk").values_list("minute", "counts", "totals", "due")),
    ]  # fmt: skip


@pytest.mark.parametrize("keeps_back", [False, True])
@pytest.mark.parametrize("when", [5, 5.25])
def test_both_ways_leave_the_same_rows(monkeypatch: pytest.MonkeyPatch, keeps_back: bool, when: float) -> None:
    make_ground()
    left = []
    for way in (plain.complete_plainly, lambda *_a, **_k: False):
        monkeypatch.setattr(judged_way, "complete_plainly", way)
        with transaction.atomic():
            lane = make_lane(run={"keeps_back": keeps_back})
            tokens = [leased_job(lane)[1] for _ in range(3)]
            endings = list(zip(tokens, [APPROVED, REJECTED, APPROVED], strict=True))
            outcomes = complete_together(endings, clock=clock(when), worker="w1")
            left.append((outcomes, written()))
            transaction.set_rollback(True)

    assert left[0] == left[1]
    assert left[0][0] == [CompleteOutcome.COMMITTED] * 3


def test_it_commits_where_the_rules_commit_and_nowhere_else() -> None:
    job, token = leased_job(make_lane(lease=timedelta(seconds=30)), claimed=1)
    own = Attempt.objects.get(pk=token.attempt)

    for fence, revision, attempt, key, when in product(
        (token.fence, token.fence + 1, token.fence - 1),
        (token.revision, "another"),
        (token.attempt, token.attempt + 1),
        (token.key, uuid4()),
        (2, 30.999999, 31, 40),
    ):
        given = LeaseToken(token.job, fence, revision, attempt, key)
        judged = judge_completion(job, (own.pk, own.key), given, "APPROVED", now=at(when))
        with transaction.atomic():
            did = plain.complete_plainly([(given, APPROVED)], clock=clock(when))
            job.refresh_from_db()
            assert did == (judged.outcome == CompleteOutcome.COMMITTED) == (job.state == "DONE"), (given, when)
            assert Decision.objects.exists() == Message.objects.exists() == did
            transaction.set_rollback(True)
        job.refresh_from_db()


@pytest.mark.parametrize("end", ["released", "done", "withdrawn"])
def test_it_leaves_a_job_that_is_leased_no_more(end: str) -> None:
    job, token = leased_job(make_lane())
    if end == "released":
        contract.release(token, outcome=AttemptOutcome.RELEASED, clock=clock(2))
    elif end == "done":
        contract.complete(token, APPROVED, clock=clock(2))
    else:
        contract.withdraw(source=job.ticket.source, external_id=job.ticket.external_id, clock=clock(2))
    before = written()

    assert not plain.complete_plainly([(token, APPROVED)], clock=clock(3))

    assert written() == before


def test_one_that_is_not_plain_leaves_all_of_them_to_the_judge() -> None:
    lane = make_lane()
    tokens = [leased_job(lane)[1] for _ in range(3)]
    endings = [(tokens[0], APPROVED), (replace(tokens[1], key=uuid4()), APPROVED), (tokens[2], APPROVED)]
    before = written()

    assert not plain.complete_plainly(endings, clock=clock(3))
    assert written() == before

    assert complete_together(endings, clock=clock(3), worker="w1") == ["committed", "stale", "committed"]
    assert LateAnswer.objects.get().why == "attempt"


def test_a_manual_a_double_several_lanes_and_receivers_are_not_plain() -> None:
    lane = make_lane()
    one, two, other = leased_job(lane)[1], leased_job(lane)[1], leased_job(make_lane())[1]

    assert not plain.complete_plainly([(one, Ending("MANUAL", cause="grey_zone"))], clock=clock(3))
    assert not plain.complete_plainly([(one, APPROVED), (one, APPROVED)], clock=clock(3))
    assert not plain.complete_plainly([(one, APPROVED), (other, APPROVED)], clock=clock(3))
    assert not plain.complete_plainly([(one, Ending("REJECTED", reason_code="none such"))], clock=clock(3))

    def listens(**_told: Any) -> None: ...

    signals.ticket_decided.connect(listens)
    try:
        assert not plain.complete_plainly([(one, APPROVED)], clock=clock(3))
    finally:
        signals.ticket_decided.disconnect(listens)
    assert not Decision.objects.exists()
    assert plain.complete_plainly([(one, APPROVED), (two, APPROVED)], clock=clock(3))


def test_it_is_one_statement() -> None:
    token = leased_job(make_lane())[1]

    with CaptureQueriesContext(connection) as run:
        assert contract.complete(token, APPROVED, clock=clock(3)) == CompleteOutcome.COMMITTED

    # The savepoint is for the test's own transaction.
    assert [query["sql"].split()[0] for query in run] == ["SAVEPOINT", "QUERY", "RELEASE"]
