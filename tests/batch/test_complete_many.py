from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_core import batch, contract
from queue_core.contract import Ending
from queue_core.errors import InvalidCompletion
from queue_core.models import Attempt, Decision, Item, Job, Lane, LateAnswer, Message
from queue_core.states import AttemptOutcome, CompleteOutcome, JobState, LeaseOutcome, LeaseToken
from tests.factories import at, clock, make_ground, make_lane, new_ticket, waiting_job

pytestmark = pytest.mark.django_db

APPROVED, MANUAL = Ending("APPROVED"), Ending("MANUAL", cause="grey_zone", params={"score": 0.5})


def claimed(lane: Lane, number: int, *, when: float = 1) -> list[LeaseToken]:
    for _ in range(number):
        waiting_job(lane)
    return [c.token for c in batch.claim_next(lane.pk, number, clock=clock(when), worker="w1").claims]


def complete(endings: list[tuple[LeaseToken, Ending]], *, when: float = 5) -> list[Any]:
    return batch.complete_many(endings, clock=clock(when), worker="w1")


def test_outcomes_come_in_order_and_every_consequence_is_written() -> None:
    make_ground()
    one, two, three = claimed(make_lane(), 3)
    full = Ending(
        "REJECTED", reason_code="insult", scores={"insult": 0.9}, model="m", request_id="r", usage={"tokens": 2},
        cause="c", detail="d",
    )  # fmt: skip

    outcomes = complete([(three, MANUAL), (one, full), (two, APPROVED)])

    assert outcomes == [CompleteOutcome.COMMITTED] * 3
    job = Job.objects.get(pk=one.job)
    attempt = Attempt.objects.get(pk=one.attempt)
    assert (job.state, job.result, job.finished_at) == (JobState.DONE, "REJECTED", at(5))
    assert (attempt.outcome, attempt.is_committed, attempt.ended_at) == (AttemptOutcome.VERDICT, True, at(5))
    assert (attempt.scores, attempt.usage) == ({"insult": 0.9}, {"tokens": 2})
    assert (attempt.model, attempt.request_id, attempt.cause, attempt.detail) == ("m", "r", "c", "d")
    assert Attempt.objects.get(pk=two.attempt).scores is None
    assert set(Decision.objects.values_list("job", "verdict")) == {(one.job, "REJECTED"), (two.job, "APPROVED")}
    item = Item.objects.get()
    assert (item.job_id, item.cause, item.params["score"]) == (three.job, "grey_zone", 0.5)
    assert sorted(Message.objects.values_list("kind", "seq")) == [("decision", 1), ("decision", 1), ("item.opened", 1)]


def test_stale_repeated_and_good_tokens_are_answered_each_for_itself() -> None:
    lane = make_lane()
    done, old, good = claimed(lane, 3)
    complete([(done, APPROVED)])
    contract.release(old, outcome=AttemptOutcome.RELEASED, clock=clock(6))
    unknown = LeaseToken(10**9, 1, "v1", 1, uuid4())

    outcomes = complete(
        [(old, APPROVED), (done, APPROVED), (unknown, APPROVED), (good, APPROVED), (done, MANUAL)], when=7
    )

    assert outcomes == ["stale", "already-done", "stale", "committed", "stale"]
    assert list(LateAnswer.objects.order_by("pk").values_list("job", "why")) == [
        (old.job, "not_leased"),
        (done.job, "done"),
    ]


def test_the_same_token_twice_in_a_batch_commits_once() -> None:
    [token] = claimed(make_lane(), 1)

    outcomes = complete([(token, APPROVED), (token, APPROVED), (token, MANUAL)])

    assert outcomes == ["committed", "already-done", "stale"]
    assert Decision.objects.count() == Message.objects.count() == 1
    assert not Item.objects.exists()


def test_one_guilty_of_fifty_is_given_back_and_the_forty_nine_are_committed() -> None:
    lane = make_lane()
    tokens = claimed(lane, 50)
    endings = [(token, APPROVED) for token in tokens]
    endings[17] = (tokens[17], Ending("REJECTED", reason_code="none such"))

    outcomes = complete(endings)

    assert outcomes.count(CompleteOutcome.COMMITTED) == 49
    assert outcomes[17] == LeaseOutcome.RELEASED
    guilty = Job.objects.get(pk=tokens[17].job)
    attempt = Attempt.objects.get(pk=tokens[17].attempt)
    assert (guilty.state, guilty.attempts, guilty.backoff_steps) == (JobState.WAITING, 1, 1)
    assert (attempt.outcome, attempt.is_charged) == (AttemptOutcome.INVALID_ANSWER, True)
    assert "none such" in attempt.detail
    assert Decision.objects.count() == Message.objects.count() == 49


def test_a_guilty_one_on_its_last_attempt_dies() -> None:
    [token] = claimed(make_lane(max_attempts=1), 1)

    assert complete([(token, Ending("MAYBE"))]) == [LeaseOutcome.DIED]

    assert Item.objects.get().cause == "attempts"


def test_what_the_database_refuses_spoils_only_its_own() -> None:
    one, two = claimed(make_lane(), 2)
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE queue_core_decision ADD CONSTRAINT not_this_one CHECK (job_id <> {two.job})")

    assert complete([(one, APPROVED), (two, APPROVED)]) == [CompleteOutcome.COMMITTED, LeaseOutcome.RELEASED]

    assert Decision.objects.get().job_id == one.job
    assert Job.objects.get(pk=two.job).state == JobState.WAITING
    assert "not_this_one" in Attempt.objects.get(pk=two.attempt).detail


def test_messages_of_a_ticket_are_numbered_without_a_gap_over_its_revisions() -> None:
    lane = make_lane()
    ticket = new_ticket(lane)
    for number in range(4):
        if number:
            contract.supersede(replace(ticket, revision=f"r{number}"), replaces=ticket.revision, clock=clock(number))
            ticket = replace(ticket, revision=f"r{number}")
        else:
            contract.receive(ticket, clock=clock(0))
        [claim] = batch.claim_next(lane.pk, 1, clock=clock(number), worker="w1").claims
        complete([(claim.token, MANUAL if number % 2 else APPROVED)], when=number)

    assert list(Message.objects.order_by("pk").values_list("seq", flat=True)) == [1, 2, 3, 4]


def test_fifty_completions_take_no_more_statements_than_one() -> None:
    lane = make_lane()
    tokens = claimed(lane, 51)

    with CaptureQueriesContext(connection) as of_one:
        complete([(tokens[0], APPROVED)])
    with CaptureQueriesContext(connection) as of_fifty:
        complete([(token, APPROVED) for token in tokens[1:]])

    assert len(of_one) == len(of_fifty) <= 13, "\n".join(s["sql"][:120] for s in of_fifty)


def test_no_tokens_are_no_outcomes() -> None:
    assert complete([]) == []


def test_more_tokens_than_a_batch_holds_are_refused() -> None:
    token = LeaseToken(1, 1, "v1", 1, uuid4())

    with pytest.raises(InvalidCompletion):
        complete([(token, APPROVED)] * 501)
