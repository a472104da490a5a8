"""Two sessions at one lane. Named after what must be true whoever is first; no sleeps: PostgreSQL says who waits."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from queue_core import batch, contract, hold, ramp, recalls, relay
from queue_core.contract import Ending
from queue_core.models import Attempt, AuditEntry, Decision, Hold, Item, Lane, LateAnswer, Message, Outage, StageRun
from queue_core.ramp import Raised
from queue_core.ramp_bad_ends import end_badly
from queue_core.recalls import RecallActed, Selection
from queue_core.states import AttemptOutcome
from reviewboard.models import Person
from tests.factories import at, clock, leased_job, make_lane, waiting_job
from tests.locking import holding, started, together, wait_until_blocked
from tests.ramp.stories import (
    PLAN,
    WHY,
    again,
    answer,
    attempt_of,
    end,
    judged,
    leased,
    probing,
    pull,
    raise_,
    read,
    running,
)

pytestmark = pytest.mark.django_db(transaction=True)


def raising(lane: Lane, person: Person, *, when: float, shown: str) -> Callable[[], Raised]:
    return lambda: raise_(lane, person, when=when, shown=shown)


def test_two_leads_raise_at_once_and_the_second_is_told_of_the_first(lead: Person, other_lead: Person) -> None:
    """RMP-11: one transition, one audit row."""
    lane = probing(lead)
    for _number in range(2):
        answer(lane, when=50)
    shown = read(lane, when=70).sign()

    with holding(raising(lane, lead, when=71, shown=shown)) as first:
        second = started("second-lead", raising(lane, other_lead, when=72, shown=shown))
        wait_until_blocked(second)
    loser = second.outcome()

    assert (first.outcome, loser.outcome, loser.by, loser.run) == ("raised", "already_raised", lead, first.run)
    assert (again(lane).run.number, StageRun.objects.filter(lane=lane).count()) == (2, 2)
    assert AuditEntry.objects.filter(act="stage.raised", lane=lane).count() == 2
    refused = AuditEntry.objects.get(act="stage.raise_refused", lane=lane)
    assert (refused.actor, refused.after["outcome"], refused.after["run"]) == (
        other_lead,
        "already_raised",
        first.run.pk,
    )
    assert Message.objects.filter(kind="stage.raised", lane=lane).count() == 2


def test_ten_presses_of_one_button_raise_once(lead: Person) -> None:
    """RMP-11: the double click, from sessions released together."""
    lane = probing(lead)
    for _number in range(2):
        answer(lane, when=50)
    shown = read(lane, when=70).sign()

    answers = together([raising(lane, lead, when=71, shown=shown) for _press in range(10)])

    assert sorted(raised.outcome for raised in answers) == ["already_raised"] * 9 + ["raised"]
    assert again(lane).run.number == 2
    acts = AuditEntry.objects.filter(lane=lane, after__run=again(lane).run_id).values_list("act", flat=True)
    assert sorted(acts) == ["stage.raise_refused"] * 9 + ["stage.raised"]


def test_a_raise_that_waits_behind_a_hold_starts_nothing(lead: Person, reviewer: Person) -> None:
    """RMP-01."""
    lane = running(lead)
    for _number in range(3):
        answer(lane, when=130)
    shown = read(lane, when=145).sign()

    with holding(lambda: pull(lane, reviewer, when=146)):
        raised = started("raiser", raising(lane, lead, when=147, shown=shown))
        wait_until_blocked(raised)

    assert (raised.outcome().outcome, raised.outcome().by) == ("on_hold", reviewer)
    assert AuditEntry.objects.get(act="stage.raise_refused").after["hold"] == again(lane).hold_id
    assert again(lane).run is None
    assert StageRun.objects.filter(lane=lane, ended_at__isnull=True).count() == 0


def test_a_hold_that_waits_behind_a_raise_holds_the_stage_that_was_raised(lead: Person, reviewer: Person) -> None:
    lane = running(lead)
    for _number in range(3):
        answer(lane, when=130)
    shown = read(lane, when=145).sign()

    with holding(raising(lane, lead, when=146, shown=shown)) as raised:
        pulled = started("holder-of-lane", lambda: pull(lane, reviewer, when=147))
        wait_until_blocked(pulled)

    held = pulled.outcome()
    assert (held.outcome, held.hold.run) == ("held", raised.run)
    assert (again(lane).run, again(lane).hold) == (None, held.hold)


def test_a_raise_that_waits_behind_an_automatic_hold_starts_nothing(lead: Person) -> None:
    lane = running(lead, unavailable_limit=1)
    for _number in range(3):
        answer(lane, when=130)
    token = leased(lane, when=140)
    shown = read(lane, when=145).sign()

    with holding(lambda: end(token, "unavailable", when=146)):
        raised = started("raiser", raising(lane, lead, when=147, shown=shown))
        wait_until_blocked(raised)

    assert (raised.outcome().outcome, raised.outcome().by) == ("on_hold", None)
    assert again(lane).hold.reason == "auto_unavailable"


def test_a_bad_end_that_waits_behind_a_raise_does_not_hold_the_new_run(lead: Person) -> None:
    lane = running(lead, unavailable_limit=1)
    for _number in range(3):
        answer(lane, when=130)
    token = leased(lane, when=140)
    shown = read(lane, when=145).sign()

    with holding(raising(lane, lead, when=146, shown=shown)) as raised:
        ended = started("worker", lambda: end(token, "unavailable", when=147))
        wait_until_blocked(ended)

    assert ended.outcome() == "released"
    assert again(lane).run == raised.run
    assert attempt_of(token).job.attempts == 0


def test_a_claim_that_waits_behind_a_raise_is_given_under_the_new_run_and_cap(lead: Person) -> None:
    """A lane joined to its run under a lock that was waited for would come back as one that runs nothing."""
    lane = running(lead)
    for _number in range(3):
        answer(lane, when=130)
    shown = read(lane, when=145).sign()
    job = waiting_job(lane, added=140, deadline=9000)

    with holding(raising(lane, lead, when=146, shown=shown)) as raised:
        claiming = started("claimer", lambda: contract.claim(job.pk, clock=clock(147), worker="w1"))
        wait_until_blocked(claiming)

    assert claiming.outcome().outcome == "claimed"
    assert attempt_of(claiming.outcome().token).run == raised.run


def test_a_claim_that_waits_behind_a_hold_gets_nothing(lead: Person, reviewer: Person) -> None:
    lane = running(lead)
    job = waiting_job(lane, added=90, deadline=9000)

    with holding(lambda: pull(lane, reviewer, when=91)):
        claiming = started("claimer", lambda: contract.claim(job.pk, clock=clock(92), worker="w1"))
        wait_until_blocked(claiming)

    assert claiming.outcome().outcome == "on_hold"
    job.refresh_from_db()
    assert (job.state, job.fence) == ("WAITING", 0)


def test_workers_that_meet_an_outage_together_make_one_hold(lead: Person) -> None:
    lane = running(lead, unavailable_limit=3, stages=PLAN)
    tokens = [leased(lane, when=90) for _number in range(8)]

    outcomes = together([lambda token=token: end(token, "unavailable", when=95) for token in tokens])

    assert outcomes == ["released"] * 8
    assert Hold.objects.filter(lane=lane, ended_at__isnull=True).count() == 1
    assert Outage.objects.filter(connection=lane.connection).count() == 1
    assert Message.objects.filter(kind="lane.on_hold", lane=lane).count() == 1


def test_two_lanes_of_a_connection_that_hold_at_once_open_one_outage(lead: Person) -> None:
    first = running(lead, unavailable_limit=1)
    second = running(lead, unavailable_limit=1, connection=first.connection)
    tokens = [leased(lane, when=90) for lane in (first, second)]

    with holding(lambda: end(tokens[0], "unavailable", when=91)):
        other = started("other-lane", lambda: end(tokens[1], "unavailable", when=92))
        wait_until_blocked(other)

    assert other.outcome() == "released"
    assert [again(lane).hold.reason for lane in (first, second)] == ["auto_unavailable"] * 2
    assert Outage.objects.get().entries.count() == 3


def test_two_holds_for_timeouts_and_a_batch_of_completions_do_not_deadlock(lead: Person) -> None:
    lane = running(lead)
    tokens = [leased(lane, when=90) for _number in range(8)]
    timeouts, answers = tokens[:4], tokens[4:]

    def complete_all() -> list[str]:
        return batch.complete_many([(token, Ending(result="APPROVED")) for token in reversed(answers)], clock=clock(95))

    outcomes = together(
        [complete_all, *[lambda token=token: end(token, "timeout", when=95) for token in reversed(timeouts)]]
    )

    assert outcomes[0] == ["committed"] * 4
    assert set(outcomes[1:]) <= {"released", "died"}


def test_a_resume_and_a_probe_pressed_at_once_start_one_run(lead: Person, other_lead: Person) -> None:
    lane = running(lead)
    held = pull(lane, lead, when=100).hold
    shown = read(lane, when=101).sign()

    outcomes = together(
        [
            raising(lane, lead, when=102, shown=shown),
            lambda: ramp.resume(lane.pk, person=other_lead, reason=WHY, hold_id=held.pk, clock=clock(102)),
        ]
    )

    assert StageRun.objects.filter(lane=lane, ended_at__isnull=True).count() == 1
    started_run = again(lane).run
    assert sum(answer_.run == started_run and str(answer_.outcome) in ("raised", "done") for answer_ in outcomes) == 1


def test_a_raise_while_the_figures_got_worse_starts_nothing_and_says_which(lead: Person) -> None:
    """The worker's bad ends commit while the raise waits for the lane: measured again, they are worse than shown."""
    lane = running(lead, unavailable_limit=50)
    for _number in range(3):
        answer(lane, when=130)
    tokens = [leased(lane, when=140) for _number in range(3)]
    shown = read(lane, when=145).sign()

    with holding(lambda: [end(token, "invalid_answer", when=146) for token in tokens[:1]]):
        raised = started("raiser", raising(lane, lead, when=147, shown=shown))
        wait_until_blocked(raised)

    refused = raised.outcome()
    assert refused.outcome in ("on_hold", "figures_worse"), refused
    entry = AuditEntry.objects.get(act="stage.raise_refused")
    assert entry.after["outcome"] == refused.outcome
    assert StageRun.objects.filter(lane=lane, number=3).count() == 0


def test_a_raise_and_a_recall_of_what_it_would_accept_leave_nothing_half_done(lead: Person, other_lead: Person) -> None:
    lane = probing(lead, stages=(replace(PLAN[0], keeps_back=True), *PLAN[1:]))
    for _number in range(2):
        answer(lane, when=50)
    shown = read(lane, when=70).sign()
    chosen = Selection(until=at(70), run=lane.run_id)

    with holding(
        lambda: recalls.recall(lane.pk, chosen, person=other_lead, reason="wrong", shown=2, clock=clock(71))
    ) as recalled:
        raised = started("raiser", raising(lane, lead, when=72, shown=shown))
        wait_until_blocked(raised)

    assert (recalled.outcome, raised.outcome().outcome) == ("recalled", "raised")
    assert set(Message.objects.filter(kind="decision").values_list("state", flat=True)) == {"withdrawn"}


def test_two_leads_who_recall_the_same_at_once_recall_it_once(lead: Person, other_lead: Person) -> None:
    lane = running(lead)
    for _number in range(4):
        answer(lane, when=90)
    chosen = Selection(until=at(95), run=lane.run_id)

    def recalling(person: Person) -> Callable[[], RecallActed]:
        return lambda: recalls.recall(lane.pk, chosen, person=person, reason="all wrong", shown=4, clock=clock(100))

    answers = together([recalling(lead), recalling(other_lead)])

    assert sorted(str(acted.outcome) for acted in answers) == ["differs", "recalled"]
    assert Decision.objects.filter(why="recall").count() == 4
    assert Item.objects.filter(kind="recalled").count() == 4


def test_a_recall_against_the_relay_withdraws_a_message_or_announces_it_and_never_both(lead: Person) -> None:
    lane = running(lead)
    for _number in range(6):
        answer(lane, when=90)
    relay.number_messages(clock=clock(91))
    chosen = Selection(until=at(95), run=lane.run_id)

    pages, acted = together(
        [
            lambda: [relay.page_of_messages(0, 100), relay.page_of_messages(0, 100)],
            lambda: recalls.recall(lane.pk, chosen, person=lead, reason="all wrong", shown=6, clock=clock(100)),
        ]
    )

    read_ = {message.decision_id for page in pages for message in page if message.kind == "decision"}
    told = set(acted.recall.entries.filter(outcome="announced").values_list("decision", flat=True))
    withdrawn = set(acted.recall.entries.filter(outcome="withdrawn").values_list("decision", flat=True))
    of_run = set(Decision.objects.filter(run=lane.run, attempt__isnull=False).values_list("pk", flat=True))
    assert told | withdrawn == of_run
    assert read_ & withdrawn == set()


def test_ten_workers_at_once_are_given_no_more_than_the_rate_in_any_sixty_seconds_rmp_12(lead: Person) -> None:
    lane = running(lead, stages=(PLAN[0], replace(PLAN[1], cap=50, rate=12), PLAN[2]))
    for _number in range(60):
        waiting_job(lane, added=99, deadline=90_000)
    judged(lane, when=105)

    def claiming(when: float) -> Callable[[], int]:
        return lambda: len(batch.claim_next(lane.pk, 3, clock=clock(when), worker="w").claims)

    given = [sum(together([claiming(when) for _worker in range(10)])) for when in (105,)]
    for when in (120, 164.9, 165, 180):
        judged(lane, when=when)
        given.append(sum(together([claiming(when) for _worker in range(3)])))

    assert given[0] <= 12
    starts = sorted(Attempt.objects.filter(run=lane.run).values_list("started_at", flat=True))
    assert len(starts) > 12
    for first in starts:
        within = [one for one in starts if first <= one < first + timedelta(seconds=60)]
        assert len(within) <= 12


def test_a_decision_that_commits_beside_the_acceptance_of_its_run_is_not_kept_back_for_ever(lead: Person) -> None:
    lane = probing(lead, stages=(replace(PLAN[0], keeps_back=True), *PLAN[1:]))
    for _number in range(2):
        answer(lane, when=50)
    token = leased(lane, when=60)
    shown = read(lane, when=71).sign()

    with holding(lambda: contract.complete(token, Ending(result="APPROVED"), clock=clock(70))):
        raised = started("raiser", raising(lane, lead, when=72, shown=shown))
        wait_until_blocked(raised)

    assert raised.outcome().outcome == "raised"
    assert set(Message.objects.filter(kind="decision").values_list("state", flat=True)) == {"ready"}


def test_an_automatic_hold_of_a_lane_that_keeps_back_does_not_deadlock_with_completions(lead: Person) -> None:
    lane = probing(lead, stages=(replace(PLAN[0], keeps_back=True, cap=10), *PLAN[1:]), unavailable_limit=1)
    tokens = [leased(lane, when=60) for _number in range(6)]

    outcomes = together(
        [
            *[
                lambda token=token: contract.complete(token, Ending(result="APPROVED"), clock=clock(61))
                for token in tokens[:3]
            ],
            *[lambda token=token: end(token, "unavailable", when=61) for token in tokens[3:]],
        ]
    )

    assert [str(outcome) for outcome in outcomes] == ["committed"] * 3 + ["released"] * 3
    assert again(lane).hold.reason == "auto_unavailable"


def test_hold_and_refuse_against_a_running_completion_leaves_one_of_both(lead: Person, reviewer: Person) -> None:
    lane = running(lead)
    token = leased(lane, when=90)

    completed, held = together(
        [
            lambda: contract.complete(token, Ending(result="APPROVED"), clock=clock(95)),
            lambda: hold.pull(lane.pk, person=reviewer, form="refuse", reason="wrong_answers", clock=clock(95)),
        ]
    )

    attempt = attempt_of(token)
    assert held.outcome == "held"
    expected = {
        "committed": (0, "DONE", AttemptOutcome.VERDICT),
        "stale": (1, "WAITING", AttemptOutcome.REFUSED_BY_HOLD),
    }
    assert (held.refused, attempt.job.state, attempt.outcome) == expected[completed]


def test_a_hold_that_gives_budget_back_and_a_commit_beside_it_do_not_wait_for_each_other_in_a_ring() -> None:
    """PGQ-22: the hold waits for a job whose holder, at its commit, has the lane of its new rows looked up."""
    lane = make_lane(unavailable_limit=2)
    silent, token = leased_job(lane)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(2))
    _last, last_token = leased_job(lane)

    def late_answer() -> None:
        contract.lock_job(silent.pk)
        fields = {"fence": 1, "revision": "v1", "result": "APPROVED", "why": "fence", "received_at": at(3)}
        LateAnswer.objects.create(job=silent, lane=lane, **fields)

    with holding(late_answer):
        holds = started("hold", lambda: end_badly(last_token, outcome=AttemptOutcome.TIMEOUT, clock=clock(3)))
        wait_until_blocked(holds)

    assert holds.outcome() == "released"
    assert again(lane).hold.reason == "auto_timeouts"
    silent.refresh_from_db()
    assert (silent.attempts, LateAnswer.objects.count()) == (0, 1)
