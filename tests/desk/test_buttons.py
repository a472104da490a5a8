"""A button stands on a page exactly when its verb would accept the act: every state of an item against every act."""

import re
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import transaction
from django.urls import reverse

from queue_core import contract, people
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract.blind import open_blind_items
from queue_core.contract.erase import erase
from queue_core.errors import CallerError
from queue_core.models import Decision, Evidence, Item, Job
from queue_core.people import (
    AppealOutcome,
    CorrectOutcome,
    HoldingOutcome,
    ResolveOutcome,
    TakeBackOutcome,
    TakeOutcome,
)
from queue_core.states import AssignmentToken
from reviewboard.models import Person
from tests.desk.backlog import dead_now, make_live_lane, manual_now, now, token_of, waiting_now
from tests.factories import make_ground
from tests.people.cast import LEAD, person

pytestmark = pytest.mark.django_db

ALL = (*LEAD, "lead_desk", "appeal_decision", "view_restricted")
NO_KEY = UUID(int=0)


@dataclass
class Cast:
    """`mine` is the reader of the page; the others make the states and hold what is not the reader's."""

    lane: object
    mine: Person
    first: Person
    second: Person


@pytest.fixture
def cast():
    make_ground("insult")
    lane = make_live_lane(second_look_share=1.0, deadline_default=timedelta(hours=4))
    return Cast(lane, *(person(name, *ALL) for name in ("mine", "first", "second")))


def open_item():
    return Item.objects.get(closed_at__isnull=True)


def take(item, who):
    return people.take(item.pk, person=who, clock=DATABASE_CLOCK).token


def decided(item, who, verdict="APPROVED"):
    code = "insult" if verdict == "REJECTED" else None
    done = people.resolve(
        take(item, who), person=who, verdict=verdict, reason_code=code, note="n", clock=DATABASE_CLOCK
    )
    return done.decision


def done_by_the_model(cast):
    job = waiting_now(cast.lane)
    token = contract.claim(job.pk, clock=DATABASE_CLOCK, worker="w1").token
    contract.complete(token, contract.Ending(result="APPROVED"), clock=DATABASE_CLOCK)
    return Decision.objects.get(job=job)


def of_the_model(cast):
    return manual_now(cast.lane)


def dead(cast):
    dead_now(cast.lane)
    return open_item()


def dead_and_erased(cast):
    item = dead(cast)
    erase(item.ticket_id, ground="asked", actor=None, clock=DATABASE_CLOCK)
    return open_item()


def dead_and_taken_back(cast):
    decision = decided(dead(cast), cast.first)
    token = people.take_back(decision.pk, person=cast.first, clock=DATABASE_CLOCK).token
    people.give_back(token, person=cast.first, clock=DATABASE_CLOCK)
    return open_item()


def dead_by_a_pull(cast):
    taken = people.pull(waiting_now(cast.lane).pk, person=cast.first, reason="r", clock=DATABASE_CLOCK)
    people.give_back(taken.token, person=cast.first, clock=DATABASE_CLOCK)
    return open_item()


def urgent(cast):
    waiting_now(cast.lane, severity=3)
    return open_item()


def blind(cast):
    open_blind_items([done_by_the_model(cast).pk], within=timedelta(hours=1), clock=DATABASE_CLOCK)
    return open_item()


def second_look(cast):
    decided(of_the_model(cast), cast.first)
    return open_item()


def second_look_at_ones_own(cast):
    decided(of_the_model(cast), cast.mine)
    return open_item()


def disputed(cast):
    decided(second_look(cast), cast.second, "REJECTED")
    return open_item()


def disputed_by_oneself(cast):
    decided(second_look(cast), cast.mine, "REJECTED")
    return open_item()


def corrected(cast):
    opened = people.correct(done_by_the_model(cast).pk, person=cast.first, clock=DATABASE_CLOCK)
    people.give_back(opened.token, person=cast.first, clock=DATABASE_CLOCK)
    return open_item()


def appealed(cast):
    ticket = done_by_the_model(cast).ticket
    people.appeal(
        source=ticket.source, external_id=ticket.external_id, statement="no", person=cast.first, clock=DATABASE_CLOCK
    )
    return open_item()


def restricted(cast):
    item = of_the_model(cast)
    Evidence.objects.update(is_restricted=True)
    return Item.objects.get(pk=item.pk)


def escalated(cast):
    item = of_the_model(cast)
    people.escalate_item(item.pk, fence=item.fence, person=cast.first, reason="r", clock=DATABASE_CLOCK)
    return open_item()


KINDS = [
    of_the_model, dead, dead_and_erased, dead_and_taken_back, dead_by_a_pull, urgent, blind, second_look,
    second_look_at_ones_own, disputed, disputed_by_oneself, corrected, appealed, restricted, escalated,
]  # fmt: skip


def free(item, cast):
    return True


def own(item, cast):
    return take(item, cast.mine) is not None


def of_another(item, cast):
    return any(take(item, who) is not None for who in (cast.second, cast.first, person("third", *ALL)))


def closed(item, cast):
    """Withdrawn at its source."""
    ticket = item.ticket
    return contract.withdraw(source=ticket.source, external_id=ticket.external_id, clock=DATABASE_CLOCK) == "done"


def verbs(item, cast):
    """Each act of the item's page as its verb, and the outcomes by which it is accepted."""
    me, clock = cast.mine, DATABASE_CLOCK
    token = token_of(item) if item.assignments.exists() else AssignmentToken(item.pk, 1, NO_KEY)
    other = {"person": me, "reason": "r", "clock": clock}
    deadline = now() + timedelta(hours=4)
    return {
        "desk_take": (lambda: people.take(item.pk, person=me, clock=clock), {TakeOutcome.TAKEN}),
        "item_extend": (lambda: people.extend(token, person=me, clock=clock), {HoldingOutcome.EXTENDED}),
        "item_give_back": (lambda: people.give_back(token, person=me, clock=clock), {HoldingOutcome.GIVEN_BACK}),
        "item_skip": (lambda: people.skip(token, **other), {HoldingOutcome.SKIPPED}),
        "item_escalate": (lambda: people.escalate(token, **other), {HoldingOutcome.ESCALATED}),
        "item_hand_over": (lambda: _handed_over(token, item, me), {HoldingOutcome.HANDED_OVER}),
        "item_decide": (
            lambda: people.resolve(token, person=me, verdict="APPROVED", note="n", clock=clock),
            {ResolveOutcome.DECIDED, ResolveOutcome.CHECKED},
        ),
        "item_requeue": (lambda: people.resolve_requeue(token, deadline=deadline, **other), {ResolveOutcome.REQUEUED}),
        "item_look": (lambda: _looked_at(token, item, me), None),
        "item_restrict": (lambda: _restricted(token, item, me), {"restricted"}),
    }


def _handed_over(token, item, me):
    """To anybody who would take it."""
    for to in Person.objects.exclude(pk=me.pk):
        try:
            return people.hand_over(token, person=me, to=to, reason="r", clock=DATABASE_CLOCK)
        except CallerError:
            continue
    return None


def _looked_at(token, item, me):
    """What is not restricted stands on the page."""
    if not item.job.evidence.is_restricted:
        return None
    return people.look(token, person=me, purpose="p", clock=DATABASE_CLOCK)


def _restricted(token, item, me):
    """Restricting anew what is restricted changes nothing."""
    if item.job.evidence.is_restricted:
        return None
    return people.restrict_and_leave(token, person=me, clock=DATABASE_CLOCK)


def accepts(verb, outcomes):
    """What the verb says, undone afterwards."""
    with transaction.atomic():
        try:
            answer = verb()
        except CallerError:
            answer = None
        transaction.set_rollback(True)
    if outcomes is None:
        return answer is not None
    return answer is not None and answer.outcome in outcomes


def buttons(client, name, pk, acts):
    """Those acts that a form or a button of the page would do, by the names of their addresses."""
    body = client.get(reverse(name, args=[pk])).content.decode()
    sent = set(re.findall(r'(?:form)?action="([^"]+)"', body))
    return {act for act, address in acts.items() if address in sent}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_button_of_the_items_page_is_there_exactly_when_its_verb_accepts(client, cast, kind):
    client.force_login(cast.mine)
    item = kind(cast)
    looked_at = []
    for hands in (free, own, of_another, closed):
        with transaction.atomic():
            if hands(item, cast):
                seen = Item.objects.select_related("job__evidence", "ticket").get(pk=item.pk)
                acts = verbs(seen, cast)
                shown = buttons(client, "item", item.pk, {name: reverse(name, args=[item.pk]) for name in acts})
                accepted = {name for name, (verb, outcomes) in acts.items() if accepts(verb, outcomes)}
                looked_at.append((hands.__name__, shown, accepted))
            transaction.set_rollback(True)
    assert [(hands, shown) for hands, shown, _ in looked_at] == [(hands, accepted) for hands, _, accepted in looked_at]
    assert {"free", "of_another", "closed"} <= {hands for hands, *_ in looked_at}
    assert any(accepted for _, _, accepted in looked_at) or kind.__name__.endswith(("own", "oneself"))


def nothing(cast):
    return waiting_now(cast.lane)


def past_its_deadline(cast):
    job = waiting_now(cast.lane)
    Job.objects.filter(pk=job.pk).update(deadline=now())
    return job


def model_decided(cast):
    return done_by_the_model(cast).job


def appeal_decided(cast):
    item = appealed(cast)
    decided(item, cast.second)
    return item.job


def withdrawn(cast):
    job = done_by_the_model(cast).job
    contract.withdraw(source=job.ticket.source, external_id=job.ticket.external_id, clock=DATABASE_CLOCK)
    return job


def taken_back(cast):
    return dead_and_taken_back(cast).job


def with_item(make):
    found = lambda cast: make(cast).job  # noqa: E731 - a name of its own for the test's id
    found.__name__ = make.__name__
    return found


JOBS = [
    nothing, past_its_deadline, model_decided, appeal_decided, withdrawn, taken_back,
    *map(with_item, (of_the_model, dead, blind, second_look, disputed, corrected, appealed)),
]  # fmt: skip


@pytest.mark.parametrize("state", JOBS, ids=lambda state: state.__name__)
def test_a_button_of_the_jobs_page_is_there_exactly_when_its_verb_accepts(client, cast, state):
    client.force_login(cast.mine)
    job = Job.objects.select_related("ticket").get(pk=state(cast).pk)
    head = Decision.objects.filter(job=job, replaced_by__isnull=True).first()
    me, deadline = {"person": cast.mine, "clock": DATABASE_CLOCK}, now() + timedelta(hours=4)
    names = {"source": job.ticket.source, "external_id": job.ticket.external_id, "revision": job.revision}
    acts = {
        "job_appeal": (lambda: people.appeal(**names, statement="no", **me), {AppealOutcome.OPENED}),
        "job_move_deadline": (
            lambda: Moved(contract.move_deadline(job.pk, deadline=deadline, reason="r", **me)), {"done"}
        ),
        "decision_correct": (lambda: people.correct(head.pk if head else 0, **me), {CorrectOutcome.OPENED}),
        "decision_take_back": (lambda: people.take_back(head.pk if head else 0, **me), {TakeBackOutcome.TAKEN_BACK}),
    }  # fmt: skip
    keys = dict.fromkeys(("job_appeal", "job_move_deadline"), job.pk) | dict.fromkeys(
        ("decision_correct", "decision_take_back"), head.pk if head else 0
    )
    addresses = {name: reverse(name, args=[pk]) for name, pk in keys.items()}

    shown = buttons(client, "job", job.pk, addresses)

    assert shown == {name for name, (verb, outcomes) in acts.items() if accepts(verb, outcomes)}


@dataclass
class Moved:
    outcome: str


def ones_own(cast):
    decided(of_the_model(cast), cast.mine)


def ones_own_that_was_appealed_against(cast):
    ones_own(cast)
    ticket = Decision.objects.get().ticket
    people.appeal(
        source=ticket.source, external_id=ticket.external_id, statement="no", person=cast.first, clock=DATABASE_CLOCK
    )


def ones_own_of_content_that_is_gone(cast):
    ones_own(cast)
    ticket = Decision.objects.get().ticket
    contract.withdraw(source=ticket.source, external_id=ticket.external_id, clock=DATABASE_CLOCK)


@pytest.mark.parametrize("state", [ones_own, ones_own_that_was_appealed_against, ones_own_of_content_that_is_gone])
def test_the_desk_offers_to_take_back_what_may_be_taken_back_and_nothing_else(client, cast, state):
    client.force_login(cast.mine)
    state(cast)
    decision = Decision.objects.get()

    shown = reverse("decision_take_back", args=[decision.pk]) in client.get(reverse("desk")).content.decode()

    taking = lambda: people.take_back(decision.pk, person=cast.mine, clock=DATABASE_CLOCK)  # noqa: E731
    assert shown == accepts(taking, {TakeBackOutcome.TAKEN_BACK}) == (state is ones_own)


def test_a_lead_with_full_hands_opens_no_correction(client, cast):
    cast.lane.most_held = 1
    cast.lane.save(update_fields=["most_held"])
    decision = done_by_the_model(cast)
    take(of_the_model(cast), cast.mine)
    client.force_login(cast.mine)

    told = client.post(reverse("decision_correct", args=[decision.pk]), follow=True)

    assert "You hold 1 item already." in told.content.decode()
    assert Item.objects.count() == 1
