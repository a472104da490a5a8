"""Intake against intake: of one ticket, of two revisions, of names that cross."""

from collections import Counter
from dataclasses import replace

import pytest

from queue_core import contract
from queue_core.models import Evidence, FigureChange, Item, Job, Ticket
from queue_core.states import AddOutcome
from tests.factories import at, clock, make_lane, new_ticket, waiting_job
from tests.locking import holding, started, together, wait_until_blocked

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_fifty_equal_tickets_at_once_one_is_stored_and_the_others_are_known() -> None:
    """PGQ-12: the losers of the first insert get the stored answer, not an error."""
    ticket = new_ticket(make_lane())

    answers = together([lambda: contract.receive(ticket, clock=clock(0))] * 50)

    assert Counter(answer.outcome for answer in answers) == {AddOutcome.STORED: 1, AddOutcome.KNOWN: 49}
    assert len({answer.job.pk for answer in answers}) == Job.objects.count() == Ticket.objects.count() == 1


def test_of_two_revisions_at_once_one_wins_and_every_other_is_a_conflict_mod_05() -> None:
    """PGQ-13: a reused key with another body is a conflict, and changes nothing."""
    lane = make_lane()
    one = new_ticket(lane, revision="v1")
    two = replace(one, revision="v2")

    answers = together([lambda t=(one, two)[n % 2]: contract.receive(t, clock=clock(0)) for n in range(50)])

    assert Counter(answer.outcome for answer in answers) == {
        AddOutcome.STORED: 1,
        AddOutcome.KNOWN: 24,
        AddOutcome.REVISION_CONFLICT: 25,
    }
    winner = Job.objects.get()
    again = contract.receive(replace(one, revision=winner.revision, deadline=at(99), evidence="other"), clock=clock(1))
    assert (again.outcome, again.job.deadline) == (AddOutcome.KNOWN, at(1000))
    assert Evidence.objects.count() == 1


def test_urgent_tickets_at_once_are_one_item() -> None:
    ticket = new_ticket(make_lane(), severity=3)

    together([lambda: contract.receive(ticket, clock=clock(0))] * 10)

    assert Item.objects.count() == 1


def test_batches_with_the_same_names_in_opposite_order_do_not_wait_for_each_other_in_a_ring() -> None:
    lane = make_lane()
    for _ in range(5):
        tickets = [new_ticket(lane) for _ in range(40)]

        answers = together(
            [lambda o=order: contract.receive_many(o, clock=clock(0)) for order in (tickets, tickets[::-1]) * 3]
        )

        stored = [a for one in answers for a in one if isinstance(a, contract.Received) and a.outcome == "stored"]
        assert len(stored) == 40


def test_batches_that_cross_on_a_stored_ticket_and_a_new_name_both_end() -> None:
    lane = make_lane()
    stored, new = waiting_job(lane), new_ticket(lane)
    known = new_ticket(lane, external_id=stored.ticket.external_id)

    with holding(lambda: contract.receive(known, clock=clock(0))):
        first = started("first-batch", lambda: contract.receive_many([new, known], clock=clock(0)))
        wait_until_blocked(first)
        second = started("second-batch", lambda: contract.receive_many([known, new], clock=clock(0)))
        wait_until_blocked(second)

    assert [a.outcome for a in first.outcome()] == ["stored", "known"]
    assert [a.outcome for a in second.outcome()] == ["known", "known"]


def test_a_batch_that_meets_a_name_of_another_call_stores_and_counts_the_others_alone() -> None:
    lane = make_lane()
    met, own, urgent = new_ticket(lane), new_ticket(lane), new_ticket(lane, severity=3)

    with holding(lambda: contract.receive(met, clock=clock(0))):
        batch = started("batch", lambda: contract.receive_many([met, own, urgent], clock=clock(0)))
        wait_until_blocked(batch)

    assert [answer.outcome for answer in batch.outcome()] == ["known", "stored", "stored"]
    assert Ticket.objects.count() == Evidence.objects.count() == Job.objects.count() == 3
    assert Item.objects.get().ticket.external_id == urgent.external_id
    counts = sum((Counter(change.counts) for change in FigureChange.objects.all()), Counter())
    totals = Counter[str]()
    for change in FigureChange.objects.all():
        totals.update(change.totals)
    assert counts["added"] == 3
    assert (totals["WAITING"], totals["DEAD.pulled"], totals["item.urgent"]) == (2, 1, 1)
