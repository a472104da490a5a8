"""A project that embeds the queue hears of a completion inside its transaction, and can take it back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.dispatch import Signal

from queue_core import batch, contract, people, signals
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract import Ending
from queue_core.drain import drain
from queue_core.ledger import audit
from queue_core.models import Attempt, Decision, Item, Job, Message, Presence
from queue_core.states import AttemptOutcome, CompleteOutcome, LeaseOutcome, LeaseToken
from tests.factories import clock, done_job, leased_job, make_ground, make_lane, waiting_job
from tests.people.cast import rita
from tests.workers.conftest import make_staged_lane, receive
from tests.workers.staged import Stage

pytestmark = pytest.mark.django_db

Complete = Callable[[LeaseToken, Ending], Any]


def single(token: LeaseToken, ending: Ending) -> Any:
    return contract.complete(token, ending, clock=clock(2))


def batched(token: LeaseToken, ending: Ending) -> Any:
    return batch.complete_together([(token, ending)], clock=clock(2))[0]


@pytest.fixture(params=[single, batched], ids=["single", "batch"])
def complete(request: pytest.FixtureRequest) -> Complete:
    return request.param


@contextmanager
def heard(signal: Signal, receiver: Callable[..., None]) -> Iterator[None]:
    signal.connect(receiver, weak=False)
    try:
        yield
    finally:
        signal.disconnect(receiver)


def test_a_receiver_reads_all_that_the_completion_wrote(complete: Complete) -> None:
    make_ground()
    told: list[dict[str, Any]] = []

    def receiver(**details: Any) -> None:
        row = Job.objects.get(pk=details["job"].pk)
        assert connection.in_atomic_block
        assert (row.state, row.result) == ("DONE", details["result"])
        assert Attempt.objects.get(pk=details["attempt"].pk).is_committed
        assert Message.objects.filter(ticket=details["ticket"]).count() == 1
        told.append(details)

    with heard(signals.job_completed, receiver):
        for ending in (Ending("APPROVED"), Ending("REJECTED", reason_code="insult"), Ending("MANUAL")):
            assert complete(leased_job(make_lane())[1], ending) == CompleteOutcome.COMMITTED

    verdicts = [details["decision"] and details["decision"].verdict for details in told]
    assert verdicts == ["APPROVED", "REJECTED", None]


def test_a_receiver_hears_of_decisions_by_the_model_and_by_people(complete: Complete) -> None:
    told: list[Decision] = []
    person = rita()

    with heard(signals.ticket_decided, lambda decision, **_: told.append(decision)):
        complete(leased_job(make_lane())[1], Ending("APPROVED"))
        done_job(make_lane(), result="MANUAL")
        taken = people.take(Item.objects.get().pk, person=person, clock=clock(10))
        assert taken.token is not None
        people.resolve(taken.token, person=person, verdict="APPROVED", clock=clock(11))

    assert [decision.person for decision in told] == [None, person]
    assert told == list(Decision.objects.order_by("pk"))


def test_a_receiver_that_raises_rolls_the_completion_back(complete: Complete) -> None:
    job, token = leased_job(make_lane())

    def receiver(**_details: Any) -> None:
        Presence.objects.create(kind="worker", name="own row", started_at=job.added_at, seen_at=job.added_at)
        raise ValueError("not this one")

    with heard(signals.job_completed, receiver), pytest.raises(ValueError, match="not this one"):
        complete(token, Ending("APPROVED"))

    job.refresh_from_db()
    assert (job.state, job.result) == ("LEASED", None)
    assert not Decision.objects.exists()
    assert not Message.objects.exists()
    assert not Presence.objects.exists()
    assert complete(token, Ending("APPROVED")) == CompleteOutcome.COMMITTED


def test_a_persons_decision_is_taken_back_by_a_receiver_that_raises() -> None:
    done_job(make_lane(), result="MANUAL")
    person = rita()
    taken = people.take(Item.objects.get().pk, person=person, clock=clock(10))
    assert taken.token is not None

    def receiver(**_details: Any) -> None:
        raise ValueError("not this one")

    with heard(signals.ticket_decided, receiver), pytest.raises(ValueError, match="not this one"):
        people.resolve(taken.token, person=person, verdict="APPROVED", clock=clock(11))

    assert Item.objects.get().closed_at is None
    assert not Decision.objects.exists()


def ask_for_nonsense() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 / 0")


def take_too_long() -> None:
    """What PostgreSQL says when it cuts a statement: an OperationalError on a connection that still answers."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '20ms'")
        cursor.execute("SELECT pg_sleep(5)")


def fail() -> None:
    raise RuntimeError("the project's own fault")


@pytest.mark.parametrize("trouble", [fail, ask_for_nonsense, take_too_long])
def test_of_fifty_whose_receiver_raises_once_only_the_guilty_one_is_given_back(trouble: Callable[[], None]) -> None:
    lane = make_lane()
    for _ in range(50):
        waiting_job(lane)
    tokens = [claim.token for claim in batch.claim_next(lane.pk, 50, clock=clock(1), worker="w").claims]
    guilty = tokens[17]

    def receiver(job: Job, **_details: Any) -> None:
        if job.pk == guilty.job:
            trouble()

    with heard(signals.job_completed, receiver):
        outcomes = batch.complete_many([(token, Ending("APPROVED")) for token in tokens], clock=clock(2))

    assert outcomes == [LeaseOutcome.RELEASED if token == guilty else CompleteOutcome.COMMITTED for token in tokens]
    attempt = Attempt.objects.get(pk=guilty.attempt)
    assert (attempt.outcome, attempt.is_charged) == (AttemptOutcome.INVALID_ANSWER, True)
    assert Decision.objects.count() == Message.objects.count() == 49
    assert audit().is_clean


@pytest.mark.django_db(transaction=True)
def test_a_worker_whose_project_refuses_one_ticket_decides_the_other_forty_nine(
    stage: Stage, staged_settings: None
) -> None:
    """The whole way: the refused one comes back after its rest, and its budget ends it as a person's item."""
    lane = make_staged_lane(stage, cap=50, max_attempts=1, connection={"options": {"at_once": 50}})
    [refused, *others] = receive(lane, *["fine"] * 50)

    def receiver(job: Job, **_details: Any) -> None:
        if job.pk == refused.pk:
            raise OperationalError("the project's other database is down")

    with heard(signals.job_completed, receiver):
        drain(lane.pk, task="t", worker="w", clock=DATABASE_CLOCK)

    assert Job.objects.filter(pk__in=[job.pk for job in others], state="DONE").count() == 49
    refused.refresh_from_db()
    assert (refused.state, refused.dead_reason, refused.attempts) == ("DEAD", "attempts", 1)
    assert Item.objects.get().job_id == refused.pk
    assert audit().is_clean
