"""The recall's page, runs that kept back, the gate's two halves, and the item that hides the model's answer."""

import re
from dataclasses import replace

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

from queue_core import blind_samples, hold, people, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Decision, Item, Message, Recall, StageRun
from reviewboard import gate_text
from reviewboard.models import Person
from tests.factories import at, clock
from tests.ramp.stories import PLAN, again, answer, probing, pull, read, running

pytestmark = pytest.mark.django_db
WHY = "the model was turned round"


@pytest.fixture
def cast(db):
    roles.restore()
    people_ = [get_user_model().objects.create_user(username=name) for name in ("leo", "rita")]
    for one, role in zip(people_, (roles.LEAD, roles.REVIEWER), strict=True):
        roles.assign(one, role)
    return people_


def text(response) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def signed_in(client, person: Person):
    client.force_login(person)
    return client


def kept_back(leo: Person):
    """A lane whose probe kept two decisions back and was put on hold."""
    lane = probing(leo, stages=(replace(PLAN[0], keeps_back=True), *PLAN[1:]))
    answer(lane, when=30)
    answer(lane, when=31, result="REJECTED")
    pull(lane, leo, when=40)
    return again(lane)


def test_a_lead_sees_how_many_would_be_recalled_and_then_recalls_them(client, cast) -> None:
    leo, _rita = cast
    lane = running(leo)
    answer(lane, when=90)
    answer(lane, when=91, result="REJECTED")
    url = reverse("lane_recall", args=[lane.name])
    signed_in(client, leo)

    shown = client.get(url, {"run": lane.run.pk})
    form = shown.context["form"]
    sent = {f"recall-{name}": value or "" for name, value in form.initial.items()} | {"recall-reason": WHY}
    done = client.post(url, sent, follow=True)

    assert "2 decisions would be recalled" in text(shown)
    assert "APPROVED: 1, REJECTED: 1." in text(shown)
    assert "2 have reached nobody: they are withdrawn." in text(shown)
    assert "The lane still runs" in text(shown)
    assert "2 decisions are no longer in force." in text(done)
    assert "withdrawn before delivery: 2" in text(done)
    assert Recall.objects.get().reason == WHY


def test_another_number_than_was_shown_is_a_conflict_that_keeps_the_reason(client, cast) -> None:
    leo, _rita = cast
    lane = running(leo)
    answer(lane, when=90)
    url = reverse("lane_recall", args=[lane.name])
    signed_in(client, leo)
    form = client.get(url, {"run": lane.run.pk}).context["form"]
    sent = {f"recall-{name}": value or "" for name, value in form.initial.items()} | {"recall-reason": WHY}

    refused = client.post(url, sent | {"recall-shown": "7"})

    assert refused.status_code == 409
    assert "The number of decisions is not the one you saw: it is 1 now." in text(refused)
    assert WHY in text(refused)
    assert not Recall.objects.exists()


@pytest.mark.parametrize(
    ("change", "status"),
    [({"recall-reason": ""}, 422), ({"recall-until": "never"}, 422), ({"recall-to": "approve"}, 422)],
)
def test_a_recall_that_is_none_is_answered_with_the_form(client, cast, change, status) -> None:
    leo, _rita = cast
    lane = running(leo)
    answer(lane, when=90)
    url = reverse("lane_recall", args=[lane.name])
    signed_in(client, leo)
    form = client.get(url, {"verdict": "APPROVED"}).context["form"]
    sent = {f"recall-{name}": value or "" for name, value in form.initial.items()} | {"recall-reason": WHY}

    assert client.post(url, sent | change).status_code == status
    assert client.get(url, {"run": "1e9", "verdict": "MAYBE"}).status_code == 422
    assert not Recall.objects.exists()


def test_who_may_not_recall_finds_no_page_and_no_link(client, cast) -> None:
    leo, rita = cast
    lane = kept_back(leo)
    url = reverse("lane_recall", args=[lane.name])
    signed_in(client, rita)

    assert (client.get(url).status_code, client.post(url).status_code) == (404, 404)
    assert url not in client.get(reverse("lane", args=[lane.name])).content.decode()


def test_a_lead_accepts_what_a_held_run_kept_back(client, cast) -> None:
    leo, _rita = cast
    lane = kept_back(leo)
    signed_in(client, leo)

    page = client.get(reverse("lane", args=[lane.name]))
    sent = {"accept-run": lane.hold.run.pk, "accept-shown": 2, "accept-reason": "looked at all of them"}
    old = client.post(reverse("lane_accept", args=[lane.name]), sent | {"accept-shown": 1})
    short = client.post(reverse("lane_accept", args=[lane.name]), sent | {"accept-reason": ""})
    done = client.post(reverse("lane_accept", args=[lane.name]), sent, follow=True)

    assert "2 decisions are kept back: no raise will let them go." in text(page)
    assert (old.status_code, short.status_code) == (409, 422)
    assert "The number of decisions kept back is not the one you saw." in text(old)
    assert "2 decisions go out." in text(done)
    assert set(Message.objects.filter(kind="decision").values_list("state", flat=True)) == {"ready"}


def test_the_gate_shows_both_halves_and_says_when_nothing_is_usual(cast) -> None:
    leo, _rita = cast
    stage = replace(PLAN[0], max_share_shift=0.2, max_wrong_ratio=0.1, blind_share=0.5, max_disagreement=0.1)
    lane = probing(leo, stages=(stage, *PLAN[1:]))
    for when in (30, 31):
        answer(lane, when=when)
    shown = read(lane, when=40)

    rows = gate_text.gate_rows(shown)

    halves = list(dict.fromkeys(row.half for row in rows))
    assert halves == ["Does it answer?", "Does it answer rightly?"]
    share = next(row for row in rows if row.figure == "share of APPROVED")
    assert (share.measured, share.limit, share.word) == ("100.0 %", "± 20.0 %", "nothing to compare with")
    assert "Nothing is usual yet" in gate_text.notes(shown, has_known_answers=False)[0]
    plain = read(probing(leo), when=40)
    wrong, shares, known = gate_text.notes(plain, has_known_answers=False)
    assert "a model that is up, fast and wrong would pass" in wrong
    assert "when the last stage has given 100 results under this policy" in shares
    assert "the lane has none" in known
    assert "judged from the next stage on" in gate_text.notes(plain, has_known_answers=True)[-1]


def test_a_blind_check_shows_nothing_of_what_the_model_said(client, cast) -> None:
    leo, rita = cast
    lane = probing(leo, stages=(replace(PLAN[0], blind_share=1.0), *PLAN[1:]))
    answer(lane, when=30, result="REJECTED")
    blind_samples.draw_due(clock=clock(40))
    item = Item.objects.get(kind="blind")
    people.take(item.pk, person=rita, clock=DATABASE_CLOCK)
    signed_in(client, rita)

    page = client.get(reverse("item", args=[item.pk]))

    assert "A blind check" in text(page)
    assert (page.context["scores"], page.context["answer"], page.context["decisions"]) == ([], None, [])
    assert "REJECTED" not in text(page)
    assert reverse("job", args=[item.job_id]) not in page.content.decode()
    own = item.assignments.get()
    decided = client.post(
        reverse("item_decide", args=[item.pk]),
        {"fence": own.fence, "key": own.key, "verdict": "REJECTED", "reason_code": "insult"},
        follow=True,
    )
    assert "Checked: you decided as the model had. Its decision stands." in text(decided)
    assert "What the model said" in text(client.get(reverse("item", args=[item.pk]))) or Decision.objects.count() == 1


def test_the_stage_of_a_run_is_named_with_its_rate_as_claims_per_minute(client, cast) -> None:
    leo, _rita = cast
    lane = running(leo, stages=(PLAN[0], replace(PLAN[1], rate=120), PLAN[2]))

    page = signed_in(client, leo).get(reverse("lane", args=[lane.name]))

    assert "120 claims per minute" in text(page)
    assert StageRun.objects.get(lane=lane, number=2).rate == 120
    assert hold.RIGHT == "hold_lane"
    assert lane.run.started_at == at(80)
