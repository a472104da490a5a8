"""Bulk acts: exactly what the preview showed, job by job, each told."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from queue_core import bulk, contract, people
from queue_core.bulk import ConfirmOutcome, Terms, previewing
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import AuditEntry, BulkAct, BulkEntry, Item, Job
from tests.bulk.acts import HOUR, confirmed, lola, outcomes, preview, work
from tests.factories import at, claim, clock, dead_job, done_job, make_lane, waiting_job
from tests.people.cast import item_of, rita, take

pytestmark = pytest.mark.django_db


def test_dead_jobs_are_requeued_with_deadlines_spread_most_severe_first():
    lane, who = make_lane(), lola()
    mild, severe, middle = (dead_job(lane, severity=severity) for severity in (0, 2, 1))
    act = confirmed("requeue", who, span=timedelta(seconds=200))

    assert work(act) == 3

    assert outcomes(act) == {severe.pk: "done", middle.pk: "done", mild.pk: "done"}
    deadlines = dict(Job.objects.values_list("pk", "deadline"))
    assert deadlines == {severe.pk: at(3620), middle.pk: at(3720), mild.pk: at(3820)}
    act.refresh_from_db()
    assert (act.begun_at, act.ended_at) == (at(30), at(30))
    assert AuditEntry.objects.filter(act="job.requeued", actor=who, reason="the model is back").count() == 3
    assert list(AuditEntry.objects.filter(act__startswith="bulk.").values_list("act", "actor_name")) == [
        ("bulk.confirmed", "lola"),
        ("bulk.ended", "system"),
    ]


def test_what_changed_since_the_preview_is_left_alone_and_told():
    """ADM-04: what matched later is not hit, and what moved is not hit twice."""
    lane, who, reviewer = make_lane(), lola(), rita()
    same, taken, given_back, decided, again = (dead_job(lane) for _ in range(5))
    act = confirmed("requeue", who)
    take(item_of(taken), reviewer, when=25)
    people.give_back(take(item_of(given_back), reviewer, when=25), person=reviewer, clock=clock(26))
    people.resolve(take(item_of(decided), reviewer, when=25), person=reviewer, verdict="APPROVED", clock=clock(26))
    contract.requeue(again.pk, deadline=at(27), clock=clock(26), person=who, reason="by hand")
    contract.sweep(clock=clock(28))
    later = dead_job(lane, deadline=29)

    work(act)

    assert outcomes(act) == {
        same.pk: "done", taken.pk: "taken", given_back.pk: "changed", decided.pk: "changed", again.pk: "changed",
    }  # fmt: skip
    later.refresh_from_db()
    assert later.state == "DEAD"


def test_waiting_jobs_are_pulled_for_the_desk_and_a_claimed_one_is_the_models():
    lane, who = make_lane(), lola()
    first, second, claimed = (waiting_job(lane) for _ in range(3))
    done_job(lane)
    act = confirmed("pull", who)
    claim(claimed, when=25)

    work(act)

    assert outcomes(act) == {first.pk: "done", second.pk: "done", claimed.pk: "changed"}
    assert {(item.kind, item.taken_by_id) for item in Item.objects.all()} == {("pulled", None)}
    first.refresh_from_db()
    assert (first.state, first.dead_reason, first.fence) == ("DEAD", "pulled", 1)


def test_service_deadlines_move_once_an_outage_and_hard_ones_never():
    lane, who = make_lane(), lola()
    moved, fresh, far = waiting_job(lane), waiting_job(lane), waiting_job(lane, deadline=99_000)
    hard = waiting_job(lane, deadline_kind="hard")
    contract.move_deadline(moved.pk, deadline=at(1200), clock=clock(10), person=who, reason="alone")
    shown = preview("move_deadlines", who)
    assert (shown.count, shown.left_out, bulk.moved_before(shown.act)) == (3, {"hard": 1}, 1)

    act = confirmed("move_deadlines", who)
    work(act)

    assert outcomes(act) == {fresh.pk: "done", moved.pk: "moved_before", far.pk: "not_later"}
    overridden = confirmed("move_deadlines", who, jobs=[moved], first=2 * HOUR, moves_again=True, when=40)
    work(overridden, when=50)
    assert outcomes(overridden) == {moved.pk: "done"}
    hard.refresh_from_db()
    assert hard.deadline == at(1000)


def test_a_preview_changes_nothing_and_is_thrown_away_if_nobody_confirms_it():
    lane, who = make_lane(), lola()
    job = dead_job(lane)
    shown = preview("requeue", who)

    assert (shown.count, work(shown.act)) == (1, 0)
    assert not bulk.stop(shown.act.pk, person=who, clock=clock(21))
    assert bulk.drop_old(clock=clock(30)) == 0
    assert bulk.drop_old(clock=clock(20 + 3601)) == 1
    job.refresh_from_db()
    assert (job.state, BulkAct.objects.count(), BulkEntry.objects.count()) == ("DEAD", 0, 0)
    assert not AuditEntry.objects.filter(act__startswith="bulk.").exists()


def test_a_confirmation_is_its_makers_own_once_and_not_of_an_old_preview():
    """HTX-09: the second submission has no effect and is no error."""
    lane, who, other = make_lane(), lola(), lola("lenny")
    dead_job(lane)
    pk = preview("requeue", who).act.pk

    def confirm(person, when=20):
        answer = bulk.confirm(pk, terms=Terms(first=HOUR), reason="back", person=person, clock=clock(when))
        return answer.outcome

    assert confirm(other) == ConfirmOutcome.MISSING
    assert confirm(who, when=20 + 901) == ConfirmOutcome.TOO_OLD
    assert confirm(who) == ConfirmOutcome.CONFIRMED
    assert confirm(who) == ConfirmOutcome.ALREADY
    assert AuditEntry.objects.filter(act="bulk.confirmed").count() == 1


@pytest.mark.parametrize("fault", [{"first": None}, {"first": timedelta(0)}, {"span": timedelta(days=8)}])
def test_terms_out_of_bounds_are_the_callers_mistake(fault):
    dead_job(make_lane())
    pk, who = preview("requeue", lola()).act.pk, BulkAct.objects.get().by

    with pytest.raises(InvalidRequest):
        bulk.confirm(pk, terms=Terms(**{"first": HOUR} | fault), reason="back", person=who, clock=clock(20))
    with pytest.raises(InvalidRequest):
        bulk.confirm(pk, terms=Terms(first=HOUR), reason="  ", person=who, clock=clock(20))
    assert BulkAct.objects.get().confirmed_at is None


def test_rights_are_asked_again_at_each_jobs_turn():
    """MOD-10: an act reaches no further than its maker's rights of that moment."""
    lane, who = make_lane(), lola()
    jobs = [dead_job(lane) for _ in range(2)]
    with pytest.raises(NotPermitted):
        preview("requeue", rita())
    act = confirmed("requeue", who)
    who.user_permissions.clear()

    work(act)

    assert outcomes(act) == dict.fromkeys((job.pk for job in jobs), "no_right")
    assert not Job.objects.filter(state="WAITING").exists()


def test_restricted_evidence_is_no_part_of_any_act():
    lane, who = make_lane(), lola()
    dead_job(lane, is_restricted=True)

    shown = preview("requeue", who)

    assert (shown.act, shown.left_out) == (None, {"restricted": 1})


def test_a_stop_between_two_jobs_leaves_the_rest_and_says_so():
    lane, who = make_lane(), lola()
    first, *rest = [dead_job(lane) for _ in range(4)]
    act = confirmed("requeue", who)
    assert work(act, is_stopping=lambda: act.entries.filter(outcome="done").exists()) == 1

    assert bulk.stop(act.pk, person=who, clock=clock(40))

    assert work(act) == 0
    assert outcomes(act) == {first.pk: "done", **dict.fromkeys((job.pk for job in rest), "stopped")}
    act.refresh_from_db()
    assert (act.stopped_by, act.ended_at) == (who, at(40))
    assert not bulk.stop(act.pk, person=who, clock=clock(41))


def test_an_act_whose_message_was_lost_is_woken_again_and_no_other(silent_wakeups, django_capture_on_commit_callbacks):
    lane, who = make_lane(), lola()
    jobs = [dead_job(lane) for _ in range(2)]
    waits, over = confirmed("requeue", who, jobs=jobs[:1]), confirmed("requeue", who, jobs=jobs[1:])
    preview("requeue", who, jobs=jobs[:1])
    work(over)

    assert bulk.wake_waiting(clock=clock(25)) == 0
    with django_capture_on_commit_callbacks(execute=True):
        assert bulk.wake_waiting(clock=clock(31)) == 1
    assert ("queue_core.tasks.bulk", waits.pk) in silent_wakeups


def test_one_job_that_fails_is_told_and_the_others_go_on(monkeypatch):
    lane, who = make_lane(), lola()
    bad, good = dead_job(lane, severity=1), dead_job(lane, severity=0)
    act = confirmed("requeue", who)
    requeue = contract.requeue

    def fails(job_id, **terms):
        outcome = requeue(job_id, **terms)
        if job_id == bad.pk:
            raise RuntimeError("a receiver of somebody's")
        return outcome

    monkeypatch.setattr(contract, "requeue", fails)
    work(act)

    assert outcomes(act) == {bad.pk: "failed", good.pk: "done"}
    assert act.entries.get(job=bad).fault == "RuntimeError"
    bad.refresh_from_db()
    assert bad.state == "DEAD"


def test_more_than_an_act_may_hold_is_said(monkeypatch):
    monkeypatch.setattr(previewing, "MOST", 2)
    lane = make_lane()
    for _ in range(3):
        dead_job(lane)

    shown = preview("requeue", lola())

    assert (shown.count, shown.act.is_capped) == (2, True)


def test_the_database_keeps_a_confirmed_act_as_it_was():
    act = confirmed("requeue", lola(), jobs=[dead_job(make_lane())])
    work(act)

    for change in (
        lambda: BulkAct.objects.update(reason="another"),
        lambda: BulkAct.objects.update(ended_at=at(99)),
        lambda: BulkAct.objects.all().delete(),
        lambda: BulkEntry.objects.update(outcome="failed"),
        lambda: BulkEntry.objects.update(fence=7),
        lambda: BulkEntry.objects.all().delete(),
        lambda: BulkEntry.objects.create(
            act=act, place=9, job=dead_job(make_lane()), fence=0, deadline=at(9), severity=0
        ),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            change()


def test_items_are_handed_over_and_escalated_as_far_as_one_may():
    lane, who, receiver, other = make_lane(), rita(), lola("lenny"), lola("olaf")
    free, own, others, *more = [dead_job(lane, severity=severity) for severity in (2, 2, 2, 1, 1, 1, 1)]
    take(item_of(own), who, when=15)
    take(item_of(others), other, when=15)
    shown = preview("hand_over", who)
    assert shown.left_out == {"taken": 1}
    bulk.discard(shown.act.pk, person=who)

    act = confirmed("hand_over", who, to=receiver.pk)
    take(item_of(more[0]), other, when=25)
    work(act)

    done = outcomes(act)
    assert (done[free.pk], done[own.pk], done[more[0].pk]) == ("done", "done", "changed")
    assert sorted(done.values()) == ["changed", "done", "done", "done", "done", "done"]
    assert Item.objects.filter(taken_by=receiver).count() == 5

    escalated = confirmed("escalate", receiver, when=40)
    work(escalated, when=41)
    assert set(outcomes(escalated).values()) == {"done"}
    assert Item.objects.filter(for_leads=True, taken_by__isnull=True).count() == escalated.entries.count()
