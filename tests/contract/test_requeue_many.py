from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_core import contract
from queue_core.contract.requeue_many import MOST_AT_ONCE
from queue_core.errors import InvalidRequest
from queue_core.models import AuditEntry, Item, Job
from queue_core.states import ActOutcome
from tests.factories import at, clock, dead_job, done_job, make_lane, waiting_job
from tests.people.cast import item_of, leo, rita, take

pytestmark = pytest.mark.django_db

FIELDS = [field.attname for field in Job._meta.fields if field.attname not in ("id", "ticket_id", "evidence_id")]


def requeue_many(deadlines: dict[int, datetime], person: Any, *, when: float = 100) -> dict[int, ActOutcome]:
    return contract.requeue_many(deadlines, clock=clock(when), person=person, reason="the model is back")


def test_each_job_is_judged_for_itself() -> None:
    lane = make_lane()
    dead, looked_at, waiting, done = dead_job(lane), dead_job(lane), waiting_job(lane), done_job(lane)
    take(item_of(looked_at), rita(), when=50)

    terms = {job: at(1000) for job in (dead.pk, looked_at.pk, waiting.pk, done.pk, 10**9)}
    outcomes = requeue_many(terms, leo(), when=60)

    assert outcomes == {
        dead.pk: ActOutcome.DONE,
        looked_at.pk: ActOutcome.NOT_ALLOWED_IN_STATE,
        waiting.pk: ActOutcome.NOT_ALLOWED_IN_STATE,
        done.pk: ActOutcome.NOT_ALLOWED_IN_STATE,
        10**9: ActOutcome.MISSING,
    }
    assert Item.objects.get(closed_at__isnull=True).job_id == looked_at.pk
    assert AuditEntry.objects.get(act="job.requeued").subject_id == str(dead.pk)


def test_a_job_requeued_with_others_stands_as_one_requeued_alone() -> None:
    lane, lead = make_lane(max_attempts=5), leo()
    alone, together = dead_job(lane, severity=2), dead_job(lane, severity=2)

    contract.requeue(alone.pk, deadline=at(900), clock=clock(100), person=lead, reason="the model is back")
    requeue_many({together.pk: at(900), dead_job(lane).pk: at(950)}, lead)

    rows = {row["id"]: row for row in Job.objects.values()}
    assert [rows[alone.pk][name] for name in FIELDS] == [rows[together.pk][name] for name in FIELDS]
    acts = AuditEntry.objects.filter(act="job.requeued", subject_id__in=[str(alone.pk), str(together.pk)])
    of_alone, of_together = acts.values_list("actor", "lane", "reason", "before", "after")
    assert of_alone == of_together


def test_forty_take_no_more_statements_than_two() -> None:
    lane, lead = make_lane(), leo()
    jobs = [dead_job(lane).pk for _ in range(42)]

    with CaptureQueriesContext(connection) as of_two:
        requeue_many({job: at(1000) for job in jobs[:2]}, lead)
    with CaptureQueriesContext(connection) as of_forty:
        requeue_many({job: at(1000) for job in jobs[2:]}, lead)

    assert len(of_forty) == len(of_two)
    assert not Job.objects.exclude(state="WAITING").exists()


@pytest.mark.parametrize("deadlines", [{1: at(100)}, {job: at(1000) for job in range(MOST_AT_ONCE + 1)}])
def test_a_deadline_that_is_over_and_too_many_jobs_are_refused_whole(deadlines: dict[int, datetime]) -> None:
    dead = dead_job(make_lane())

    with pytest.raises(InvalidRequest):
        requeue_many({dead.pk: at(1000), **deadlines}, leo())

    assert Job.objects.get().state == "DEAD"
