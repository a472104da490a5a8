"""The page of one job: where it stands, its life, its evidence, its deadline."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse

from queue_core import contract, people
from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.contract import Ending
from queue_core.models import AuditEntry, Job
from queue_core.states import AttemptOutcome
from reviewboard.life import Ledger, life_of
from tests.desk.backlog import dead_now, make_live_lane, manual_now, now, ticket, token_of, waiting_now
from tests.factories import at, clock, make_lane, waiting_job
from tests.factories import claim as claim_at
from tests.people.cast import leo, person, rita

pytestmark = pytest.mark.django_db
POLL = {"HX-Request": "true", "X-Live-Poll": "1"}


def text(response):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def see(client, who, job):
    client.force_login(who)
    response = client.get(reverse("job", args=[job.pk]))
    assert response.status_code == 200
    return response


def test_who_may_nothing_finds_no_job(client):
    job = waiting_now(make_live_lane())
    client.force_login(person("xavier"))

    assert client.get(reverse("job", args=[job.pk])).status_code == 404


@pytest.mark.parametrize("number", [0, 2**63, 10**30])
def test_numbers_of_nothing_are_not_found(client, number):
    """IMP-12: huge numbers in an address are 404."""
    client.force_login(person("vera", "view_board"))

    assert client.get(f"/jobs/{number}/").status_code == 404


def test_the_page_opens_with_where_it_stands_and_what_would_move_it(client):
    job = waiting_now(make_live_lane(cap=None))

    shown = text(see(client, person("vera", "view_board"), job))

    assert "on hold" in shown
    assert "probe" in shown


def test_evidence_is_shown_with_its_seal_to_who_may_read_it(client):
    job = waiting_now(make_live_lane(), evidence={"text": "some words", "author": "anna"})

    assert "some words" in text(see(client, rita(), job))
    assert "seal whole" in text(see(client, leo(), job))
    without = text(see(client, person("vera", "view_board"), job))
    assert "some words" not in without
    assert "You may not read evidence." in without


def test_acts_stand_in_its_life_in_words(client):
    """No code of the audit: whoever looked is named in the reader's language."""
    job = waiting_now(make_live_lane(), evidence={"text": "some words", "author": "anna"})
    who = rita()
    see(client, who, job)

    shown = text(see(client, who, job))

    assert "rita: read evidence" in shown
    assert "evidence.read" not in shown


def test_restricted_evidence_is_never_on_the_jobs_page(client):
    job = waiting_now(make_live_lane(), evidence={"text": "some words"}, is_restricted=True)

    assert "some words" not in text(see(client, leo(), job))


def test_late_answers_and_messages_are_listed(client):
    lane = make_live_lane()
    job = waiting_now(lane)
    past = now() - timedelta(minutes=30)
    job = contract.receive(ticket(lane), clock=FixedClock(past)).job
    old = contract.claim(job.pk, clock=FixedClock(past), worker="w1").token
    token = contract.claim(job.pk, clock=DATABASE_CLOCK, worker="w2").token
    contract.complete(old, Ending(result="APPROVED"), clock=DATABASE_CLOCK, worker="w1")
    contract.complete(token, Ending(result="APPROVED"), clock=DATABASE_CLOCK, worker="w2")

    shown = text(see(client, person("vera", "view_board"), job))

    assert "Late answers, refused" in shown
    assert "Messages of the ticket" in shown
    assert "APPROVED by the model" in shown


def test_the_poll_is_text_only_and_nothing_when_nothing_changed(client):
    job = waiting_now(make_live_lane(cap=None))
    client.force_login(leo())
    url = reverse("job", args=[job.pk])
    first = client.get(url, headers=POLL)

    again = client.get(url, headers=POLL | {"X-Live-Version": first["X-Live-Version"]})

    assert not re.search(r"<(form|input|details|textarea|button)\b", first.content.decode())
    assert again.status_code == 204


def titles(job, *, when, **rows):
    attempts = list(job.attempt_rows.order_by("fence"))
    steps = life_of(Ledger(job, attempts, **rows), now=at(when))
    return [(str(step.title), step.length) for step in steps]


def test_a_life_is_a_path_of_waits_and_claims_each_with_its_length():
    job = waiting_job(make_lane(), deadline=10_000)
    token = claim_at(job, when=2460)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(2490), worker="w1")
    claim_at(job, when=2500, worker="w2")
    job.refresh_from_db()

    assert titles(job, when=2510) == [
        ("Added", ""),
        ("Waited", "41 min"),
        ("Claimed by w1, fence 1", "30 s"),
        ("Waited", "10 s"),
        ("Claimed by w2, fence 2", "10 s"),
    ]


def test_a_requeued_life_goes_on_after_its_death(client):
    job = dead_now(make_live_lane())
    item, who = job.items.get(), leo()
    people.take(item.pk, person=who, clock=DATABASE_CLOCK)
    later = now() + timedelta(hours=1)
    people.resolve_requeue(token_of(item), person=who, deadline=later, reason="it is back", clock=DATABASE_CLOCK)

    client.force_login(who)
    shown = text(client.get(reverse("job", args=[job.pk])))

    for step in ("DEAD: deadline passed", "Taken by leo", "Requeued by leo", "it is back", "Waits"):
        assert step in shown


def test_a_decided_life_names_who_and_the_chain(client):
    item, who = manual_now(make_live_lane()), rita()
    people.take(item.pk, person=who, clock=DATABASE_CLOCK)
    people.resolve(token_of(item), person=who, verdict="APPROVED", note="harmless", clock=DATABASE_CLOCK)

    shown = text(see(client, who, item.job))

    assert "Decided APPROVED by rita" in shown
    assert "partly automated" in shown
    assert "harmless" in shown


def move(client, job, **words):
    form = {"seen": job.deadline.isoformat(), "deadline": "8h", "reason": "the outage lasts"} | words
    return client.post(reverse("job_move_deadline", args=[job.pk]), form)


def test_a_waiting_jobs_service_deadline_is_moved(client):
    job = waiting_now(make_live_lane())
    client.force_login(leo())

    assert move(client, job).status_code == 302

    moved = Job.objects.get()
    assert moved.deadline > job.deadline + timedelta(hours=6)
    assert (moved.state, moved.fence) == ("WAITING", 0)
    entry = AuditEntry.objects.get(act="job.deadline_moved")
    assert set(entry.before) == set(entry.after) == {"deadline"}


def test_a_deadline_that_somebody_moved_meanwhile_is_409_with_who(client):
    job = waiting_now(make_live_lane())
    client.force_login(leo())
    move(client, job)

    again = move(client, job, deadline="1h", reason="typed with care")

    assert again.status_code == 409
    assert "Moved by leo." in text(again)
    assert "typed with care" in again.content.decode()
    assert AuditEntry.objects.filter(act="job.deadline_moved").count() == 1


def test_the_deadline_of_what_does_not_wait_is_409(client):
    job = dead_now(make_live_lane())
    client.force_login(leo())

    assert move(client, job).status_code == 409


def test_a_hard_deadline_is_never_moved(client):
    job = waiting_now(make_live_lane(), deadline_kind="hard")
    client.force_login(leo())

    assert move(client, job).status_code == 409
    assert "job_move_deadline" not in see(client, rita(), job).content.decode()
    assert Job.objects.get().deadline == job.deadline


def test_moving_without_a_reason_is_422_and_without_the_right_404(client):
    job = waiting_now(make_live_lane())
    client.force_login(leo())
    assert move(client, job, reason="").status_code == 422
    client.force_login(rita())
    assert move(client, job).status_code == 404
    assert Job.objects.get().deadline == job.deadline
