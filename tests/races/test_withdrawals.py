"""Content that goes away at the moment its answer comes: whoever waits for the row judges it as the first left it."""

from typing import Any

import pytest

from queue_core import batch, contract
from queue_core.contract import Ending
from queue_core.contract.erase import EraseOutcome, erase
from queue_core.models import Attempt, Decision, Evidence, Item, Job, LateAnswer, Message, Ticket
from queue_core.states import ActOutcome, CompleteOutcome, DeadReason, JobState, LeaseToken
from tests.factories import clock, leased_job, make_lane, waiting_job
from tests.locking import holding, started, wait_until_blocked

pytestmark = pytest.mark.django_db(transaction=True)
SCORES = {"insult": 0.5}


def single(token: LeaseToken, result: str) -> Any:
    return contract.complete(token, Ending(result, scores=SCORES), clock=clock(6))


def batched(token: LeaseToken, result: str) -> Any:
    return batch.complete_many([(token, Ending(result, scores=SCORES))], clock=clock(6))[0]


@pytest.fixture(params=[single, batched], ids=["single", "batch"])
def complete(request: pytest.FixtureRequest) -> Any:
    return request.param


def withdraw(ticket: Ticket) -> ActOutcome:
    return contract.withdraw(source=ticket.source, external_id=ticket.external_id, clock=clock(6))


def erased(ticket: Ticket) -> EraseOutcome:
    return erase(ticket.pk, ground="The author asked for it.", actor=None, clock=clock(6)).outcome


@pytest.mark.parametrize("takes_away", [withdraw, erased])
def test_an_answer_that_waits_behind_a_withdrawal_or_erasure_decides_nothing_and_leaves_no_content(
    complete: Any, takes_away: Any
) -> None:
    job, token = leased_job(make_lane(), claimed=1)
    with holding(lambda: takes_away(job.ticket)):
        late = started("late-answer", lambda: complete(token, "MANUAL"))
        wait_until_blocked(late)

    assert late.outcome() == CompleteOutcome.STALE
    ended = Job.objects.get()
    assert (ended.state, ended.dead_reason, ended.result) == (JobState.DEAD, DeadReason.WITHDRAWN, None)
    assert not any(model.objects.exists() for model in (Decision, Item, Message))
    if takes_away is erased:
        assert Evidence.objects.get().body == ""
        assert not LateAnswer.objects.filter(scores__isnull=False).exists()


def test_a_withdrawal_that_waits_behind_an_answer_leaves_its_decision_and_closes_its_item(complete: Any) -> None:
    lane = make_lane()
    (decided, one), (passed_on, two) = leased_job(lane, claimed=1), leased_job(lane, claimed=2)
    for job, token, result in ((decided, one, "APPROVED"), (passed_on, two, "MANUAL")):
        with holding(lambda token=token, result=result: complete(token, result)) as outcome:  # type: ignore[misc]
            assert outcome == CompleteOutcome.COMMITTED
            late = started("late-withdrawal", lambda job=job: withdraw(job.ticket))  # type: ignore[misc]
            wait_until_blocked(late)
        assert late.outcome() == ActOutcome.DONE

    assert Decision.objects.get().verdict == "APPROVED"
    assert Item.objects.get().closed_as == "withdrawn"
    assert list(Job.objects.order_by("pk").values_list("state", flat=True)) == [JobState.DONE, JobState.DONE]
    assert Attempt.objects.filter(is_committed=True).count() == 2


def test_an_erasure_that_waits_behind_an_answer_blanks_what_it_said(complete: Any) -> None:
    job, token = leased_job(make_lane(), claimed=1)
    with holding(lambda: complete(token, "MANUAL")):
        late = started("late-erasure", lambda: erased(job.ticket))
        wait_until_blocked(late)

    assert late.outcome() == EraseOutcome.ERASED
    assert Attempt.objects.get().scores is None


def test_an_erasure_asks_for_no_lane_so_that_a_claim_that_has_it_can_wait_for_the_ticket() -> None:
    lane = make_lane()
    job = waiting_job(lane)

    with holding(lambda: contract.lock_lane(lane.pk)):
        erased = erase(job.ticket_id, ground="asked for", actor=None, clock=clock(2))

    assert erased.outcome == EraseOutcome.ERASED
