"""Kept figures say what the ledger says, whatever verbs did, folded or not."""

from contextlib import suppress
from random import Random

import pytest
from django.db import connection, transaction

from queue_core import at_once, contract, figures, tally
from queue_core.contract import Ending
from queue_core.figures import recount
from queue_core.figures.folding import LOCK
from queue_core.figures.heads import walk_heads
from queue_core.figures.rebuilding import rebuild
from queue_core.models import FigureChange, Job, Lane, LaneMinute, LaneTotal, WaitingDue
from queue_core.states import AttemptOutcome
from queue_core.where import FACTS, Cause, facts_of, facts_params, lanes_to_read
from tests.factories import T0, at, claim, clock, done_job, leased_job, make_lane, new_ticket, waiting_job
from tests.ledger.stories import Story

pytestmark = pytest.mark.django_db

#: Of claims before a requeue the ledger no longer knows how long the job had waited.
NOT_IN_THE_LEDGER = f"{tally.WAIT}."


def kept(lanes: list[Lane]) -> dict[str, object]:
    """All that is kept of these lanes, without what is zero."""
    ids = [lane.pk for lane in lanes]
    counts = figures.counts(ids, since=T0, until=at(100 * 86400))
    due = figures.due(ids, since=T0, until=at(100 * 86400))
    return {
        "counts": {pk: exact(one.by_code) for pk, one in counts.items()},
        "totals": {pk: exact(one) for pk, one in figures.totals(ids).items()},
        "due": due,
    }


def told_by_the_ledger(lanes: list[Lane]) -> dict[str, object]:
    ids = [lane.pk for lane in lanes]
    bounds = {"since": T0, "until": at(100 * 86400)}
    counts: dict[int, dict[str, int]] = {pk: {} for pk in ids}
    events = recount.events(ids, **bounds)
    for table in recount.WALKED:
        events += recount.walked(table, after=0, last=2**62, **bounds)
    for lane, _minute, code, number in events:
        counts[lane][code] = counts[lane].get(code, 0) + number
    totals: dict[int, dict[str, int]] = {pk: {} for pk in ids}
    for lane, code, number in recount.totals(ids):
        totals[lane][code] = number
    for pk in ids:
        totals[pk]["DONE"] = Job.objects.filter(lane=pk, state="DONE").count()
    due: dict[int, list[object]] = {pk: [] for pk in ids}
    for lane, minute, severity, number in sorted(recount.due(ids)):
        due[lane].append((minute, severity, number))
    return {
        "counts": {pk: exact(one) for pk, one in counts.items()},
        "totals": {pk: exact(one) for pk, one in totals.items()},
        "due": due,
    }


def exact(numbers) -> dict[str, int]:
    return {code: n for code, n in numbers.items() if n and not code.startswith(NOT_IN_THE_LEDGER)}


@pytest.mark.parametrize("seed", [1, 4])
def test_figures_are_those_of_the_ledger_after_any_story_folded_or_not(seed: int) -> None:
    story, chance = Story(seed), Random(seed)
    for _ in range(6):
        story.play(20)
        assert kept(story.lanes) == told_by_the_ledger(story.lanes)
        if chance.random() < 0.5:
            figures.fold()
            assert not FigureChange.objects.exists()
            assert kept(story.lanes) == told_by_the_ledger(story.lanes)


def test_a_rebuild_says_the_same_and_leaves_the_next_fold_right() -> None:
    """What is not folded yet is in the ledger already, and must not be counted twice."""
    story = Story(7)
    story.play(60)
    before = kept(story.lanes)
    LaneMinute.objects.all().delete()
    LaneTotal.objects.update(number=99)
    WaitingDue.objects.create(lane=story.lanes[0], minute=at(60), severity=2, number=7)

    rebuild(clock=clock(story.now), chunk=3)
    with_unfolded = kept(story.lanes)
    figures.fold()

    assert with_unfolded == before
    assert kept(story.lanes) == before


def test_a_rebuild_a_day_later_recounts_minutes_that_are_over() -> None:
    story = Story(8)
    story.play(60)
    before = kept(story.lanes)
    figures.fold()
    LaneMinute.objects.update(counts={"claimed": 1})

    rebuild(clock=clock(story.now + 86_400))

    assert kept(story.lanes) == before


def test_a_fold_moves_each_row_once_and_readers_see_no_difference() -> None:
    lane = make_lane()
    done_job(lane)
    waiting_job(lane, deadline=90, severity=2)
    before = kept([lane])

    assert figures.fold() == 4
    assert figures.fold() == 0
    assert kept([lane]) == before
    assert before["totals"] == {lane.pk: {"DONE": 1, "WAITING": 1, "left.3": 1}}
    assert before["due"] == {lane.pk: [(at(60), 2, 1)]}


def test_waits_and_calls_fall_into_buckets_by_their_length() -> None:
    lane = make_lane()
    for wait, latency in ((0.5, 0.005), (1, 0.01), (59, 0.2), (86_400, 61)):
        job = waiting_job(lane, deadline=200_000)
        token = claim(job, when=wait)
        ending = Ending(result="APPROVED", latency=at(latency) - T0)
        contract.complete(token, ending, clock=clock(wait + 1))
    counts = figures.counts([lane.pk], since=T0, until=at(200_000))[lane.pk]

    assert counts.histogram(tally.WAIT) == [1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert counts.histogram(tally.LATENCY) == [1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]


def test_a_refused_connection_says_nothing_of_the_models_speed() -> None:
    lane = make_lane()
    for outcome in (AttemptOutcome.UNAVAILABLE, AttemptOutcome.TIMEOUT):
        _job, token = leased_job(lane)
        contract.release(token, outcome=outcome, clock=clock(2), latency=at(1) - T0)
    counts = figures.counts([lane.pk], since=T0, until=at(60))[lane.pk]

    assert sum(counts.histogram(tally.LATENCY)) == 1
    assert counts.ended("unavailable", "timeout") == 2


def test_a_series_has_its_empty_steps_and_adds_up_to_the_counts() -> None:
    lane = make_lane()
    for minute in (0, 1, 5):
        contract.receive(new_ticket(lane), clock=clock(minute * 60 + 1))
    figures.fold()
    waiting_job(lane, added=301)
    steps = figures.series([lane.pk], since=at(30), until=at(360), step=2 * tally.MINUTE)[lane.pk]

    assert [one.added for one in steps] == [2, 0, 2]
    assert figures.counts([lane.pk], since=at(0), until=at(360))[lane.pk].added == 4
    assert figures.counts([lane.pk], since=at(60), until=at(300))[lane.pk].added == 1


def test_what_a_verb_that_fails_noted_is_forgotten_with_it() -> None:
    lane = make_lane()
    with transaction.atomic(), tally.kept():
        tally.count(lane.pk, tally.ADDED, now=at(0))
        with suppress(ZeroDivisionError), transaction.atomic(), tally.kept():
            tally.count(lane.pk, tally.ADDED, now=at(0), number=5)
            raise ZeroDivisionError

    assert [change.counts for change in FigureChange.objects.all()] == [{"added": 1}]


def test_nothing_is_noted_outside_a_verb() -> None:
    with pytest.raises(transaction.TransactionManagementError, match="inside a verb"):
        tally.count(1, tally.ADDED, now=at(0))


def test_what_is_too_old_goes_and_a_wrong_number_of_deadlines_stays_to_be_found() -> None:
    lane = make_lane()
    done_job(lane)
    figures.fold()
    WaitingDue.objects.create(lane=lane, minute=at(0), severity=0, number=3)
    assert WaitingDue.objects.filter(number=0).count() == 1

    assert figures.forget(clock=clock(35 * 86_400)) == 1
    assert figures.forget(clock=clock(37 * 86_400)) == 1
    assert LaneMinute.objects.count() == 0
    assert [one.number for one in WaitingDue.objects.all()] == [3]


def test_a_hot_lane_writes_one_row_a_statement() -> None:
    from queue_core import batch

    lane = make_lane()
    for _ in range(5):
        waiting_job(lane)
    figures.fold()

    batch.claim_next(lane.pk, 5, clock=clock(1), worker="w")
    [change] = FigureChange.objects.all()

    assert change.counts == {"claimed": 5, "wait.1": 5}
    assert change.totals == {"WAITING": -5, "LEASED": 5, "left.3": -5}
    assert connection.in_atomic_block


@pytest.mark.django_db(transaction=True)
def test_a_fold_beside_another_does_nothing_and_waits_for_nobody() -> None:
    lane = make_lane()
    waiting_job(lane)
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        beside = figures.fold()
        cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
    other.close()

    assert beside == 0
    assert figures.fold() == 1
    assert figures.fold() == 0
    assert figures.totals([lane.pk])[lane.pk]["WAITING"] == 1


def test_the_tick_walks_to_what_waits_first_and_to_what_runs_first() -> None:
    running, held = make_lane(), make_lane(cap=None)
    leased_job(running)
    assert walk_heads() == (0, 1)
    waiting_job(running)
    waiting_job(held)

    assert walk_heads() == (1, 1), "a lane on hold has nothing to step over"


@pytest.mark.parametrize(("rate", "is_counted"), [(1, True), (2, False)])
def test_claims_are_counted_row_by_row_only_where_the_rate_may_be_full(rate: int, is_counted: bool) -> None:
    lane = make_lane(run={"rate": rate})
    claim(waiting_job(lane), when=10)
    [lane] = lanes_to_read(Lane.objects.filter(pk=lane.pk))

    told = at_once.tell(FACTS, facts_params([lane], now=at(20)))

    assert bool(told.get("grants")) is is_counted
    limit = facts_of([lane], now=at(20))[lane.pk].limit
    assert (limit is not None and limit.cause == Cause.RATE) is is_counted
