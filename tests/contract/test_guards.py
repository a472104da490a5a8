"""Triggers: the ways between states, and what is written once, whoever asks."""

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from queue_core import contract, people
from queue_core.contract import Ending
from queue_core.models import (
    Assignment,
    Attempt,
    AuditEntry,
    Decision,
    Evidence,
    EvidenceReport,
    Hold,
    Item,
    Job,
    Lane,
    LateAnswer,
    Message,
    Outage,
    OutageEntry,
    Policy,
    Recall,
    RecallEntry,
    StageRun,
    Ticket,
)
from queue_core.states import AttemptOutcome, LeaseToken
from reviewboard.models import Person
from tests.factories import at, clock, dead_job, done_job, leased_job, make_lane, waiting_job, without_guards
from tests.people.cast import REVIEWER, manual_item, person, take

pytestmark = pytest.mark.django_db


def refuses(model: Any, why: str, **values: Any) -> None:
    before = list(model.objects.order_by("pk").values())
    with pytest.raises(IntegrityError, match=why), transaction.atomic():
        model.objects.update(**values)
    assert list(model.objects.order_by("pk").values()) == before


TO: dict[str, dict[str, Any]] = {
    "WAITING": {"state": "WAITING", "result": None, "dead_reason": None, "finished_at": None, "attempts": 0},
    "LEASED": {"state": "LEASED", "result": None, "dead_reason": None, "finished_at": None, "lease_until": at(5)},
    "DONE": {"state": "DONE", "result": "APPROVED", "dead_reason": None, "finished_at": at(5), "available_at": None},
    "DEAD": {"state": "DEAD", "result": None, "dead_reason": "deadline", "finished_at": at(5), "available_at": None},
}


@pytest.mark.parametrize(
    ("make", "to"),
    [
        (waiting_job, "DONE"),
        (done_job, "WAITING"),
        (done_job, "LEASED"),
        (done_job, "DEAD"),
        (dead_job, "LEASED"),
        (dead_job, "DONE"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_no_other_way_leads_from_state_to_state(make: Any, to: str) -> None:
    make(make_lane())

    refuses(Job, f"no way leads from .* to {to}", fence=F("fence") + 1, **TO[to])


def test_no_way_leads_back_from_a_final_death() -> None:
    job = waiting_job(make_lane())
    contract.withdraw(source="test", external_id=job.ticket.external_id, clock=clock(1))

    refuses(Job, "no way leads from DEAD", **TO["WAITING"])


def test_a_lease_without_a_higher_fence_is_refused() -> None:
    leased_job(make_lane())
    contract.release(_token(), outcome=AttemptOutcome.RELEASED, clock=clock(2))

    refuses(Job, "no way leads from WAITING", **TO["LEASED"])


def _token() -> LeaseToken:
    attempt = Attempt.objects.get()
    return LeaseToken(attempt.job_id, attempt.fence, "v1", attempt.pk, attempt.key)


def test_a_fence_never_falls() -> None:
    leased_job(make_lane())

    refuses(Job, "fence never falls", fence=0)


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (done_job, {"result": "MANUAL"}),
        (done_job, {"fence": F("fence") + 1}),
        (dead_job, {"dead_reason": "attempts"}),
        (dead_job, {"finished_at": at(99)}),
    ],
)
def test_an_ended_job_stays_as_it_ended(make: Any, values: dict[str, Any]) -> None:
    make(make_lane())

    refuses(Job, "stays as it ended", **values)


@pytest.mark.parametrize("values", [{"revision": "v2"}, {"round": 2}, {"added_at": at(1)}])
def test_what_a_job_reviews_never_changes_mod_06(values: dict[str, Any]) -> None:
    waiting_job(make_lane())

    refuses(Job, "never changes", **values)


def test_a_job_begins_waiting() -> None:
    job = done_job(make_lane())
    job.pk, job.round = None, 2

    with pytest.raises(IntegrityError, match="begins WAITING"), transaction.atomic():
        job.save()


@pytest.mark.parametrize("values", [{"worker": "w9"}, {"fence": 7}, {"started_at": at(9)}])
def test_what_was_claimed_never_changes(values: dict[str, Any]) -> None:
    leased_job(make_lane())

    refuses(Attempt, "never changes", **values)


@pytest.mark.parametrize(
    "values", [{"ended_at": at(9)}, {"outcome": "refused"}, {"ended_at": None, "outcome": None, "is_committed": False}]
)
def test_an_attempt_is_closed_once(values: dict[str, Any]) -> None:
    done_job(make_lane())

    refuses(Attempt, "closed once", **values)


def test_an_attempt_that_was_given_back_is_not_charged_again() -> None:
    leased_job(make_lane())
    contract.refuse_running(Job.objects.get().lane_id, clock=clock(2))

    refuses(Attempt, "closed once", is_charged=True)


def test_evidence_is_sealed_until_it_is_erased() -> None:
    waiting_job(make_lane())

    refuses(Evidence, "sealed", body='"other"')
    refuses(Evidence, "sealed", digest="0" * 64)
    refuses(Evidence, "sealed", body="")
    Evidence.objects.update(body="", digest="keyed", erased_at=at(5), erased_ground="asked for")


def test_a_decision_is_replaced_and_never_changed_but_its_note_may_be_blanked() -> None:
    done_job(make_lane())

    refuses(Decision, "another one replaces it", verdict="REJECTED")
    refuses(Decision, "another one replaces it", note="words of later")
    Decision.objects.update(note="")


def test_an_audit_entry_is_written_once_and_sealed_once(olga: Any) -> None:
    contract.pull(waiting_job(make_lane()).pk, person=olga, clock=clock(1), reason="mine")

    refuses(AuditEntry, "written once", reason="another")
    AuditEntry.objects.update(number=1, seal="s")
    refuses(AuditEntry, "written once", seal="t")


@pytest.mark.parametrize("model", [Job, Attempt, Evidence, Decision, LateAnswer])
def test_the_ledger_is_kept(model: Any) -> None:
    done_job(make_lane())
    contract.complete(_token(), contract.Ending("MANUAL"), clock=clock(9))

    with pytest.raises(IntegrityError, match="it is kept"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {model._meta.db_table}")


def test_a_fence_grows_by_one_at_a_time() -> None:
    leased_job(make_lane())

    refuses(Job, "grows by one", fence=F("fence") + 2)


@pytest.mark.parametrize("ended", [None, "timeout"])
def test_no_result_stands_without_an_attempt_of_its_fence_that_committed_it(ended: str | None) -> None:
    leased_job(make_lane())
    Attempt.objects.update(outcome=ended, ended_at=at(2) if ended else None)

    refuses(Job, "no attempt of fence 1 committed", **TO["DONE"])


def test_an_older_attempt_commits_no_result_of_a_later_fence() -> None:
    """The answer of the first holder is written down as committed by some bug; the second holds the job."""
    job, _token = leased_job(make_lane())
    contract.claim(job.pk, clock=clock(500), worker="w2")
    with without_guards():
        Attempt.objects.filter(fence=1).update(outcome="verdict", is_committed=True)

    refuses(Job, "no attempt of fence 2 committed", **TO["DONE"])


def decide(job: Job, *, replaces: Decision | None, **fields: Any) -> None:
    """A machine's decision as a bug would write it: everything right but what the test says."""
    fence = Attempt.objects.filter(job=job).count() + 5
    with without_guards():
        made_by = Attempt.objects.create(
            job=job,
            lane_id=job.lane_id,
            fence=fence,
            key=uuid4(),
            worker="w",
            number=1,
            started_at=at(1),
            lease_until=at(9),
        )
    right = {
        "ticket": job.ticket, "revision": job.revision, "job": job, "lane_id": job.lane_id, "verdict": "APPROVED",
        "attempt": made_by, "why": "correction" if replaces else "first", "replaces": replaces,
        "source_kind": "own_detection", "automation": "wholly", "decided_at": at(9),
    }  # fmt: skip
    with transaction.atomic():
        Decision.objects.create(**(right | fields))


def test_a_revision_has_one_first_decision_and_the_machine_decides_a_job_once() -> None:
    job = done_job(make_lane())

    with pytest.raises(IntegrityError, match=r"decision_(by_the_machine_once_a_job|first_once_a_revision)"):
        decide(job, replaces=None)
    with pytest.raises(IntegrityError, match="decision_by_the_machine_once_a_job"):
        decide(job, replaces=Decision.objects.get())


def test_a_decision_replaces_one_of_its_own_revision_only() -> None:
    """Or a revision would have two in force: its own, and one that stands in another revision's chain."""
    first, other = done_job(make_lane()), done_job(make_lane())
    decisions = {decision.job_id: decision for decision in Decision.objects.all()}
    later = waiting_job(make_lane())

    for replaced in (first, other):
        with pytest.raises(IntegrityError, match="replaces none of its own revision"):
            decide(later, replaces=decisions[replaced.pk], ticket=first.ticket, revision=first.revision)

    assert Decision.objects.count() == 2


def test_a_decision_that_was_replaced_is_not_replaced_again() -> None:
    job = done_job(make_lane())
    head = Decision.objects.get()
    recall = {"why": "recall", "verdict": None, "attempt": None}
    decide(job, replaces=head, **recall)

    with pytest.raises(IntegrityError, match="replaces_id"):
        decide(job, replaces=head, **recall)


@pytest.mark.parametrize(
    "values",
    [
        {"scores": {"insult": 0.1}},
        {"detail": "another"},
        {"usage": {"tokens": 9}},
        {"request_id": "r9"},
        {"cause": "x"},
    ],
)
def test_what_an_attempt_ended_with_is_kept_but_may_be_blanked(values: dict[str, Any]) -> None:
    done_job(make_lane())

    refuses(Attempt, "what it ended with is kept", **values)
    Attempt.objects.update(scores=None, detail="")


@pytest.mark.parametrize("values", [{"result": "REJECTED"}, {"fence": 7}, {"scores": {"insult": 0.1}}])
def test_a_late_answer_is_kept_as_it_came(values: dict[str, Any]) -> None:
    done_job(make_lane())
    contract.complete(_token(), contract.Ending("MANUAL", scores={"insult": 0.5}), clock=clock(9))

    refuses(LateAnswer, "kept as it came", **values)
    contract.erase(Ticket.objects.get().pk, ground="asked for", actor=None, clock=clock(10))
    assert LateAnswer.objects.get().scores is None


@pytest.mark.parametrize("values", [{"cap": 99}, {"figures": {"x": 1}}, {"reason": "another"}, {"rate": 5}])
def test_what_was_approved_with_a_run_stays(values: dict[str, Any]) -> None:
    make_lane()

    refuses(StageRun, "what was approved stays", **values)


def test_a_run_is_accepted_once_and_closed_once_and_kept() -> None:
    make_lane()
    StageRun.objects.update(accepted_at=at(5), ended_at=at(6), ended_as="raised")

    refuses(StageRun, "closed once", accepted_at=at(7))
    refuses(StageRun, "closed once", ended_as="held")
    refuses(StageRun, "closed once", ended_at=None, ended_as=None)
    with pytest.raises(IntegrityError, match="it is kept"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM queue_core_stagerun")


def test_an_audit_entry_is_kept(olga: Any) -> None:
    contract.pull(waiting_job(make_lane()).pk, person=olga, clock=clock(1), reason="mine")

    with pytest.raises(IntegrityError, match="it is kept"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM queue_core_auditentry")


COLUMNS = """
SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
#: By raw SQL, of rows as they are but for what the test says: nothing of the model stands between.
UNFOUNDED = {
    "attempt of no job": (
        "attempt", {"job_id": "job_id + 100", "fence": "fence + 100"}, "of no job of its lane",
    ),
    "attempt of another lane": (
        "attempt", {"lane_id": "lane_id + 100", "fence": "fence + 100"}, "of no job of its lane",
    ),
    "attempt born committed": ("attempt", {"fence": "fence + 1"}, "begins open"),
    "attempt of another fence": (
        "attempt",
        {"fence": "fence + 1", "is_committed": "FALSE", "ended_at": "NULL", "outcome": "NULL"},
        "begins open, under the fence of its job",
    ),
    "attempt that is charged though its fence was raised": (
        "attempt", {"fence": "fence + 1", "is_committed": "FALSE", "outcome": "'fence_raised'"}, "begins open",
    ),
    "decision of no job": (
        "decision", {"job_id": "job_id + 100", "revision": "'v9'"}, "of no job of its ticket",
    ),
    "decision of no ticket": (
        "decision",
        {"ticket_id": "ticket_id + 100", "attempt_id": "NULL", "why": "'recall'", "verdict": "NULL",
         "replaces_id": "id"},
        "replaces none of its own revision|of no job of its ticket",
    ),
    "message of no decision": (
        "message", {"decision_id": "decision_id + 100", "seq": "seq + 1"}, "of no decision of its ticket",
    ),
    "message of no ticket": (
        "message",
        {"decision_id": "NULL", "ticket_id": "ticket_id + 100", "kind": "'ticket.superseded'"},
        "or of no ticket",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNFOUNDED)
def test_what_a_new_row_names_is_there_and_agrees_with_it(case: str) -> None:
    table, values, why = UNFOUNDED[case]
    done_job(make_lane())
    values = {"id": "id + 100"} | ({"key": "gen_random_uuid()"} if table != "decision" else {}) | values
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS, [f"queue_core_{table}"])
        columns = [row[0] for row in cursor.fetchall()]
        chosen = ", ".join(values.get(column, column) for column in columns)
        with pytest.raises(IntegrityError, match=why), transaction.atomic():
            cursor.execute(
                f"INSERT INTO queue_core_{table} ({', '.join(columns)}) SELECT {chosen} FROM queue_core_{table}"
            )


def test_a_machine_decides_by_a_committed_attempt_of_the_same_job_only() -> None:
    job, other = waiting_job(make_lane()), done_job(make_lane())

    with pytest.raises(IntegrityError, match="of no attempt that committed"):
        decide(job, replaces=None)
    with pytest.raises(IntegrityError, match="of no attempt that committed"):
        decide(job, replaces=None, attempt=Attempt.objects.get(job=other))


def test_a_machine_decides_what_its_job_ended_with() -> None:
    job, token = leased_job(make_lane())
    contract.complete(token, Ending(result="MANUAL", cause="no_rule"), clock=clock(2))

    with pytest.raises(IntegrityError, match="of no attempt that committed it"):
        decide(job, replaces=None, attempt=Attempt.objects.get(pk=token.attempt))


def test_what_others_name_keeps_its_key_and_a_ticket_that_messages_tell_of_is_kept() -> None:
    job = done_job(make_lane())

    refuses(Job, "never changes", id=F("id") + 100)
    refuses(Attempt, "never changes", id=F("id") + 100)
    refuses(Decision, "another one replaces it", id=F("id") + 100)
    with (
        pytest.raises(IntegrityError, match="messages tell of it"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("DELETE FROM queue_core_ticket WHERE id = %s", [job.ticket_id])


def test_a_result_without_its_attempt_is_refused_among_those_that_have_one() -> None:
    lane = make_lane()
    tokens = [leased_job(lane)[1] for _ in range(3)]
    ids = [token.attempt for token in tokens[:2]]
    Attempt.objects.filter(pk__in=ids).update(ended_at=at(5), outcome="verdict", is_committed=True)

    refuses(Job, "no attempt of fence 1 committed", **TO["DONE"])


def _opened(olga: Any) -> Item:
    """An item in somebody's hands, another one closed by its decision."""
    lane = make_lane()
    reviewer = person("rita", *REVIEWER)
    closed = manual_item(lane)
    people.resolve(take(closed, reviewer, when=3), person=reviewer, verdict="APPROVED", clock=clock(4))
    contract.pull(waiting_job(lane).pk, person=olga, clock=clock(5), reason="mine")
    return Item.objects.get(closed_at__isnull=True)


@pytest.mark.parametrize(
    ("which", "values", "why"),
    [
        ("closed", {"closed_at": None, "closed_as": None}, "closed once"),
        ("closed", {"closed_as": "withdrawn"}, "closed once"),
        ("closed", {"severity": 3}, "closed once"),
        ("open", {"kind": "dead"}, "never changes"),
        ("open", {"fence": F("fence") + 2}, "grows by one"),
        ("open", {"fence": 0}, "grows by one"),
    ],
)
def test_an_item_stays_what_it_is_about_and_is_closed_once_mod_06(
    olga: Any, which: str, values: dict[str, Any], why: str
) -> None:
    _opened(olga)
    with pytest.raises(IntegrityError, match=why), transaction.atomic():
        Item.objects.filter(closed_at__isnull=which == "open").update(**values)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"ended_at": at(9), "ended_as": "expired"}, "ends once"),
        ({"until": at(99)}, "ends once"),
        ({"ended_at": None, "ended_as": None}, "ends once"),
    ],
)
def test_an_assignment_that_ended_stays_so(olga: Any, values: dict[str, Any], why: str) -> None:
    _opened(olga)
    with pytest.raises(IntegrityError, match=why), transaction.atomic():
        Assignment.objects.filter(ended_at__isnull=False).update(**values)


def test_who_took_an_item_never_changes(olga: Any) -> None:
    item = _opened(olga)
    for values in ({"person": Person.objects.get(username="rita")}, {"fence": 7}, {"taken_at": at(1)}):
        with pytest.raises(IntegrityError, match="who took what never changes"), transaction.atomic():
            Assignment.objects.filter(item=item).update(**values)


def test_nobody_opens_an_item_of_one_lane_for_a_job_of_another(olga: Any) -> None:
    item, other = _opened(olga), waiting_job(make_lane())
    item.pk, item.taken_by, item.taken_until, item.job = None, None, None, other

    with pytest.raises(IntegrityError, match="of another ticket or lane than its job"), transaction.atomic():
        item.save(force_insert=True)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"form": "hold"}, "stays as it was pulled"),
        ({"note": "other words"}, "stays as it was pulled"),
        ({"started_at": at(1)}, "stays as it was pulled"),
    ],
)
def test_a_hold_stays_as_it_was_pulled(values: dict[str, Any], why: str) -> None:
    make_lane(cap=None)
    Hold.objects.update(form="refuse")

    refuses(Hold, why, **values)
    Hold.objects.update(ended_at=at(2))
    refuses(Hold, why, ended_at=None)


def test_an_outage_and_its_log_stay_as_they_were_written(olga: Any) -> None:
    outage = Outage.objects.create(connection=make_lane().connection, cause="precaution", opened_at=at(1))
    OutageEntry.objects.create(outage=outage, at=at(1), code="note", text="it went down")
    Outage.objects.update(lead_on_duty=olga, handover_note="look at the disk")

    refuses(Outage, "stays as it was opened", opened_at=at(0))
    refuses(OutageEntry, "written once", text="nothing happened")
    Outage.objects.update(closed_at=at(5), closed_by=olga)
    refuses(Outage, "closed once", closed_at=None, closed_by=None)


def test_a_policy_under_which_something_was_decided_is_never_edited() -> None:
    done_job(make_lane())

    refuses(Policy, "another version", rules=[{"category": "insult"}])


@pytest.mark.parametrize("cap", [101, 10**6])
def test_no_cap_is_above_what_was_approved_whoever_sets_it(cap: int) -> None:
    lane, other = make_lane(cap=100), make_lane(cap=10**6)

    with pytest.raises(IntegrityError, match="nobody approved such a cap"), transaction.atomic():
        Lane.objects.filter(pk=lane.pk).update(cap=cap)
    with pytest.raises(IntegrityError, match="nobody approved such a cap"), transaction.atomic():
        Lane.objects.filter(pk=lane.pk).update(run=other.run, cap=cap)
    Lane.objects.filter(pk=lane.pk).update(cap=7)
    Lane.objects.filter(pk=lane.pk).update(cap=100)


def test_what_was_reported_stays_restricted_and_a_message_goes_on_saying_the_same(olga: Any) -> None:
    job = done_job(make_lane())
    Evidence.objects.update(is_restricted=True)
    Evidence.objects.update(is_restricted=False)
    Evidence.objects.update(is_restricted=True)
    EvidenceReport.objects.create(
        evidence=job.evidence, authority="police", reference="R1", reported_at=at(3), reported_by=olga
    )

    refuses(Evidence, "stays restricted", is_restricted=False)
    refuses(Message, "what it says never changes", body={"verdict": "REJECTED"})
    refuses(Ticket, "never changes", external_id="another")
    contract.erase(job.ticket_id, ground="asked for", actor=None, clock=clock(4))
    Message.objects.update(body={})
    assert Job.objects.get(pk=job.pk).ticket.seq == Message.objects.count()


def test_a_recall_that_ended_gets_no_decision_more(olga: Any) -> None:
    job = done_job(make_lane())
    recall = Recall.objects.create(
        lane=job.lane, selection={}, to="people", reason="wrong", by=olga, started_at=at(3), ended_at=at(4)
    )

    with pytest.raises(IntegrityError, match="it has ended"), transaction.atomic():
        RecallEntry.objects.create(recall=recall, decision=Decision.objects.get())


@pytest.mark.parametrize("model", [Item, Assignment, Message, Hold])
def test_peoples_work_is_kept_too(olga: Any, model: Any) -> None:
    _opened(olga)
    make_lane(cap=None)

    with pytest.raises(IntegrityError, match="it is kept"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {model._meta.db_table}")


def test_copy_is_refused_as_an_insert_is() -> None:
    """What psql's \\copy or a restore by hand brings in goes past no guard."""
    job = waiting_job(make_lane())
    columns = (
        "lane_id, ticket_id, evidence_id, revision, round, state, severity, added_at, queued_at, deadline, urgency"
    )
    row = [job.lane_id, job.ticket_id, job.evidence_id, "v1", 2, "LEASED", 1, *[at(1)] * 2, at(9), at(1)]
    statement = f"COPY queue_core_job ({columns}, attempts, max_attempts, fence, lease_until) FROM STDIN"

    with (
        pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="begins WAITING"),
        transaction.atomic(),
        connection.cursor() as cursor,
        cursor.cursor.copy(statement) as copy,
    ):
        copy.write_row([*row, 1, 3, 1, at(5)])
    assert Job.objects.count() == 1
