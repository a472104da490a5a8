"""Known answers: when they are sent, what is kept of each, and what wrong ones do."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from queue_core import gate, known_answers
from queue_core.connections import Answer, Call, TimedOut, Unavailable, Verdict
from queue_core.gate_lines import GateLine
from queue_core.models import Attempt, Job, KnownAnswer, KnownReply, Lane, Message, ModelConnection
from reviewboard.models import Person
from tests.connections.adapters import Scripted
from tests.factories import at, clock, make_connection
from tests.ramp.stories import PLAN, again, probing, pull, read

pytestmark = pytest.mark.django_db

ASKING = (replace(PLAN[0], max_wrong_ratio=0.34, known_every=timedelta(minutes=5)), *PLAN[1:])
ANSWERS: dict[str, Answer] = {}
ASKED: list[Call] = []


def scripted(_row: ModelConnection) -> Scripted:
    def script(calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
        for call in calls:
            ASKED.append(call)
            bad = 0.95 if "fool" in call.evidence else 0.05
            yield call, ANSWERS.get(call.ticket) or Verdict({"offensive": bad}, model="m1")

    return Scripted(script)


@pytest.fixture(autouse=True)
def model(settings: object) -> None:
    settings.QUEUE_CORE_CONNECTIONS = {"known": f"{__name__}.scripted"}
    ANSWERS.clear()
    ASKED.clear()


def asked_lane(lead: Person, **texts: str) -> tuple[Lane, list[KnownAnswer]]:
    """A lane that runs its probe since 10 s, with a known answer for each `text=expected`."""
    lane = probing(lead, stages=ASKING, connection=make_connection(kind="known"))
    texts = texts or {"you fool": "REJECTED", "good morning": "APPROVED", "you fool again": "REJECTED"}
    return lane, [
        KnownAnswer.objects.create(lane=lane, title=text, text=text, expected=expected)
        for text, expected in texts.items()
    ]


def ask(when: float) -> int:
    return known_answers.ask_due(clock=clock(when))


def wrong_line(lane: Lane, *, when: float) -> GateLine:
    return next(line for line in read(lane, when=when).lines if line.figure == "wrong")


def answers(known: KnownAnswer, answer: Answer) -> None:
    ANSWERS[f"known-{known.pk}"] = answer


def test_every_text_is_asked_at_the_stages_start_and_again_when_the_time_is_over(lead: Person) -> None:
    asked_lane(lead)

    assert [ask(when) for when in (11, 12, 310.9, 311)] == [3, 0, 0, 3]
    assert len({call.idempotency_key for call in ASKED}) == 6


def test_what_is_asked_is_no_ticket_and_leaves_no_claim_no_decision_and_no_message(lead: Person) -> None:
    asked_lane(lead)
    before = Message.objects.count()

    ask(11)

    assert (Job.objects.count(), Attempt.objects.count(), Message.objects.count()) == (0, 0, before)
    assert [call.source for call in ASKED] == ["known-answers"] * 3


def test_each_reply_is_kept_with_its_scores_and_what_was_expected_then(lead: Person) -> None:
    lane, [known] = asked_lane(lead, **{"you fool": "REJECTED"})

    ask(11)
    KnownAnswer.objects.update(expected="MANUAL")

    reply = KnownReply.objects.get()
    assert (reply.known, reply.run, reply.policy, reply.connection) == (known, lane.run, lane.policy, lane.connection)
    assert (reply.outcome, reply.result, reply.expected, reply.is_right) == ("verdict", "REJECTED", "REJECTED", True)
    assert (reply.scores, reply.model, reply.asked_at) == ({"offensive": 0.95}, "m1", at(11))


def test_right_replies_make_the_gate_good_and_none_at_all_is_inconclusive(lead: Person) -> None:
    lane, _texts = asked_lane(lead)
    before = wrong_line(lane, when=11)
    ask(11)
    after = wrong_line(lane, when=12)

    assert (before.verdict, before.sample, before.least_sample) == ("inconclusive", 0, 3)
    assert (after.verdict, after.measured, after.sample) == ("good", 0.0, 3)


def test_a_call_that_brings_no_result_says_nothing_of_whether_it_answers_rightly(lead: Person) -> None:
    lane, texts = asked_lane(lead)
    answers(texts[0], TimedOut(after=timedelta(seconds=10)))
    answers(texts[1], Unavailable("refused"))

    ask(11)

    line = wrong_line(lane, when=12)
    assert (line.verdict, line.sample, again(lane).run) == ("inconclusive", 1, lane.run)
    assert set(KnownReply.objects.values_list("outcome", "result")) == {
        ("timeout", None),
        ("unavailable", None),
        ("verdict", "REJECTED"),
    }


def test_wrong_replies_beyond_the_limit_put_the_lane_on_hold(lead: Person) -> None:
    lane, texts = asked_lane(lead)
    answers(texts[0], Verdict({"offensive": 0.01}))
    answers(texts[1], Verdict({"offensive": 0.99}))

    ask(11)

    held = again(lane)
    assert (held.run, held.hold.reason, held.hold.is_automatic) == (None, "auto_wrong", True)
    assert (held.hold.params["figure"], held.hold.params["sample"]) == ("wrong", 3)
    assert held.connection.outages.get().cause == "auto_wrong"


def test_wrong_replies_within_the_limit_hold_nothing(lead: Person) -> None:
    lane, texts = asked_lane(lead)
    answers(texts[0], Verdict({"offensive": 0.01}))

    ask(11)

    assert again(lane).run == lane.run
    assert wrong_line(lane, when=12).verdict == "good"


def test_only_the_last_reply_to_each_text_counts_and_an_old_one_not_at_all(lead: Person) -> None:
    lane, texts = asked_lane(lead)
    answers(texts[0], Verdict({"offensive": 0.01}))
    ask(11)
    ANSWERS.clear()
    ask(311)

    assert wrong_line(lane, when=312).measured == 0.0
    assert wrong_line(lane, when=311 + 3 * 300 + 1).verdict == "inconclusive"


def test_a_lane_on_hold_and_one_whose_plan_asks_for_none_are_asked_nothing(lead: Person) -> None:
    lane, _texts = asked_lane(lead)
    pull(lane, lead, when=10.5)
    other = probing(lead, connection=make_connection(kind="known"))
    KnownAnswer.objects.create(lane=other, title="one", text="one", expected="APPROVED")

    assert ask(11) == 0


def test_a_model_that_asked_to_be_left_alone_is_left_alone(lead: Person) -> None:
    lane, _texts = asked_lane(lead)
    Lane.objects.filter(pk=lane.pk).update(claims_not_before=at(20))

    assert (ask(19), ask(20)) == (0, 3)


def test_a_round_that_was_cut_short_goes_on_and_asks_no_text_twice(lead: Person) -> None:
    lane, texts = asked_lane(lead)
    stops = iter([False, True])
    first = known_answers.ask_due(clock=clock(11), is_stopping=lambda: next(stops))

    assert (first, ask(12)) == (1, 2)
    assert KnownReply.objects.values("known").distinct().count() == len(texts)
    assert gate.read(again(lane), now=at(13)).run == lane.run


def test_rounds_that_come_faster_than_the_model_answers_still_reach_every_text(lead: Person) -> None:
    """Begun anew with the first text each time, the gate would be inconclusive for ever."""
    _lane, texts = asked_lane(lead)

    for when in (11, 311, 611):
        stops = iter([False, True])
        known_answers.ask_due(clock=clock(when), is_stopping=lambda stops=stops: next(stops))

    assert {call.ticket for call in ASKED} == {f"known-{text.pk}" for text in texts}


def test_more_texts_than_one_turn_sends_have_the_next(lead: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_answers, "MOST_TEXTS", 2)
    lane, _texts = asked_lane(lead)

    assert [ask(when) for when in (11, 12, 13)] == [2, 1, 0]
    assert wrong_line(lane, when=14).verdict == "good"


def test_a_lane_whose_round_never_ends_keeps_no_other_lane_from_its_own(lead: Person) -> None:
    first, _texts = asked_lane(lead)
    second, _texts = asked_lane(lead)

    for when in (11, 12):
        stops = iter([False, True, True])
        known_answers.ask_due(clock=clock(when), is_stopping=lambda stops=stops: next(stops))

    assert list(KnownReply.objects.order_by("pk").values_list("lane", flat=True)) == [first.pk, second.pk]


def test_a_connection_that_cannot_be_used_is_kept_as_such(lead: Person) -> None:
    lane, _texts = asked_lane(lead, **{"good morning": "APPROVED"})
    ModelConnection.objects.filter(pk=lane.connection_id).update(kind="nothing-of-this-name")

    ask(11)

    reply = KnownReply.objects.get()
    assert (reply.outcome, reply.result) == ("misconfigured", None)
    assert "nothing-of-this-name" in reply.detail
