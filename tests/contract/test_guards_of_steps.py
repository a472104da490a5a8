"""Raw SQL that looks like a step of the contract and is none is refused, and a deceived guard is not."""

from collections.abc import Iterator

import pytest
from django.db import IntegrityError, connection, transaction

from queue_core import contract
from queue_core.contract import Ending
from queue_core.models import Attempt, Evidence, Lane, Outage, PreservationHold
from queue_core.ramp_runs import end_run
from queue_core.states import RunEnd
from reviewboard.models import Person
from tests.factories import at, clock, done_job, leased_job, made_once, make_lane, make_run, new_ticket, waiting_job
from tests.ledger.kinds import Scene, staged

pytestmark = pytest.mark.django_db

JOB, ATTEMPT, ITEM = "UPDATE queue_core_job SET", "UPDATE queue_core_attempt SET", "UPDATE queue_core_item SET"
TICKET, DELIVERY = "UPDATE queue_core_ticket SET", "UPDATE queue_core_delivery SET"
ASSIGNMENT, EVIDENCE = "UPDATE queue_core_assignment SET", "UPDATE queue_core_evidence SET"
PULL, DIE = "state = 'DEAD', finished_at = now(), dead_reason = 'pulled'", "state = 'DEAD', finished_at = now()"
BACK, LATER = "state = 'WAITING', dead_reason = NULL, finished_at = NULL", "+ interval '1 s'"
DONE = "state = 'DONE', result = 'MANUAL', finished_at = now()"

#: A statement, and what it is refused with. Names in brackets are keys of the scene.
REFUSED: list[tuple[str, str]] = [
    (f"{JOB} fence = fence + 1 WHERE id = %(waiting)s", "grows by a claim, a pull or a refusal"),
    (f"{JOB} fence = fence + 1 WHERE id = %(leased)s", "no attempt marks that its fence grew"),
    (f"{JOB} fence = fence + 1, state = 'WAITING', attempts = 0 WHERE id = %(leased)s", "no attempt marks"),
    (f"{JOB} {PULL} WHERE id = %(waiting)s", "grows by a claim, a pull or a refusal"),
    (f"{JOB} {PULL}, fence = fence + 1 WHERE id = %(waiting)s", "no attempt marks that its fence grew"),
    (f"{JOB} {DIE}, dead_reason = 'deadline', fence = fence + 1 WHERE id = %(leased)s", "grows by a claim, a pull"),
    (f"{JOB} attempts = 0 WHERE id = %(leased)s", "its attempts are those that are charged"),
    (f"{JOB} attempts = attempts + 1, fence = fence + 1 WHERE id = %(waiting)s", "grows by a claim, a pull"),
    (f"{JOB} state = 'WAITING', attempts = attempts + 1 WHERE id = %(leased)s", "gives back one attempt or none"),
    (f"{JOB} {BACK} WHERE id = %(dead)s", "a requeue counts itself"),
    (f"{JOB} {BACK}, requeues = requeues + 1, fence = fence + 1 WHERE id = %(dead)s", "a requeue counts itself"),
    (f"{JOB} lease_until = lease_until - interval '1 s' WHERE id = %(leased)s", "only a renewal makes it later"),
    (f"{JOB} lease_until = lease_until {LATER} WHERE id = %(requeued)s", "only a renewal makes it later"),
    (f"{JOB} lease_until = lease_until {LATER} WHERE id = %(done)s", "DONE stays as it ended"),
    (f"{JOB} deadline = deadline {LATER} WHERE id = %(done)s", "DONE stays as it ended"),
    (f"{JOB} urgency = urgency {LATER} WHERE id = %(dead)s", "DEAD stays as it ended"),
    (f"{JOB} severity = 3 WHERE id = %(done)s", "DONE stays as it ended"),
    (f"{JOB} severity = 3 WHERE id = %(waiting)s", "severity is that of its intake"),
    (f"{JOB} deadline = deadline {LATER} WHERE id = %(leased)s", "move while it waits"),
    (f"{JOB} urgency = urgency {LATER} WHERE id = %(leased)s", "move while it waits"),
    (f"{JOB} {DIE}, dead_reason = 'deadline', deadline = now() WHERE id = %(waiting)s", "move while it waits"),
    (f"{JOB} {DONE}, deadline = now() {LATER} WHERE id = %(leased)s", "move while it waits"),
    (f"{JOB} queued_at = queued_at {LATER} WHERE id = %(waiting)s", "only a requeue moves"),
    (f"{JOB} max_attempts = 99 WHERE id = %(waiting)s", "only a requeue moves"),
    (f"{JOB} requeues = requeues + 1 WHERE id = %(leased)s", "only a requeue moves"),
    (f"{ATTEMPT} lease_until = lease_until {LATER} WHERE job_id = %(leased)s", "its lease grows with its job's"),
    (f"{ATTEMPT} lease_until = lease_until - interval '1 s' WHERE job_id = %(leased)s", "never shorter"),
    ("UPDATE queue_core_lateanswer SET scores = NULL", "only an erasure blanks it"),
    ("UPDATE queue_core_decision SET note = '' WHERE job_id = %(decided)s", "only an erasure blanks it"),
    ("UPDATE queue_core_message SET body = '{}' WHERE ticket_id = %(done_ticket)s", "only an erasure blanks it"),
    ("UPDATE queue_core_message SET not_before = now()", "until when it waits never changes"),
    (f"{EVIDENCE} erased_at = now(), erased_ground = 'asked for'", "what is erased is blank"),
    (f"{EVIDENCE} erased_at = now(), body = ''", "what is erased is blank, on a ground"),
    (f"{ITEM} closed_at = now(), closed_as = 'decided' WHERE job_id = %(manual)s", "nothing of what"),
    (f"{ITEM} closed_at = now(), closed_as = 'checked' WHERE job_id = %(manual)s", "nothing of what"),
    (f"{ITEM} closed_at = now(), closed_as = 'requeued' WHERE job_id = %(dead)s", "nothing of what"),
    (f"{ITEM} opened_at = opened_at {LATER} WHERE job_id = %(manual)s", "what it is about never changes"),
    (f"{ITEM} queued_at = queued_at {LATER} WHERE job_id = %(manual)s", "what it is about never changes"),
    (f"{ITEM} deadline = deadline {LATER} WHERE job_id = %(manual)s", "what it is about never changes"),
    (f"{ITEM} severity = 0 WHERE job_id = %(manual)s", "what it is about never changes"),
    (f"{ITEM} params = '{{}}' WHERE job_id = %(dead)s", "what it is about never changes"),
    (f"{ITEM} taken_by_id = %(leo)s, taken_until = now() WHERE job_id = %(manual)s", "has a fence of their own"),
    (f"{ITEM} fence = fence + 1 WHERE job_id = %(manual)s", "has a fence of their own"),
    (f"{ASSIGNMENT} until = until {LATER} WHERE ended_at IS NULL", "it ends when its item says"),
    (f"{ASSIGNMENT} ended_at = now(), ended_as = 'decided' WHERE ended_at IS NULL", "nothing was decided under it"),
    (("INSERT INTO queue_core_assignment (item_id, person_id, fence, key, taken_at, until)"
      " SELECT id, %(leo)s, 1, gen_random_uuid(), now(), now() FROM queue_core_item WHERE job_id = %(manual)s"),
     "its item is not taken so"),
    (f"{DELIVERY} state = 'given_up' WHERE id = %(delivery)s", "no way leads from delivered to given_up"),
    (f"{DELIVERY} state = 'withdrawn' WHERE id = %(delivery)s", "no way leads from delivered to withdrawn"),
    (f"{DELIVERY} tries = tries + 1 WHERE id = %(delivery)s", "each of its tries has a lease"),
    (f"{DELIVERY} lease = gen_random_uuid(), lease_until = now() WHERE state = 'pending'", "each lease is one try"),
    (f"{DELIVERY} budget = budget + 1 WHERE state = 'pending'", "it stands as its tries left it"),
    (f"{DELIVERY} last_status = 500 WHERE state = 'pending'", "it stands as its tries left it"),
    (f"{DELIVERY} due_at = now() WHERE id = %(delivery)s", "it stands as its tries left it"),
    ("DELETE FROM queue_core_deliverytry", "it is kept"),
    ("DELETE FROM queue_core_delivery WHERE state = 'pending'", "it is kept"),
    (f"{TICKET} lane_id = %(other_lane)s WHERE id = %(done_ticket)s", "changes with a revision"),
    (f"{TICKET} severity = 3 WHERE id = %(waiting_ticket)s", "changes with a revision"),
    (f"{TICKET} withdrawn_at = NULL WHERE id = %(withdrawn_ticket)s", "changes with a revision"),
]  # fmt: skip


@pytest.fixture(scope="module")
def scene(django_db_setup: None, django_db_blocker) -> Iterator[Scene]:
    """Made once, in a transaction within which that of each test is a savepoint."""
    with made_once(django_db_blocker, staged) as rows:
        yield rows


@pytest.mark.parametrize(("statement", "why"), REFUSED, ids=[f"{n} {why}" for n, (_, why) in enumerate(REFUSED)])
def test_what_only_looks_like_a_step_is_refused_mod_06(scene: Scene, statement: str, why: str) -> None:
    with pytest.raises(IntegrityError, match=why), transaction.atomic():
        run(statement, scene)


def run(statement: str, values: dict[str, object] | Scene | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or {})


def refuses(why: str, statement: str, **values: object) -> None:
    with pytest.raises(IntegrityError, match=why), transaction.atomic():
        run(statement, values)


def test_an_erasure_alone_blanks_what_the_model_said() -> None:
    job, token = leased_job(make_lane())
    contract.complete(token, Ending(result="APPROVED", scores={"insult": 0.1}), clock=clock(2))

    refuses("only an erasure", "UPDATE queue_core_attempt SET scores = NULL WHERE id = %(id)s", id=token.attempt)
    contract.erase(job.ticket_id, ground="asked for", actor=None, clock=clock(3))

    assert Attempt.objects.get(pk=token.attempt).scores is None


def test_what_is_preserved_is_not_erased_past_the_verb(olga: Person) -> None:
    job = done_job(make_lane())
    PreservationHold.objects.create(
        ticket=job.ticket, authority="court", reference="1", reason="ordered", placed_at=at(3), placed_by=olga,
        until=at(100),
    )  # fmt: skip
    blank = f"{EVIDENCE} body = '', erased_ground = 'asked for', erased_at = %(when)s WHERE id = %(id)s"

    refuses("it is preserved", blank, when=at(50), id=job.evidence_id)
    run(blank, {"when": at(100), "id": job.evidence_id})

    assert Evidence.objects.get(pk=job.evidence_id).erased_at == at(100)


def test_a_replaced_revision_never_becomes_the_current_one_again() -> None:
    job = waiting_job(make_lane())
    newer = new_ticket(job.lane, external_id=job.ticket.external_id, revision="v2")
    contract.supersede(newer, replaces="v1", clock=clock(2))

    refuses("never comes back", f"{TICKET} current_revision = 'v1' WHERE id = %(id)s", id=job.ticket_id)


def test_no_lane_stands_on_a_run_that_is_over(olga: Person) -> None:
    lane = make_lane(cap=5)
    over = lane.run_id
    end_run(lane, ended_as=RunEnd.RAISED, person=olga, now=at(5))
    Lane.objects.filter(pk=lane.pk).update(run=make_run(lane, cap=5), cap=5)

    refuses(
        "nobody approved such a cap",
        "UPDATE queue_core_lane SET run_id = %(run)s WHERE id = %(id)s",
        run=over,
        id=lane.pk,
    )


def test_no_outage_ends_before_it_began() -> None:
    outage = Outage.objects.create(connection=make_lane().connection, cause="precaution", opened_at=at(1))
    close = "UPDATE queue_core_outage SET closed_at = %(at)s WHERE id = %(id)s"

    refuses("closed once, afterwards", close, at=at(0), id=outage.pk)
    run(close, {"at": at(1), "id": outage.pk})


def test_a_temporary_table_called_like_one_of_ours_deceives_no_guard() -> None:
    job, _token = leased_job(make_lane())
    run(
        "CREATE TEMPORARY TABLE queue_core_attempt ON COMMIT DROP AS"
        " SELECT job_id, fence, TRUE AS is_committed FROM public.queue_core_attempt"
    )
    result = f"{JOB} state = 'DONE', result = 'APPROVED', finished_at = now() WHERE id = %(job)s"

    refuses("no attempt of fence 1 committed this result", result, job=job.pk)
    run("DROP TABLE pg_temp.queue_core_attempt")


def test_each_guard_looks_for_its_tables_where_they_were_made() -> None:
    """One that a later migration makes, or replaces, has to say so again."""
    with connection.cursor() as cursor:
        cursor.execute(r"SELECT proname, proconfig FROM pg_proc WHERE proname LIKE 'queue\_core\_guard\_%'")
        found = dict(cursor.fetchall())

    pinned = {name for name, settings in found.items() if "search_path=public, pg_temp" in (settings or [])}
    assert len(found) > 40
    assert found.keys() - pinned == set()
