"""Content blanked on a stated ground, and kept while a preservation hold stands."""

import pytest
from django.db import IntegrityError, transaction

from queue_core import contract, people
from queue_core.contract import Ending
from queue_core.contract.erase import EraseOutcome, erase, keyed_digest
from queue_core.errors import InvalidRequest
from queue_core.figures.account import account
from queue_core.models import Attempt, AuditEntry, Decision, Evidence, Job, LateAnswer, Message, PreservationHold
from queue_core.states import JobState, Verdict
from tests.factories import at, claim, clock, dead_job, done_job, leased_job, make_lane, waiting_job

pytestmark = pytest.mark.django_db

GROUND = "the author asked for it"


def erase_of(job: Job, *, when: float = 50, ground: str = GROUND) -> EraseOutcome:
    return erase(job.ticket_id, ground=ground, actor=None, clock=clock(when)).outcome


def hold_on(job: Job, person: object, *, until: float = 100) -> PreservationHold:
    return PreservationHold.objects.create(
        ticket=job.ticket, authority="Police", reference="B-7", reason="asked in writing", placed_at=at(1),
        placed_by=person, until=at(until),
    )  # fmt: skip


def test_erase_blanks_the_content_and_keeps_what_was_decided_and_a_keyed_hash() -> None:
    job = done_job(make_lane(), result="REJECTED")
    seal = job.evidence.digest

    assert erase_of(job) == EraseOutcome.ERASED

    evidence = Evidence.objects.get()
    assert (evidence.body, evidence.erased_at, evidence.erased_ground) == ("", at(50), GROUND)
    assert evidence.digest == keyed_digest(seal) != seal
    assert evidence.size > 0
    assert Attempt.objects.values_list("scores", "detail").get() == (None, "")
    decision = Decision.objects.get()
    assert (decision.verdict, decision.reason_code.code) == ("REJECTED", "insult")
    entry = AuditEntry.objects.get(act="ticket.erased")
    assert (entry.reason, entry.after) == (GROUND, {"revisions": 1, "ended": []})


def test_erase_reaches_every_revision_of_the_ticket_and_no_other_ticket() -> None:
    lane = make_lane()
    job, other = waiting_job(lane), waiting_job(lane)
    new = contract.NewTicket(
        source="test", external_id=job.ticket.external_id, revision="v2", evidence={"text": "newer"}, lane=lane,
        deadline=at(900),
    )  # fmt: skip
    contract.supersede(new, replaces="v1", clock=clock(2))

    erase_of(job)

    assert set(Evidence.objects.filter(ticket=job.ticket).values_list("body", flat=True)) == {""}
    assert Evidence.objects.get(ticket=other.ticket).body


@pytest.mark.parametrize("make", [waiting_job, lambda lane: leased_job(lane)[0]], ids=["waiting", "leased"])
def test_what_the_machine_has_or_waits_for_ends_withdrawn_and_a_late_answer_says_nothing_of_it(make) -> None:
    job = make(make_lane())
    token = claim(job, when=2) if job.state == JobState.WAITING else None

    erase_of(job)

    job.refresh_from_db()
    assert (job.state, job.dead_reason) == ("DEAD", "withdrawn")
    if token is not None:
        late = contract.complete(token, Ending(result="APPROVED", scores={"spam": 0.1}), clock=clock(51))
        assert late == "stale"
        assert LateAnswer.objects.get().scores is None
    kept = account()
    assert (kept.added, kept.gone) == (1, 1)


def test_an_open_item_stays_and_can_still_be_decided_mod_07() -> None:
    job = dead_job(make_lane())

    erase_of(job)

    job.refresh_from_db()
    assert job.items.get().closed_at is None
    assert job.ticket.withdrawn_at is None


def test_erase_is_refused_while_a_preservation_hold_stands_and_the_refusal_is_on_record(olga) -> None:
    job = waiting_job(make_lane())
    hold_on(job, olga, until=100)
    hold_on(job, olga, until=200)

    refused = erase(job.ticket_id, ground=GROUND, actor=olga, clock=clock(50))

    assert (refused.outcome, refused.until) == (EraseOutcome.PRESERVED, at(200))
    assert Evidence.objects.get().body
    job.refresh_from_db()
    assert job.state == "WAITING"
    assert AuditEntry.objects.get(act="ticket.erase_refused").actor == olga


@pytest.mark.parametrize(("when", "outcome"), [(199, "preserved"), (200, "erased"), (201, "erased")])
def test_a_preservation_hold_ends_at_its_time(olga, when: float, outcome: str) -> None:
    job = waiting_job(make_lane())
    hold_on(job, olga, until=200)

    assert erase_of(job, when=when) == outcome


def test_a_repeat_changes_nothing_and_a_ticket_that_is_none_is_missing() -> None:
    job = done_job(make_lane())
    erase_of(job)

    assert erase_of(job, when=60, ground="again") == EraseOutcome.ALREADY
    assert Evidence.objects.get().erased_ground == GROUND
    assert erase(0, ground=GROUND, actor=None, clock=clock(60)).outcome == EraseOutcome.MISSING


def test_what_is_erased_does_not_go_back_to_the_machine(olga) -> None:
    erased = dead_job(make_lane())
    erase_of(erased)

    again = contract.requeue(erased.pk, deadline=at(900), clock=clock(60), person=olga, reason="again")

    assert again == "not_allowed_in_state"


def test_what_was_written_after_an_erasure_goes_with_a_repeat(olga) -> None:
    job = done_job(make_lane(), result="MANUAL")
    olga.is_superuser = True
    token = people.take(job.items.get().pk, person=olga, clock=clock(40)).token
    assert token is not None
    erase_of(job, when=50)
    people.resolve(token, person=olga, verdict=Verdict.APPROVED, note="zebra words", clock=clock(51))

    assert erase_of(job, when=60) == EraseOutcome.ERASED
    assert Decision.objects.get().note == ""
    assert erase_of(job, when=61) == EraseOutcome.ALREADY


@pytest.mark.parametrize("ground", ["", "  ", "x" * 201, "a\0b"])
def test_a_ground_that_is_none_is_refused(ground: str) -> None:
    job = done_job(make_lane())

    with pytest.raises(InvalidRequest) as fault:
        erase_of(job, ground=ground)

    assert fault.value.field == "ground"
    assert Evidence.objects.get().body


def test_messages_hold_no_content_so_that_none_has_to_be_erased() -> None:
    lane = make_lane()
    done_job(lane, evidence={"text": "zebra words"})
    done_job(lane, result="MANUAL", evidence={"text": "zebra words"})
    dead_job(lane, evidence={"text": "zebra words"})

    assert Message.objects.count() == 3
    assert not [body for body in Message.objects.values_list("body", flat=True) if "zebra" in str(body)]


@pytest.mark.parametrize(
    ("model", "values", "why"),
    [
        (Evidence, {"body": "put back"}, "erased once"),
        (Evidence, {"erased_at": None, "erased_ground": ""}, "erased once"),
        (PreservationHold, {"until": at(5000)}, "stays as it was placed"),
        (PreservationHold, {"lifted_at": at(70), "lifted_reason": "other"}, "lifted once"),
    ],
)
def test_the_database_keeps_an_erasure_and_a_hold_as_they_were(olga, model, values, why: str) -> None:
    job = done_job(make_lane())
    hold = hold_on(job, olga, until=40)
    PreservationHold.objects.update(lifted_at=at(30), lifted_by=olga, lifted_reason="no longer needed")
    erase_of(job)

    with pytest.raises(IntegrityError, match=why), transaction.atomic():
        model.objects.update(**values)
    with pytest.raises(IntegrityError, match="it is kept"), transaction.atomic():
        hold.delete()


def test_a_hold_that_ends_before_it_begins_is_refused(olga) -> None:
    job = waiting_job(make_lane())

    with pytest.raises(IntegrityError, match="preservation_ends_after_it_begins"), transaction.atomic():
        hold_on(job, olga, until=1)
