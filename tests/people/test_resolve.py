"""Items decided: what is written, by whom it may be, and what comes too late."""

from datetime import timedelta

import pytest

from queue_core import contract, people
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import Assignment, AuditEntry, Decision, Item, Job, Message, ReasonCode
from queue_core.people import ResolveOutcome
from queue_core.people.outcomes import Stale
from queue_core.states import AssignmentEnd, Automation, ItemEnd, MessageKind
from tests.factories import at, clock, dead_job, make_ground, make_lane, new_ticket, waiting_job
from tests.people.cast import item_of, leo, manual_item, person, rita, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def item():
    return manual_item(make_lane(assignment_time=timedelta(seconds=100)))


def resolve(token, who, *, when, verdict="APPROVED", **words):
    return people.resolve(token, person=who, verdict=verdict, clock=clock(when), **words)


def written():
    return {
        "decisions": Decision.objects.count(),
        "messages": Message.objects.filter(kind=MessageKind.DECISION).count(),
        "audit": AuditEntry.objects.filter(act="item.decided").count(),
    }


def test_resolve_writes_decision_message_audit_and_ends_together(item):
    who = rita()
    make_ground("insult")
    token = take(item, who, when=10)

    resolved = resolve(token, who, when=20, verdict="REJECTED", reason_code="insult", note="a plain insult")

    assert resolved.outcome == ResolveOutcome.DECIDED
    decision = Decision.objects.get()
    assignment = Assignment.objects.get()
    assert (decision.verdict, decision.reason_code.code, decision.note) == ("REJECTED", "insult", "a plain insult")
    assert (decision.person, decision.assignment, decision.why, decision.replaces) == (who, assignment, "first", None)
    assert (decision.decided_at, decision.is_unseen) == (at(20), False)
    item.refresh_from_db()
    assert (item.closed_as, item.closed_at, item.taken_by) == (ItemEnd.DECIDED, at(20), None)
    assert (assignment.ended_as, assignment.ended_at) == (AssignmentEnd.DECIDED, at(20))
    message = Message.objects.get(kind=MessageKind.DECISION)
    assert (message.decision, message.body["verdict"], message.body["reason_code"]) == (decision, "REJECTED", "insult")
    entry = AuditEntry.objects.get(act="item.decided")
    assert (entry.actor, entry.after["verdict"]) == (who, "REJECTED")
    assert "plain insult" not in str([entry.reason, entry.before, entry.after])


def test_a_decision_beside_the_models_scores_is_partly_automated(item):
    who = rita()

    decision = resolve(take(item, who, when=10), who, when=20).decision

    assert (decision.automation, decision.policy_id) == (Automation.PARTLY, item.lane.policy_id)


def test_a_dead_job_that_a_person_decided_stays_dead_and_is_not_automated():
    job = dead_job(make_lane())
    who = rita()

    decision = resolve(take(item_of(job), who, when=20), who, when=21).decision

    job.refresh_from_db()
    assert (job.state, job.dead_reason, job.result) == ("DEAD", "deadline", None)
    assert (decision.automation, decision.policy) == (Automation.NONE, None)


@pytest.mark.parametrize(
    ("when", "outcome"),
    [(109, ResolveOutcome.DECIDED), (110, ResolveOutcome.STALE), (111, ResolveOutcome.STALE)],
    ids=["before the end", "at the end", "after the end"],
)
def test_resolve_counts_only_while_the_assignment_runs(item, when, outcome):
    who = rita()

    resolved = resolve(take(item, who, when=10), who, when=when)

    assert resolved.outcome == outcome
    assert resolved.why == (None if outcome == ResolveOutcome.DECIDED else Stale.TIME_OVER)
    assert Decision.objects.count() == (1 if outcome == ResolveOutcome.DECIDED else 0)


def test_a_repeat_of_the_same_decision_is_already_and_writes_nothing(item):
    """HTX-09: two identical submissions have one effect, and the second is no error."""
    who = rita()
    make_ground("insult")
    token = take(item, who, when=10)
    resolve(token, who, when=20, verdict="REJECTED", reason_code="insult")
    before = written()

    again = resolve(token, who, when=21, verdict="REJECTED", reason_code="insult")

    assert again.outcome == ResolveOutcome.ALREADY
    assert again.decision.assignment.person == who
    assert written() == before == {"decisions": 1, "messages": 1, "audit": 1}


def test_another_verdict_after_ones_own_decision_is_stale(item):
    who = rita()
    token = take(item, who, when=10)
    resolve(token, who, when=20)
    make_ground("insult")

    again = resolve(token, who, when=21, verdict="REJECTED", reason_code="insult")

    assert (again.outcome, again.why) == (ResolveOutcome.STALE, Stale.ITEM_CLOSED)
    assert Decision.objects.get().verdict == "APPROVED"


def test_a_decision_from_an_older_page_never_replaces_a_newer_persons(item):
    """MOD-01: the second of two moderators gets a conflict, and the first one's decision stands."""
    first, second = rita(), leo()
    make_ground("insult")
    older = take(item, second, when=10)
    newer = take(item, first, when=110)
    resolve(newer, first, when=111, verdict="REJECTED", reason_code="insult")

    late = resolve(older, second, when=112)

    assert (late.outcome, late.why) == (ResolveOutcome.STALE, Stale.ITEM_CLOSED)
    assert written() == {"decisions": 1, "messages": 1, "audit": 1}
    assert Decision.objects.get().verdict == "REJECTED"


def test_an_older_tab_of_the_same_person_is_stale_and_the_newer_one_decides(item):
    """LSE-05: the token names one grab, not its owner."""
    who = rita()
    make_ground("insult")
    tab_1 = take(item, who, when=10)
    tab_2 = take(item, who, when=110)

    late = resolve(tab_1, who, when=120, verdict="REJECTED", reason_code="insult")
    assert (late.outcome, late.why) == (ResolveOutcome.STALE, Stale.TAKEN_AGAIN)
    assert not Decision.objects.exists()

    assert resolve(tab_2, who, when=121).outcome == ResolveOutcome.DECIDED
    assert Decision.objects.get().verdict == "APPROVED"


def test_a_superseded_item_is_not_decided():
    lane, who = make_lane(), rita()
    job = dead_job(lane)
    token = take(item_of(job), who, when=20)
    ticket = job.ticket

    contract.supersede(new_ticket(lane, external_id=ticket.external_id, revision="v2"), replaces="v1", clock=clock(21))

    late = resolve(token, who, when=22)

    assert (late.outcome, late.why) == (ResolveOutcome.STALE, Stale.ITEM_CLOSED)
    assert Item.objects.get(job=job).closed_as == ItemEnd.SUPERSEDED
    assert Assignment.objects.get().ended_as == AssignmentEnd.ITEM_CLOSED
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    ("code", "why"),
    [(None, "none"), ("nowhere", "unknown"), ("retired", "retired"), ("fine", "for approving"), ("a\0b", "NUL")],
    ids=["none", "unknown", "retired", "for approving", "NUL"],
)
def test_a_rejection_needs_a_ground_that_is_in_use_and_for_rejecting(item, code, why):
    who = rita()
    ReasonCode.objects.create(code="retired", title="r", is_active=False)
    ReasonCode.objects.create(code="fine", title="f", is_for_rejection=False)
    token = take(item, who, when=10)

    with pytest.raises(InvalidRequest) as raised:
        resolve(token, who, when=20, verdict="REJECTED", reason_code=code)

    assert raised.value.field == "reason_code"
    item.refresh_from_db()
    assert item.closed_at is None
    assert not Decision.objects.exists()


@pytest.mark.parametrize("words", [{"verdict": "MANUAL"}, {"verdict": ""}, {"note": "x" * 4001}, {"note": "a\0b"}])
def test_words_out_of_bounds_are_the_callers_mistake(item, words):
    who = rita()
    token = take(item, who, when=10)

    with pytest.raises(InvalidRequest):
        resolve(token, who, when=20, **words)
    assert not Decision.objects.exists()


def test_a_note_of_4000_characters_is_kept_whole(item):
    who = rita()
    resolve(take(item, who, when=10), who, when=20, note="ñ" * 4000)

    assert Decision.objects.get().note == "ñ" * 4000


def test_a_permission_lost_meanwhile_is_lost(item):
    who = rita()
    token = take(item, who, when=10)
    who.user_permissions.clear()
    who = type(who).objects.get(pk=who.pk)

    with pytest.raises(NotPermitted):
        resolve(token, who, when=20)
    assert not Decision.objects.exists()


def requeue(token, who, *, when, deadline=1000, reason="the model is back"):
    return people.resolve_requeue(token, person=who, deadline=at(deadline), reason=reason, clock=clock(when))


def test_requeue_gives_a_dead_job_a_new_deadline_and_budget_and_closes_its_item():
    """RET-03: a job that died by its deadline goes on with a new one; its fence never starts again."""
    job = dead_job(make_lane())
    who = leo()

    resolved = requeue(take(item_of(job), who, when=20), who, when=21)

    job.refresh_from_db()
    assert resolved.outcome == ResolveOutcome.REQUEUED
    assert (job.state, job.deadline, job.requeues, job.attempts) == ("WAITING", at(1000), 1, 0)
    assert Item.objects.get().closed_as == ItemEnd.REQUEUED
    assert Assignment.objects.get().ended_as == AssignmentEnd.REQUEUED
    assert AuditEntry.objects.filter(act="job.requeued", actor=who).count() == 1
    assert not Decision.objects.exists()


def test_requeue_twice_is_already_and_counts_once():
    """HTX-09: redrive twice has one effect."""
    job = dead_job(make_lane())
    who = leo()
    token = take(item_of(job), who, when=20)
    requeue(token, who, when=21)

    assert requeue(token, who, when=22).outcome == ResolveOutcome.ALREADY
    assert Job.objects.get().requeues == 1


@pytest.mark.parametrize("deadline", [20, 21])
def test_requeue_with_a_deadline_that_is_over_is_the_callers_mistake(deadline):
    """RET-03: without a deadline ahead nothing is requeued."""
    job = dead_job(make_lane())
    who = leo()
    token = take(item_of(job), who, when=20)

    with pytest.raises(InvalidRequest) as raised:
        requeue(token, who, when=21, deadline=deadline)

    assert raised.value.field == "deadline"
    job.refresh_from_db()
    assert job.state == "DEAD"


def test_a_manual_item_is_never_requeued(item):
    who = leo()

    assert requeue(take(item, who, when=10), who, when=20).outcome == ResolveOutcome.NOT_ALLOWED_IN_STATE
    item.refresh_from_db()
    assert item.closed_at is None
    assert Job.objects.get().state == "DONE"


def test_a_pulled_ticket_is_never_requeued():
    job = waiting_job(make_lane(cap=None))
    who = leo()
    token = people.pull(job.pk, person=who, reason="before its deadline", clock=clock(5)).token

    assert requeue(token, who, when=20).outcome == ResolveOutcome.NOT_ALLOWED_IN_STATE


def test_requeue_needs_its_own_permission():
    job = dead_job(make_lane())
    who = person("dora", "decide_item")
    token = take(item_of(job), who, when=20)

    with pytest.raises(NotPermitted):
        requeue(token, who, when=21)
    job.refresh_from_db()
    assert job.state == "DEAD"
