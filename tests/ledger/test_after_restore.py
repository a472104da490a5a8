"""After a restore: lanes on hold, fences raised, and what nobody can know is said to be unknown."""

import io
import sys
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from queue_core import batch, contract, hold
from queue_core.contract import Ending
from queue_core.contract.restored import leave_unknown
from queue_core.ledger import audit
from queue_core.models import Attempt, AuditEntry, Hold, Job, Lane, Message
from queue_core.restore import after_restore
from queue_core.states import AttemptOutcome, HoldForm, HoldReason
from tests.factories import JUDGED, clock, done_job, leased_job, make_lane, make_run, waiting_job
from tests.ledger.stories import Story
from tests.people.cast import leo

pytestmark = pytest.mark.django_db


def restored(when: float = 100) -> dict[str, tuple[bool, int, int]]:
    return {
        one.lane.name: (one.is_held_now, one.left.waiting, one.left.for_takeover)
        for one in after_restore(clock=clock(when))
    }


def outcomes(job: Job) -> list[tuple[int, str | None, bool]]:
    return list(Attempt.objects.filter(job=job).order_by("fence").values_list("fence", "outcome", "is_charged"))


def expired_job(lane: Lane) -> Job:
    """LEASED, with an attempt that a sweep has closed."""
    job, _token = leased_job(lane, claimed=1)
    contract.sweep(clock=clock(101))
    job.refresh_from_db()
    assert job.state == "LEASED"
    return job


def test_every_lane_is_on_hold_because_the_database_was_restored() -> None:
    running, held = make_lane(), make_lane(cap=None)

    assert restored() == {running.name: (True, 0, 0), held.name: (True, 0, 0)}

    for lane in Lane.objects.select_related("hold", "run"):
        assert lane.run is None
        assert lane.hold is not None
        assert (lane.hold.reason, lane.hold.is_automatic, lane.hold.by) == (HoldReason.RESTORED, True, None)
    assert Hold.objects.filter(ended_at__isnull=True).count() == 2
    assert Message.objects.filter(kind="lane.on_hold", body__reason="restored").count() == 2
    assert AuditEntry.objects.filter(act="lane.held", actor=None).count() == 2


def test_a_persons_hold_is_replaced_since_it_could_be_resumed() -> None:
    lane = make_lane()
    hold.pull(lane.pk, person=leo(), form=HoldForm.HOLD, reason=HoldReason.PRECAUTION, clock=clock(50))

    restored()

    assert list(lane.holds.order_by("pk").values_list("reason", "ended_at")) == [
        (HoldReason.PRECAUTION, clock(100).now()),
        (HoldReason.RESTORED, None),
    ]


def test_a_leased_job_waits_again_under_a_higher_fence_and_its_attempt_is_unknown() -> None:
    job, token = leased_job(make_lane(), claimed=50)

    restored()
    job.refresh_from_db()

    assert (job.state, job.fence, job.attempts) == ("WAITING", 2, 0)
    assert outcomes(job) == [(1, AttemptOutcome.UNKNOWN, False), (2, AttemptOutcome.FENCE_RAISED, False)]
    assert contract.complete(token, Ending(result="APPROVED"), clock=clock(101)) == "stale"
    assert job.late_answers.count() == 1


def test_a_job_whose_lease_had_expired_stays_leased_to_be_taken_over_alone() -> None:
    lane = make_lane()
    job = expired_job(lane)

    assert restored(200) == {lane.name: (True, 0, 1)}
    job.refresh_from_db()

    assert (job.state, job.fence, job.attempts) == ("LEASED", 2, 1)
    assert outcomes(job) == [(1, AttemptOutcome.LEASE_EXPIRED, True), (2, AttemptOutcome.UNKNOWN, False)]

    start_again(lane)
    [claimed] = batch.claim_expired(lane.pk, clock=clock(300), worker="w").claims
    assert (claimed.token.job, claimed.token.fence, claimed.number) == (job.pk, 3, 2)
    assert contract.complete(claimed.token, Ending(result="APPROVED"), clock=clock(301)) == "committed"
    assert audit().is_clean


def start_again(lane: Lane) -> None:
    Hold.objects.filter(lane=lane).update(ended_at=clock(250).now())
    run = make_run(lane)
    Lane.objects.filter(pk=lane.pk).update(run=run, hold=None, cap=run.cap, judged_at=JUDGED)


def test_the_last_attempt_is_given_back_since_the_ticket_did_nothing() -> None:
    job, _token = leased_job(make_lane(max_attempts=1), claimed=50)

    restored()
    job.refresh_from_db()

    assert (job.state, job.attempts) == ("WAITING", 0)


def test_what_waits_and_what_ended_is_left_alone() -> None:
    lane = make_lane()
    before = [waiting_job(lane), done_job(lane)]

    restored()

    for job in before:
        again = Job.objects.get(pk=job.pk)
        assert (again.state, again.fence, again.attempts) == (job.state, job.fence, job.attempts)


def test_a_second_run_changes_nothing() -> None:
    lane = make_lane()
    expired = expired_job(lane)
    running, _token = leased_job(lane, added=150, claimed=151)
    restored(200)
    before = rows()

    assert restored(300) == {lane.name: (False, 0, 0)}

    assert rows() == before
    assert [Job.objects.get(pk=job.pk).fence for job in (expired, running)] == [2, 2]


def rows() -> list[object]:
    tables = (Job, Attempt, Hold, Lane, AuditEntry, Message)
    return [list(table.objects.order_by("pk").values()) for table in tables]


def test_each_act_is_audited_with_what_it_did() -> None:
    lane = make_lane()
    leased_job(lane, claimed=50)

    restored()

    entry = AuditEntry.objects.get(act="lane.leases_unknown")
    assert (entry.lane_id, entry.actor_name, entry.after) == (lane.pk, "system", {"waiting": 1, "for_takeover": 0})


def test_more_leases_than_one_batch_are_left_unknown_batch_by_batch() -> None:
    lane = make_lane()
    for _ in range(5):
        leased_job(lane, claimed=50)

    batches = [leave_unknown(lane.pk, clock=clock(100), limit=2).total for _ in range(4)]

    assert batches == [2, 2, 1, 0]
    assert set(Job.objects.values_list("state", "fence")) == {("WAITING", 2)}


def test_the_ledger_is_clean_after_a_restore_in_the_middle_of_everything() -> None:
    story = Story(5)
    story.play(150)

    restored(story.now + 1)

    assert [f"{one.rule.code} {one.key}" for one in audit().findings] == []


def test_the_command_says_what_it_did() -> None:
    lane = make_lane(lease=timedelta(days=3650))
    leased_job(lane, deadline=10**9)
    out = io.StringIO()

    call_command("after_restore", yes=True, stdout=out)

    assert f"{lane.name}: put on hold. Jobs that wait again: 1; to be taken over: 0." in out.getvalue()
    assert "1 lane is on hold until a lead starts its probe." in out.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("answer", ["", "y", "no"])
def test_the_command_changes_nothing_without_a_plain_yes(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    lane = make_lane()
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))

    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("after_restore")

    assert Lane.objects.get(pk=lane.pk).run_id is not None


def test_the_command_goes_on_after_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = make_lane()
    monkeypatch.setattr(sys, "stdin", Terminal("yes\n"))

    call_command("after_restore", stdout=io.StringIO())

    assert Lane.objects.get(pk=lane.pk).run_id is None


def test_the_command_does_not_hang_where_nobody_can_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    make_lane()
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))

    with pytest.raises(CommandError, match="--yes"):
        call_command("after_restore")
