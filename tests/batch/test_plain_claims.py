"""The statements of a plain claim give what the rules give, leave what the judged way leaves, and nothing else."""

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from queue_core import batch, contract
from queue_core.batch import Batch
from queue_core.contract.claim import claim_plainly
from queue_core.models import Attempt, FigureChange, Job, Lane, ModelConnection
from queue_core.states import ClaimOutcome
from tests.factories import at, clock, dead_job, done_job, leased_job, make_connection, make_lane, waiting_job

pytestmark = pytest.mark.django_db

#: The package's own name for it is the verb.
judged_way = sys.modules["queue_core.contract.claim"]


def by_id(lane: Lane, number: int) -> list[int]:
    jobs = Job.objects.filter(lane=lane, state="WAITING").order_by("urgency", "pk")[:number]
    claims = [contract.claim(job.pk, clock=clock(40), worker="w1") for job in jobs]
    return [answer.token.job for answer in claims if answer.token]


def together(lane: Lane, number: int) -> list[int]:
    return [claim.token.job for claim in batch.claim_next(lane.pk, number, clock=clock(40), worker="w1").claims]


def in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "claim_most_urgent", lambda *_a, **_k: Batch([]))
    monkeypatch.setattr(judged_way, "claim_plainly", lambda *_a: None)


def written() -> list[Any]:
    """All that a claim writes, without keys, and the figures added up, since a statement writes one row of them."""
    sums: dict[str, int] = {}
    for row in FigureChange.objects.order_by("pk"):
        for kind, values in (("counts", row.counts), ("totals", row.totals), ("due", row.due)):
            for code, number in values.items():
                key = f"{row.minute} {kind} {code}"
                sums[key] = sums.get(key, 0) + number
    return [
        list(Job.objects.order_by("pk").values_list("state", "fence", "attempts", "lease_until", "available_at")),
        list(Attempt.objects.order_by("job").values_list(
            "fence", "worker", "run__number", "policy__version", "connection__name", "number", "started_at",
            "lease_until", "is_committed", "ended_at",
        )),
        {key: number for key, number in sums.items() if number},
    ]  # fmt: skip


@pytest.mark.parametrize("verb", [by_id, together])
@pytest.mark.parametrize("number", [1, 4])
def test_both_ways_leave_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, verb: Callable[[Lane, int], list[int]], number: int
) -> None:
    left = []
    for way in (lambda _monkeypatch: None, in_steps):
        way(monkeypatch)
        with transaction.atomic():
            lane = make_lane(connection=make_connection(name="same"), lease=timedelta(seconds=30))
            # Of several minutes, severities and lengths of wait; one lease ends at its job's deadline, and not all fit.
            for place in range(5):
                waiting_job(lane, added=place * 8, deadline=55 + place * 60, severity=place % 4)
            given = verb(lane, number)
            left.append((len(given), written()))
            transaction.set_rollback(True)

    assert left[0] == left[1]
    assert left[0][0] == number


SHUT: dict[str, Callable[[Lane], object]] = {
    "on hold": lambda lane: Lane.objects.filter(pk=lane.pk).update(run=None, cap=None),
    "told to wait": lambda lane: Lane.objects.filter(pk=lane.pk).update(claims_not_before=at(40.001)),
    "never judged": lambda lane: Lane.objects.filter(pk=lane.pk).update(judged_at=None),
    "judged too long ago": lambda lane: Lane.objects.filter(pk=lane.pk).update(judged_at=at(9.999)),
    "a connection with a cap": lambda lane: ModelConnection.objects.filter(pk=lane.connection_id).update(total_cap=9),
    "a full cap": lambda lane: leased_job(lane, claimed=39),
}


@pytest.mark.parametrize("case", SHUT)
def test_a_lane_that_is_not_steady_gives_no_plain_claim(case: str) -> None:
    lane = make_lane(cap=1)
    job = waiting_job(lane)
    Lane.objects.filter(pk=lane.pk).update(judged_at=at(40))
    SHUT[case](lane)

    assert batch.claim_most_urgent(lane.pk, 5, clock=clock(40), worker="w", trail=None) == Batch([])
    assert batch.claim_most_urgent(lane.pk, 1, clock=clock(40), worker="w", trail=None) == Batch([])
    assert claim_plainly(job.pk, at(40), "w", None, None) is None
    job.refresh_from_db()
    assert (job.state, job.fence) == ("WAITING", 0)


@pytest.mark.parametrize("terms", [{"number": 1}, {"run": {"rate": 60}}])
def test_a_probe_and_a_stage_with_a_rate_give_no_plain_claim(terms: dict[str, Any]) -> None:
    lane = make_lane(**terms)
    job = waiting_job(lane)

    assert batch.claim_most_urgent(lane.pk, 5, clock=clock(40), worker="w", trail=None) == Batch([])
    assert claim_plainly(job.pk, at(40), "w", None, None) is None
    assert contract.claim(job.pk, clock=clock(40), worker="w").outcome == ClaimOutcome.CLAIMED


@pytest.mark.parametrize("make", [done_job, dead_job, lambda lane: leased_job(lane)[0]])
def test_a_job_that_does_not_wait_is_not_claimed_plainly(make: Callable[[Lane], Job]) -> None:
    job = make(make_lane())
    before = written()

    assert claim_plainly(job.pk, at(40), "w", None, None) is None
    assert written() == before


def test_a_job_that_rests_has_to_die_or_has_spent_what_the_caller_allows_is_not_claimed_plainly() -> None:
    lane = make_lane()
    resting, late, tried = waiting_job(lane), waiting_job(lane, deadline=40), waiting_job(lane)
    Job.objects.filter(pk=resting.pk).update(available_at=at(41))

    assert claim_plainly(resting.pk, at(40), "w", None, None) is None
    assert claim_plainly(late.pk, at(40), "w", None, None) is None
    assert claim_plainly(tried.pk, at(40), "w", None, 0) is None
    assert claim_plainly(tried.pk, at(40), "w", None, 1) is not None


@pytest.mark.parametrize(("lease", "end"), [(timedelta(seconds=7), 47), (timedelta.max, 500), (None, 100)])
def test_a_plain_lease_is_as_long_as_asked_for_and_ends_with_the_deadline(lease: timedelta | None, end: float) -> None:
    job = waiting_job(make_lane(lease=timedelta(seconds=60)), deadline=500)

    given = contract.claim(job.pk, clock=clock(40), worker="w", lease=lease)

    assert given.lease_until == at(end)


def test_each_is_one_statement() -> None:
    lane = make_lane()
    jobs = [waiting_job(lane) for _ in range(9)]

    for verb in (
        lambda: contract.claim(jobs[-1].pk, clock=clock(40), worker="w").token,
        lambda: batch.claim_next(lane.pk, 1, clock=clock(40), worker="w").claims,
        lambda: batch.claim_next(lane.pk, 4, clock=clock(40), worker="w").claims,
    ):
        with CaptureQueriesContext(connection) as run:
            assert verb()

        # The savepoint is for the test's own transaction.
        assert [query["sql"].split()[0] for query in run] == ["SAVEPOINT", "QUERY", "RELEASE"]


def test_claims_reach_their_caller_though_the_passed_deadlines_beside_them_cannot_be_buried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane = make_lane()
    late, free = waiting_job(lane, deadline=30), waiting_job(lane)

    def fail(*_args: object, **_terms: object) -> dict[int, object]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        return {}

    monkeypatch.setattr(batch, "bury", fail)
    given = batch.claim_next(lane.pk, 5, clock=clock(40), worker="w")

    assert [(c.token.job, given.buried) for c in given.claims] == [(free.pk, 0)]
    late.refresh_from_db()
    assert late.state == "WAITING"
    monkeypatch.undo()
    waiting_job(lane)
    assert batch.claim_next(lane.pk, 5, clock=clock(40), worker="w").buried == 1
