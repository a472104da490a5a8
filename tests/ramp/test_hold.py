"""Holds: by a person at once, in two forms; never silent, never undone by anything but a person."""

from collections.abc import Callable

import pytest

from queue_core import contract, hold, ramp, roles, tick
from queue_core.contract import Ending
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import AuditEntry, Hold, Lane, Message, StageRun
from queue_core.states import HoldReason
from reviewboard.models import Person
from tests.factories import at, clock, waiting_job
from tests.ramp.stories import again, attempt_of, fail, leased, new_lane, probing, pull, raise_, running

pytestmark = pytest.mark.django_db


def test_whoever_may_decide_items_may_hold_a_lane_and_nothing_is_claimed_any_more(
    lead: Person, reviewer: Person
) -> None:
    lane = running(lead)
    job = waiting_job(lane, added=90)

    held = pull(lane, reviewer, when=100, reason="model_trouble", note="answers look odd")

    lane = again(lane)
    assert (held.outcome, held.hold, held.refused) == ("held", lane.hold, 0)
    assert (lane.run, lane.cap, lane.hold.by, lane.hold.reason) == (None, None, reviewer, "model_trouble")
    assert (lane.hold.is_automatic, lane.hold.started_at, lane.hold.note) == (False, at(100), "answers look odd")
    run = StageRun.objects.get(pk=lane.hold.run_id)
    assert (run.number, run.ended_at, run.ended_as, run.ended_by) == (2, at(100), "held", reviewer)
    assert contract.claim(job.pk, clock=clock(101), worker="w1").outcome == "on_hold"


def test_a_hold_writes_its_audit_row_and_its_message(lead: Person, reviewer: Person) -> None:
    lane = running(lead)

    pull(lane, reviewer, when=100, reason="desk_full")

    entry = AuditEntry.objects.get(act="lane.held")
    assert (entry.actor, entry.lane, entry.after["reason"], entry.before["stage"]) == (reviewer, lane, "desk_full", 2)
    message = Message.objects.get(kind="lane.on_hold")
    assert (message.lane, message.body["reason"], message.body["stage"]) == (lane, "desk_full", 2)


def test_running_calls_may_still_commit_after_a_hold(lead: Person, reviewer: Person) -> None:
    lane = running(lead)
    token = leased(lane, when=90)

    pull(lane, reviewer, when=100)

    assert contract.complete(token, Ending(result="APPROVED"), clock=clock(101)) == "committed"


def test_hold_and_refuse_makes_running_results_stale_and_gives_their_attempts_back(
    lead: Person, reviewer: Person
) -> None:
    lane = running(lead)
    token = leased(lane, when=90)

    held = pull(lane, reviewer, when=100, form="refuse", reason="wrong_answers")

    assert (held.outcome, held.refused, held.hold.form) == ("held", 1, "refuse")
    assert contract.complete(token, Ending(result="APPROVED"), clock=clock(101)) == "stale"
    attempt = attempt_of(token)
    assert (attempt.outcome, attempt.is_charged, attempt.is_committed) == ("refused_by_hold", False, False)
    assert (attempt.job.state, attempt.job.attempts, attempt.job.result) == ("WAITING", 0, None)


def test_a_second_hold_changes_nothing_and_names_the_first(lead: Person, reviewer: Person) -> None:
    lane = running(lead)
    first = pull(lane, reviewer, when=100)

    second = pull(lane, lead, when=101, reason="wrong_answers")

    assert (second.outcome, second.hold, second.hold.by) == ("already_on_hold", first.hold, reviewer)
    assert Hold.objects.filter(lane=lane, ended_at__isnull=True).count() == 1


def test_running_results_can_be_refused_on_a_lane_that_is_on_hold_already(lead: Person, reviewer: Person) -> None:
    lane = running(lead)
    token = leased(lane, when=90)
    pull(lane, reviewer, when=100)

    refusing = pull(lane, reviewer, when=101, form="refuse", reason="wrong_answers")
    repeated = pull(lane, reviewer, when=102, form="refuse", reason="wrong_answers")

    assert (refusing.outcome, refusing.refused, refusing.hold.form) == ("refusing", 1, "refuse")
    assert repeated.outcome == "already_on_hold"
    assert contract.complete(token, Ending(result="APPROVED"), clock=clock(103)) == "stale"
    assert AuditEntry.objects.filter(act="lane.results_refused").count() == 1


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"form": "stop"}, "form"),
        ({"reason": "auto_errors"}, "reason"),
        ({"reason": "because"}, "reason"),
        ({"note": "x" * 501}, "note"),
        ({"until": at(100)}, "until"),
    ],
)
def test_a_hold_with_an_argument_out_of_its_limits_is_refused(lead: Person, words: dict, field: str) -> None:
    lane = running(lead)

    with pytest.raises(InvalidRequest) as refused:
        pull(lane, lead, when=100, **words)

    assert refused.value.field == field
    assert again(lane).run == lane.run


def test_a_viewer_may_not_hold(lead: Person, person: Callable[..., Person]) -> None:
    lane = running(lead)

    with pytest.raises(NotPermitted):
        pull(lane, person(roles.VIEWER), when=100)

    assert again(lane).run == lane.run


def test_an_automatic_hold_of_a_run_that_is_over_does_nothing(lead: Person) -> None:
    lane = probing(lead)
    old = lane.run_id
    pull(lane, lead, when=20)
    raise_(lane, lead, when=30)

    lane = contract.lock_lane(lane.pk)

    assert not hold.automatic(lane, run_id=old, reason=HoldReason.AUTO_ERRORS, now=at(31))
    assert again(lane).run == lane.run


def test_a_held_lane_stays_held_whatever_the_machine_does(lead: Person) -> None:
    """RMP-10: until a person starts a new run, ticks, good calls and a saved lane change nothing."""
    lane = probing(lead)
    tokens = [leased(lane, when=15) for _number in range(2)]
    pull(lane, lead, when=20)

    for token in tokens:
        contract.complete(token, Ending(result="APPROVED"), clock=clock(21))
    for seconds in (25, 60, 3600):
        tick.tick(clock=clock(seconds))
        assert ramp.judge(lane.pk, clock=clock(seconds)) == "on_hold"
    again(lane).save()

    lane = again(lane)
    assert (lane.run, lane.cap, lane.hold.ended_at) == (None, None, None)


def test_a_change_of_what_was_approved_replaces_a_persons_hold_that_could_be_resumed(lead: Person) -> None:
    lane = running(lead)
    pull(lane, lead, when=100)

    changed = hold.for_change(
        contract.lock_lane(lane.pk), reason=HoldReason.CONNECTION_CHANGED, person=lead, now=at(110)
    )

    lane = again(lane)
    assert (lane.hold, changed.is_automatic, changed.run.number) == (changed, True, 2)
    assert ramp.resume(lane.pk, person=lead, reason="go on", clock=clock(120)).outcome == "not_a_persons_hold"


def test_a_lane_that_has_no_hold_row_can_still_be_put_on_hold(lead: Person) -> None:
    lane = new_lane()
    Hold.objects.filter(lane=lane).update(ended_at=at(1))
    Lane.objects.filter(pk=lane.pk).update(hold=None)

    assert pull(lane, lead, when=10).outcome == "held"
    assert again(lane).hold.by == lead


def test_a_hold_is_written_into_the_log_of_an_open_outage(lead: Person) -> None:
    lane = running(lead, unavailable_limit=1)
    fail(lane, "unavailable", when=90)
    raise_(lane, lead, when=100)

    pull(lane, lead, when=110, note="not yet")

    outage = lane.connection.outages.get()
    assert [(entry.code, entry.by) for entry in outage.entries.all()] == [
        ("opened", None),
        ("held", None),
        ("raised", lead),
        ("held", lead),
    ]
    assert outage.entries.last().text == "not yet"
