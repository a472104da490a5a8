"""The pages of what follows an item besides its decision: skip, hand over, escalate, take back, correct, appeal."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from queue_core import people, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Decision, Item, ItemPass, LaneRole, Message, ReasonCode
from queue_core.people import team
from queue_core.states import ItemKind, MessageKind
from tests.desk.backlog import make_live_lane, manual_now, now, token_of
from tests.factories import without_guards
from tests.people.cast import LEAD, REVIEWER, leo, person, rita

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def item(db):
    return manual_now(make_live_lane())


def text(response):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def lena():
    return person("lena", *LEAD, "lead_desk")


def taken(client, item, who):
    client.force_login(who)
    assert people.take(item.pk, person=who, clock=DATABASE_CLOCK).token is not None
    return token(item)


def token(item):
    own = token_of(item)
    return {"fence": own.fence, "key": str(own.key)}


def post(client, name, pk, form, **headers):
    return client.post(reverse(name, args=[pk]), form, **headers)


def decided(client, item, who, **words):
    form = taken(client, item, who) | {"verdict": "APPROVED", "reason_code": "", "note": ""} | words
    return post(client, "item_decide", item.pk, form, follow=True)


def test_skip_asks_why_and_goes_on_to_the_next(client, item):
    who, following = rita(), manual_now(item.lane)
    form = taken(client, item, who)

    refused = post(client, "item_skip", item.pk, form | {"reason": " "})
    assert refused.status_code == 422
    answer = post(client, "item_skip", item.pk, form | {"reason": "I know the author", "then": "next"}, follow=True)

    assert answer.redirect_chain[-1][0] == reverse("item", args=[following.pk])
    assert "Skipped. Take next offers it to others." in text(answer)
    assert ItemPass.objects.get().reason == "I know the author"


def test_the_desk_says_that_what_is_left_was_skipped(client, item):
    who = rita()
    post(client, "item_skip", item.pk, taken(client, item, who) | {"reason": "r"})

    assert "1 item that you skipped waits for somebody else." in text(client.get(reverse("desk")))
    answer = client.post(reverse("desk_take_next"), follow=True)
    assert "1 item that you skipped waits for somebody else." in text(answer)


def test_an_escalated_item_is_on_the_leads_list_with_its_reason_and_no_reviewer_can_take_it(client, item):
    who, lead, other = rita(), lena(), person("sam", *REVIEWER)
    post(client, "item_escalate", item.pk, taken(client, item, who) | {"reason": "ask <b>a lawyer</b>"})
    take_it = reverse("desk_take", args=[item.pk])

    client.force_login(other)
    page = client.get(reverse("desk"))
    assert "for leads" in text(page)
    assert take_it not in page.content.decode()
    assert "for somebody else" in text(client.post(take_it, follow=True))
    client.force_login(lead)
    page = client.get(reverse("desk"))
    assert "ask &lt;b&gt;a lawyer&lt;/b&gt;" in page.content.decode()
    assert client.post(take_it).url == reverse("item", args=[item.pk])
    assert "ask &lt;b&gt;a lawyer&lt;/b&gt;" in client.get(reverse("item", args=[item.pk])).content.decode()


def test_whoever_is_handed_an_item_is_told_on_their_desk(client, item):
    who, other = rita(), leo()
    form = taken(client, item, who) | {"to": other.pk, "reason": "your language"}

    answer = post(client, "item_hand_over", item.pk, form, follow=True)

    assert "Handed over to leo." in text(answer)
    client.force_login(other)
    page = client.get(reverse("desk"))
    assert 'data-alarm="rita handed you an item."' in page.content.decode()
    assert "rita handed it to you. your language" in text(page)


def test_hand_over_offers_those_alone_who_may_decide_the_item_in_its_lane(client, item):
    who, here, elsewhere = rita(), person("hana"), person("elsa")
    reviewers = Group.objects.get(name=roles.REVIEWER)
    LaneRole.objects.create(person=here, role=reviewers, lane=item.lane)
    LaneRole.objects.create(person=elsewhere, role=reviewers, lane=make_live_lane())
    taken(client, item, who)

    page = client.get(reverse("item", args=[item.pk])).content.decode()

    assert f'<option value="{here.pk}">hana</option>' in page
    assert ">elsa</option>" not in page


def test_a_decision_may_be_taken_back_from_the_next_page_and_comes_back_as_it_was_typed(client, item):
    who = rita()
    page = decided(client, item, who, verdict="REJECTED", reason_code="insult", note="typed with care")
    decision = Decision.objects.get()
    undo = reverse("decision_take_back", args=[decision.pk])
    assert undo in page.content.decode()

    answer = client.post(undo, follow=True)

    again = Item.objects.get(closed_at__isnull=True)
    assert answer.redirect_chain[-1][0] == reverse("item", args=[again.pk])
    shown = answer.content.decode()
    assert "typed with care</textarea>" in shown
    assert re.search(r'value="REJECTED"[^>]* checked', shown)
    assert '<option value="insult" selected>' in shown
    assert not Message.objects.filter(kind=MessageKind.DECISION, state="ready").exists()


def test_after_its_time_a_decision_is_not_offered_and_not_taken_back(client, item):
    decided(client, item, rita())
    with without_guards():
        Message.objects.filter(kind=MessageKind.DECISION).update(not_before=now() - timedelta(seconds=1))
    undo = reverse("decision_take_back", args=[Decision.objects.get().pk])

    assert undo not in client.get(reverse("desk")).content.decode()
    assert "Too late: the decision is on its way." in text(client.post(undo, follow=True))
    assert Decision.objects.count() == 1


def test_nobody_finds_the_decision_of_another_to_take_back(client, item):
    decided(client, item, rita())
    client.force_login(leo())

    assert client.post(reverse("decision_take_back", args=[Decision.objects.get().pk])).status_code == 404


def test_an_old_page_is_told_that_the_decision_was_taken_back(client, item):
    who = rita()
    form = taken(client, item, who) | {"verdict": "APPROVED", "reason_code": "", "note": ""}
    post(client, "item_decide", item.pk, form)
    client.post(reverse("decision_take_back", args=[Decision.objects.get().pk]))

    late = post(client, "item_decide", item.pk, form, headers=HTMX)

    assert late.status_code == 409
    assert "Taken back by rita." in text(late)


def test_the_reason_codes_clause_public_text_and_need_of_a_note_stand_beside_the_choice(client, item):
    ReasonCode.objects.create(
        code="hate", title="Hate", clause="Terms 4.2", public_text="Your text attacks people.", needs_note=True
    )
    form = taken(client, item, rita())

    shown = text(client.get(reverse("item", args=[item.pk])))
    refused = post(
        client, "item_decide", item.pk, form | {"verdict": "REJECTED", "reason_code": "hate", "note": " "}, headers=HTMX
    )

    assert "Hate · Terms 4.2 · needs a note Its author reads: Your text attacks people." in shown
    assert refused.status_code == 422
    assert "This reason code needs a note." in text(refused)


def test_a_second_look_shows_nothing_of_the_first(client):
    item = manual_now(make_live_lane(second_look_share=1.0))
    decided(client, item, rita(), verdict="REJECTED", reason_code="insult", note="the first one's words")
    look = Item.objects.get(kind=ItemKind.SECOND_LOOK)

    taken(client, look, leo())
    shown = client.get(reverse("item", args=[look.pk]))

    assert "A second look: another person has decided this" in text(shown)
    assert "the first one" not in text(shown).replace("the first decision", "")
    assert "0.62" not in text(shown)
    answer = post(client, "item_decide", look.pk, token(look) | {"verdict": "APPROVED"}, follow=True)
    assert "Your second look is kept." in text(answer)


def test_a_lead_corrects_a_decision_from_the_jobs_page(client, item):
    decided(client, item, rita())
    decision, lead = Decision.objects.get(), lena()
    correct = reverse("decision_correct", args=[decision.pk])
    assert correct not in client.get(reverse("job", args=[item.job_id])).content.decode()
    assert client.post(correct).status_code == 404
    client.force_login(lead)
    assert correct in client.get(reverse("job", args=[item.job_id])).content.decode()

    answer = client.post(correct, follow=True)

    assert "It stands until you decide" in text(answer)
    open_one = Item.objects.get(closed_at__isnull=True)
    form = token(open_one) | {"verdict": "REJECTED", "reason_code": "insult", "note": ""}
    assert "Say why" in text(post(client, "item_decide", open_one.pk, form))
    post(client, "item_decide", open_one.pk, form | {"note": "seen anew"})
    assert Decision.objects.get(replaced_by__isnull=True).verdict == "REJECTED"
    assert "not in force any more" in text(client.post(correct, follow=True))


def test_an_appeal_is_entered_on_the_jobs_page_and_its_words_are_text_mod_14(client, item):
    decided(client, item, rita())
    clerk = person("carl", "view_board", "appeal_decision")
    client.force_login(clerk)
    url = reverse("job_appeal", args=[item.job_id])
    assert url in client.get(reverse("job", args=[item.job_id])).content.decode()

    answer = client.post(url, {"statement": "<script>alert(1)</script> I meant a stone"}, follow=True)

    assert "The appeal is entered." in text(answer)
    opened = Item.objects.get(kind=ItemKind.APPEAL)
    taken(client, opened, leo())
    shown = client.get(reverse("item", args=[opened.pk])).content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt; I meant a stone" in shown


def test_the_numbers_are_for_leads_and_those_of_people_have_their_own_right(client, item):
    who = rita()
    decided(client, item, who, verdict="REJECTED", reason_code="insult")
    skipped = manual_now(item.lane)
    post(client, "item_skip", skipped.pk, taken(client, skipped, who) | {"reason": "r <b>"})
    assert client.get(reverse("desk_numbers")).status_code == 404
    client.force_login(lena())

    page = client.get(reverse("desk_numbers"))
    assert ">rita</th>" not in page.content.decode()
    assert "r &lt;b&gt;" in page.content.decode()
    [sums] = [sums for lane, sums in page.context["lanes"] if lane == item.lane]
    assert (sums.handled, sums.ended, sums.passed) == (1, {"REJECTED": 1}, {"skipped": 1})
    assert sums.median is not None
    client.force_login(person("ada", *LEAD, "lead_desk", "view_person_figures"))
    assert ">rita</th>" in client.get(reverse("desk_numbers") + "?days=7").content.decode()


def test_numbers_leave_out_what_was_taken_back(client, item):
    decided(client, item, rita())
    client.post(reverse("decision_take_back", args=[Decision.objects.get().pk]))

    sums = team.of_lanes([item.lane_id], since=now() - timedelta(hours=1))[item.lane_id]

    assert (sums.handled, sums.ended, sums.median) == (0, {}, None)


def test_numbers_count_second_looks_and_read_no_more_than_they_say(client, monkeypatch):
    lane, first, second = make_live_lane(second_look_share=1.0), rita(), leo()
    for _ in range(3):
        decided(client, manual_now(lane), first)
    for look in Item.objects.filter(kind=ItemKind.SECOND_LOOK):
        verdict = "APPROVED" if look.pk % 2 else "REJECTED"
        decided(client, look, second, verdict=verdict, reason_code="" if look.pk % 2 else "insult")
    monkeypatch.setattr(team, "MOST_READ", 2)

    sums = team.of_lanes([lane.pk], since=now() - timedelta(hours=1))[lane.pk]

    assert (sums.handled, sums.is_cut, sums.looks) == (2, True, 3)
    assert sums.agreement == sums.agreed / 3
