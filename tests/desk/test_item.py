"""The item's page: content, why it is here, deciding it, and losing it."""

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.urls import reverse

from queue_core import contract, people
from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.models import Assignment, AuditEntry, Decision, Evidence, Item, Job, Message
from queue_core.states import Verdict
from reviewboard.evidence_view import content_of
from tests.desk.backlog import dead_now, make_live_lane, manual_now, now, ticket, token_of
from tests.factories import make_ground
from tests.people.cast import REVIEWER, item_of, leo, person, rita

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
POLL = HTMX | {"X-Live-Poll": "1"}
PAYLOADS = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    '" onmouseover=alert(1) x="',
    "javascript:alert(1)",
    "<a hx-get=/admin/logout hx-trigger=load>",
    "{{7*7}}",
    "safe \u202egnp.exe",
    "\u2067never closed",
]


@pytest.fixture
def item(db):
    return manual_now(make_live_lane())


def text(response):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def see(client, who, item, **headers):
    client.force_login(who)
    return client.get(reverse("item", args=[item.pk]), **headers)


def taken(client, item, who):
    client.force_login(who)
    assert people.take(item.pk, person=who, clock=DATABASE_CLOCK).token is not None
    return form_of(item)


def form_of(item, **words):
    token = token_of(item)
    return {"fence": token.fence, "key": str(token.key), "verdict": "APPROVED", "reason_code": "", "note": ""} | words


def decide(client, item, form, **headers):
    return client.post(reverse("item_decide", args=[item.pk]), form, **headers)


@pytest.mark.parametrize("permissions", [(), ("view_board", "view_evidence")], ids=["nothing", "looking"])
def test_who_may_not_decide_finds_no_item(client, item, permissions):
    assert see(client, person("vera", *permissions), item).status_code == 404


@pytest.mark.parametrize("number", [0, 2**63, 10**30])
def test_numbers_of_nothing_are_not_found(client, number):
    """IMP-12: huge numbers in an address are 404."""
    client.force_login(rita())

    assert client.get(f"/desk/{number}/").status_code == 404


def test_a_free_item_can_be_looked_at_and_taken_but_not_decided(client, item):
    response = see(client, rita(), item)

    body = response.content.decode()
    assert reverse("desk_take", args=[item.pk]) in body
    assert reverse("item_decide", args=[item.pk]) not in body


def test_the_page_says_why_it_is_here_in_a_sentence_with_scores_against_the_lines(client, item):
    shown = text(see(client, rita(), item))

    assert "The model was not sure: its score for “offensive” is 0.62, between 0.40 and 0.80." in shown
    assert "for people between 0.40 and 0.80" in shown


def test_a_dead_item_says_what_happened_and_offers_to_requeue_to_who_may(client):
    job = dead_now(make_live_lane())
    item = item_of(job)

    taken(client, item, rita())
    for_reviewer = client.get(reverse("item", args=[item.pk]))
    people.give_back(token_of(item), person=Assignment.objects.get().person, clock=DATABASE_CLOCK)
    taken(client, item, leo())
    for_lead = client.get(reverse("item", args=[item.pk]))

    assert "Its deadline passed before the model was asked at all." in text(for_lead)
    assert reverse("item_requeue", args=[item.pk]) in for_lead.content.decode()
    assert reverse("item_requeue", args=[item.pk]) not in for_reviewer.content.decode()


def test_decide_writes_the_decision_and_goes_back_to_the_desk(client, item):
    who = rita()
    form = taken(client, item, who) | {"verdict": "REJECTED", "reason_code": "insult", "note": "a plain insult"}

    response = decide(client, item, form, follow=True)

    decision = Decision.objects.get()
    assert (decision.verdict, decision.person, decision.note) == ("REJECTED", who, "a plain insult")
    assert "Decided: REJECTED." in text(response)
    assert f'data-kept-clear="item-{item.pk}-1"' in response.content.decode()


def test_decide_and_next_leads_to_the_next_item_already_taken(client, item):
    following = manual_now(item.lane)
    form = taken(client, item, rita()) | {"then": "next"}

    response = decide(client, item, form)

    assert response.url == reverse("item", args=[following.pk])
    following.refresh_from_db()
    assert following.taken_by.username == "rita"


def test_with_htmx_a_decision_leads_on_by_a_redirect_of_the_whole_page(client, item):
    response = decide(client, item, taken(client, item, rita()), headers=HTMX)

    assert (response.status_code, response["HX-Redirect"]) == (200, reverse("desk"))


def test_a_rejection_without_a_ground_is_asked_for_one_and_keeps_the_note(client, item):
    form = taken(client, item, rita()) | {"verdict": "REJECTED", "note": "typed with care"}

    whole = decide(client, item, form)
    part = decide(client, item, form, headers=HTMX)

    assert (whole.status_code, part.status_code) == (422, 422)
    assert "Choose the reason code that the rejection rests on." in text(whole)
    assert "typed with care" in whole.content.decode()
    assert "<html" in whole.content.decode()
    assert part.content.decode().lstrip().startswith('<div id="work"')
    assert not Decision.objects.exists()


def test_the_same_decision_twice_is_done_once_and_no_error(client, item):
    """HTX-09: the second answer is "already", with one decision, one message, one audit row."""
    form = taken(client, item, rita())
    decide(client, item, form)

    again = decide(client, item, form, follow=True)

    assert again.status_code == 200
    assert "You had decided this item already: APPROVED." in text(again)
    assert Decision.objects.count() == Message.objects.filter(kind="decision").count() == 1
    assert AuditEntry.objects.filter(act="item.decided").count() == 1


@pytest.mark.parametrize("verdicts", [["APPROVED", "REJECTED"], ["REJECTED", "APPROVED"]])
def test_of_two_verdicts_in_one_form_neither_is_taken_adm_06(client, item, verdicts):
    form = taken(client, item, rita()) | {"reason_code": "insult"}

    answer = decide(client, item, form | {"verdict": verdicts})

    assert answer.status_code == 422
    assert "A field came twice with different values. Nothing was done." in text(answer)
    assert not Decision.objects.exists()
    assert decide(client, item, form | {"verdict": ["REJECTED", "REJECTED"]}).status_code == 302


def expire(item):
    moment = now() - timedelta(seconds=1)
    Item.objects.filter(pk=item.pk).update(taken_until=moment)
    Assignment.objects.filter(item=item).update(until=moment)


def test_a_decision_from_an_old_page_is_refused_with_what_who_and_the_typed_note(client, item):
    """MOD-01: the second moderator is told of the first one's decision, and it stands."""
    form = taken(client, item, rita()) | {"note": "typed with care"}
    expire(item)
    other = leo()
    people.take(item.pk, person=other, clock=DATABASE_CLOCK)
    people.resolve(token_of(item), person=other, verdict=Verdict.REJECTED, reason_code="insult", clock=DATABASE_CLOCK)

    response = decide(client, item, form)

    shown = text(response)
    assert response.status_code == 409
    assert "Decided by leo." in shown
    assert "REJECTED" in shown
    assert "typed with care" in shown
    assert Decision.objects.get().verdict == "REJECTED"


def test_who_lost_the_item_to_another_is_told_who_has_it(client, item):
    form = taken(client, item, rita()) | {"note": "typed with care"}
    expire(item)
    people.take(item.pk, person=leo(), clock=DATABASE_CLOCK)

    response = decide(client, item, form, headers=HTMX)
    poll = client.get(reverse("item", args=[item.pk]), headers=POLL)

    assert response.status_code == 409
    assert "Taken by leo." in text(response)
    assert "typed with care" in text(response)
    assert "leo has this item." in text(poll)
    assert "data-alarm" in poll.content.decode()


def test_who_lost_the_item_to_the_leads_is_told_who_escalated_it(client, item):
    form = taken(client, item, rita()) | {"note": "typed with care"}
    lead = person("lena", *REVIEWER, "lead_desk")
    people.escalate_item(item.pk, fence=form["fence"], person=lead, reason="for us", clock=DATABASE_CLOCK)

    response = decide(client, item, form, headers=HTMX)

    shown = text(response)
    assert response.status_code == 409
    assert "only leads take it now" in shown
    assert "Escalated by lena." in shown
    assert "typed with care" in shown


def test_an_older_tab_gets_409_with_a_form_for_the_assignment_of_now(client, item):
    """LSE-05: the older tab decides nothing; its reader may look once more and decide under the newer assignment."""
    who = rita()
    older = taken(client, item, who) | {"verdict": "REJECTED", "reason_code": "insult"}
    expire(item)
    people.take(item.pk, person=who, clock=DATABASE_CLOCK)

    response = decide(client, item, older)

    assert response.status_code == 409
    assert not Decision.objects.exists()
    fence = re.search(r'name="fence" value="(\d+)"', response.content.decode())[1]
    assert fence == "2"
    assert decide(client, item, form_of(item)).status_code == 302
    assert Decision.objects.get().verdict == "APPROVED"


def test_a_superseded_item_is_refused_with_how_it_closed(client):
    lane = make_live_lane()
    job = dead_now(lane)
    item = item_of(job)
    form = taken(client, item, rita())
    contract.supersede(
        ticket(lane, external_id=job.ticket.external_id, revision="v2"), replaces="v1", clock=DATABASE_CLOCK
    )

    response = decide(client, item, form)

    assert response.status_code == 409
    assert "closed meanwhile: superseded" in text(response)


@pytest.mark.parametrize(
    "odd",
    [
        {"fence": "9" * 30},
        {"fence": "9007199254740993"},
        {"fence": "x"},
        {"key": "nonsense"},
        {"key": ""},
        {"verdict": "MANUAL"},
        {"note": "a\0b"},
        {"note": "x" * 4001},
        {"reason_code": "a\0b"},
    ],
    ids=str,
)
def test_odd_words_decide_nothing_and_are_no_server_error(client, item, odd):
    """IMP-07, IMP-12: huge numbers, NUL and nonsense in a form."""
    form = taken(client, item, rita()) | odd

    assert decide(client, item, form).status_code in (409, 422)
    assert not Decision.objects.exists()


def test_extend_without_javascript_keeps_what_was_typed(client, item):
    form = taken(client, item, rita()) | {"note": "typed with care", "verdict": "REJECTED"}
    before = Item.objects.get().taken_until

    response = client.post(reverse("item_extend", args=[item.pk]), form)

    assert "typed with care" in response.content.decode()
    assert Item.objects.get().taken_until > before


def test_extend_by_htmx_swaps_the_time_alone(client, item):
    form = taken(client, item, rita())

    response = client.post(reverse("item_extend", args=[item.pk]), form, headers=HTMX)

    assert response.status_code == 200
    assert response.content.decode().strip().startswith('<div id="live"')
    assert "<form" not in response.content.decode()


def test_extend_of_a_lost_assignment_is_409(client, item):
    form = taken(client, item, rita())
    expire(item)

    assert client.post(reverse("item_extend", args=[item.pk]), form).status_code == 409
    assert client.post(reverse("item_extend", args=[item.pk]), form, headers=HTMX).status_code == 409


def test_give_back_frees_it_and_a_repeat_is_no_error(client, item):
    form = taken(client, item, rita())

    first = client.post(reverse("item_give_back", args=[item.pk]), form, follow=True)
    again = client.post(reverse("item_give_back", args=[item.pk]), form, follow=True)

    assert "Given back." in text(first)
    assert "You did not have this item any more." in text(again)
    assert Item.objects.get().taken_by is None


def test_hand_over_goes_to_somebody_by_name(client, item):
    other = leo()
    form = taken(client, item, rita()) | {"to": other.pk}

    response = client.post(reverse("item_hand_over", args=[item.pk]), form, follow=True)

    assert "Handed over to leo." in text(response)
    assert Item.objects.get().taken_by == other


def test_hand_over_to_who_may_not_decide_is_422(client, item):
    nobody = person("vera", "view_board")
    form = taken(client, item, rita()) | {"to": nobody.pk}

    assert client.post(reverse("item_hand_over", args=[item.pk]), form).status_code == 422
    assert Item.objects.get().taken_by.username == "rita"


def test_requeue_gives_the_job_back_with_a_new_deadline(client):
    job = dead_now(make_live_lane())
    item = item_of(job)
    form = taken(client, item, leo()) | {"deadline": "4h", "reason": "the model is back"}

    response = client.post(reverse("item_requeue", args=[item.pk]), form, follow=True)

    job.refresh_from_db()
    assert "Requeued:" in text(response)
    assert job.state == "WAITING"
    assert timedelta(hours=3, minutes=59) < job.deadline - now() < timedelta(hours=4, minutes=1)


def test_requeue_without_a_reason_is_422(client):
    """RET-03: a redrive that lacks what it needs is refused with a plain reason."""
    job = dead_now(make_live_lane())
    item = item_of(job)
    form = taken(client, item, leo()) | {"deadline": "4h", "reason": ""}

    assert client.post(reverse("item_requeue", args=[item.pk]), form).status_code == 422
    job.refresh_from_db()
    assert job.state == "DEAD"


def test_a_manual_item_cannot_be_requeued_by_a_handmade_form(client, item):
    form = taken(client, item, leo()) | {"deadline": "4h", "reason": "typed with care"}

    response = client.post(reverse("item_requeue", args=[item.pk]), form)

    assert response.status_code == 409
    assert "Only a job that died by its deadline or its attempts goes back to the machine." in text(response)
    assert Job.objects.get().state == "DONE"


def test_acts_without_the_right_are_not_found(client, item):
    """ADM-09: viewing rights act on nothing."""
    form = taken(client, item, rita())
    client.force_login(person("vera", "view_board", "view_evidence"))

    for name in ("item_decide", "item_extend", "item_give_back", "item_hand_over", "item_requeue"):
        assert client.post(reverse(name, args=[item.pk]), form).status_code == 404
    assert Item.objects.get().closed_at is None


def test_hostile_content_is_shown_as_text(client):
    """MOD-14, MOD-15: nothing of a ticket is markup, and nothing in it is invisible."""
    evidence = {"text": "\n".join(PAYLOADS), **{payload: payload for payload in PAYLOADS}}
    item = manual_now(
        make_live_lane(), external_id=PAYLOADS[0], revision=PAYLOADS[2], category=PAYLOADS[4], evidence=evidence
    )
    taken(client, item, rita())

    for url in (reverse("item", args=[item.pk]), reverse("desk"), reverse("job", args=[item.job_id]), reverse("jobs")):
        body = client.get(url).content.decode()
        assert "<img" not in body
        assert "<script>alert" not in body
        assert "<a hx-get" not in body
        assert "\u202e" not in body
        assert "\u2067" not in body
        assert not re.search(r"<[^>]*\sonmouseover=", body)
        assert "javascript:" not in "".join(re.findall(r'href="([^"]*)"', body))
    assert json.loads(Evidence.objects.get().body) == evidence


def test_ids_that_differ_by_what_is_invisible_are_told_apart(client):
    """MOD-15: 'ok' and 'ok' with a zero-width space."""
    lane = make_live_lane()
    manual_now(lane, external_id="ok")
    manual_now(lane, external_id="ok\u200b")
    client.force_login(rita())

    body = client.get(reverse("desk")).content.decode()

    assert "U+200B" in body
    assert "ok\u200b" not in body


def test_restricted_content_is_never_on_the_page_by_itself_and_no_text_about_it_is_kept_by_the_browser(client):
    item = manual_now(make_live_lane(), is_restricted=True, evidence={"text": "what nobody should see"})
    specialist = person("sue", *REVIEWER, "view_restricted")

    assert "what nobody should see" not in text(see(client, rita(), item))
    taken(client, item, specialist)
    body = client.get(reverse("item", args=[item.pk])).content.decode()

    assert "what nobody should see" not in body
    assert "data-keep=" not in body
    assert "Show the content" in body


def test_a_broken_seal_is_said_before_anybody_decides(client, item, monkeypatch):
    broken = replace(content_of(Evidence.objects.get()), is_sealed=False)
    monkeypatch.setattr("reviewboard.reading.content_of", lambda _evidence: broken)

    assert "The seal is broken." in text(see(client, rita(), item))


def test_erased_content_can_still_be_decided(client, item):
    """MOD-07: content that is gone opens a page, and decisions work."""
    Evidence.objects.update(body="", erased_at=now(), erased_ground="asked for")
    form = taken(client, item, rita())

    assert "it was erased" in text(client.get(reverse("item", args=[item.pk])))
    assert decide(client, item, form).status_code == 302


def test_the_poll_of_an_item_is_text_only_and_nothing_when_nothing_changed(client, item):
    taken(client, item, rita())
    first = client.get(reverse("item", args=[item.pk]), headers=POLL)
    again = client.get(reverse("item", args=[item.pk]), headers=POLL | {"X-Live-Version": first["X-Live-Version"]})

    assert not re.search(r"<(form|input|details|textarea|button)\b", first.content.decode())
    assert "evidence" not in first.content.decode()
    assert again.status_code == 204


def test_no_element_of_the_page_has_the_id_of_another(client):
    """MOD-09: several forms on one page, no id twice."""
    item = item_of(dead_now(make_live_lane()))
    taken(client, item, leo())

    ids = re.findall(r'\sid="([^"]+)"', client.get(reverse("item", args=[item.pk])).content.decode())

    assert len(ids) == len(set(ids))


def test_dead_by_attempts_names_the_last_outcome(client):
    lane = make_live_lane(max_attempts=1)
    past = now() - timedelta(hours=1)
    job = contract.receive(ticket(lane, left=7200), clock=FixedClock(past)).job
    token = contract.claim(job.pk, clock=FixedClock(past), worker="w1").token
    contract.release(token, outcome="timeout", clock=FixedClock(past + timedelta(seconds=10)), worker="w1")

    shown = text(see(client, rita(), item_of(Job.objects.get())))

    assert "Its only attempt was spent without a result; it ended so: timed out: effect unknown." in shown


def test_a_ground_for_approving_is_offered_apart(client, item):
    ground = make_ground("satire")
    ground.is_for_rejection = False
    ground.save()
    taken(client, item, rita())

    body = client.get(reverse("item", args=[item.pk])).content.decode()

    assert re.search(r'<optgroup label="For approving">\s*<option value="satire">', body)
