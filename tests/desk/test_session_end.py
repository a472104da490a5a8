"""A form sent after its session was over, without JavaScript: its text comes back after the sign-in (HTX-01)."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.core import signing
from django.urls import reverse

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Decision
from reviewboard import unsent
from reviewboard.models import Person
from tests.desk.backlog import make_live_lane, manual_now, token_of
from tests.people.cast import REVIEWER, person

pytestmark = pytest.mark.django_db

NOTE = "I typed this for ten minutes"
PASSWORD = "correct horse battery staple"


@pytest.fixture
def rita(db) -> Person:
    return _somebody("rita")


def _somebody(name: str) -> Person:
    who = person(name, *REVIEWER, "requeue_item")
    who.set_password(PASSWORD)
    who.save()
    return who


@pytest.fixture
def item(rita):
    found = manual_now(make_live_lane())
    people.take(found.pk, person=rita, clock=DATABASE_CLOCK)
    return found


def sent(item, **words) -> dict[str, str]:
    token = token_of(item)
    return {"fence": str(token.fence), "key": str(token.key), "verdict": "APPROVED", "note": NOTE} | words


def end_session(client, who: Person, page: str) -> None:
    """The browser has read the page; then the session ends, as by its time."""
    client.force_login(who)
    client.get(page)
    del client.cookies["reviewboard_session"]


def carried(answer) -> str:
    return unescape(re.search(r'name="unsent" value="([^"]+)"', answer.content.decode())[1])


def fields_of(answer) -> dict[str, str]:
    body = answer.content.decode()
    return {name: unescape(value) for name, value in re.findall(r'<textarea name="([^"]+)" hidden>\n([^<]*)<', body)}


def sign_in(client, name: str, sealed: str, password: str = PASSWORD):
    return client.post(reverse("sign_in"), {"username": name, "password": password, "unsent": sealed, "next": "/desk/"})


def test_after_the_sign_in_the_form_is_there_with_its_text_and_is_sent_on_with_a_click(client, rita, item) -> None:
    page, act = reverse("item", args=[item.pk]), reverse("item_decide", args=[item.pk])
    end_session(client, rita, page)

    refused = client.post(act, sent(item), headers={"Referer": f"http://testserver{page}"})
    assert (refused.status_code, refused["Cache-Control"]) == (401, "no-store")
    assert NOTE in refused.content.decode()
    assert not Decision.objects.exists()
    wrong = sign_in(client, "rita", carried(refused), password="wrong")
    again = sign_in(client, "rita", carried(wrong))

    assert f'action="{act}"' in again.content.decode()
    assert fields_of(again) == {"fence": str(token_of(item).fence), "verdict": "APPROVED", "note": NOTE}
    looked_at = client.post(act, fields_of(again))
    assert (looked_at.status_code, NOTE in looked_at.content.decode()) == (409, True)
    client.post(act, fields_of(again) | {"key": str(token_of(item).key)})
    assert Decision.objects.get().note == NOTE


def test_what_one_typed_is_nothing_to_another(client, rita, item) -> None:
    _somebody("mallory")
    end_session(client, rita, reverse("desk"))
    refused = client.post(reverse("item_decide", args=[item.pk]), sent(item))

    answer = sign_in(client, "mallory", carried(refused))

    assert answer.status_code == 302
    assert NOTE not in answer.content.decode()


def test_after_a_sign_out_nothing_is_carried_and_none_of_it_is_kept_by_the_server(client, rita, item) -> None:
    client.force_login(rita)
    client.get(reverse("desk"))
    assert client.cookies[unsent.COOKIE].value == unsent.mark_of(rita)
    client.post(reverse("sign_out"))

    answer = client.post(reverse("item_decide", args=[item.pk]), sent(item))

    assert (answer.status_code, answer.url.partition("?")[0]) == (302, "/sign-in/")
    assert client.session.is_empty()


@pytest.mark.parametrize("act", ["item_skip", "item_escalate", "item_requeue", "item_hand_over", "item_extend"])
def test_each_form_of_an_item_sent_once_more_keeps_its_text(client, rita, item, act) -> None:
    client.force_login(rita)
    words = {"note": NOTE, "verdict": "APPROVED"} if act == "item_extend" else {"reason": NOTE, "deadline": "4h"}

    mine = client.post(reverse(act, args=[item.pk]), {"fence": "1", **words})
    people.give_back(token_of(item), person=rita, clock=DATABASE_CLOCK)
    lost = client.post(reverse(act, args=[item.pk]), {"fence": "1", **words})

    assert mine.status_code in (409, 422)
    assert lost.status_code in (409, 422)
    assert NOTE in lost.content.decode()
    assert NOTE in mine.content.decode()


@pytest.mark.parametrize("sealed", ["", "x", "a:b:c", "\0"])
def test_what_is_not_ours_is_carried_no_further(client, rita, sealed) -> None:
    assert sign_in(client, "rita", sealed).status_code == 302
    client.logout()
    assert b'name="unsent"' not in sign_in(client, "rita", sealed, password="wrong").content


def test_what_is_older_than_it_holds_is_let_go(client, rita, item, monkeypatch) -> None:
    end_session(client, rita, reverse("desk"))
    refused = client.post(reverse("item_decide", args=[item.pk]), sent(item))
    monkeypatch.setattr(unsent, "HOLDS", timedelta(0))

    assert sign_in(client, "rita", carried(refused)).status_code == 302
    with pytest.raises(signing.SignatureExpired):
        signing.loads(carried(refused), salt=unsent.SALT, max_age=0)


def test_a_button_without_text_and_too_much_text_lead_to_the_sign_in_as_ever(client, rita, item) -> None:
    end_session(client, rita, reverse("desk"))

    for words in ({"fence": "1"}, {"fence": "1", "note": "x" * 70_000}):
        assert client.post(reverse("item_give_back", args=[item.pk]), words).status_code == 302


def test_whoever_signed_in_in_another_tab_goes_on_here(client, rita, item) -> None:
    end_session(client, rita, reverse("desk"))
    refused = client.post(reverse("item_decide", args=[item.pk]), sent(item))
    client.force_login(rita)

    answer = client.post(reverse("sign_in"), {"unsent": carried(refused)})

    assert fields_of(answer)["note"] == NOTE
